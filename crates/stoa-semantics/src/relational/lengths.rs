//! Intervals are equal where they are equally long: `1 day` and `24:00:00`, `1 mon` and `30 days`.
//!
//! The engine compares their months, days and times one after the other. Comparisons are rewritten where they are
//! analysed; this is for what compares without saying so:
//!
//! ```text
//! GROUP BY x, DISTINCT       ─► GROUP BY length(x), and one x of each group
//! min(x), max(x)             ─► first_value(x ORDER BY length(x))
//! count(DISTINCT x)          ─► count(DISTINCT length(x))
//! keys of joins, IN (SELECT) ─► lengths
//! nullif, greatest, least    ─► by their lengths
//! ```
//! Keys of ORDER BY and of windows are in `sort_keys`. Refused: what is left, which is rare: grouping sets, other
//! aggregates of DISTINCT intervals, searches in arrays of them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::expr::{AggregateFunction, Case, InSubquery, ScalarFunction};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Projection,
};
use datafusion::optimizer::AnalyzerRule;

use super::with_typed_expressions;
use crate::call::unsupported;
use crate::span::{self, is_interval};

/// Compares intervals by their lengths. It comes when expressions have their types.
#[derive(Debug)]
pub(super) struct EqualLengths;

impl AnalyzerRule for EqualLengths {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let node = with_typed_expressions(node, by_length)?;
            node.transform_data(|node| match node {
                LogicalPlan::Distinct(Distinct::All(input)) if any_interval(input.schema()) => {
                    let columns = input.schema().columns().into_iter().map(Expr::Column);
                    grouped(Aggregate::try_new(input, columns.collect(), Vec::new())?)
                }
                LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
                LogicalPlan::Join(join) => keys(join),
                node => Ok(Transformed::no(node)),
            })?
            .map_data(|node| node.recompute_schema())
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "stoa_equal_lengths"
    }
}

fn any_interval(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| is_interval(field.data_type()))
}

fn has_interval(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| is_interval(&of))
}

/// Groups by lengths, of which each shows one of its intervals.
fn grouped(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = &aggregate;
    let is_key = |key: &Expr| has_interval(key, input.schema());
    let in_sets = |key: &Expr| match key {
        Expr::GroupingSet(sets) => sets.distinct_expr().into_iter().any(is_key),
        _ => false,
    };
    if group_expr.iter().any(in_sets) {
        return Err(unsupported(
            "grouping sets of intervals are not supported",
            "group by extract(epoch FROM …)",
        ));
    }
    if !group_expr.iter().any(is_key) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let (mut groups, mut values) = (Vec::new(), aggr_expr.clone());
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (at, key) in group_expr.iter().enumerate() {
        let (qualifier, field) = schema.qualified_field(at);
        if !is_key(key) {
            groups.push(key.clone());
            columns.push(Expr::Column(Column::from((qualifier, field))));
            continue;
        }
        let shown = format!("__interval_{at}");
        groups.push(span::of(key.clone()).alias(format!("__length_{at}")));
        values.push(first_value(key.clone().unalias(), Vec::new()).alias(&shown));
        let column = Expr::Column(Column::new_unqualified(shown));
        columns.push(column.alias_qualified(qualifier.cloned(), field.name()));
    }
    let others = schema.iter().skip(group_expr.len());
    columns.extend(others.map(|field| Expr::Column(Column::from(field))));
    let aggregate = Aggregate::try_new(Arc::clone(input), groups, values)?;
    let node = LogicalPlan::Aggregate(aggregate);
    Projection::try_new(columns, Arc::new(node)).map(LogicalPlan::Projection).map(Transformed::yes)
}

/// Keys of joins by their lengths.
fn keys(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let mut is_changed = false;
    for (left, right) in &mut join.on {
        if has_interval(left, join.left.schema()) && has_interval(right, join.right.schema()) {
            *left = span::of(std::mem::take(left));
            *right = span::of(std::mem::take(right));
            is_changed = true;
        }
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), is_changed))
}

fn by_length(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::AggregateFunction(of) => aggregated(of, schema),
        Expr::InSubquery(list) => in_subquery(list, schema),
        Expr::ScalarFunction(of) => called(of, schema),
        other => Ok(Transformed::no(other)),
    }
}

fn aggregated(mut of: AggregateFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some(arg) = of.params.args.first_mut().filter(|arg| has_interval(arg, schema)) else {
        return Ok(Transformed::no(Expr::AggregateFunction(of)));
    };
    let is_ascending = of.func.name() == "min";
    match of.func.name() {
        "min" | "max" => {
            let order = vec![span::of(arg.clone()).sort(is_ascending, false)];
            let Expr::AggregateFunction(first) = first_value(std::mem::take(arg), order) else {
                return Ok(Transformed::no(Expr::AggregateFunction(of)));
            };
            of.func = first.func;
            of.params.args = first.params.args;
            of.params.order_by = first.params.order_by;
            of.params.distinct = false;
        }
        "count" if of.params.distinct => *arg = span::of(std::mem::take(arg)),
        name if of.params.distinct => {
            return Err(unsupported(
                format!("{name} of DISTINCT intervals is not supported"),
                "take extract(epoch FROM …), or a subquery with SELECT DISTINCT",
            ));
        }
        _ => return Ok(Transformed::no(Expr::AggregateFunction(of))),
    }
    Ok(Transformed::yes(Expr::AggregateFunction(of)))
}

/// `x IN (SELECT …)` of intervals.
fn in_subquery(list: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let rows = &list.subquery.subquery;
    if !has_interval(&list.expr, schema) || !is_interval(rows.schema().field(0).data_type()) {
        return Ok(Transformed::no(Expr::InSubquery(list)));
    }
    let column = Expr::Column(Column::from(rows.schema().qualified_field(0)));
    let plan = LogicalPlanBuilder::from(rows.as_ref().clone());
    let plan = plan.project(vec![span::of(column)])?.build()?;
    let subquery = list.subquery.with_plan(Arc::new(plan));
    let expr = Box::new(span::of(*list.expr));
    Ok(Transformed::yes(Expr::InSubquery(InSubquery::new(expr, subquery, list.negated))))
}

/// Functions that compare what they are given.
fn called(of: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = of.func.name().to_owned();
    let is_list = |arg: &Expr| match arg.get_type(schema) {
        Ok(DataType::List(item)) => is_interval(item.data_type()),
        _ => false,
    };
    if SEARCHES.contains(&name.as_str()) && of.args.iter().any(is_list) {
        return Err(unsupported(
            format!("{name} of intervals is not supported"),
            "compare the intervals one by one",
        ));
    }
    if !of.args.first().is_some_and(|arg| has_interval(arg, schema)) {
        return Ok(Transformed::no(Expr::ScalarFunction(of)));
    }
    Ok(match (name.as_str(), of.args.as_slice()) {
        ("nullif", [one, other]) => {
            let null = ScalarValue::try_new_null(&one.get_type(schema)?)?;
            let is_equal = span::of(one.clone()).eq(span::of(other.clone()));
            Transformed::yes(Expr::Case(Case {
                expr: None,
                when_then_expr: vec![(Box::new(is_equal), Box::new(Expr::Literal(null, None)))],
                else_expr: Some(Box::new(one.clone())),
            }))
        }
        ("greatest" | "least", _) => Transformed::yes(span::extreme(of.args, name == "greatest")),
        _ => Transformed::no(Expr::ScalarFunction(of)),
    })
}

/// The engine's functions that look for values in arrays.
const SEARCHES: &[&str] = &[
    "array_distinct",
    "array_except",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_intersect",
    "array_max",
    "array_min",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
    "array_sort",
    "array_union",
];
