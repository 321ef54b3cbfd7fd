//! `generate_series` in FROM: the engine takes nothing but literals there.
//!
//! In: a parsed statement. Out: the same; a call with parameters, casts or subqueries is written as a query,
//! whose series is a value (`docs/sql.md` says how long that may be):
//!
//! ```text
//! generate_series($1, $2)  ─►  (SELECT unnest(generate_series($1::bigint, $2::bigint)) AS value)
//! ```
//! Calls with whole numbers only stay as they are: their rows are made as they are read. The column has the name of the
//! table, if none is given: `generate_series`, or `n` after `AS n`.

use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    self, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TimezoneInfo, UnaryOperator,
    Value, VisitorMut,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;

use crate::reads::reads_columns;
use crate::walk::WalkMut;

const NAME: &str = "generate_series";

/// Writes the calls that the engine would refuse as queries.
pub(super) fn write_as_queries(statement: &mut EngineStatement, text: &str) {
    let is_name = |window: &[u8]| window.eq_ignore_ascii_case(NAME.as_bytes());
    if !text.as_bytes().windows(NAME.len()).any(is_name) {
        return;
    }
    if let Some(statement) = crate::adapt::parsed(statement) {
        let _ = statement.walk_mut(&mut SeriesAsQueries);
    }
}

struct SeriesAsQueries;

impl VisitorMut for SeriesAsQueries {
    type Break = ();

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        let (name, alias, args, is_function) = match table {
            TableFactor::Table {
                name, alias, args: Some(call), with_ordinality: false, ..
            } => (name, alias, &mut call.args, false),
            TableFactor::Function { name, alias, args, with_ordinality: false, .. } => {
                (name, alias, args, true)
            }
            _ => return ControlFlow::Continue(()),
        };
        let is_series = matches!(
            name.0.as_slice(),
            [ast::ObjectNamePart::Identifier(name)] if name.value.eq_ignore_ascii_case(NAME)
        );
        if !is_series {
            return ControlFlow::Continue(());
        }
        name_column(alias);
        if !is_function && args.iter().all(is_plain) && !has_zero_step(args) {
            if args.iter().all(is_small) {
                with_integers(table);
            }
            return ControlFlow::Continue(());
        }
        let (alias, args) = (alias.take(), typed(std::mem::take(args)));
        let lateral = args.iter().filter_map(value_of).any(reads_columns);
        if let Some(subquery) = query_of(args) {
            *table = TableFactor::Derived { lateral, subquery, alias, sample: None };
        }
        ControlFlow::Continue(())
    }
}

/// The column of a function has the name of its table, where none is given to it.
fn name_column(alias: &mut Option<TableAlias>) {
    let alias = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::new(NAME),
        columns: Vec::new(),
        at: None,
    });
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

/// Whether the engine's own rows do for an argument: a whole number, NULL, or what is computed of these.
fn is_plain(arg: &FunctionArg) -> bool {
    fn is_number(expr: &Expr) -> bool {
        match expr {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => !digits.contains('.'),
                Value::Null => true,
                _ => false,
            },
            Expr::Nested(inner) => is_number(inner),
            Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
                is_number(expr)
            }
            Expr::BinaryOp { left, right, .. } => is_number(left) && is_number(right),
            _ => false,
        }
    }
    value_of(arg).is_none_or(is_number)
}

/// Whether an argument that is plain is an `integer`.
fn is_small(arg: &FunctionArg) -> bool {
    fn is_integer(expr: &Expr) -> bool {
        match expr {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => digits.parse::<i32>().is_ok(),
                _ => true,
            },
            Expr::Nested(expr) | Expr::UnaryOp { expr, .. } => is_integer(expr),
            Expr::BinaryOp { left, right, .. } => is_integer(left) && is_integer(right),
            _ => false,
        }
    }
    value_of(arg).is_none_or(is_integer)
}

/// `(SELECT CAST(value AS INT) AS value FROM generate_series(…))`: the engine's own rows are bigints.
fn with_integers(table: &mut TableFactor) {
    let text = "SELECT CAST(value AS INT) AS value FROM generate_series(1)";
    let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text);
    let Ok(mut subquery) = parser.and_then(|mut parser| parser.parse_query()) else { return };
    let SetExpr::Select(select) = subquery.body.as_mut() else { return };
    let Some(from) = select.from.first_mut() else { return };
    std::mem::swap(&mut from.relation, table);
    let TableFactor::Table { alias, .. } = &mut from.relation else { return };
    let alias = alias.take();
    *table = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
}

/// A step of zero is an error of PostgreSQL's, which the query gives.
fn has_zero_step(args: &[FunctionArg]) -> bool {
    matches!(
        args.get(2).and_then(value_of),
        Some(Expr::Value(step)) if matches!(&step.value, Value::Number(digits, _) if digits == "0")
    )
}

fn value_of(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    }
}

/// The arguments, those of no type of their own as what the others want: numbers, or two times and a step.
fn typed(args: Vec<FunctionArg>) -> Vec<FunctionArg> {
    let is_of_times = args.iter().filter_map(value_of).any(is_time);
    let typed = |(place, arg): (usize, FunctionArg)| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => {
            let of = match (is_of_times, place) {
                (true, 2) => DataType::Interval { fields: None, precision: None },
                (true, _) => DataType::Timestamp(None, TimezoneInfo::None),
                (false, _) => DataType::BigInt(None),
            };
            let is_cast = is_untyped(&value) || is_of_times && is_date(&value);
            let value = if is_cast { cast(value, of) } else { value };
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
        }
        other => other,
    };
    args.into_iter().enumerate().map(typed).collect()
}

/// A parameter, or a text in quotes.
fn is_untyped(value: &Expr) -> bool {
    match value {
        Expr::Value(value) => {
            matches!(value.value, Value::Placeholder(_) | Value::SingleQuotedString(_))
        }
        Expr::Nested(inner) => is_untyped(inner),
        _ => false,
    }
}

/// Whether a series with such an argument is one of times.
fn is_time(value: &Expr) -> bool {
    matches!(value, Expr::Interval(_))
        || matches!(
            type_of(value),
            Some(DataType::Date | DataType::Timestamp(..) | DataType::Interval { .. })
        )
}

fn is_date(value: &Expr) -> bool {
    matches!(type_of(value), Some(DataType::Date))
}

/// The type that an argument names.
fn type_of(value: &Expr) -> Option<&DataType> {
    match value {
        Expr::Cast { data_type, .. } => Some(data_type),
        Expr::TypedString(typed) => Some(&typed.data_type),
        Expr::Nested(inner) => type_of(inner),
        _ => None,
    }
}

fn cast(value: Expr, data_type: DataType) -> Expr {
    let (kind, expr) = (CastKind::Cast, Box::new(value));
    Expr::Cast { kind, expr, data_type, array: false, format: None }
}

/// `SELECT unnest(generate_series(args)) AS value`.
fn query_of(args: Vec<FunctionArg>) -> Option<Box<Query>> {
    let text = "SELECT unnest(generate_series(1)) AS value";
    let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).ok()?;
    let mut query = parser.parse_query().ok()?;
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let Some(SelectItem::ExprWithAlias { expr, .. }) = select.projection.first_mut() else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(series))] = args_of(expr)?.as_mut_slice()
    else {
        return None;
    };
    *args_of(series)? = args;
    Some(query)
}

fn args_of(call: &mut Expr) -> Option<&mut Vec<FunctionArg>> {
    match call {
        Expr::Function(ast::Function { args: FunctionArguments::List(list), .. }) => {
            Some(&mut list.args)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::parser::DFParser;

    use super::*;

    fn check(sql: &str, expected: &str) {
        let mut statement = DFParser::parse_sql_with_dialect(sql, &PostgreSqlDialect {}).unwrap();
        let mut statement = statement.pop_front().unwrap();
        write_as_queries(&mut statement, sql);
        assert_eq!(statement.to_string(), expected);
    }

    #[test]
    fn what_is_no_number_is_written_as_a_query() {
        check(
            "SELECT * FROM generate_series(1, -3)",
            "SELECT * FROM (SELECT CAST(value AS INT) AS value FROM generate_series(1, -3)) \
             AS generate_series (generate_series)",
        );
        check(
            "SELECT * FROM generate_series(1, 3000000000) n",
            "SELECT * FROM generate_series(1, 3000000000) n (n)",
        );
        check(
            "SELECT n FROM generate_series(1, $1) AS s (n)",
            "SELECT n FROM (SELECT unnest(generate_series(1, CAST($1 AS BIGINT))) AS value) AS s (n)",
        );
        check(
            "SELECT * FROM Generate_Series($1, DATE '2026-01-02', INTERVAL '1 day')",
            "SELECT * FROM (SELECT unnest(generate_series(CAST($1 AS TIMESTAMP), \
             CAST(DATE '2026-01-02' AS TIMESTAMP), INTERVAL '1 day')) AS value) \
             AS generate_series (generate_series)",
        );
    }
}
