//! `IN`, `ANY`, `ALL` and `EXISTS` with a subquery that is an aggregate without GROUP BY, and so always one row.
//!
//! Where such a subquery refers to the query around it, the engine joins with the groups that it finds, and there is
//! no group where no row matches: `k IN (SELECT count(*) FROM o WHERE o.a = t.a)` was false where the count is 0.
//!
//! ```text
//! x IN s, x op ANY s, x op ALL s  ─► x = (s), x op (s), x op (s)
//! EXISTS s                        ─► true
//! EXISTS (s HAVING p)             ─► (SELECT p …) IS TRUE
//! ```
//! Whatever else stands between the aggregate and the predicate and may take the row away (OFFSET, a join) is refused.

use std::sync::Arc;

use datafusion::common::Spans;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery,
    SubqueryAlias, lit,
};

use crate::call::unsupported;

/// Writes the predicates of one node that ask for one row as comparisons with it.
///
/// # Errors
/// An aggregate of this kind that may have no row (0A000).
pub(super) fn compared(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if matches!(node, LogicalPlan::Dml(_) | LogicalPlan::Extension(_)) {
        return Ok(Transformed::no(node));
    }
    let names = NamePreserver::new(&node);
    let changed = node.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(expr.transform_up(predicate)?.update_data(|expr| name.restore(expr)))
    })?;
    match changed.transformed {
        true => changed.map_data(LogicalPlan::recompute_schema),
        false => Ok(changed),
    }
}

fn predicate(expr: Expr) -> Result<Transformed<Expr>> {
    let compare = |left: Box<Expr>, op: Operator, rows: Subquery| {
        let right = Box::new(Expr::ScalarSubquery(rows));
        Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(left, op, right)))
    };
    Ok(match expr {
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_one_row(&subquery)? => {
            let op = if negated { Operator::NotEq } else { Operator::Eq };
            compare(expr, op, subquery)
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, .. }) if is_one_row(&subquery)? => {
            compare(expr, op, subquery)
        }
        Expr::Exists(Exists { subquery, negated }) => match having(&subquery)? {
            Some(having) => {
                let is_there = Expr::ScalarSubquery(having).is_true();
                Transformed::yes(if negated { !is_there } else { is_there })
            }
            None if is_one_row(&subquery)? => Transformed::yes(lit(!negated)),
            None => Transformed::no(Expr::Exists(Exists { subquery, negated })),
        },
        other => Transformed::no(other),
    })
}

/// The condition on which the one row of a subquery is there, as a subquery of its own.
fn having(subquery: &Subquery) -> Result<Option<Subquery>> {
    let mut plan = &*subquery.subquery;
    while let LogicalPlan::Projection(Projection { input, .. })
    | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) = plan
    {
        plan = input;
    }
    let LogicalPlan::Filter(Filter { predicate, input, .. }) = plan else { return Ok(None) };
    if !is_ungrouped(input) {
        return Ok(None);
    }
    let plan = LogicalPlanBuilder::from(input.as_ref().clone());
    let plan = Arc::new(plan.project([predicate.clone()])?.build()?);
    let outer_ref_columns = plan.all_out_ref_exprs();
    Ok(Some(Subquery { subquery: plan, outer_ref_columns, spans: Spans::new() }))
}

/// Whether a subquery is such an aggregate, with nothing above it that could take its row away.
///
/// # Errors
/// There is such an aggregate, and its row may be taken away (0A000).
fn is_one_row(subquery: &Subquery) -> Result<bool> {
    let plan = &*subquery.subquery;
    if subquery.outer_ref_columns.is_empty() || !plan.exists(|node| Ok(is_ungrouped(node)))? {
        return Ok(false);
    }
    let mut plan = plan;
    loop {
        plan = match plan {
            LogicalPlan::Projection(of) => &of.input,
            LogicalPlan::SubqueryAlias(of) => &of.input,
            LogicalPlan::Sort(of) if of.fetch.is_none() => &of.input,
            of if is_ungrouped(of) => return Ok(true),
            _ => {
                return Err(unsupported(
                    "an aggregate without GROUP BY is not supported within this correlated subquery",
                    "compare with the aggregate itself: x = (SELECT count(*) …)",
                ));
            }
        };
    }
}

/// Whether a node is an aggregate without GROUP BY of rows that depend on the query around it.
fn is_ungrouped(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate(of) => {
            of.group_expr.is_empty() && !of.input.all_out_ref_exprs().is_empty()
        }
        _ => false,
    }
}
