//! `(a, b) IN (SELECT c, d FROM …)`, for which the engine knows single values only.
//!
//! ```text
//! WHERE (a, b) IN (query)      ─►  WHERE EXISTS (SELECT 1 FROM (query) AS r (x, y) WHERE a = x AND b = y)
//! WHERE (a, b) NOT IN (query)  ─►  WHERE NOT EXISTS (SELECT 1 FROM (query) AS r (x, y) WHERE (a = x AND b = y) IS NOT FALSE)
//! everywhere else              ─►  (SELECT CASE WHEN bool_or(a = x AND b = y) THEN true
//!                                    WHEN count(*) > count(a = x AND b = y) THEN NULL ELSE false END FROM (query) AS r (x, y))
//! ```
//! A query about the row around it has its conditions next to its own, where that is the same, and is compared by the
//! last form otherwise. **Invariant:** NULL is neither in nor out, as in SQL.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, ObjectNamePart, Query, Select, SelectItem, SetExpr,
    Statement, TableAlias, TableAliasColumnDef, TableFactor, UnaryOperator, Visitor, VisitorMut,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result};

use crate::calls::{named, positional};
use crate::from_names::own_name;
use crate::normalise;
use crate::row_functions::{NAMES, is_aggregate};
use crate::walk::{Walk, WalkMut, walk_expressions, walk_expressions_mut};

/// Writes out which rows are looked for in queries.
///
/// # Errors
/// A row and a query with different numbers of columns (42601).
pub(super) fn look_for_rows(statement: &mut Statement) -> Result<()> {
    let condition = match statement {
        Statement::Update(update) => update.selection.as_mut(),
        Statement::Delete(delete) => delete.selection.as_mut(),
        _ => None,
    };
    if let Some(condition) = condition {
        look_in_condition(condition)?;
    }
    match statement.walk_mut(&mut RowsInQueries) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct RowsInQueries;

impl VisitorMut for RowsInQueries {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        match select.selection.as_mut().map(look_in_condition) {
            Some(Err(error)) => ControlFlow::Break(Box::new(error)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match row_in_query(expr).map(|(row, query, negated)| value(&row, query, negated)) {
            Some(Ok(written)) => *expr = written,
            Some(Err(error)) => return ControlFlow::Break(Box::new(error)),
            None => {}
        }
        ControlFlow::Continue(())
    }
}

/// The row, the query, and whether the row is to be in it or not.
fn row_in_query(expr: &Expr) -> Option<(Vec<Expr>, &Query, bool)> {
    let Expr::InSubquery { expr, subquery, negated } = expr else { return None };
    let row = match expr.as_ref() {
        Expr::Tuple(row) => row.clone(),
        Expr::Function(call) if named(&call.name).is_some_and(|name| name == "row") => {
            positional(&call.args)?
        }
        _ => return None,
    };
    Some((row, subquery, *negated))
}

/// What must be true of a row for it to count: NULL is as good as false there.
fn look_in_condition(condition: &mut Expr) -> Result<()> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            look_in_condition(left)?;
            look_in_condition(right)
        }
        Expr::Nested(inner) => look_in_condition(inner),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            let mut inner = expr.as_ref();
            while let Expr::Nested(nested) = inner {
                inner = nested;
            }
            if let Some((row, query, negated)) = row_in_query(inner)
                && let Some(written) = exists(&row, query, !negated)?
            {
                *condition = written;
            }
            Ok(())
        }
        _ => {
            if let Some((row, query, negated)) = row_in_query(condition)
                && let Some(written) = exists(&row, query, negated)?
            {
                *condition = written;
            }
            Ok(())
        }
    }
}

/// The condition as EXISTS; `None` for queries about the row around them that must be computed for each row.
fn exists(row: &[Expr], query: &Query, negated: bool) -> Result<Option<Expr>> {
    if !is_about_row(query) {
        let sql = if negated {
            "NOT EXISTS (SELECT 1 FROM f WHERE (m) IS NOT FALSE)"
        } else {
            "EXISTS (SELECT 1 FROM f WHERE m)"
        };
        return written(sql, row, query).map(Some);
    }
    Ok((!negated).then(|| next_to_its_own(row, query)).flatten())
}

/// The query with the comparison among its own conditions, where the names of both mean there what they mean here.
fn next_to_its_own(row: &[Expr], query: &Query) -> Option<Expr> {
    let mut query = query.clone();
    let is_plain = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(keys, sets) => !keys.is_empty() || !sets.is_empty(),
        GroupByExpr::All(_) => true,
    };
    if !is_plain || is_grouped || select.having.is_some() || select.distinct.is_some() {
        return None;
    }
    let known = names_in(select.as_ref());
    let is_free = |expr: &Expr| match expr {
        Expr::Identifier(_) => ControlFlow::Break(()),
        Expr::CompoundIdentifier(parts) => match parts.first().map(normalise) {
            Some(table) if !known.contains(&table) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        },
        _ => ControlFlow::Continue(()),
    };
    if row.iter().any(|value| walk_expressions(value, is_free).is_break()) {
        return None;
    }
    let mut items = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }
                if !is_computed_of_many(expr) =>
            {
                items.push(expr.clone());
            }
            _ => return None,
        }
    }
    if items.len() != row.len() {
        return None;
    }
    let same = comparison(row, items)?;
    select.selection = Some(match select.selection.take() {
        Some(own) => both(Expr::Nested(Box::new(own)), BinaryOperator::And, same),
        None => same,
    });
    query.order_by = None;
    Some(Expr::Exists { subquery: Box::new(query), negated: false })
}

/// Aggregates, windows and functions that return rows.
fn is_computed_of_many(expr: &Expr) -> bool {
    walk_expressions(expr, |part| match part {
        Expr::Function(call)
            if call.over.is_some()
                || is_aggregate(call)
                || named(&call.name).is_some_and(|name| NAMES.contains(&name.as_str())) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Whether the row is in the query: true, false or NULL.
fn value(row: &[Expr], query: &Query, negated: bool) -> Result<Expr> {
    let sql = "(SELECT CASE WHEN bool_or(m) THEN true WHEN count(*) > count(m) THEN NULL ELSE false END FROM f)";
    let is_in = written(sql, row, query)?;
    Ok(match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(is_in) },
        false => is_in,
    })
}

/// `sql` with the query for its table `f`, and the comparison for its column `m`.
fn written(sql: &str, row: &[Expr], query: &Query) -> Result<Expr> {
    if let Some(columns) = columns_of(query)
        && columns != row.len()
    {
        let few = if columns < row.len() { "few" } else { "many" };
        return Err(
            Error::invalid(format!("subquery has too {few} columns")).with_sqlstate("42601")
        );
    }
    let columns: Vec<Ident> =
        (1..=row.len()).map(|place| Ident::with_quote('"', format!("value {place}"))).collect();
    let same = comparison(row, columns.iter().cloned().map(Expr::Identifier).collect());
    let parsed = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_expr());
    let (Some(same), Ok(mut expr)) = (same, parsed) else {
        return Err(Error::internal("a row was not found in a query"));
    };
    let _ = walk_expressions_mut(&mut expr, |part| {
        if matches!(part, Expr::Identifier(name) if name.value == "m") {
            *part = Expr::Nested(Box::new(same.clone()));
        }
        ControlFlow::<()>::Continue(())
    });
    let column = |name| TableAliasColumnDef { name, data_type: None };
    let alias = TableAlias {
        explicit: true,
        name: Ident::with_quote('"', "rows of query"),
        columns: columns.into_iter().map(column).collect(),
        at: None,
    };
    let rows = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query.clone()),
        alias: Some(alias),
        sample: None,
    };
    let _ = WalkMut::walk_mut(&mut expr, &mut Table(Some(rows)));
    Ok(expr)
}

/// Puts a table in the place of the first.
struct Table(Option<TableFactor>);

impl VisitorMut for Table {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let Some(by) = self.0.take() {
            *table = by;
        }
        ControlFlow::Break(())
    }
}

/// `row_1 = other_1 AND …`.
fn comparison(row: &[Expr], other: Vec<Expr>) -> Option<Expr> {
    let nested = |expr: Expr| Expr::Nested(Box::new(expr));
    let pairs = row.iter().zip(other);
    let equal = pairs
        .map(|(one, other)| nested(both(nested(one.clone()), BinaryOperator::Eq, nested(other))));
    equal.reduce(|one, other| both(one, BinaryOperator::And, other))
}

fn both(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// How many columns a query has; `None` where that is not to be seen.
fn columns_of(query: &Query) -> Option<usize> {
    let mut body = query.body.as_ref();
    loop {
        match body {
            SetExpr::Query(query) => body = query.body.as_ref(),
            SetExpr::SetOperation { left, .. } => body = left.as_ref(),
            SetExpr::Values(values) => return values.rows.first().map(|row| row.content.len()),
            SetExpr::Select(select) => {
                let is_one = |item: &SelectItem| {
                    matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
                };
                let is_seen = select.projection.iter().all(is_one);
                return is_seen.then_some(select.projection.len());
            }
            _ => return None,
        }
    }
}

/// Whether a query names a table that it does not read.
fn is_about_row(query: &Query) -> bool {
    let known = names_in(query);
    walk_expressions(query, |expr| match expr {
        Expr::CompoundIdentifier(parts) => match parts.first().map(normalise) {
            Some(table) if !known.contains(&table) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// The names of all tables that a part of a statement reads, schemas among them.
fn names_in(part: &impl Walk) -> Vec<String> {
    let mut names = Names(Vec::new());
    let _ = part.walk(&mut names);
    names.0
}

struct Names(Vec<String>);

impl Visitor for Names {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        self.0.extend(own_name(table).map(normalise));
        if let TableFactor::Table { name, alias: None, .. } = table {
            // A column may be named with its schema.
            let parts = name.0.iter().filter_map(ObjectNamePart::as_ident);
            self.0.extend(parts.map(normalise));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reread;

    fn looked_for(sql: &str) -> Result<String> {
        let mut statement = reread::statement(sql).unwrap();
        look_for_rows(&mut statement)?;
        Ok(statement.to_string())
    }

    #[test]
    fn rows_are_looked_for_by_value() {
        let rows = "AS \"rows of query\" (\"value 1\", \"value 2\")";
        let same = "((a) = (\"value 1\")) AND ((b) = (\"value 2\"))";
        for (sql, expected) in [
            (
                "SELECT 1 FROM t WHERE c AND (a, b) IN (SELECT c, d FROM u)",
                format!("SELECT 1 FROM t WHERE c AND EXISTS (SELECT 1 FROM (SELECT c, d FROM u) {rows} WHERE ({same}))"),
            ),
            (
                "DELETE FROM t WHERE NOT ((a, b) IN (SELECT c, d FROM u))",
                format!("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM (SELECT c, d FROM u) {rows} WHERE (({same})) IS NOT FALSE)"),
            ),
            (
                "SELECT (a, b) IN (SELECT * FROM u) FROM t",
                format!("SELECT (SELECT CASE WHEN bool_or(({same})) THEN true WHEN count(*) > count(({same})) THEN NULL ELSE false END FROM (SELECT * FROM u) {rows}) FROM t"),
            ),
            (
                "SELECT 1 FROM t WHERE (t.a, t.b) IN (SELECT u.c, u.d FROM u WHERE u.e = t.e)",
                "SELECT 1 FROM t WHERE EXISTS (SELECT u.c, u.d FROM u WHERE (u.e = t.e) AND ((t.a) = (u.c)) AND ((t.b) = (u.d)))".to_owned(),
            ),
        ] {
            assert_eq!(looked_for(sql).unwrap(), expected);
        }
        for (sql, few) in [
            ("SELECT (a, b) IN (SELECT c FROM u) FROM t", "few"),
            ("SELECT 1 FROM t WHERE (a, b) IN (VALUES (1, 2, 3))", "many"),
        ] {
            let error = looked_for(sql).unwrap_err();
            assert_eq!(error.sqlstate(), "42601");
            assert_eq!(error.message(), format!("subquery has too {few} columns"));
        }
    }
}
