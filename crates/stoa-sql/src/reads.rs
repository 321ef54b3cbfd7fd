//! What an expression reads.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::Expr;

use crate::walk::walk_expressions;

/// Whether an expression may read a column of a table next to it.
pub(super) fn reads_columns(expr: &Expr) -> bool {
    let found = walk_expressions(expr, |part| match part {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}
