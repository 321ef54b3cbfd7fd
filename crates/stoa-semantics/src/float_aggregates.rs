//! Aggregates of floating-point numbers: NaN is one value, above all others, as in PostgreSQL.
//!
//! The engine's `min` and `max` of groups begin with the ends of finite numbers and pass NaN over; sums of ∞ and -∞ are
//! NaNs of a sign, which do not sort or group with others (see [`with_one_nan`]).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{ArrowPrimitiveType, DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::min_max::{SlidingMaxAccumulator, SlidingMinAccumulator};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;
use stoa_orc::{one_nan_32, one_nan_64, with_one_nan};

/// Aggregates whose results may be NaN.
const ALL: [&str; 21] = [
    "avg",
    "corr",
    "covar_pop",
    "covar_samp",
    "max",
    "min",
    "regr_avgx",
    "regr_avgy",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var",
    "var_pop",
    "var_samp",
];

/// A function, with one NaN where it is an aggregate that may give some.
pub(super) fn with_one_nan_in(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    match ALL.contains(&function.name()) {
        true => Arc::new(AggregateUDF::new_from_impl(OfFloats { function })),
        false => function,
    }
}

/// An aggregate, with PostgreSQL's results for floating-point numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfFloats {
    function: Arc<AggregateUDF>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Least,
    Greatest,
}

impl OfFloats {
    fn end(&self) -> Option<End> {
        match self.function.name() {
            "min" => Some(End::Least),
            "max" => Some(End::Greatest),
            _ => None,
        }
    }
}

fn is_float(of: &DataType) -> bool {
    matches!(of, DataType::Float32 | DataType::Float64)
}

impl AggregateUDFImpl for OfFloats {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.function.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.function.return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.function.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let is_float = is_float(args.return_field.data_type());
        let engines = self.function.accumulator(args)?;
        Ok(if is_float { Box::new(OneNan(engines)) } else { engines })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.function.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.function.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let of = args.return_field.data_type().clone();
        match (&of, self.end()) {
            (DataType::Float32, Some(end)) => Ok(ends_by_group_32(&of, end)),
            (DataType::Float64, Some(end)) => Ok(ends_by_group_64(&of, end)),
            (of, _) => {
                let engines = self.function.create_groups_accumulator(args)?;
                Ok(if is_float(of) { Box::new(OneNanByGroup(engines)) } else { engines })
            }
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let of = args.return_field.data_type().clone();
        match self.end() {
            Some(end) if is_float(&of) => Ok(Box::new(SlidingEnd::new(end, of)?)),
            _ => {
                let engines = self.function.create_sliding_accumulator(args)?;
                Ok(if is_float(&of) { Box::new(OneNan(engines)) } else { engines })
            }
        }
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        is_beneficial: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let function = self.function.as_ref().clone().with_beneficial_ordering(is_beneficial)?;
        Ok(function.map(|function| Arc::new(Self { function: Arc::new(function) }) as _))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.function.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.function.simplify()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        // Of the engine's names for functions the other way round, none is one of these.
        match self.function.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            ReversedUDAF::NotSupported | ReversedUDAF::Reversed(_) => ReversedUDAF::NotSupported,
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.function.is_descending()
    }

    /// Statistics do not tell of NaN.
    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        if is_float(args.return_type) {
            return None;
        }
        self.function.value_from_stats(args)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.function.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.function.supports_null_handling_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.function.inner().set_monotonicity(data_type)
    }
}

/// An accumulator that gives one NaN.
#[derive(Debug)]
struct OneNan(Box<dyn Accumulator>);

impl Accumulator for OneNan {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.0.evaluate()? {
            ScalarValue::Float32(Some(value)) => ScalarValue::Float32(Some(one_nan_32(value))),
            ScalarValue::Float64(Some(value)) => ScalarValue::Float64(Some(one_nan_64(value))),
            other => other,
        })
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }
}

/// As [`OneNan`], for many groups.
struct OneNanByGroup(Box<dyn GroupsAccumulator>);

impl GroupsAccumulator for OneNanByGroup {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.0.update_batch(values, groups, filter, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let values = self.0.evaluate(emit)?;
        Ok(with_one_nan(&values).unwrap_or(values))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.0.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.0.merge_batch(states, groups, count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.0.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

/// Least or greatest values of groups. NaN is the greatest, so that the least begins with it.
macro_rules! ends_by_group {
    ($name:ident, $type:ty, $native:ty) => {
        fn $name(of: &DataType, end: End) -> Box<dyn GroupsAccumulator> {
            let is_below = |a: $native, b: $native| a < b || !a.is_nan() && b.is_nan();
            match end {
                End::Least => {
                    let least = move |known: &mut $native, value| {
                        *known = if is_below(value, *known) { value } else { *known };
                    };
                    let groups = PrimitiveGroupsAccumulator::<$type, _>::new(of, least);
                    Box::new(groups.with_starting_value(<$native>::NAN))
                }
                End::Greatest => {
                    let greatest = move |known: &mut $native, value| {
                        *known = if is_below(*known, value) { value } else { *known };
                    };
                    let groups = PrimitiveGroupsAccumulator::<$type, _>::new(of, greatest);
                    Box::new(groups.with_starting_value(<$native>::NEG_INFINITY))
                }
            }
        }
    };
}

ends_by_group!(ends_by_group_32, Float32Type, f32);
ends_by_group!(ends_by_group_64, Float64Type, f64);

/// The least or greatest value of a window that moves: the engine's for integers that are in the order of the values.
#[derive(Debug)]
struct SlidingEnd {
    ranks: Box<dyn Accumulator>,
    of: DataType,
}

impl SlidingEnd {
    fn new(end: End, of: DataType) -> Result<Self> {
        let ranks: Box<dyn Accumulator> = match end {
            End::Least => Box::new(SlidingMinAccumulator::try_new(&DataType::Int64)?),
            End::Greatest => Box::new(SlidingMaxAccumulator::try_new(&DataType::Int64)?),
        };
        Ok(Self { ranks, of })
    }
}

/// Integers in the order of an array's values.
fn ranks(values: &ArrayRef) -> ArrayRef {
    fn of<T: ArrowPrimitiveType>(values: &ArrayRef) -> Int64Array
    where
        T::Native: Into<f64>,
    {
        values.as_primitive::<T>().unary(|value| rank(value.into()))
    }
    match values.data_type() {
        DataType::Float32 => Arc::new(of::<Float32Type>(values)),
        _ => Arc::new(of::<Float64Type>(values)),
    }
}

/// Integers are in the order of positive values, and against that of negative ones; 0 is one value.
fn rank(value: f64) -> i64 {
    let bits = one_nan_64(value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn value(rank: i64) -> f64 {
    f64::from_bits((rank ^ (((rank >> 63) as u64) >> 1) as i64) as u64)
}

impl Accumulator for SlidingEnd {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.ranks.update_batch(&[ranks(&values[0])])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = match self.ranks.evaluate()? {
            ScalarValue::Int64(rank) => rank.map(value),
            _ => None,
        };
        Ok(match self.of {
            DataType::Float32 => ScalarValue::Float32(value.map(|value| value as f32)),
            _ => ScalarValue::Float64(value),
        })
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.ranks.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.ranks.retract_batch(&[ranks(&values[0])])
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_in_the_order_of_values() {
        let values =
            [f64::NEG_INFINITY, f64::MIN, -1.0, -5e-324, 0.0, 5e-324, 2.0, f64::INFINITY, f64::NAN];
        assert!(values.is_sorted_by_key(|value| rank(*value)));
        for of in values {
            assert_eq!(value(rank(of)).to_bits(), of.to_bits());
        }
        assert_eq!(rank(-0.0), rank(0.0));
        assert_eq!(rank(-f64::NAN), rank(f64::NAN));
    }
}
