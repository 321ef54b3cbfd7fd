//! `NOT EXISTS (…) IS UNKNOWN`: the parser takes NOT for a part of EXISTS.
//!
//! In: a parsed statement. Out: the same with NOT around all that binds its operands tighter, as in PostgreSQL:
//! `NOT (EXISTS (…) IS UNKNOWN)`. What the user put in parentheses is marked as such in the tree and stays.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, CastKind, Expr, Statement, UnaryOperator, Value, VisitorMut,
};

use crate::walk::WalkMut;

/// Applies each NOT before EXISTS last.
pub(super) fn mend_not_exists(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Mend);
}

struct Mend;

impl VisitorMut for Mend {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if first_operand(expr).is_some_and(take_not) {
            let inner = std::mem::replace(expr, nothing());
            *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(inner) };
        }
        ControlFlow::Continue(())
    }
}

/// Takes NOT from an operand, and says whether there was one. Without parentheses no other NOT stands there.
fn take_not(operand: &mut Expr) -> bool {
    match operand {
        Expr::Exists { negated, .. } => std::mem::take(negated),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            *operand = std::mem::replace(&mut **expr, nothing());
            true
        }
        _ => false,
    }
}

/// The operand before an operator that binds tighter than NOT.
fn first_operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => None,
        Expr::IsTrue(first)
        | Expr::IsNotTrue(first)
        | Expr::IsFalse(first)
        | Expr::IsNotFalse(first)
        | Expr::IsNull(first)
        | Expr::IsNotNull(first)
        | Expr::IsUnknown(first)
        | Expr::IsNotUnknown(first)
        | Expr::IsDistinctFrom(first, _)
        | Expr::IsNotDistinctFrom(first, _)
        | Expr::BinaryOp { left: first, .. }
        | Expr::AnyOp { left: first, .. }
        | Expr::AllOp { left: first, .. }
        | Expr::InList { expr: first, .. }
        | Expr::InSubquery { expr: first, .. }
        | Expr::Between { expr: first, .. }
        | Expr::Like { expr: first, .. }
        | Expr::ILike { expr: first, .. }
        | Expr::SimilarTo { expr: first, .. }
        | Expr::Cast { kind: CastKind::DoubleColon, expr: first, .. } => Some(first),
        _ => None,
    }
}

fn nothing() -> Expr {
    Expr::Value(Value::Null.into())
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    fn mended(condition: &str) -> String {
        let sql = format!("SELECT {condition}");
        let mut statement = Parser::parse_sql(&PostgreSqlDialect {}, &sql).unwrap().swap_remove(0);
        mend_not_exists(&mut statement);
        let _ = statement.walk_mut(&mut WithParentheses);
        statement.to_string()
    }

    /// Writes parentheses around each operand of NOT.
    struct WithParentheses;

    impl VisitorMut for WithParentheses {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::UnaryOp { op: UnaryOperator::Not, expr: operand } = expr {
                let inner = std::mem::replace(&mut **operand, nothing());
                **operand = Expr::Nested(Box::new(inner));
            }
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn not_is_applied_last() {
        for (condition, wanted) in [
            ("NOT EXISTS (SELECT 1) IS UNKNOWN", "NOT (EXISTS (SELECT 1) IS UNKNOWN)"),
            ("NOT EXISTS (SELECT 1) = b IS NULL", "NOT (EXISTS (SELECT 1) = b IS NULL)"),
            ("NOT EXISTS (SELECT 1) IN (b, c)", "NOT (EXISTS (SELECT 1) IN (b, c))"),
            (
                "a AND NOT EXISTS (SELECT 1) IS TRUE OR b",
                "a AND NOT (EXISTS (SELECT 1) IS TRUE) OR b",
            ),
            (
                "EXISTS (SELECT 1 WHERE NOT EXISTS (SELECT 2) IS NULL)",
                "EXISTS (SELECT 1 WHERE NOT (EXISTS (SELECT 2) IS NULL))",
            ),
        ] {
            assert_eq!(mended(condition), format!("SELECT {wanted}"));
        }
        for kept in [
            "NOT EXISTS (SELECT 1)",
            "NOT EXISTS (SELECT 1) AND b",
            "(NOT EXISTS (SELECT 1)) IS NULL",
            "b = (NOT EXISTS (SELECT 1))",
        ] {
            assert_eq!(mended(kept), format!("SELECT {kept}"));
        }
    }
}
