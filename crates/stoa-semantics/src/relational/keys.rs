//! `ORDER BY (SELECT … WHERE u.id = t.id)`: the engine joins subqueries below projections and filters only.
//!
//! In: a sort whose keys have subqueries about the row. Out: the same rows, sorted by columns that a projection computes.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Sort};

/// Names of the keys; the number follows.
const KEY: &str = "stoa key";

/// Sorts by computed columns, also in subqueries.
pub(super) fn sorted_by_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_meant = false;
    plan.apply_with_subqueries(|node| {
        is_meant |= matches!(node, LogicalPlan::Sort(sort) if has_subqueries(sort));
        Ok(if is_meant { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    match is_meant {
        true => Ok(plan.transform_up_with_subqueries(sorted)?.data),
        false => Ok(plan),
    }
}

fn sorted(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let sort = match node {
        LogicalPlan::Sort(sort) if has_subqueries(&sort) => sort,
        node => return Ok(Transformed::no(node)),
    };
    let Sort { expr: keys, input, fetch } = sort;
    let own: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let (mut values, mut by) = (Vec::new(), Vec::with_capacity(keys.len()));
    for (place, mut key) in keys.into_iter().enumerate() {
        if has_subquery(&key.expr) {
            let name = format!("{KEY} {place}");
            let value = std::mem::replace(&mut key.expr, Expr::Column(Column::from_name(&name)));
            values.push(value.alias(name));
        }
        by.push(key);
    }
    let input = Arc::unwrap_or_clone(input);
    let rows = match input {
        // Subqueries may be about columns that are not shown.
        LogicalPlan::Projection(shown) if !knows_all(&values, &shown.schema)? => {
            let exprs = shown.expr.into_iter().chain(values);
            LogicalPlanBuilder::from(Arc::unwrap_or_clone(shown.input)).project(exprs)?
        }
        input => {
            let exprs = own.clone().into_iter().chain(values);
            LogicalPlanBuilder::from(input).project(exprs)?
        }
    };
    let rows = rows.sort_with_limit(by, fetch)?;
    Ok(Transformed::yes(rows.project(own)?.build()?))
}

/// Whether these columns are all that the subqueries name of the row.
fn knows_all(values: &[Expr], schema: &DFSchema) -> Result<bool> {
    let mut knows = true;
    for value in values {
        value.apply(|part| {
            let subquery = match part {
                Expr::ScalarSubquery(subquery) => subquery,
                Expr::Exists(exists) => &exists.subquery,
                Expr::InSubquery(within) => &within.subquery,
                Expr::Column(column) => {
                    knows &= schema.has_column(column);
                    return Ok(TreeNodeRecursion::Continue);
                }
                _ => return Ok(TreeNodeRecursion::Continue),
            };
            knows &= subquery.outer_ref_columns.iter().all(|of| match of {
                Expr::OuterReferenceColumn(_, column) => schema.has_column(column),
                _ => true,
            });
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(knows)
}

fn has_subqueries(sort: &Sort) -> bool {
    sort.expr.iter().any(|key| has_subquery(&key.expr))
}

/// Whether an expression has a subquery that names columns of the row.
fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    let _ = expr.apply(|part| {
        found |= match part {
            Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
            Expr::Exists(exists) => !exists.subquery.outer_ref_columns.is_empty(),
            Expr::InSubquery(within) => !within.subquery.outer_ref_columns.is_empty(),
            _ => false,
        };
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}
