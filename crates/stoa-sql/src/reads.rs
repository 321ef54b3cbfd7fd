//! What an expression reads.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{self, Expr};

/// Whether an expression may read a column of a table next to it.
pub(super) fn reads_columns(expr: &Expr) -> bool {
    let found = ast::visit_expressions(expr, |part| match part {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}
