//! Aggregates with a FILTER: what they are given is computed for the rows that the filter lets through.
//!
//! The engine computes the arguments for all rows and then leaves rows out, so that
//! `sum(x / y) FILTER (WHERE y <> 0)` would fail.
//!
//! In: an aggregate. Out: the same with `CASE WHEN filter THEN argument END` for arguments that may fail.
//! **Invariant:** equal arguments and sort keys stay equal: with DISTINCT the latter must be among the former.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::{
    AggregateFunction, BinaryExpr, Case, Sort, WindowFunction, WindowFunctionDefinition,
};
use datafusion::logical_expr::{Expr, Operator};

use crate::relational;

/// An aggregate over groups.
pub(super) fn aggregate(mut aggregate: AggregateFunction) -> Transformed<Expr> {
    let params = &mut aggregate.params;
    let is_changed = match params.filter.as_deref().filter(|filter| is_plain(filter)) {
        Some(filter) => guard(filter, &mut params.args, &mut params.order_by),
        None => false,
    };
    Transformed::new_transformed(Expr::AggregateFunction(aggregate), is_changed)
}

/// An aggregate over a window. Its sort keys are those of the window, which has all rows.
pub(super) fn window(mut window: Box<WindowFunction>) -> Transformed<Expr> {
    let is_aggregate = matches!(window.fun, WindowFunctionDefinition::AggregateUDF(_));
    let params = &mut window.params;
    let is_changed = match params.filter.as_deref().filter(|filter| is_plain(filter)) {
        Some(filter) if is_aggregate => guard(filter, &mut params.args, &mut []),
        _ => false,
    };
    Transformed::new_transformed(Expr::WindowFunction(window), is_changed)
}

fn guard(filter: &Expr, args: &mut [Expr], order: &mut [Sort]) -> bool {
    let mut is_changed = false;
    for expr in args.iter_mut().chain(order.iter_mut().map(|sort| &mut sort.expr)) {
        if !may_fail(expr) || !is_plain(expr) || is_guarded(expr, filter) {
            continue;
        }
        let then = Box::new(expr.clone());
        *expr = Expr::Case(Case::new(None, vec![(Box::new(filter.clone()), then)], None));
        is_changed = true;
    }
    is_changed
}

/// Whether an expression may be written twice, and in another one.
fn is_plain(expr: &Expr) -> bool {
    let is_query = |part: &Expr| {
        matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        )
    };
    // The walk itself cannot fail.
    !expr.is_volatile() && !expr.exists(|part| Ok(is_query(part))).unwrap_or(true)
}

/// Whether an expression computes something of columns. Constants stay: separators, fractions.
fn may_fail(expr: &Expr) -> bool {
    let computes = |part: &Expr| match part {
        Expr::Cast(_) | Expr::ScalarFunction(_) | Expr::Negative(_) => true,
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            !relational::compares(*op) && !matches!(op, Operator::And | Operator::Or)
        }
        _ => false,
    };
    // The walk itself cannot fail.
    !expr.column_refs().is_empty() && expr.exists(|part| Ok(computes(part))).unwrap_or(true)
}

fn is_guarded(expr: &Expr, filter: &Expr) -> bool {
    match expr {
        Expr::Case(Case { expr: None, when_then_expr, else_expr: None }) => {
            matches!(when_then_expr.as_slice(), [(when, _)] if when.as_ref() == filter)
        }
        _ => false,
    }
}
