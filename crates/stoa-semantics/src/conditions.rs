//! Conditions are booleans: in WHERE, ON, CASE, and under AND, OR and NOT. The engine would take numbers.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};

use super::operators::type_name;
use super::refused::{refusal, told};
use super::{casts, relational};
use crate::scope::Scope;

/// A condition as a boolean; `what` names its place: `WHERE`, `CASE/WHEN`, `NOT`.
///
/// # Errors
/// It is of another type (42804), or a literal that is no boolean (22P02).
pub(super) fn condition(what: &str, expr: Expr, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    if is_surely_boolean(&expr) {
        return Ok(Transformed::no(expr));
    }
    // What has no type is refused by who needs it.
    let Ok(of) = expr.get_type(&scope.schema) else { return Ok(Transformed::no(expr)) };
    if matches!(of, DataType::Boolean | DataType::Null | DataType::Dictionary(..)) {
        return Ok(Transformed::no(expr));
    }
    if matches!(expr, Expr::Literal(ScalarValue::Utf8(_), _)) {
        return casts::to_type(expr, &of, &DataType::Boolean, scope.options).map(Transformed::yes);
    }
    let own = type_name(&told(&expr, &of));
    let message = format!("argument of {what} must be type boolean, not type {own}");
    Err(refusal("42804", message, "write a comparison, such as x <> 0"))
}

/// Without a look at the types of its parts, which takes long in long chains. A parameter becomes one.
fn is_surely_boolean(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            relational::compares(*op) || matches!(op, Operator::And | Operator::Or)
        }
        Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_)
        | Expr::Exists(_)
        | Expr::Placeholder(_)
        | Expr::Literal(ScalarValue::Boolean(_), _) => true,
        _ => false,
    }
}

/// Operands of AND, OR and NOT, and what is asked whether it is true, as booleans.
///
/// # Errors
/// As [`condition`].
pub(super) fn logical(expr: Expr, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let one = |what: &str, inner: Box<Expr>, whole: fn(Box<Expr>) -> Expr| {
        let inner = condition(what, *inner, scope)?;
        Ok::<_, DataFusionError>(inner.update_data(|inner| whole(Box::new(inner))))
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let what = if op == Operator::And { "AND" } else { "OR" };
            let (left, right) = (condition(what, *left, scope)?, condition(what, *right, scope)?);
            let is_changed = left.transformed || right.transformed;
            let both = BinaryExpr::new(Box::new(left.data), op, Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(both), is_changed))
        }
        Expr::Not(inner) => one("NOT", inner, Expr::Not),
        Expr::IsTrue(inner) => one("IS TRUE", inner, Expr::IsTrue),
        Expr::IsFalse(inner) => one("IS FALSE", inner, Expr::IsFalse),
        Expr::IsUnknown(inner) => one("IS UNKNOWN", inner, Expr::IsUnknown),
        Expr::IsNotTrue(inner) => one("IS NOT TRUE", inner, Expr::IsNotTrue),
        Expr::IsNotFalse(inner) => one("IS NOT FALSE", inner, Expr::IsNotFalse),
        Expr::IsNotUnknown(inner) => one("IS NOT UNKNOWN", inner, Expr::IsNotUnknown),
        other => Ok(Transformed::no(other)),
    }
}
