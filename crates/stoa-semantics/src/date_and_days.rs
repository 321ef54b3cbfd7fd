//! `date + n`, `date - n`: the date so many days later or earlier. `date - date`: the days between, an integer.
//!
//! The engine's own operator is of a date and an interval, which its estimates of conditions do not know of
//! an integer.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Operator};

use super::call::{Operation, columns, failure};

/// A date and an integer, under `+` or `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DateAndDays(pub(super) Operator);

impl Operation for DateAndDays {
    fn name(&self) -> &str {
        match self.0 {
            Operator::Minus => "date_minus_days",
            _ => "date_plus_days",
        }
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Date32)
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(&format!(" {} ", self.0))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [dates, days] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        let (dates, days) = (cast(dates, &DataType::Date32)?, cast(days, &DataType::Int64)?);
        let dates = dates.as_primitive::<Date32Type>().iter();
        let sums = dates.zip(days.as_primitive::<Int64Type>()).map(|pair| match pair {
            (Some(date), Some(days)) => self.of(date, days).map(Some),
            _ => Ok(None),
        });
        Ok(Arc::new(sums.collect::<Result<Date32Array>>()?))
    }
}

impl DateAndDays {
    fn of(self, date: i32, days: i64) -> Result<i32> {
        let date = i64::from(date);
        let sum = match self.0 {
            Operator::Minus => date.checked_sub(days),
            _ => date.checked_add(days),
        };
        let sum = sum.and_then(|sum| i32::try_from(sum).ok());
        sum.ok_or_else(|| failure("22008", "date out of range"))
    }
}

/// The days from one date to another, under `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DaysBetween;

impl Operation for DaysBetween {
    fn name(&self) -> &str {
        "days_between"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(" - ")
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [to, from] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        let (to, from) = (cast(to, &DataType::Date32)?, cast(from, &DataType::Date32)?);
        let days = arrow::compute::try_binary(
            to.as_primitive::<Date32Type>(),
            from.as_primitive::<Date32Type>(),
            |to, from| {
                to.checked_sub(from).ok_or_else(|| {
                    ArrowError::ArithmeticOverflow("integer out of range".to_owned())
                })
            },
        );
        let days: Int32Array = days.map_err(|_| failure("22003", "integer out of range"))?;
        Ok(Arc::new(days))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_beyond_all_dates_are_an_error() {
        let (plus, minus) = (DateAndDays(Operator::Plus), DateAndDays(Operator::Minus));
        assert_eq!(plus.of(10, 5).unwrap(), 15);
        assert_eq!(minus.of(10, 15).unwrap(), -5);
        assert!(plus.of(10, i64::from(i32::MAX)).is_err());
        assert!(minus.of(-10, i64::MAX).is_err());
    }
}
