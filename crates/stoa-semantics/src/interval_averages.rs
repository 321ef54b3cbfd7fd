//! `avg` of intervals: their parts are summed, and the sum divided as `interval / number` is.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::utils::format_state_name;

use super::call::failure;
use super::times;

/// The type of intervals.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

const PARTS: [&str; 4] = ["months", "days", "micros", "count"];

/// What is kept of a group: a sum of each part, and how many intervals there were.
pub(super) fn state_fields(name: &str) -> Vec<FieldRef> {
    let field = |part: &str| Field::new(format_state_name(name, part), DataType::Int64, true);
    PARTS.iter().map(|part| field(part).into()).collect()
}

#[derive(Debug, Default)]
pub(super) struct IntervalAverage {
    /// Months, days, microseconds and the count.
    sums: [i64; 4],
}

fn out_of_range() -> DataFusionError {
    failure("22008", "interval out of range")
}

impl IntervalAverage {
    fn add(&mut self, parts: [i64; 4], sign: i64) -> Result<()> {
        for (sum, part) in self.sums.iter_mut().zip(parts) {
            let part = part.checked_mul(sign).ok_or_else(out_of_range)?;
            *sum = sum.checked_add(part).ok_or_else(out_of_range)?;
        }
        Ok(())
    }

    fn add_all(&mut self, columns: &[ArrayRef], sign: i64) -> Result<()> {
        let Some(values) =
            columns.first().and_then(|of| of.as_primitive_opt::<IntervalMonthDayNanoType>())
        else {
            return Err(failure("42883", "avg wants intervals"));
        };
        values.iter().flatten().try_for_each(|value| {
            let IntervalMonthDayNano { months, days, nanoseconds } = value;
            self.add([months.into(), days.into(), nanoseconds / 1000, 1], sign)
        })
    }
}

impl Accumulator for IntervalAverage {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.add_all(columns, 1)
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.add_all(columns, -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let [months, days, micros, count] = self.sums;
        if count == 0 {
            return Ok(ScalarValue::IntervalMonthDayNano(None));
        }
        let narrow = |part: i64| i32::try_from(part).map_err(|_| out_of_range());
        let sum = times::interval(narrow(months)?, narrow(days)?, micros)?;
        let average = times::times(sum, |part| part / count as f64)?;
        Ok(ScalarValue::IntervalMonthDayNano(Some(average)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.sums.iter().map(|sum| ScalarValue::Int64(Some(*sum))).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let columns: Vec<_> =
            states.iter().filter_map(|of| of.as_primitive_opt::<Int64Type>()).collect();
        let [months, days, micros, counts] = columns.as_slice() else {
            return Err(failure("XX000", "a state of another aggregate"));
        };
        (0..counts.len()).filter(|row| counts.is_valid(*row)).try_for_each(|row| {
            let parts = [months, days, micros, counts].map(|column| column.value(row));
            self.add(parts, 1)
        })
    }
}
