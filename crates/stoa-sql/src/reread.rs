//! Texts that were made of parts of a statement, read again: whatever was read once is read the same way.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Statement, UnaryOperator, Value,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};

use crate::Bounded;
use crate::walk::{WalkMut, walk_expressions_mut};

/// Levels of a text: more than a statement may have, since it stands within others here.
const LEVELS_MAX: usize = 100;

/// Puts brackets where what is written would be read as something else: `- -1` is written `--1`, a comment.
pub(super) fn bracket_signs(statement: &mut impl WalkMut) {
    let _ = walk_expressions_mut(statement, |expr| {
        let Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner } = expr
        else {
            return ControlFlow::<()>::Continue(());
        };
        if matches!(**inner, Expr::UnaryOp { .. }) {
            let operand = std::mem::replace(&mut **inner, Expr::value(Value::Null));
            **inner = Expr::Nested(Box::new(operand));
        }
        ControlFlow::Continue(())
    });
}

pub(super) fn statement(text: &str) -> Result<Statement, ParserError> {
    read(text, |parser| parser.parse_statement())
}

pub(super) fn query(text: &str) -> Result<Query, ParserError> {
    read(text, |parser| parser.parse_query().map(|query| *query))
}

fn read<T>(
    text: &str,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, ParserError> {
    let dialect = Bounded::reread(PostgreSqlDialect {}, text.len());
    let parser = Parser::new(&dialect).with_recursion_limit(LEVELS_MAX);
    parse(&mut parser.try_with_sql(text)?)
}

/// A call of a function by its name.
pub(super) fn call(name: &str, operands: Vec<Expr>) -> Result<Expr, ParserError> {
    let mut call = read(&format!("{name}()"), |parser| parser.parse_expr())?;
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        let operand = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
        list.args = operands.into_iter().map(operand).collect();
    }
    Ok(call)
}
