//! A checksum of a column's values, the same whatever Arrow arrays they come in.
//!
//! In: arrays as they are written, or as they are read again. Out: [`Checksum`].
//! **Invariant:** the values are taken out of Arrow here and nowhere else: not by the writer's
//! code, so that its mistakes are seen.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType, OffsetSizeTrait};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use stoa_error::Error;

use crate::bloom::hash_bytes;
use crate::error::Result;

/// A value of one column, children not included.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// A STRUCT.
    Present,
    Boolean(bool),
    /// Integers, and days of dates.
    Integer(i64),
    Float(f32),
    Double(f64),
    /// Texts and binary values.
    Bytes(&'a [u8]),
    /// Unscaled.
    Decimal(i128),
    /// Since 1970-01-01 00:00:00, the second rounded down.
    Timestamp {
        seconds: i64,
        nanos: u32,
    },
    /// Number of children of a LIST or MAP.
    Length(u64),
    /// Which variant of a UNION.
    Tag(u8),
}

/// Where the values of a column go, in their order.
pub(crate) trait Sink {
    fn null(&mut self);
    fn value(&mut self, value: Value);
}

/// A hash of the values in their order, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checksum {
    state: u64,
    pub(crate) values: u64,
    pub(crate) nulls: u64,
}

impl Checksum {
    /// Multiplying by an odd number and turning lose no bit: one value that differs is seen.
    fn mix(&mut self, word: u64) {
        self.state = (self.state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

impl Sink for Checksum {
    fn null(&mut self) {
        self.nulls += 1;
        self.mix(u64::MAX);
    }

    fn value(&mut self, value: Value) {
        self.values += 1;
        match value {
            Value::Present => self.mix(1),
            Value::Boolean(value) => self.mix(u64::from(value)),
            Value::Integer(value) => self.mix(value as u64),
            Value::Float(value) => self.mix(u64::from(value.to_bits())),
            Value::Double(value) => self.mix(value.to_bits()),
            Value::Bytes(value) => {
                self.mix(value.len() as u64);
                self.mix(hash_bytes(value));
            }
            Value::Decimal(value) => {
                self.mix(value as u64);
                self.mix((value >> 64) as u64);
            }
            Value::Timestamp { seconds, nanos } => {
                self.mix(seconds as u64);
                self.mix(u64::from(nanos));
            }
            Value::Length(value) => self.mix(value),
            Value::Tag(value) => self.mix(u64::from(value)),
        }
    }
}

/// Hands the rows of `array` to `sink`, those in `nulls` as NULL.
pub(crate) fn visit(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    sink: &mut impl Sink,
) -> Result<()> {
    let mut rows = ArrayRows { count: array.len(), nulls, sink };
    match array.data_type() {
        DataType::Struct(_) => rows.each(|_| Value::Present),
        DataType::Boolean => {
            let values = array.as_boolean().values();
            rows.each(|row| Value::Boolean(values.value(row)));
        }
        DataType::Int8 => rows.integers::<Int8Type>(array),
        DataType::Int16 => rows.integers::<Int16Type>(array),
        DataType::Int32 => rows.integers::<Int32Type>(array),
        DataType::Int64 => rows.integers::<Int64Type>(array),
        DataType::Time64(TimeUnit::Microsecond) => rows.integers::<Time64MicrosecondType>(array),
        DataType::Date32 => rows.integers::<Date32Type>(array),
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            rows.each(|row| Value::Float(values[row]));
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            rows.each(|row| Value::Double(values[row]));
        }
        DataType::Decimal32(..) => rows.decimals::<Decimal32Type>(array),
        DataType::Decimal64(..) => rows.decimals::<Decimal64Type>(array),
        DataType::Decimal128(..) => rows.decimals::<Decimal128Type>(array),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => rows.timestamps::<TimestampSecondType>(array, 1),
            TimeUnit::Millisecond => rows.timestamps::<TimestampMillisecondType>(array, 1_000),
            TimeUnit::Microsecond => rows.timestamps::<TimestampMicrosecondType>(array, 1_000_000),
            TimeUnit::Nanosecond => {
                rows.timestamps::<TimestampNanosecondType>(array, 1_000_000_000);
            }
        },
        DataType::List(_) => rows.offsets(array.as_list::<i32>().value_offsets()),
        DataType::LargeList(_) => rows.offsets(array.as_list::<i64>().value_offsets()),
        DataType::Map(..) => rows.offsets(array.as_map().value_offsets()),
        DataType::ListView(_) => {
            let sizes = array.as_list_view::<i32>().sizes();
            rows.each(|row| Value::Length(sizes[row] as u64));
        }
        DataType::LargeListView(_) => {
            let sizes = array.as_list_view::<i64>().sizes();
            rows.each(|row| Value::Length(sizes[row] as u64));
        }
        DataType::FixedSizeList(_, length) => rows.each(|_| Value::Length(*length as u64)),
        DataType::Union(fields, _) => {
            let ids = array.as_union().type_ids();
            let tag = |id: i8| fields.iter().position(|(known, _)| known == id);
            rows.each(|row| Value::Tag(tag(ids[row]).unwrap_or(usize::from(u8::MAX)) as u8));
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values().as_ref();
            // Without entries all rows are NULL.
            let keys = if values.is_empty() { Vec::new() } else { dictionary.normalized_keys() };
            let bytes = bytes_of(values)?;
            rows.each(|row| Value::Bytes(bytes(keys[row])));
        }
        _ => {
            let bytes = bytes_of(array)?;
            rows.each(|row| Value::Bytes(bytes(row)));
        }
    }
    Ok(())
}

/// The rows of an array on their way to a sink.
struct ArrayRows<'a, S> {
    count: usize,
    nulls: Option<&'a NullBuffer>,
    sink: &'a mut S,
}

impl<S: Sink> ArrayRows<'_, S> {
    fn each<'v>(&mut self, value: impl Fn(usize) -> Value<'v>) {
        for row in 0..self.count {
            match self.nulls {
                Some(nulls) if nulls.is_null(row) => self.sink.null(),
                _ => self.sink.value(value(row)),
            }
        }
    }

    fn integers<T: ArrowPrimitiveType<Native: Into<i64>>>(&mut self, array: &dyn Array) {
        let values = array.as_primitive::<T>().values();
        self.each(|row| Value::Integer(values[row].into()));
    }

    fn decimals<T: ArrowPrimitiveType<Native: Into<i128>>>(&mut self, array: &dyn Array) {
        let values = array.as_primitive::<T>().values();
        self.each(|row| Value::Decimal(values[row].into()));
    }

    fn timestamps<T: ArrowPrimitiveType<Native = i64>>(
        &mut self,
        array: &dyn Array,
        per_second: i64,
    ) {
        let values = array.as_primitive::<T>().values();
        let nanos_per_unit = 1_000_000_000 / per_second;
        self.each(|row| Value::Timestamp {
            seconds: values[row].div_euclid(per_second),
            nanos: (values[row].rem_euclid(per_second) * nanos_per_unit) as u32,
        });
    }

    fn offsets<O: OffsetSizeTrait>(&mut self, offsets: &[O]) {
        self.each(|row| Value::Length((offsets[row + 1] - offsets[row]).as_usize() as u64));
    }
}

/// The bytes of a row.
type BytesOf<'a> = Box<dyn Fn(usize) -> &'a [u8] + 'a>;

fn bytes_of(array: &dyn Array) -> Result<BytesOf<'_>> {
    Ok(match array.data_type() {
        DataType::Utf8 => Box::new(|row| array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => Box::new(|row| array.as_string::<i64>().value(row).as_bytes()),
        DataType::Utf8View => Box::new(|row| array.as_string_view().value(row).as_bytes()),
        DataType::Binary => Box::new(|row| array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Box::new(|row| array.as_binary::<i64>().value(row)),
        DataType::BinaryView => Box::new(|row| array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => Box::new(|row| array.as_fixed_size_binary().value(row)),
        other => return Err(Error::internal(format!("no checksum of {other}"))),
    })
}
