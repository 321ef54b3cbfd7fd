//! Operators that the engine has only as functions, and UPDATE of one column twice, which it takes.
//!
//! In: a parsed statement. Out: the same with `starts_with(a, b)` for `a ^@ b`, `array_has_any(a, b)` for
//! `a && b`, and `(a # -1)` for `~a`.

use std::collections::HashSet;

use datafusion_sql::sqlparser::ast::{
    AssignmentTarget, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectName, Statement, UnaryOperator, Value,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result};

use crate::normalise;

/// Replaces an operator that the engine does not know; its operands may hold others.
pub(super) fn write_operator_as_call(expr: &mut Expr) {
    let written = match expr {
        Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            call("starts_with(a, b)", left, right)
        }
        Expr::BinaryOp { left, op: BinaryOperator::PGOverlap, right } => {
            call("array_has_any(a, b)", left, right)
        }
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr } => Some(inverted(expr)),
        Expr::UnaryOp { op: UnaryOperator::PGSquareRoot, expr } => of_one("sqrt(a)", expr),
        Expr::UnaryOp { op: UnaryOperator::PGCubeRoot, expr } => of_one("cbrt(a)", expr),
        Expr::UnaryOp { op: UnaryOperator::PGAbs, expr } => of_one("abs(a)", expr),
        _ => None,
    };
    if let Some(written) = written {
        *expr = written;
    }
}

/// The call `template` of two arguments, with these operands for them.
fn call(template: &str, left: &Expr, right: &Expr) -> Option<Expr> {
    let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(template);
    let mut call = parser.and_then(|mut parser| parser.parse_expr()).ok()?;
    let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut call else {
        return None;
    };
    let operands =
        [left, right].map(|operand| FunctionArg::Unnamed(FunctionArgExpr::Expr(operand.clone())));
    list.args = operands.into();
    Some(call)
}

/// The call `template` of one argument, with this operand for it.
fn of_one(template: &str, operand: &Expr) -> Option<Expr> {
    let mut call = call(template, operand, operand)?;
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut call {
        list.args.truncate(1);
    }
    Some(call)
}

/// All bits of a number the other way round.
fn inverted(operand: &Expr) -> Expr {
    let one = Expr::value(Value::Number("1".into(), false));
    let ones = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(one) };
    let operand = Expr::Nested(Box::new(operand.clone()));
    Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(operand),
        op: BinaryOperator::PGBitwiseXor,
        right: Box::new(ones),
    }))
}

/// `UPDATE t SET a = 1, a = 2`.
///
/// # Errors
/// A column that is set twice (42601).
pub(super) fn refuse_repeated_assignments(statement: &Statement) -> Result<()> {
    let Statement::Update(update) = statement else { return Ok(()) };
    let mut seen = HashSet::new();
    for assignment in &update.assignments {
        let targets = match &assignment.target {
            AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
            AssignmentTarget::Tuple(names) => names.as_slice(),
        };
        for target in targets {
            let name = column(target);
            if !seen.insert(name.clone()) {
                let message = format!("multiple assignments to same column \"{name}\"");
                return Err(Error::invalid(message).with_sqlstate("42601"));
            }
        }
    }
    Ok(())
}

fn column(name: &ObjectName) -> String {
    let parts = name.0.iter();
    let parts: Vec<String> =
        parts.map(|part| part.as_ident().map_or_else(|| part.to_string(), normalise)).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(text: &str) -> Expr {
        Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    #[test]
    fn operators_become_what_the_engine_has() {
        for (text, written) in [
            ("a ^@ 'x'", "starts_with(a, 'x')"),
            ("a && b", "array_has_any(a, b)"),
            ("~ a", "((a) # -1)"),
            ("a & b", "a & b"),
        ] {
            let mut expr = expression(text);
            write_operator_as_call(&mut expr);
            assert_eq!(expr.to_string(), written);
        }
    }

    #[test]
    fn a_column_is_set_once() {
        let refused = |text: &str| {
            let statement = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap().remove(0);
            refuse_repeated_assignments(&statement).err().map(|error| error.sqlstate())
        };
        assert_eq!(refused("UPDATE t SET a = 1, \"A\" = 2"), None);
        assert_eq!(refused("UPDATE t SET a = 1, A = 2"), Some("42601"));
    }
}
