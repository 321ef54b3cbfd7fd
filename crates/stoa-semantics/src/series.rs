//! `generate_series`: operands that the engine would take otherwise than PostgreSQL are refused.
//!
//! The engine counts times in nanoseconds, and adds days in UTC. **Invariant:** what is not refused is
//! PostgreSQL's series.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, call, column, failure, unsupported};
use super::time_zone;
use crate::scope::Scope;

/// The call with operands that are looked at.
///
/// # Errors
/// 0A000 for instants in another zone than UTC, where days have other lengths.
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let ScalarFunction { func, args } = function;
    let mut is_changed = false;
    let mut checked = Vec::with_capacity(args.len());
    for (place, arg) in args.into_iter().enumerate() {
        let of = arg.get_type(&scope.schema)?;
        if matches!(of, DataType::Timestamp(_, Some(_))) && !time_zone::is_utc(scope.options) {
            return Err(unsupported(
                "generate_series of timestamp with time zone is not supported in this time zone",
                "make a series of timestamp, and use AT TIME ZONE",
            ));
        }
        let is_looked_at = place == 2 || matches!(of, DataType::Timestamp(..));
        match is_looked_at && !is_checked(&arg) {
            true => {
                is_changed = true;
                checked.push(call(SeriesOperand { is_step: place == 2 }, vec![arg]));
            }
            false => checked.push(arg),
        }
    }
    let series = Expr::ScalarFunction(ScalarFunction { func, args: checked });
    Ok(Transformed::new_transformed(series, is_changed))
}

fn is_checked(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(inner) => inner.func.name() == SeriesOperand::NAME,
        Expr::Cast(cast) => is_checked(&cast.expr),
        _ => false,
    }
}

/// The same value: a step that is not zero, or a time that can be counted in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SeriesOperand {
    is_step: bool,
}

impl SeriesOperand {
    const NAME: &str = "series_operand";
}

impl Operation for SeriesOperand {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(",")
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = column(operands, rows)?;
        match self.is_step {
            true if has_zero(&column)? => Err(failure("22023", "step size cannot equal zero")),
            false if is_out_of_range(&column) => {
                Err(failure("22008", "timestamp out of range of generate_series: 1677 to 2262"))
            }
            _ => Ok(column),
        }
    }
}

fn has_zero(steps: &ArrayRef) -> Result<bool> {
    Ok(match steps.data_type() {
        of if of.is_integer() => {
            let steps = arrow::compute::cast(steps, &DataType::Int64)?;
            steps.as_primitive::<Int64Type>().iter().any(|step| step == Some(0))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let zero = IntervalMonthDayNano::new(0, 0, 0);
            let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
            steps.iter().any(|step| step == Some(zero))
        }
        _ => false,
    })
}

fn is_out_of_range(times: &ArrayRef) -> bool {
    match times.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let times = times.as_primitive::<TimestampMicrosecondType>();
            times.iter().flatten().any(|time| time.checked_mul(1000).is_none())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn a_step_is_not_zero_and_a_time_within_nanoseconds() {
        let step = |step: i64| {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(step)]));
            SeriesOperand { is_step: true }.compute(&[ColumnarValue::Array(column)], 2)
        };
        assert!(step(-1).is_ok());
        assert!(step(0).is_err());
        let time = |micros: i64| {
            let column: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![micros]));
            SeriesOperand { is_step: false }.compute(&[ColumnarValue::Array(column)], 1)
        };
        assert!(time(0).is_ok());
        assert!(time(-14_831_769_600_000_000).is_err()); // The year 1500.
    }
}
