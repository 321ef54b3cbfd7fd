//! `date + time`: the timestamp at that time of the day.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Time64MicrosecondType, TimeUnit};
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
