//! Lengths of intervals: as in PostgreSQL, a day is 24 hours and a month 30 days where they are compared, and the
//! difference of two moments is one of days and a time.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Int64Array, IntervalMonthDayNanoArray,
};
use arrow::compute::cast;
use arrow::compute::kernels::arity::try_binary;
use arrow::datatypes::{
    DataType, Decimal128Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit,
};
use arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Expr};

use super::call::{Operation, call, column, failure};

/// The length of an interval in nanoseconds.
const SPAN: DataType = DataType::Decimal128(38, 0);
const DAY: i128 = 86_400_000_000_000;
const DAY_US: i64 = 86_400_000_000;

/// Whether values of a type have a length.
pub(super) fn is_interval(of: &DataType) -> bool {
    matches!(of, DataType::Interval(_))
}

/// Whether values are compared by their span, if others of type `b` are beside them.
pub(super) fn are_intervals(a: &DataType, b: &DataType) -> bool {
    let is_span = |of: &DataType| is_interval(of) || matches!(of, DataType::Duration(_));
    is_span(a) && is_span(b) && (is_interval(a) || is_interval(b))
}

/// The span of an interval.
pub(super) fn of(interval: Expr) -> Expr {
    call(Span, vec![interval])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Span;

impl Operation for Span {
    fn name(&self) -> &str {
        "interval_span"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(SPAN)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        spans(&column(operands, rows)?)
    }
}

/// The spans of a column of intervals.
pub(super) fn spans(intervals: &ArrayRef) -> Result<ArrayRef> {
    let intervals = cast(intervals, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let spans = intervals.iter().map(|interval| {
        let interval = interval?;
        let days = i128::from(interval.months) * 30 + i128::from(interval.days);
        Some(days * DAY + i128::from(interval.nanoseconds))
    });
    Ok(Arc::new(spans.collect::<Decimal128Array>().with_data_type(SPAN)))
}

/// A difference of two moments as an interval.
pub(super) fn of_duration(duration: Expr) -> Expr {
    call(DaysAndTime, vec![duration])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct DaysAndTime;

impl Operation for DaysAndTime {
    fn name(&self) -> &str {
        "days_and_time"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        days_and_time(&column(operands, rows)?)
    }
}

/// The longest of some intervals, or the shortest: the first of those that are equally long.
pub(super) fn extreme(intervals: Vec<Expr>, is_greatest: bool) -> Expr {
    call(Extreme { is_greatest }, intervals)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Extreme {
    is_greatest: bool,
}

impl Operation for Extreme {
    fn name(&self) -> &str {
        if self.is_greatest { "greatest_interval" } else { "least_interval" }
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let of = DataType::Interval(IntervalUnit::MonthDayNano);
        let mut columns = Vec::with_capacity(operands.len());
        for operand in operands {
            let intervals = cast(&operand.to_array(rows)?, &of)?;
            let lengths = spans(&intervals)?;
            columns.push((intervals, lengths));
        }
        let chosen = (0..rows).map(|row| {
            let mut best: Option<(i128, IntervalMonthDayNano)> = None;
            for (intervals, lengths) in columns.iter().filter(|column| column.0.is_valid(row)) {
                let length = lengths.as_primitive::<Decimal128Type>().value(row);
                let is_better = best.is_none_or(|(other, _)| match self.is_greatest {
                    true => length > other,
                    false => length < other,
                });
                if is_better {
                    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
                    best = Some((length, intervals.value(row)));
                }
            }
            best.map(|(_, interval)| interval)
        });
        Ok(Arc::new(chosen.collect::<IntervalMonthDayNanoArray>()))
    }
}

/// `later - earlier` of two moments: with a time zone, or both without.
pub(super) fn between(later: Expr, earlier: Expr) -> Expr {
    call(Between, vec![later, earlier])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Between;

impl Operation for Between {
    fn name(&self) -> &str {
        "time_between"
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
        let moments = |at: usize| -> Result<ArrayRef> {
            let moments = operands[at].to_array(rows)?;
            let zone = match moments.data_type() {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let moments = cast(&moments, &DataType::Timestamp(TimeUnit::Microsecond, zone))?;
            Ok(cast(&moments, &DataType::Int64)?)
        };
        let (later, earlier) = (moments(0)?, moments(1)?);
        let later = later.as_primitive::<Int64Type>();
        let out_of_range = || failure("22008", "interval out of range");
        let micros: Int64Array = try_binary(later, earlier.as_primitive::<Int64Type>(), |a, b| {
            a.checked_sub(b)
                .ok_or_else(|| ArrowError::from_external_error(Box::new(out_of_range())))
        })?;
        Ok(intervals(&micros))
    }
}

/// Durations as intervals of whole days and a time of less than a day, as PostgreSQL subtracts moments.
pub(super) fn days_and_time(durations: &ArrayRef) -> Result<ArrayRef> {
    let micros = cast(durations, &DataType::Duration(TimeUnit::Microsecond))?;
    let micros = cast(&micros, &DataType::Int64)?;
    Ok(intervals(micros.as_primitive::<Int64Type>()))
}

fn intervals(micros: &Int64Array) -> ArrayRef {
    Arc::new(micros.unary::<_, IntervalMonthDayNanoType>(|micros| {
        let (days, rest) = (micros / DAY_US, micros % DAY_US);
        IntervalMonthDayNano::new(0, days as i32, rest * 1000)
    }))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_day_is_as_long_as_its_hours_and_a_month_as_its_days() {
        let hours = |hours: i64| hours * 3_600_000_000_000;
        let intervals = IntervalMonthDayNanoArray::from(vec![
            IntervalMonthDayNano::new(0, 1, 0),
            IntervalMonthDayNano::new(0, 0, hours(24)),
            IntervalMonthDayNano::new(-1, 31, 0),
        ]);
        let spans = Span.compute(&[ColumnarValue::Array(Arc::new(intervals))], 3).unwrap();
        assert_eq!(spans.as_primitive::<Decimal128Type>().values().as_ref(), [DAY; 3]);
    }
}
