//! `ARRAY(SELECT …)`: the rows of a query as an array, empty where there are none.
//!
//! In: a parsed statement. Out: the same with `array_or_empty((SELECT array_agg(… ORDER BY …) FROM …))`. A query that only
//! selects gets the aggregate itself, so that it may refer to the row around it; any other becomes a subquery of it.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    GroupByExpr, Ident, ObjectNamePart, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr,
    Statement, TableFactor, Value, Visitor, VisitorMut,
};
use stoa_error::{Error, Result};

use crate::walk::{Walk, WalkMut};
use crate::{normalise, reread};

/// The function that has an empty array for NULL.
pub const ARRAY_OR_EMPTY: &str = "array_or_empty";

/// The rows of a query that is put into another, and the aggregate that is put into a query; no table or column is called so.
pub const ROWS: &str = "\u{2063}items";

/// Functions that make one value of many rows, or many rows of one value.
const OF_ROWS: &[&str] = &[
    "array_agg",
    "avg",
    "bit_",
    "bool_",
    "corr",
    "count",
    "covar_",
    "every",
    "generate_",
    "json",
    "max",
    "min",
    "mode",
    "percentile_",
    "regexp_",
    "regr_",
    "stddev",
    "string_agg",
    "sum",
    "unnest",
    "var",
];

/// Writes arrays of queries as aggregates.
///
/// # Errors
/// 42601 for a query of several columns.
pub(super) fn aggregate_items(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Arrays) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Arrays;

impl VisitorMut for Arrays {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(call) = expr
            && let [ObjectNamePart::Identifier(name)] = call.name.0.as_mut_slice()
            && name.quote_style.is_none()
            && name.value.eq_ignore_ascii_case("array")
            && let FunctionArguments::Subquery(query) = &mut call.args
        {
            match aggregated(query) {
                Ok(aggregated) => *expr = aggregated,
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}

/// The array of a query, which is taken.
fn aggregated(query: &mut Query) -> Result<Expr> {
    let mut call = call_of()?;
    let place = query_in(&mut call)?;
    if let SetExpr::Select(select) = query.body.as_ref()
        && select.projection.len() > 1
    {
        return Err(Error::invalid("subquery must return only one column").with_sqlstate("42601"));
    }
    let outer = match selects_only(query) {
        true => in_place(query)?,
        false => around(query)?,
    };
    *place = outer;
    Ok(call)
}

/// Whether a query takes rows as they are, and values of each by itself.
fn selects_only(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(keys, more) if keys.is_empty() && more.is_empty());
    let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
        select.projection.as_slice()
    else {
        return false;
    };
    query.with.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && is_ungrouped
        && select.distinct.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.named_window.is_empty()
        && !select.from.is_empty()
        && item.walk(&mut OfRows).is_continue()
}

/// Finds calls that are no functions of one row.
struct OfRows;

impl Visitor for OfRows {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(Function { name, over, .. }) = expr else {
            return ControlFlow::Continue(());
        };
        let name = name.0.last().and_then(|part| part.as_ident()).map(normalise);
        let begins = |of: &&str| name.as_ref().is_some_and(|name| name.starts_with(*of));
        match over.is_some() || OF_ROWS.iter().any(begins) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// What a key of the order refers to.
enum Key {
    /// The only column.
    Item,
    Other,
}

fn key_of(key: &Expr, item: Option<&SelectItem>) -> Key {
    let is_item = match (key, item) {
        (Expr::Value(value), _) => {
            matches!(&value.value, Value::Number(number, _) if number == "1")
        }
        (Expr::Identifier(name), Some(SelectItem::ExprWithAlias { expr, alias })) => {
            normalise(name) == normalise(alias) || expr == key
        }
        (_, Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. })) => {
            expr == key
        }
        (Expr::Identifier(_), None) => true,
        _ => false,
    };
    if is_item { Key::Item } else { Key::Other }
}

fn take_order(query: &mut Query) -> Vec<OrderByExpr> {
    match query.order_by.take().map(|order| order.kind) {
        Some(OrderByKind::Expressions(keys)) => keys,
        _ => Vec::new(),
    }
}

/// The query with the aggregate in the place of its column.
fn in_place(query: &mut Query) -> Result<Query> {
    let mut keys = take_order(query);
    let mut query = taken(query)?;
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(unread()) };
    let item = select.projection.pop().ok_or_else(unread)?;
    let expr = item_of(&item)?;
    for key in &mut keys {
        if matches!(key_of(&key.expr, Some(&item)), Key::Item) {
            key.expr = expr.clone();
        }
    }
    // The name tells an array of the query's rows from an aggregate that somebody wrote.
    let alias = Ident::with_quote('"', ROWS);
    select.projection.push(SelectItem::ExprWithAlias { expr: array_agg(expr, keys)?, alias });
    Ok(query)
}

fn item_of(item: &SelectItem) -> Result<Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Ok(expr.clone()),
        _ => Err(unread()),
    }
}

/// The query as a subquery of the aggregate. What it is ordered by and does not show becomes further columns.
fn around(query: &mut Query) -> Result<Query> {
    let column = |place: usize| Ident::with_quote('"', format!("c{place}"));
    let at =
        |place: usize| Expr::CompoundIdentifier(vec![Ident::with_quote('"', ROWS), column(place)]);
    let keys = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(keys)) => keys.clone(),
        _ => Vec::new(),
    };
    let mut width = 1;
    let mut outer_keys = Vec::with_capacity(keys.len());
    for key in keys {
        let select = match query.body.as_mut() {
            SetExpr::Select(select) => Some(select),
            _ => None,
        };
        let item = select.as_ref().and_then(|select| select.projection.first());
        let expr = match (key_of(&key.expr, item), select) {
            (Key::Other, Some(select)) if select.distinct.is_none() => {
                select.projection.push(SelectItem::ExprWithAlias {
                    expr: key.expr.clone(),
                    alias: Ident::with_quote('"', format!("{ROWS} {width}")),
                });
                width += 1;
                at(width - 1)
            }
            _ => at(0),
        };
        outer_keys.push(OrderByExpr { expr, ..key });
    }
    let columns: Vec<String> = (0..width).map(|place| column(place).to_string()).collect();
    let text = format!("SELECT 1 FROM (SELECT 1) AS \"{ROWS}\" ({})", columns.join(", "));
    let mut outer = reread::query(&text).map_err(|_| unread())?;
    let SetExpr::Select(select) = outer.body.as_mut() else { return Err(unread()) };
    select.projection = vec![SelectItem::UnnamedExpr(array_agg(at(0), outer_keys)?)];
    let from = select.from.first_mut().ok_or_else(unread)?;
    let TableFactor::Derived { subquery, .. } = &mut from.relation else { return Err(unread()) };
    std::mem::swap(subquery.as_mut(), query);
    Ok(outer)
}

/// The query, with a small one in its place.
fn taken(query: &mut Query) -> Result<Query> {
    let other = reread::query("SELECT 1").map_err(|_| unread())?;
    Ok(std::mem::replace(query, other))
}

fn array_agg(of: Expr, keys: Vec<OrderByExpr>) -> Result<Expr> {
    let mut call = expression("array_agg(1)")?;
    let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut call else {
        return Err(unread());
    };
    list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(of))];
    if !keys.is_empty() {
        list.clauses.push(FunctionArgumentClause::OrderBy(keys));
    }
    Ok(call)
}

fn call_of() -> Result<Expr> {
    expression(&format!("{ARRAY_OR_EMPTY}((SELECT 1))"))
}

fn query_in(call: &mut Expr) -> Result<&mut Query> {
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = call
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query)))) =
            list.args.first_mut()
    {
        return Ok(query);
    }
    Err(unread())
}

fn expression(text: &str) -> Result<Expr> {
    let mut query = reread::query(&format!("SELECT {text}")).map_err(|_| unread())?;
    match query.body.as_mut() {
        SetExpr::Select(select) => match select.projection.pop() {
            Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
            _ => Err(unread()),
        },
        _ => Err(unread()),
    }
}

fn unread() -> Error {
    Error::internal("the aggregate of an array's query is not read")
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn arrays_of_queries_are_aggregates() {
        let check = |sql: &str, expected: &str| {
            let sql = format!("SELECT {sql}");
            let mut statement =
                Parser::parse_sql(&PostgreSqlDialect {}, &sql).unwrap().swap_remove(0);
            let done = aggregate_items(&mut statement);
            let found = done.map_or_else(|error| error.to_string(), |()| statement.to_string());
            assert!(found.replace('\u{2063}', "").contains(expected), "{found}");
        };
        check(
            "ARRAY(SELECT a + 1 AS b FROM t WHERE t.x = u.x ORDER BY b DESC, c)",
            "array_or_empty((SELECT array_agg(a + 1 ORDER BY a + 1 DESC, c) AS \"items\" FROM t WHERE t.x = u.x))",
        );
        check(
            "ARRAY(SELECT a FROM t ORDER BY b LIMIT 3)",
            "(SELECT array_agg(\"items\".\"c0\" ORDER BY \"items\".\"c1\") FROM \
             (SELECT a, b AS \"items 1\" FROM t ORDER BY b LIMIT 3) AS \"items\" (\"c0\", \"c1\"))",
        );
        check(
            "ARRAY(SELECT DISTINCT a FROM t ORDER BY a)",
            "array_agg(\"items\".\"c0\" ORDER BY \"items\".\"c0\") FROM (SELECT DISTINCT a",
        );
        check(
            "ARRAY(VALUES (1), (2))",
            "array_agg(\"items\".\"c0\") FROM (VALUES (1), (2)) AS \"items\" (\"c0\")",
        );
        check("ARRAY(SELECT count(*) FROM t)", "FROM (SELECT count(*) FROM t) AS");
        check("ARRAY(SELECT a, b FROM t)", "only one column");
        check("ARRAY[1, 2]", "SELECT ARRAY[1, 2]");
    }
}
