//! `generate_series`: operands that the engine would take otherwise than PostgreSQL are refused.
//!
//! Series of `numeric` and of `integer` are made here ([`NumericSeries`], [`IntegerSeries`]): the engine has none. It
//! counts times in nanoseconds, and adds days in UTC. **Invariant:** what is not refused is PostgreSQL's series.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, Decimal256Builder,
    Int32Builder, ListBuilder, PrimitiveBuilder,
};
use arrow::datatypes::{
    DataType, Field, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit, TimestampMicrosecondType, i256,
};
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, ColumnarValue, Expr, ExprSchemable};

use super::also::{self, Also};
use super::call::{Operation, call, column, columns, failure, unsupported};
use super::casts;
use super::made_texts::{VALUE_BYTES_MAX, too_large};
use super::numeric::NUMERIC;
use super::time_zone;
use crate::scope::Scope;

/// The engine's function, and series of `numeric` and of `integer`.
pub(super) static ALSO: [Also; 1] = [Also {
    name: "generate_series",
    other_names: &[],
    engine: datafusion::functions_nested::range::gen_series_udf,
    makes: |types| match types {
        types if is_of_numeric(types) => Some(numerics()),
        types if is_of_integers(types) => Some(integers()),
        [one, other, step] if is_of_date_and_time(one, other) => {
            let time = if *one == DataType::Date32 { other } else { one };
            let step = if step.is_string() { &STEP } else { step };
            let types = [time.clone(), time.clone(), step.clone()];
            datafusion::functions_nested::range::gen_series_udf().return_type(&types).ok()
        }
        _ => None,
    },
}];

fn is_of_numeric(types: &[DataType]) -> bool {
    matches!(types.len(), 2 | 3)
        && types.iter().any(DataType::is_decimal)
        && types.iter().all(|of| of.is_decimal() || of.is_integer() || of.is_null())
}

fn is_of_integers(types: &[DataType]) -> bool {
    let is_integer = |of: &DataType| matches!(of, DataType::Int16 | DataType::Int32);
    matches!(types.len(), 2 | 3)
        && types.iter().any(is_integer)
        && types.iter().all(|of| is_integer(of) || of.is_null())
}

const STEP: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Whether a series goes from a date to a timestamp, or the other way round.
fn is_of_date_and_time(one: &DataType, other: &DataType) -> bool {
    let is_time = |of: &DataType| matches!(of, DataType::Timestamp(..));
    *one == DataType::Date32 && is_time(other) || is_time(one) && *other == DataType::Date32
}

fn integers() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)))
}

fn numerics() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(NUMERIC, true)))
}

/// The call with operands that are looked at.
///
/// # Errors
/// 0A000 for instants in another zone than UTC, where days have other lengths.
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let types = function.args.iter().map(|arg| arg.get_type(&scope.schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    if is_of_numeric(&types) {
        let operands = function.args.into_iter().zip(&types);
        let operands = operands.map(|(arg, of)| {
            let arg = casts::to_type(arg, of, &NUMERIC, scope.options)?;
            Ok(Expr::Cast(Cast::new(Box::new(arg), NUMERIC)))
        });
        let operands = operands.collect::<Result<Vec<_>>>()?;
        return Ok(Transformed::yes(call(NumericSeries, operands)));
    }
    if is_of_integers(&types) {
        let operands = function.args.into_iter().zip(&types);
        let operands =
            operands.map(|(arg, of)| casts::to_type(arg, of, &DataType::Int32, scope.options));
        let operands = operands.collect::<Result<Vec<_>>>()?;
        return Ok(Transformed::yes(call(IntegerSeries, operands)));
    }
    let function = also::engine(function);
    let mut is_changed = function.transformed;
    let ScalarFunction { func, mut args } = function.data;
    if let [one, other, _] = types.as_slice()
        && is_of_date_and_time(one, other)
    {
        is_changed = true;
        let (date, time) = if *one == DataType::Date32 { (0, other) } else { (1, one) };
        let own = std::mem::take(&mut args[date]);
        args[date] = casts::to_type(own, &types[date], time, scope.options)?;
        if types[2].is_string() {
            let step = std::mem::take(&mut args[2]);
            args[2] = casts::to_type(step, &types[2], &STEP, scope.options)?;
        }
    }
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

/// A list of numbers from the first to the second, by steps of the third or of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NumericSeries;

impl Operation for NumericSeries {
    fn name(&self) -> &str {
        "numeric_series"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(numerics())
    }

    fn makes_nulls(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let one = i256::from_i128(10).checked_pow(38);
        let values = Decimal256Builder::new().with_data_type(NUMERIC);
        lists(&columns(operands, rows)?, rows, one, values)
    }
}

/// The same of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct IntegerSeries;

impl Operation for IntegerSeries {
    fn name(&self) -> &str {
        "integer_series"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(integers())
    }

    fn makes_nulls(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        lists(&columns(operands, rows)?, rows, Some(1), Int32Builder::new())
    }
}

/// For each row the numbers from the first operand to the second, by steps of the third, or of `one`.
fn lists<T: ArrowPrimitiveType>(
    columns: &[ArrayRef],
    rows: usize,
    one: Option<T::Native>,
    values: PrimitiveBuilder<T>,
) -> Result<ArrayRef>
where
    T::Native: ArrowNativeTypeOp,
{
    let value = |place: usize, row: usize| {
        let column = columns.get(place)?.as_primitive::<T>();
        column.is_valid(row).then(|| column.value(row))
    };
    let mut lists = ListBuilder::new(values);
    let mut total = 0;
    for row in 0..rows {
        let step = if columns.len() == 2 { one } else { value(2, row) };
        let (Some(mut number), Some(last), Some(step)) = (value(0, row), value(1, row), step)
        else {
            lists.append(false);
            continue;
        };
        if step.is_zero() {
            return Err(failure("22023", "step size cannot equal zero"));
        }
        let is_up = step.is_gt(T::Native::ZERO);
        while if is_up { number.is_le(last) } else { number.is_ge(last) } {
            total += size_of::<T::Native>();
            if total > VALUE_BYTES_MAX {
                return Err(too_large("generate_series"));
            }
            lists.values().append_value(number);
            let Ok(next) = number.add_checked(step) else { break };
            number = next;
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
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
