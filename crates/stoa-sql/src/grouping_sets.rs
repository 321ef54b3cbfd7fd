//! Grouping sets of two columns of the result that are one expression: `SELECT a AS x, a AS y … GROUP BY x, ROLLUP (y)`.
//!
//! In PostgreSQL they are two keys, of which one can be NULL where the other is not. For the engine they are one. So they
//! are refused.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, Select, SelectItem, Statement, Value, VisitorMut,
};
use stoa_error::{Error, Result};

use crate::normalise;
use crate::walk::{WalkMut, walk_expressions_mut};

/// # Errors
/// `Unsupported` (0A000), naming the columns.
pub(super) fn refuse_equal_keys(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut InSelects) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct InSelects;

impl VisitorMut for InSelects {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
            return ControlFlow::Continue(());
        };
        let has_sets = keys.iter().any(|key| !parts(key).is_empty()) || !modifiers.is_empty();
        if !has_sets {
            return ControlFlow::Continue(());
        }
        let mut columns: Vec<(usize, Written)> = Vec::new();
        for key in keys {
            let within = parts(key);
            let keys = if within.is_empty() { vec![key] } else { within };
            for (place, expr) in keys.into_iter().filter_map(|key| column_of(key, select)) {
                let written = Written::of(expr);
                let same = columns.iter().find(|(other, has)| *other != place && *has == written);
                if let Some((other, _)) = same {
                    return ControlFlow::Break(refused(*other, place, expr));
                }
                columns.push((place, written));
            }
        }
        ControlFlow::Continue(())
    }
}

/// The keys of `ROLLUP`, `CUBE` or `GROUPING SETS`; none for a key by itself.
fn parts(key: &Expr) -> Vec<&Expr> {
    match key {
        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
            let within = sets.iter().flatten().map(|part| match parts(part) {
                nested if nested.is_empty() => vec![part],
                nested => nested,
            });
            within.flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// The column of the result that a key names by its alias or its place: its place from 0, and what it is.
fn column_of<'a>(key: &Expr, select: &'a Select) -> Option<(usize, &'a Expr)> {
    let place = match key {
        Expr::Nested(key) => return column_of(key, select),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse::<usize>().ok()?.checked_sub(1)?,
            _ => return None,
        },
        Expr::Identifier(name) => {
            let is_it = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if normalise(alias) == normalise(name));
            select.projection.iter().position(is_it)?
        }
        _ => return None,
    };
    match select.projection.get(place)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            Some((place, expr))
        }
        _ => None,
    }
}

/// An expression without the tables of its columns, and the columns with them.
struct Written {
    text: String,
    columns: Vec<Vec<String>>,
}

impl Written {
    fn of(expr: &Expr) -> Self {
        let (mut expr, mut columns) = (expr.clone(), Vec::new());
        let _ = walk_expressions_mut(&mut expr, |part| {
            let names = match part {
                Expr::Identifier(name) => vec![name.clone()],
                Expr::CompoundIdentifier(names) => names.clone(),
                Expr::Nested(inner) => {
                    *part = inner.as_ref().clone();
                    return ControlFlow::Continue(());
                }
                _ => return ControlFlow::<()>::Continue(()),
            };
            let names: Vec<String> = names.iter().rev().map(normalise).collect();
            if let Some(last) = names.first() {
                *part = Expr::Identifier(Ident::with_quote('"', last.clone()));
            }
            columns.push(names);
            ControlFlow::Continue(())
        });
        Self { text: expr.to_string(), columns }
    }
}

impl PartialEq for Written {
    /// Whether they can be the same: `t.a` is `a`, and is not `u.a`.
    fn eq(&self, other: &Self) -> bool {
        let may_be = |(one, other): (&Vec<String>, &Vec<String>)| {
            one.iter().zip(other).all(|(one, other)| one == other)
        };
        self.text == other.text && self.columns.iter().zip(&other.columns).all(may_be)
    }
}

fn refused(one: usize, other: usize, expr: &Expr) -> Error {
    let (first, second) = (one.min(other) + 1, one.max(other) + 1);
    Error::unsupported(format!(
        "grouping sets of columns {first} and {second} of the result, which are both {expr}, are not supported"
    ))
    .with_hint("name the expression once, and take the other column from a query around this one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reread;

    #[test]
    fn keys_that_are_one_expression_are_refused() {
        for (sql, is_refused) in [
            ("SELECT g AS x, g AS y FROM t GROUP BY x, ROLLUP (y)", true),
            ("SELECT g AS x, t.g AS y FROM t GROUP BY x, ROLLUP (y)", true),
            ("SELECT g + 1 AS x, (t.g + 1) FROM t GROUP BY CUBE (x, 2)", true),
            ("SELECT 1 FROM (SELECT g x, g y FROM t GROUP BY GROUPING SETS ((x), (y))) u", true),
            ("SELECT t.g AS x, u.g AS y FROM t, u GROUP BY x, ROLLUP (y)", false),
            ("SELECT g AS x, g AS y FROM t GROUP BY x, y", false),
            ("SELECT g AS x, g AS y FROM t GROUP BY ROLLUP (x)", false),
            ("SELECT g, g FROM t GROUP BY g, ROLLUP (g)", false),
        ] {
            let mut statement = reread::statement(sql).unwrap();
            assert_eq!(refuse_equal_keys(&mut statement).is_err(), is_refused, "{sql}");
        }
    }
}
