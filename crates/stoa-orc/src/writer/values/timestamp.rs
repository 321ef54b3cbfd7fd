//! TIMESTAMP, TIMESTAMP_INSTANT: seconds since 2015-01-01 00:00:00 and nanoseconds.
//!
//! The writer's zone is UTC for both: a TIMESTAMP is a wall clock, counted as if it were UTC.
//! Seconds before 1970 are rounded towards zero where there are more than 999,999 nanoseconds, as
//! all readers expect (ORC-306, ORC-763). In the second before 1970-01-01 00:00:00 that would be the
//! second after it, so there the nanoseconds are negative, as in files of Arrow C++. Stoa and Arrow
//! C++ read them exactly. **Limit of the format:** Java's readers know no point in that second with
//! more than 999,999 nanoseconds; they refuse it, or read another one.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::direct::DirectValues;
use super::{mismatch, push_valid};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::statistics::TimestampBound;
use crate::writer::column::Seen;
use crate::writer::stream::{Context, IntStream};

/// 2015-01-01 00:00:00 UTC in seconds since 1970.
const BASE_SECONDS: i64 = 1_420_070_400;

/// Seconds, and packed nanoseconds.
type Streams = (IntStream, IntStream);

#[derive(Default)]
pub(super) struct TimestampValues {
    /// Of the batch at hand, in its unit.
    scratch: Vec<i64>,
}

impl TimestampValues {
    /// Adds the values in the scratch space, of which `PER_SECOND` make a second.
    fn push<const PER_SECOND: i64>(&self, streams: &mut Streams, seen: &mut Seen) {
        let per_unit = 1_000_000_000 / PER_SECOND;
        let split =
            |value: i64| (value.div_euclid(PER_SECOND), value.rem_euclid(PER_SECOND) * per_unit);
        let bound = |value: i64| {
            let (seconds, nanos) = split(value);
            let millis = seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000);
            TimestampBound { millis, nanos: (nanos % 1_000_000) as u32 }
        };
        let values = self.scratch.iter().copied();
        let Some((low, high)) = values.clone().min().zip(values.clone().max()) else { return };
        seen.collector.add_timestamps(bound(low), bound(high));
        if let Some(bloom) = &mut seen.bloom {
            values.clone().for_each(|value| bloom.add_long(bound(value).millis));
        }
        let stored = |value| towards_zero(split(value));
        let (seconds, nanos) = streams;
        seconds
            .pending()
            .extend(values.clone().map(|value| stored(value).0.wrapping_sub(BASE_SECONDS)));
        nanos.pending().extend(values.map(|value| packed_nanos(stored(value).1)));
    }
}

impl DirectValues for TimestampValues {
    type Streams = Streams;
    const KINDS: &'static [StreamKind] = &[StreamKind::Data, StreamKind::Secondary];
    const ENCODING: EncodingKind = EncodingKind::DirectV2;

    fn new_streams() -> Streams {
        (IntStream::signed(), IntStream::unsigned())
    }

    fn write(
        &mut self,
        streams: &mut Streams,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        self.scratch.clear();
        let DataType::Timestamp(unit, _) = array.data_type() else {
            return Err(mismatch(array, "a timestamp"));
        };
        match unit {
            TimeUnit::Second => {
                copy::<TimestampSecondType>(array, nulls, &mut self.scratch);
                self.push::<1>(streams, seen);
            }
            TimeUnit::Millisecond => {
                copy::<TimestampMillisecondType>(array, nulls, &mut self.scratch);
                self.push::<1_000>(streams, seen);
            }
            TimeUnit::Microsecond => {
                copy::<TimestampMicrosecondType>(array, nulls, &mut self.scratch);
                self.push::<1_000_000>(streams, seen);
            }
            TimeUnit::Nanosecond => {
                copy::<TimestampNanosecondType>(array, nulls, &mut self.scratch);
                self.push::<1_000_000_000>(streams, seen);
            }
        }
        streams.0.cut(cx)?;
        streams.1.cut(cx)
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch.capacity() * 8
    }
}

fn copy<T: ArrowPrimitiveType<Native = i64>>(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    out: &mut Vec<i64>,
) {
    push_valid(array.as_primitive::<T>().values(), nulls, out, |value| value);
}

/// Seconds (rounded down) and nanoseconds as they are stored.
fn towards_zero((seconds, nanos): (i64, i64)) -> (i64, i64) {
    match seconds {
        -1 if nanos > 999_999 => (0, nanos - 1_000_000_000),
        ..0 if nanos > 999_999 => (seconds + 1, nanos),
        _ => (seconds, nanos),
    }
}

/// Nanoseconds with zeros at the end (two at least) taken off and counted in the low three bits.
fn packed_nanos(nanos: i64) -> i64 {
    if nanos == 0 {
        return 0;
    }
    if nanos % 100 != 0 {
        return nanos << 3;
    }
    let (mut digits, mut zeros) = (nanos / 100, 2);
    while zeros < 8 && digits % 10 == 0 {
        digits /= 10;
        zeros += 1;
    }
    digits << 3 | (zeros - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_counted() {
        for (nanos, packed) in [
            (0, 0),
            (1, 8),
            (1000, 10),
            (100, 9),
            (10, 80),
            (100_000, 12),
            (500_000_000, 5 << 3 | 7),
            (999_999_999, 999_999_999 << 3),
            (-1, -8),
            (-500_000_000, -5 * 8 + 7),
            (-999_000_001, -999_000_001 << 3),
        ] {
            assert_eq!(packed_nanos(nanos), packed, "{nanos}");
        }
    }
}
