//! TIMESTAMP and TIMESTAMP_INSTANT columns.
//!
//! In: DATA, seconds from 2015-01-01 00:00:00 (in the writer's zone, or UTC for INSTANT), and
//! SECONDARY, nanoseconds `value << 3 | zeros − 1`. Out: `Timestamp` of micro- or nanoseconds:
//! wall-clock time as if in UTC for TIMESTAMP, UTC for INSTANT.
//!
//! Writers round seconds towards zero, so before 1970 a point with more than 999,999 ns lies one
//! second earlier (ORC-306). In the last second before 1970, Java's writer leaves points that no reader
//! can tell apart from those after it; Stoa and Arrow C++ write negative nanoseconds there.

use std::sync::Arc;

use arrow_array::{ArrayRef, TimestampMicrosecondArray, TimestampNanosecondArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};

use super::column::{Column, Opening};
use super::context::Context;
use super::int_rle::IntRle;
use super::timezone::{Offsets, Zone};
use super::validity::{Present, spread, valid_count};
use crate::calendar::{DateRule, FIRST_GREGORIAN_DAY, hybrid_to_proleptic};
use crate::error::{Error, Result, corrupt, unsupported};
use crate::proto::StreamKind;
use crate::stripe::Encoding;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Powers of ten that the low three bits of a SECONDARY value stand for.
const ZEROS: [i64; 8] = [1, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A timestamp column.
pub(crate) struct TimestampColumn {
    present: Present,
    seconds: IntRle,
    nanos: IntRle,
    unit: TimeUnit,
    zone: Option<Arc<str>>,
    offsets: Offsets,
    epoch: i64,
    dates: DateRule,
    scratch: Vec<i64>,
}

impl TimestampColumn {
    pub(crate) fn open(
        opening: &Opening,
        column: u32,
        encoding: Encoding,
        is_instant: bool,
        to: &DataType,
        cx: &mut Context,
    ) -> Result<Self> {
        let DataType::Timestamp(unit, zone) = to else {
            return Err(unsupported(format!("timestamp as {to}")));
        };
        let offsets = if is_instant { Zone::Fixed(0).offsets() } else { opening.zone.offsets() }?;
        let seconds = opening.stream(column, StreamKind::Data);
        let nanos = opening.stream(column, StreamKind::Secondary);
        Ok(Self {
            present: Present::open(opening.present(column), cx)?,
            seconds: IntRle::open(&seconds, encoding.is_v2(), true, cx)?,
            nanos: IntRle::open(&nanos, encoding.is_v2(), false, cx)?,
            unit: *unit,
            zone: zone.clone(),
            epoch: offsets.epoch(),
            offsets,
            dates: opening.dates,
            scratch: Vec::new(),
        })
    }

    /// Turns seconds since the writer's epoch and encoded nanoseconds into the target's unit.
    fn convert(&mut self, values: &mut [i64]) -> Result<()> {
        let fixed = self.offsets.fixed();
        for (value, encoded) in values.iter_mut().zip(&self.scratch) {
            let mut nanos = decode_nanos(*encoded)?;
            let mut seconds = value.checked_add(self.epoch).ok_or_else(out_of_range)?;
            if nanos < 0 || (seconds < 0 && nanos > 999_999) {
                seconds = seconds.checked_sub(1).ok_or_else(out_of_range)?;
            }
            if nanos < 0 {
                nanos += NANOS_PER_SECOND;
            }
            let offset = match fixed {
                Some(offset) => offset,
                None => self.offsets.at(seconds),
            };
            seconds = seconds.checked_add(offset).ok_or_else(out_of_range)?;
            if self.dates == DateRule::Hybrid {
                seconds = proleptic(seconds);
            }
            *value = match self.unit {
                TimeUnit::Microsecond => in_unit(seconds, 1_000_000, nanos / 1_000)?,
                _ => in_unit(seconds, NANOS_PER_SECOND, nanos)?,
            };
        }
        Ok(())
    }
}

impl Column for TimestampColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let nulls = self.present.decode(cx, rows, parent)?;
        let valid = valid_count(rows, nulls.as_ref());
        cx.take::<i64>(rows + valid)?;
        let mut values = vec![0i64; rows];
        self.seconds.decode(cx, &mut values[..valid])?;
        self.scratch.clear();
        self.scratch.resize(valid, 0);
        self.nanos.decode(cx, &mut self.scratch)?;
        self.convert(&mut values[..valid])?;
        if let Some(nulls) = &nulls {
            spread(&mut values, nulls);
        }
        let (values, zone) = (ScalarBuffer::from(values), self.zone.clone());
        Ok(match self.unit {
            TimeUnit::Microsecond => {
                Arc::new(TimestampMicrosecondArray::new(values, nulls).with_timezone_opt(zone))
            }
            _ => Arc::new(TimestampNanosecondArray::new(values, nulls).with_timezone_opt(zone)),
        })
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)? as u64;
        self.seconds.skip(cx, valid)?;
        self.nanos.skip(cx, valid)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.seconds.recycle(cx);
        self.nanos.recycle(cx);
    }
}

/// Seconds and a fraction of `per_second` parts in that unit.
#[inline]
fn in_unit(seconds: i64, per_second: i64, fraction: i64) -> Result<i64> {
    let value = seconds.checked_mul(per_second).and_then(|value| value.checked_add(fraction));
    // The first second of the range is cut: its start lies outside, its end does not.
    let wide = || i128::from(seconds) * i128::from(per_second) + i128::from(fraction);
    value.or_else(|| i64::try_from(wide()).ok()).ok_or_else(out_of_range)
}

/// Nanoseconds, less than a second to either side.
#[inline]
fn decode_nanos(encoded: i64) -> Result<i64> {
    let zeros = ZEROS[(encoded & 7) as usize];
    match (encoded >> 3).checked_mul(zeros) {
        Some(nanos) if nanos.abs() < NANOS_PER_SECOND => Ok(nanos),
        _ => Err(corrupt(format!("nanoseconds of a timestamp: {encoded:#x}"))),
    }
}

/// Moves a wall-clock time of the Julian calendar to the same date in the proleptic one.
#[inline]
fn proleptic(seconds: i64) -> i64 {
    let day = seconds.div_euclid(SECONDS_PER_DAY);
    if day >= i64::from(FIRST_GREGORIAN_DAY) {
        return seconds;
    }
    hybrid_to_proleptic(day).saturating_mul(SECONDS_PER_DAY) + seconds.rem_euclid(SECONDS_PER_DAY)
}

#[cold]
fn out_of_range() -> Error {
    corrupt("a timestamp is out of range")
        .with_hint("nanoseconds reach from 1677 to 2262: read timestamps as microseconds")
}
