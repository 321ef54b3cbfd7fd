//! Times of the day: `date + time` is the timestamp at that time, `time + interval` another time, `time - time` an interval.
//!
//! The engine's own operators fail on times when a plan asks them between which values they are.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit,
};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::call::{Operation, columns, failure};
use super::time_zone::LOCAL;

const DAY_US: i64 = 86_400_000_000;

/// A day and a time of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DateAndTime;

impl Operation for DateAndTime {
    fn name(&self) -> &str {
        "date_and_time"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(LOCAL)
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(" + ")
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [days, times] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        let days = cast(days, &DataType::Date32)?;
        let times = cast(times, &DataType::Time64(TimeUnit::Microsecond))?;
        let days = days.as_primitive::<Date32Type>();
        let times = times.as_primitive::<Time64MicrosecondType>();
        let sums = days.iter().zip(times).map(|(day, time)| match (day, time) {
            (Some(day), Some(time)) => at(day, time).map(Some),
            _ => Ok(None),
        });
        Ok(Arc::new(sums.collect::<Result<TimestampMicrosecondArray>>()?))
    }
}

fn at(day: i32, time: i64) -> Result<i64> {
    let midnight = i64::from(day).checked_mul(DAY_US);
    let sum = midnight.and_then(|midnight| midnight.checked_add(time));
    sum.ok_or_else(|| failure("22008", "timestamp out of range"))
}

/// `time + interval`, `time - interval`: days and months do not count, and after midnight comes the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TimeAndInterval {
    pub(super) subtracts: bool,
}

impl Operation for TimeAndInterval {
    fn name(&self) -> &str {
        "time_and_interval"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Time64(TimeUnit::Microsecond))
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(if self.subtracts { " - " } else { " + " })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [times, intervals] = columns.as_slice() else {
            return Err(failure("42883", "a time and an interval wanted"));
        };
        let times = cast(times, &DataType::Time64(TimeUnit::Microsecond))?;
        let intervals = cast(intervals, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let times = times.as_primitive::<Time64MicrosecondType>();
        let moved = times.iter().zip(intervals).map(|(time, interval)| {
            let micros = interval?.nanoseconds / 1000 % DAY_US;
            let micros = if self.subtracts { -micros } else { micros };
            Some((time? + micros).rem_euclid(DAY_US))
        });
        Ok(Arc::new(moved.collect::<Time64MicrosecondArray>()))
    }
}

/// `time - time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TimesBetween;

impl Operation for TimesBetween {
    fn name(&self) -> &str {
        "times_between"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(" - ")
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let micros = columns.iter().map(|times| {
            let micros = cast(times, &DataType::Time64(TimeUnit::Microsecond))?;
            Ok(cast(&micros, &DataType::Int64)?)
        });
        let micros = micros.collect::<Result<Vec<_>>>()?;
        let [later, earlier] = micros.as_slice() else {
            return Err(failure("42883", "two times wanted"));
        };
        let pairs =
            later.as_primitive::<Int64Type>().iter().zip(earlier.as_primitive::<Int64Type>());
        let spans = pairs.map(|(later, earlier)| {
            Some(IntervalMonthDayNano::new(0, 0, (later? - earlier?) * 1000))
        });
        Ok(Arc::new(spans.collect::<IntervalMonthDayNanoArray>()))
    }
}
