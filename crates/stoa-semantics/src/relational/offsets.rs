//! `ORDER BY … OFFSET n` without LIMIT in a subquery: which rows are skipped depends on their order.
//!
//! The engine drops a sort above which nothing asks for an order, and moves one that stands above an offset below it.
//! Either way other rows would be skipped. So the rows are numbered in their order, and those with numbers up to `n`
//! filtered out. The offset of the statement itself stays, as its rows have that order.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Limit, LogicalPlan, LogicalPlanBuilder, Sort, col, lit,
};

/// The column of numbers.
const NUMBER: &str = "stoa_number";

/// Numbers the rows of offsets in subqueries.
pub(super) fn rows_by_number(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        // The statement's own.
        LogicalPlan::Limit(_) | LogicalPlan::Projection(_) => plan
            .map_children(|child| rows_by_number(child).map(Transformed::yes))?
            .data
            .map_subqueries(everywhere)
            .map(|plan| plan.data),
        plan => everywhere(plan).map(|plan| plan.data),
    }
}

fn everywhere(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Limit(limit) = &node else { return Ok(Transformed::no(node)) };
        let Some(skip) = only_offset(limit) else { return Ok(Transformed::no(node)) };
        match numbered(&limit.input, skip)? {
            Some(numbered) => Ok(Transformed::yes(numbered)),
            None => Ok(Transformed::no(node)),
        }
    })
}

/// The rows to be skipped, where that is all.
fn only_offset(limit: &Limit) -> Option<i64> {
    if !matches!(limit.fetch.as_deref(), None | Some(Expr::Literal(ScalarValue::Int64(None), _))) {
        return None;
    }
    match limit.skip.as_deref()? {
        Expr::Literal(ScalarValue::Int64(Some(skip)), _) if *skip > 0 => Some(*skip),
        _ => None,
    }
}

/// The rows behind the first `skip` of a sort, below columns that are computed of them; `None` where there is no sort.
fn numbered(plan: &LogicalPlan, skip: i64) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => behind(sort, skip).map(Some),
        LogicalPlan::Projection(projection) => match numbered(&projection.input, skip)? {
            Some(input) => {
                LogicalPlanBuilder::from(input).project(projection.expr.clone())?.build().map(Some)
            }
            None => Ok(None),
        },
        LogicalPlan::SubqueryAlias(alias) => match numbered(&alias.input, skip)? {
            Some(input) => {
                LogicalPlanBuilder::from(input).alias(alias.alias.clone())?.build().map(Some)
            }
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

fn behind(sort: &Sort, skip: i64) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = sort.input.schema().columns().into_iter().map(Expr::Column).collect();
    let number = row_number().order_by(sort.expr.clone()).build()?.alias(NUMBER);
    let skip = u64::try_from(skip).unwrap_or_default();
    LogicalPlanBuilder::from(sort.input.as_ref().clone())
        .window([number])?
        .filter(col(Column::new_unqualified(NUMBER)).gt(lit(skip)))?
        .project(columns)?
        .build()
}
