//! Operands of `||` and `concat` that are no texts, as PostgreSQL writes them.
//!
//! In: an expression of any type. Out: one of text, or the same where the engine writes it alike.

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, ExprSchemable, lit};

use crate::scope::Scope;
use crate::{casts, text_of};

/// A boolean as it is shown, not as it is cast.
pub(super) fn shown(boolean: Expr) -> Expr {
    let word = |of: bool, word: &str| (Box::new(lit(of)), Box::new(lit(word)));
    let words = vec![word(true, "t"), word(false, "f")];
    Expr::Case(Case::new(Some(Box::new(boolean)), words, None))
}

/// An operand of `||` or `concat` as PostgreSQL writes it.
pub(super) fn text_of_operand(expr: Expr, scope: &Scope<'_>) -> Result<Expr> {
    let of = expr.get_type(&scope.schema)?;
    let is_list = matches!(of, DataType::List(_) | DataType::LargeList(_) | DataType::Binary);
    match text_of::is_ours(&of) && !is_list {
        true => casts::to_type(expr, &of, &DataType::Utf8, scope.options),
        false => Ok(expr),
    }
}
