//! `a IS DISTINCT FROM b OR c`: the parser takes all that follows FROM for the second operand.
//!
//! In: a parsed statement. Out: the same with AND and OR where PostgreSQL has them, outside of
//! `IS DISTINCT FROM`. What the user put in parentheses is marked as such in the tree and stays.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Statement, UnaryOperator, Value, VisitorMut,
};

use crate::walk::WalkMut;

/// Gives back to AND and OR what belongs to them.
pub(super) fn mend_distinct_from(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Mend);
}

struct Mend;

impl VisitorMut for Mend {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        mend(expr);
        ControlFlow::Continue(())
    }
}

/// Where the last operand of `expr` is a looser operator without parentheses, makes that the outer one.
fn mend(expr: &mut Expr) {
    let is_looser: fn(&BinaryOperator) -> bool = match expr {
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => is_logical,
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => is_logical,
        Expr::BinaryOp { op: BinaryOperator::And, .. } => is_or,
        _ => return,
    };
    let Some(last) = last_operand(expr) else { return };
    if !matches!(last, Expr::BinaryOp { op, .. } if is_looser(op)) {
        return;
    }
    // The looser operators go outside; what stands first below them is the last operand.
    let mut outer = std::mem::replace(last, nothing());
    let first = first_below(&mut outer, is_looser);
    let operand = std::mem::replace(first, nothing());
    if let Some(last) = last_operand(expr) {
        *last = operand;
    }
    *first = std::mem::replace(expr, nothing());
    *expr = outer;
}

fn last_operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::IsDistinctFrom(_, last) | Expr::IsNotDistinctFrom(_, last) => Some(last),
        Expr::UnaryOp { expr: last, .. } | Expr::BinaryOp { right: last, .. } => Some(last),
        _ => None,
    }
}

/// What stands first below a chain of looser operators.
fn first_below(expr: &mut Expr, is_looser: fn(&BinaryOperator) -> bool) -> &mut Expr {
    if !matches!(expr, Expr::BinaryOp { op, .. } if is_looser(op)) {
        return expr;
    }
    match expr {
        Expr::BinaryOp { left, .. } => first_below(left, is_looser),
        first => first,
    }
}

fn is_logical(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::And | BinaryOperator::Or)
}

fn is_or(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Or)
}

fn nothing() -> Expr {
    Expr::Value(Value::Null.into())
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    fn check(condition: &str, with_parentheses: &str) {
        let parse = |condition: &str| {
            let sql = format!("SELECT {condition}");
            Parser::parse_sql(&PostgreSqlDialect {}, &sql).unwrap().swap_remove(0)
        };
        let mut mended = parse(condition);
        mend_distinct_from(&mut mended);
        let mut wanted = parse(with_parentheses);
        let _ = wanted.walk_mut(&mut WithoutParentheses);
        assert_eq!(mended, wanted, "{condition}");
    }

    struct WithoutParentheses;

    impl VisitorMut for WithoutParentheses {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            while let Expr::Nested(inner) = expr {
                *expr = std::mem::replace(&mut **inner, nothing());
            }
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn and_and_or_are_outside() {
        check("a IS DISTINCT FROM 'x' OR b", "(a IS DISTINCT FROM 'x') OR b");
        check("a IS DISTINCT FROM 'x' AND b OR c", "((a IS DISTINCT FROM 'x') AND b) OR c");
        check("a IS DISTINCT FROM 'x' OR b AND c", "(a IS DISTINCT FROM 'x') OR (b AND c)");
        check("p AND a IS DISTINCT FROM x OR q", "(p AND (a IS DISTINCT FROM x)) OR q");
        check("p OR a IS NOT DISTINCT FROM x AND q", "p OR ((a IS NOT DISTINCT FROM x) AND q)");
        check("NOT a IS DISTINCT FROM x AND q", "(NOT (a IS DISTINCT FROM x)) AND q");
        check("a IS DISTINCT FROM b + 1 = c", "a IS DISTINCT FROM ((b + 1) = c)");
        // Which AND of a chain is the inner one makes no difference.
        check(
            "p AND a IS DISTINCT FROM x AND q OR b IS DISTINCT FROM y AND r",
            "(p AND ((a IS DISTINCT FROM x) AND q)) OR ((b IS DISTINCT FROM y) AND r)",
        );
    }

    #[test]
    fn parentheses_of_the_user_stay() {
        let sql = "SELECT a IS DISTINCT FROM (b OR c)";
        let mut statement = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap().swap_remove(0);
        mend_distinct_from(&mut statement);
        assert_eq!(statement.to_string(), sql);
    }
}
