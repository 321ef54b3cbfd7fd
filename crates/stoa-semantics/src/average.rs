//! `avg` of integers and decimals as a decimal, divided as PostgreSQL divides; of all else the engine's.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal256Builder};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Field, FieldRef, i256};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::call::{failure, unsupported};
use super::distinct::Distinct;
use super::interval_averages::{self, INTERVAL, IntervalAverage};
use super::numeric::{Decimal, NUMERIC, quotient};
use super::sums::{Sum1, SumOf, Sums};

const SUBQUERY: &str = "take the average of SELECT DISTINCT";

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Average {
    engine: Avg,
    signature: Signature,
}

impl Average {
    pub(super) fn new() -> Self {
        Self { engine: Avg::new(), signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// The type of sums of values of a type; `None` where the engine computes.
fn sum_type(values: &DataType, is_distinct: bool) -> Option<DataType> {
    match values {
        _ if is_distinct => None,
        DataType::Decimal128(_, scale) => Some(DataType::Decimal128(38, *scale)),
        DataType::Decimal256(_, scale) => Some(DataType::Decimal256(76, *scale)),
        _ => None,
    }
}

impl AggregateUDFImpl for Average {
    fn name(&self) -> &str {
        "avg"
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [of] = types else { return Err(failure("42883", "avg takes one argument")) };
        Ok(vec![match of {
            of if of.is_integer() => DataType::Decimal128(20, 0),
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => DataType::Decimal128(*p, *s),
            DataType::Float16 | DataType::Float32 | DataType::Null => DataType::Float64,
            DataType::Float64
            | DataType::Decimal128(..)
            | DataType::Decimal256(..)
            | DataType::Duration(_) => of.clone(),
            DataType::Interval(_) => INTERVAL,
            other => {
                let message = format!("function avg({other}) does not exist");
                return Err(failure("42883", message));
            }
        }])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] if of.is_decimal() => Ok(NUMERIC),
            [DataType::Interval(_)] => Ok(INTERVAL),
            types => self.engine.return_type(types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let values = args.expr_fields[0].data_type();
        if matches!(values, DataType::Interval(_)) {
            return match args.is_distinct {
                true => Err(unsupported("avg(DISTINCT interval) is not supported", SUBQUERY)),
                false => Ok(Box::new(IntervalAverage::default())),
            };
        }
        match sum_type(values, args.is_distinct) {
            Some(of @ DataType::Decimal128(..)) => Ok(Box::new(Sum1::new(narrow(of)))),
            Some(of) => Ok(Box::new(Sum1::new(wide(of)))),
            None if values.is_decimal() => {
                Ok(Box::new(Distinct::new(values, &NUMERIC, average_of)))
            }
            None => self.engine.accumulator(args),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let values = args.expr_fields[0].data_type();
        match values.is_decimal() || matches!(values, DataType::Interval(_)) {
            true => self.accumulator(args),
            false => self.engine.create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let values = args.input_fields[0].data_type();
        if matches!(values, DataType::Interval(_)) {
            return Ok(interval_averages::state_fields(args.name));
        }
        let Some(of) = sum_type(values, args.is_distinct) else {
            if !values.is_decimal() {
                return self.engine.state_fields(args);
            }
            return Ok(vec![Distinct::state_field(args.name, values)]);
        };
        Ok(vec![
            Field::new(format_state_name(args.name, "sum"), of, true).into(),
            Field::new(format_state_name(args.name, "count"), DataType::Int64, true).into(),
        ])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        match sum_type(args.expr_fields[0].data_type(), args.is_distinct) {
            Some(_) => true,
            None if matches!(args.expr_fields[0].data_type(), DataType::Interval(_)) => false,
            None if args.expr_fields[0].data_type().is_decimal() => false,
            None => self.engine.groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match sum_type(args.expr_fields[0].data_type(), args.is_distinct) {
            Some(of @ DataType::Decimal128(..)) => Ok(Box::new(narrow(of))),
            Some(of) => Ok(Box::new(wide(of))),
            None => self.engine.create_groups_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn narrow(of: DataType) -> SumOf<Decimal128Type, Decimal128Type> {
    SumOf::new(Sums::new(of.clone()), of, narrow_averages)
}

fn wide(of: DataType) -> SumOf<Decimal256Type, Decimal256Type> {
    SumOf::new(Sums::new(of.clone()), of, wide_averages)
}

fn narrow_averages(sums: Vec<i128>, counts: Vec<i64>, of: &DataType) -> Result<ArrayRef> {
    averages(sums.into_iter().map(i256::from_i128), counts, of)
}

fn wide_averages(sums: Vec<i256>, counts: Vec<i64>, of: &DataType) -> Result<ArrayRef> {
    averages(sums.into_iter(), counts, of)
}

fn averages(sums: impl Iterator<Item = i256>, counts: Vec<i64>, of: &DataType) -> Result<ArrayRef> {
    let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = of else {
        return Err(failure("XX000", "an average of something else than decimals"));
    };
    let mut averages = Decimal256Builder::with_capacity(counts.len()).with_data_type(NUMERIC);
    for (sum, count) in sums.zip(counts) {
        match count {
            0 => averages.append_null(),
            count => {
                let count = Decimal::new(i256::from_i128(count.into()), 0);
                averages.append_value(quotient(Decimal::new(sum, *scale), count)?);
            }
        }
    }
    Ok(Arc::new(averages.finish()))
}

/// The average of so many values that differ.
fn average_of(sum: i256, scale: i8, count: usize, _: &DataType) -> Result<ScalarValue> {
    let (sum, of) = (std::iter::once(sum), DataType::Decimal256(76, scale));
    ScalarValue::try_from_array(&averages(sum, vec![count as i64], &of)?, 0)
}
