//! Keys of ORDER BY and of windows whose values the engine orders otherwise: floats and intervals.
//!
//! The engine orders floats by their bits, -0.0 before 0.0: for PostgreSQL both are one value, and the next key decides
//! between them. It orders intervals by months, then days, then times: for PostgreSQL by how long they are. Keys become
//! calls that give the same number with one zero, and the length. What a query returns stays as it is.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan, ScalarUDF, Sort,
};
use datafusion::optimizer::AnalyzerRule;

use crate::call::{Operation, call, column, failure, function};
use crate::span;

/// Orders by floats and intervals as PostgreSQL does. It comes when expressions have their types.
#[derive(Debug)]
pub(super) struct SortKeys;

impl AnalyzerRule for SortKeys {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Sort(sort) => Ok(sorted(sort).update_data(LogicalPlan::Sort)),
            LogicalPlan::Distinct(Distinct::On(on)) => {
                Ok(chosen(on).update_data(|on| LogicalPlan::Distinct(Distinct::On(on))))
            }
            LogicalPlan::Window(_) | LogicalPlan::Aggregate(_) => within(node),
            node => Ok(Transformed::no(node)),
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "stoa_sort_keys"
    }
}

fn sorted(mut sort: Sort) -> Transformed<Sort> {
    let schema = Arc::clone(sort.input.schema());
    let mut is_changed = false;
    for key in &mut sort.expr {
        is_changed |= unite(&mut key.expr, &schema);
    }
    Transformed::new_transformed(sort, is_changed)
}

/// The keys of a `DISTINCT ON`: first those of the groups, then those by which one row of each is chosen.
fn chosen(mut on: DistinctOn) -> Transformed<DistinctOn> {
    let schema = Arc::clone(on.input.schema());
    let mut is_changed = false;
    let groups = on.on_expr.len();
    for (at, key) in on.sort_expr.iter_mut().flatten().enumerate() {
        is_changed |= match at < groups {
            true => measure(&mut key.expr, &schema),
            false => unite(&mut key.expr, &schema),
        };
    }
    for key in &mut on.on_expr {
        is_changed |= measure(key, &schema);
    }
    Transformed::new_transformed(on, is_changed)
}

/// The keys of windows and of aggregates.
fn within(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let saver = NamePreserver::new(&node);
    let changed = node.map_expressions(|expr| {
        let name = saver.save(&expr);
        let changed = expr.transform_up(|mut expr| {
            let mut is_changed = false;
            let (order, groups) = match &mut expr {
                Expr::WindowFunction(of) => {
                    (&mut of.params.order_by, Some(&mut of.params.partition_by))
                }
                // With DISTINCT, what is ordered by must be what is aggregated.
                // Within a group, what is ordered by is what is given.
                Expr::AggregateFunction(of)
                    if !of.params.distinct && !of.func.supports_within_group_clause() =>
                {
                    (&mut of.params.order_by, None)
                }
                _ => return Ok(Transformed::no(expr)),
            };
            let keys = order.iter_mut().map(|key| &mut key.expr);
            for key in keys.chain(groups.into_iter().flatten()) {
                is_changed |= unite(key, &schema);
            }
            Ok(Transformed::new_transformed(expr, is_changed))
        })?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })?;
    match changed.transformed {
        true => changed.map_data(LogicalPlan::recompute_schema),
        false => Ok(changed),
    }
}

/// Makes a key that is an interval its length; says whether it did.
fn measure(key: &mut Expr, schema: &DFSchema) -> bool {
    let is_interval = key.get_type(schema).is_ok_and(|of| span::is_interval(&of));
    if is_interval {
        *key = span::of(std::mem::take(key));
    }
    is_interval
}

/// Makes a key that is a float one with one zero, and one that is an interval its length; says whether it did.
fn unite(key: &mut Expr, schema: &DFSchema) -> bool {
    if measure(key, schema) {
        return true;
    }
    let is_float =
        key.get_type(schema).is_ok_and(|of| matches!(of, DataType::Float32 | DataType::Float64));
    let has_one = match &*key {
        Expr::Literal(..) => true,
        Expr::ScalarFunction(call) => call.func.name() == PositiveZero.name(),
        _ => false,
    };
    if is_float && !has_one {
        *key = call(PositiveZero, vec![std::mem::take(key)]);
    }
    is_float && !has_one
}

/// The same number, but 0.0 for -0.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PositiveZero;

/// [`PositiveZero`] as a function.
pub(crate) fn positive_zero() -> ScalarUDF {
    function(PositiveZero)
}

impl Operation for PositiveZero {
    fn name(&self) -> &str {
        "positive_zero"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        // Of both zeros the sum is 0.0, and of anything else and 0.0 the same.
        Ok(match column.data_type() {
            DataType::Float64 => {
                let floats: &PrimitiveArray<Float64Type> = column.as_primitive();
                Arc::new(floats.unary::<_, Float64Type>(|value| value + 0.0))
            }
            DataType::Float32 => {
                let floats: &PrimitiveArray<Float32Type> = column.as_primitive();
                Arc::new(floats.unary::<_, Float32Type>(|value| value + 0.0))
            }
            _ => return Err(failure("42883", "a float wanted")),
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;

    use super::*;

    #[test]
    fn zeros_are_one_and_other_numbers_stay() {
        let numbers = [-0.0, 0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
        let column: ArrayRef = Arc::new(Float64Array::from(numbers.to_vec()));
        let united = PositiveZero.compute(&[ColumnarValue::Array(column)], numbers.len()).unwrap();
        let united = united.as_primitive::<Float64Type>().values().iter().map(|of| of.to_bits());
        let expected = [0.0, 0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
        assert!(united.eq(expected.map(f64::to_bits)));
        let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
        let nan = PositiveZero.compute(&[ColumnarValue::Array(nan)], 1).unwrap();
        assert!(nan.as_primitive::<Float64Type>().value(0).is_nan());
    }
}
