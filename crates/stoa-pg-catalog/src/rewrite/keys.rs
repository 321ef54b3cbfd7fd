//! Queries about keys, in the words that the engine has.
//!
//! `int2vector`s are lists here, whose places are counted from 1 and not from 0;
//! the pairs that JDBC makes of them (`information_schema._pg_expandarray`) become two lists side by side.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Subscript, Value, VisitorMut,
};

use super::expression;

/// Columns whose places are counted from 0.
const VECTORS: [&str; 4] = ["indkey", "indclass", "indoption", "indcollation"];

/// Booleans that clients compare with texts.
const BOOLEANS: [&str; 5] =
    ["indisprimary", "indisunique", "indisvalid", "attisdropped", "attnotnull"];

pub(super) struct Keys;

impl VisitorMut for Keys {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(new) = rewritten(expr) {
            *expr = new;
        }
        ControlFlow::Continue(())
    }
}

fn rewritten(expr: &mut Expr) -> Option<Expr> {
    match expr {
        Expr::Function(function) => rewritten_function(function),
        Expr::CompoundFieldAccess { root, access_chain } => accessed(root, access_chain),
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let is_boolean = last_name(left).is_some_and(|name| BOOLEANS.contains(&name.as_str()));
            let value = text(right).filter(|_| is_boolean)?;
            expression(&format!("{left} = {}", value.starts_with(['t', 'T', 'y', '1'])))
        }
        _ => None,
    }
}

fn rewritten_function(function: &Function) -> Option<Expr> {
    let name = function.name.0.last()?.as_ident()?.value.to_ascii_lowercase();
    let args = arguments(function)?;
    match (name.as_str(), args.as_slice()) {
        ("_pg_expandarray", [list]) => expression(&format!("unnest({list})")),
        ("generate_subscripts", [list, _]) => {
            expression(&format!("unnest(generate_series(1, cardinality({list})))"))
        }
        _ => None,
    }
}

/// `indkey[0]`, `(_pg_expandarray(indkey)).n` and `(keys).x`.
fn accessed(root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
    match chain {
        // `indkey[0]` and `i.indkey[0]`.
        [tables @ .., AccessExpr::Subscript(Subscript::Index { index })] => {
            let mut vector = root.to_string();
            let mut name = last_name(root);
            for part in tables {
                let AccessExpr::Dot(Expr::Identifier(part)) = part else { return None };
                vector = format!("{vector}.{part}");
                name = Some(part.value.to_ascii_lowercase());
            }
            name.filter(|name| VECTORS.contains(&name.as_str()))?;
            // Written so that it is not found again.
            expression(&format!("array_element({vector}, ({index}) + 1)"))
        }
        [AccessExpr::Dot(Expr::Identifier(part))] => {
            let Expr::Nested(inner) = root else { return None };
            match (&**inner, part.value.to_ascii_lowercase().as_str()) {
                (Expr::Function(function), "n") => {
                    let is_pairs = makes_pairs(function);
                    let list = *arguments(function)?.first().filter(|_| is_pairs)?;
                    expression(&format!("unnest(generate_series(1, cardinality({list})))"))
                }
                (Expr::Function(function), "x") => {
                    let is_pairs = makes_pairs(function);
                    let list = *arguments(function)?.first().filter(|_| is_pairs)?;
                    expression(&format!("unnest({list})"))
                }
                (keys, "x") if last_name(keys).is_some_and(|name| name == "keys") => {
                    Some(keys.clone())
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn last_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.to_ascii_lowercase()),
        Expr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.to_ascii_lowercase()),
        Expr::Nested(inner) => last_name(inner),
        _ => None,
    }
}

fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().map(argument).collect()
}

/// `information_schema._pg_expandarray`.
fn makes_pairs(function: &Function) -> bool {
    function.name.to_string().to_ascii_lowercase().ends_with("_pg_expandarray")
}
