//! Comparisons of intervals: as in PostgreSQL, a day is 24 hours and a month 30 days.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Expr};

use super::call::{Operation, call, column};

/// The length of an interval in nanoseconds.
const SPAN: DataType = DataType::Decimal128(38, 0);
const DAY: i128 = 86_400_000_000_000;

/// Whether values are compared by their span, if others of type `b` are beside them.
pub(super) fn are_intervals(a: &DataType, b: &DataType) -> bool {
    let is_interval = |of: &DataType| matches!(of, DataType::Interval(_));
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

#[cfg(test)]
mod tests {
    use arrow::array::IntervalMonthDayNanoArray;
    use arrow::datatypes::{Decimal128Type, IntervalMonthDayNano};

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
