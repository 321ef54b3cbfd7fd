//! What is read again of one column in one row group: its checksum, its statistics worked out
//! anew, and whether its bloom filter has every value.

use crate::bloom::{BloomIndex, hash_bytes, hash_decimal, hash_double, hash_long};
use crate::schema::OrcType;
use crate::statistics::TimestampBound;
use crate::value_checksum::{Checksum, Sink, Value};
use crate::writer::collector::{Bounds, Collector};

/// Values of a column.
pub(super) struct Tally<'a> {
    pub(super) checksum: Checksum,
    pub(super) collector: Collector,
    scale: u32,
    /// The column's bloom filters and which of them these values are in.
    bloom: Option<(&'a BloomIndex, usize)>,
    /// Values that the bloom filter says are not there.
    pub(super) not_in_bloom: u64,
}

impl<'a> Tally<'a> {
    pub(super) fn new(ty: &OrcType, bloom: Option<(&'a BloomIndex, usize)>) -> Self {
        Self {
            checksum: Checksum::default(),
            collector: Collector::new(ty.kind, ty.scale),
            scale: ty.scale,
            bloom,
            not_in_bloom: 0,
        }
    }

    fn count(&mut self, value: Value) {
        let collector = &mut self.collector;
        match (value, &mut collector.bounds) {
            (Value::Boolean(value), Bounds::Boolean { trues }) => *trues += u64::from(value),
            (Value::Integer(value), _) => collector.add_integers(&[value]),
            (Value::Float(value), _) => collector.add_floats(std::iter::once(f64::from(value))),
            (Value::Double(value), _) => collector.add_floats(std::iter::once(value)),
            (Value::Bytes(value), Bounds::String(bounds)) => {
                bounds.add_length(value.len());
                bounds.add_bounds(value);
            }
            (Value::Bytes(value), Bounds::Binary { bytes }) => *bytes += value.len() as u64,
            (Value::Decimal(value), _) => collector.add_decimals(&[value]),
            (Value::Timestamp { seconds, nanos }, _) => {
                let at = bound(seconds, nanos);
                collector.add_timestamps(at, at);
            }
            (Value::Length(length), Bounds::Collection { min, max, total }) => {
                (*min, *max, *total) = (length.min(*min), length.max(*max), *total + length);
            }
            _ => {}
        }
    }

    fn hash(&self, value: Value) -> Option<u64> {
        Some(match value {
            Value::Integer(value) => hash_long(value),
            Value::Float(value) => hash_double(f64::from(value)),
            Value::Double(value) => hash_double(value),
            Value::Bytes(value) => hash_bytes(value),
            Value::Decimal(value) => hash_decimal(value, self.scale),
            Value::Timestamp { seconds, nanos } => hash_long(bound(seconds, nanos).millis),
            Value::Present | Value::Boolean(_) | Value::Length(_) | Value::Tag(_) => return None,
        })
    }
}

impl Sink for Tally<'_> {
    fn null(&mut self) {
        self.checksum.null();
        self.collector.nulls += 1;
    }

    fn value(&mut self, value: Value) {
        self.checksum.value(value);
        self.collector.values += 1;
        self.count(value);
        if let Some((bloom, group)) = self.bloom {
            let is_in = self.hash(value).is_none_or(|hash| bloom.may_contain(group, hash));
            self.not_in_bloom += u64::from(!is_in);
        }
    }
}

fn bound(seconds: i64, nanos: u32) -> TimestampBound {
    let millis = seconds.saturating_mul(1000).saturating_add(i64::from(nanos / 1_000_000));
    TimestampBound { millis, nanos: nanos % 1_000_000 }
}
