//! Rows by which rows are ordered: `ORDER BY ROW(a, b) DESC` is `ORDER BY a DESC, b DESC`.
//!
//! A row is never NULL, whatever its parts are, and a part without a value is after all others, before them where the
//! order is descending: NULLS FIRST and NULLS LAST of the whole mean nothing. The engine puts parts without a value
//! where it is told to put rows without one, and its windows do not compare rows at all.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, SortExpr};

/// Orders by the parts of rows, in queries, windows and aggregates.
pub(super) fn ordered_by_parts(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Sort(mut sort) => {
            let is_changed = take_apart(&mut sort.expr);
            Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), is_changed))
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            // The first of them are what is distinct.
            let is_changed = on.sort_expr.as_mut().is_some_and(|order| {
                let mut chosen = order.split_off(on.on_expr.len().min(order.len()));
                let is_changed = take_apart(&mut chosen);
                order.append(&mut chosen);
                is_changed
            });
            Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), is_changed))
        }
        node @ (LogicalPlan::Window(_) | LogicalPlan::Aggregate(_)) => {
            let names = NamePreserver::new(&node);
            let changed = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr.transform_up(within)?;
                Ok(changed.update_data(|expr| name.restore(expr)))
            })?;
            match changed.transformed {
                true => changed.map_data(LogicalPlan::recompute_schema),
                false => Ok(changed),
            }
        }
        node => Ok(Transformed::no(node)),
    }
}

/// The order within a window or an aggregate.
fn within(mut expr: Expr) -> Result<Transformed<Expr>> {
    let is_changed = match &mut expr {
        Expr::WindowFunction(window) => take_apart(&mut window.params.order_by),
        // With DISTINCT, what is ordered by must be what is aggregated.
        Expr::AggregateFunction(of) if !of.params.distinct => take_apart(&mut of.params.order_by),
        _ => false,
    };
    Ok(Transformed::new_transformed(expr, is_changed))
}

/// Puts the parts of rows in their places; says whether there were any.
fn take_apart(order: &mut Vec<SortExpr>) -> bool {
    let mut is_changed = false;
    while order.iter().any(|key| parts(&key.expr).is_some()) {
        is_changed = true;
        let each = std::mem::take(order).into_iter().flat_map(|key| match parts(&key.expr) {
            Some(parts) => parts.iter().map(|part| part.clone().sort(key.asc, !key.asc)).collect(),
            None => vec![key],
        });
        *order = each.collect();
    }
    is_changed
}

/// The parts of a row that is made where it is ordered by.
fn parts(key: &Expr) -> Option<&[Expr]> {
    match key {
        Expr::Alias(alias) => parts(&alias.expr),
        Expr::ScalarFunction(ScalarFunction { func, args })
            if func.name() == "struct" && !args.is_empty() =>
        {
            Some(args)
        }
        _ => None,
    }
}
