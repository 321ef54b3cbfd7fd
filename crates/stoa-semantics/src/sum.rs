//! `sum` of integers and decimals: an error where it does not fit its type, never another number.
//!
//! Integers are summed in 128 bits, so that only the sum counts, not the order of its parts. All other
//! types are the engine's.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Int64Array, PrimitiveArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Decimal256Type, Field, FieldRef, Int64Type, i256,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
};

use super::call::failure;
use super::distinct::Distinct;
use super::numeric::out_of_range;
use super::sums::{Sum1, SumOf, Sums};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CheckedSum {
    engine: Sum,
}

/// How the types that are summed here are: the values', and the sums'.
enum Kind {
    Integers,
    Narrow(DataType),
    Wide(DataType),
    Distinct,
    Engine,
}

impl CheckedSum {
    pub(super) fn new() -> Self {
        Self { engine: Sum::new() }
    }
}

fn kind(result: &DataType, is_distinct: bool) -> Kind {
    match result {
        DataType::Int64 | DataType::Decimal128(..) | DataType::Decimal256(..) if is_distinct => {
            Kind::Distinct
        }
        _ if is_distinct => Kind::Engine,
        DataType::Int64 => Kind::Integers,
        DataType::Decimal128(_, _) => Kind::Narrow(result.clone()),
        DataType::Decimal256(_, _) => Kind::Wide(result.clone()),
        _ => Kind::Engine,
    }
}

/// The type of sums of integers on their way.
const WIDE_INTEGER: DataType = DataType::Decimal128(38, 0);

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.engine.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match kind(args.return_field.data_type(), args.is_distinct) {
            Kind::Engine => self.engine.accumulator(args),
            Kind::Distinct => {
                let (of, result) = (args.expr_fields[0].data_type(), args.return_field.data_type());
                Ok(Box::new(Distinct::new(of, result, sum_of)))
            }
            Kind::Integers => Ok(Box::new(Sum1::new(integers()))),
            Kind::Narrow(of) => Ok(Box::new(Sum1::new(narrow(of)))),
            Kind::Wide(of) => Ok(Box::new(Sum1::new(wide(of)))),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        match kind(args.return_field.data_type(), args.is_distinct) {
            Kind::Engine | Kind::Distinct => self.engine.create_sliding_accumulator(args),
            _ => self.accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let sum = match kind(args.return_type(), args.is_distinct) {
            Kind::Engine => return self.engine.state_fields(args),
            Kind::Distinct => {
                let of = args.input_fields[0].data_type();
                return Ok(vec![Distinct::state_field(args.name, of)]);
            }
            Kind::Integers => WIDE_INTEGER,
            Kind::Narrow(of) | Kind::Wide(of) => of,
        };
        Ok(vec![
            Field::new(format_state_name(args.name, "sum"), sum, true).into(),
            Field::new(format_state_name(args.name, "count"), DataType::Int64, true).into(),
        ])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.engine.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match kind(args.return_field.data_type(), args.is_distinct) {
            Kind::Engine | Kind::Distinct => self.engine.create_groups_accumulator(args),
            Kind::Integers => Ok(Box::new(integers())),
            Kind::Narrow(of) => Ok(Box::new(narrow(of))),
            Kind::Wide(of) => Ok(Box::new(wide(of))),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.engine.set_monotonicity(data_type)
    }
}

fn integers() -> SumOf<Int64Type, Decimal128Type> {
    SumOf::new(Sums::new(WIDE_INTEGER), DataType::Int64, finish_integers)
}

fn narrow(of: DataType) -> SumOf<Decimal128Type, Decimal128Type> {
    SumOf::new(Sums::new(of.clone()), of, finish_decimals::<Decimal128Type>)
}

fn wide(of: DataType) -> SumOf<Decimal256Type, Decimal256Type> {
    SumOf::new(Sums::new(of.clone()), of, finish_decimals::<Decimal256Type>)
}

fn finish_integers(sums: Vec<i128>, counts: Vec<i64>, _: &DataType) -> Result<ArrayRef> {
    let sums = sums.into_iter().zip(counts).map(|(sum, count)| match (count, i64::try_from(sum)) {
        (0, _) => Ok(None),
        (_, Ok(sum)) => Ok(Some(sum)),
        (_, Err(_)) => Err(bigint_out_of_range()),
    });
    Ok(Arc::new(sums.collect::<Result<Int64Array>>()?))
}

/// The sum of so many values that differ.
fn sum_of(sum: i256, scale: i8, count: usize, result: &DataType) -> Result<ScalarValue> {
    if count == 0 {
        return ScalarValue::try_from(result);
    }
    if *result == DataType::Int64 {
        let sum = sum.to_i128().and_then(|sum| i64::try_from(sum).ok());
        return Ok(ScalarValue::Int64(Some(sum.ok_or_else(bigint_out_of_range)?)));
    }
    let wide = ScalarValue::Decimal256(Some(sum), 76, scale);
    wide.cast_to(result).map_err(|_| out_of_range())
}

/// A sum of integers that does not fit.
fn bigint_out_of_range() -> DataFusionError {
    failure("22003", "bigint out of range")
}

fn finish_decimals<S: ArrowPrimitiveType>(
    sums: Vec<S::Native>,
    counts: Vec<i64>,
    of: &DataType,
) -> Result<ArrayRef> {
    let sums = sums.into_iter().zip(counts).map(|(sum, count)| (count > 0).then_some(sum));
    let sums = sums.collect::<PrimitiveArray<S>>().with_data_type(of.clone());
    check_precision(&sums).map(|()| Arc::new(sums) as ArrayRef)
}

fn check_precision<S: ArrowPrimitiveType>(sums: &PrimitiveArray<S>) -> Result<()> {
    let any: &dyn std::any::Any = sums;
    if let Some(sums) = any.downcast_ref::<Decimal128Array>() {
        sums.validate_decimal_precision(sums.precision()).map_err(|_| out_of_range())?;
    }
    Ok(())
}
