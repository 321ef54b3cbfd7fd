//! Functions that return rows, and JSON aggregates: written as calls of functions that the engine has.
//!
//! ```text
//! SELECT jsonb_array_elements(x)      ─►  SELECT CAST(unnest(jsonb_elements(x)) AS JSONB)
//! FROM jsonb_each(x) AS e             ─►  FROM LATERAL (SELECT unnest(jsonb_keys(x)) AS key, CAST(unnest(…) AS JSONB) AS value) AS e
//! FROM json_to_record(x) AS e(a int)  ─►  a query of casts of its members ([`super::records`])
//! json_agg(x ORDER BY y) FILTER (…)   ─►  json_of_elements(array_agg(json_element_of(x) ORDER BY y) FILTER (…))
//! json_object_agg(k, v)               ─►  json_of_members(array_agg(json_member(CAST(k AS TEXT), json_element_of(v))))
//! ```
//! In: a parsed statement whose columns have their names. Out: the same with other calls, which mean the same.
//!
//! Not here: `generate_series` in FROM ([`super::series`]), and where such functions cannot be
//! ([`super::row_functions`]); the functions themselves (`stoa-semantics`).

use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    self, DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    OrderByExpr, OrderByOptions, SelectItem, TableAlias, TableAliasColumnDef, TableFactor,
    VisitorMut,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result};

use crate::adapt::parsed;
use crate::calls::{call, cast, named, positional};
use crate::column_names;
use crate::reads::reads_columns;
use crate::walk::{WalkMut, walk_expressions_mut};
use crate::{records, row_functions};

/// A function that returns rows: lists, one for each column.
struct Rows {
    name: &'static str,
    columns: &'static [Column],
}

/// A column of such rows.
struct Column {
    /// `None` where it is called as the function is.
    name: Option<&'static str>,
    /// The function that makes the list of its values.
    list: &'static str,
    of: Option<Of>,
}

/// The type of JSON values.
#[derive(Clone, Copy)]
enum Of {
    Json,
    Jsonb,
}

const fn rows(name: &'static str, columns: &'static [Column]) -> Rows {
    Rows { name, columns }
}

const fn column(name: Option<&'static str>, list: &'static str) -> Column {
    Column { name, list, of: None }
}

const fn value(list: &'static str, of: Option<Of>) -> Column {
    Column { name: Some("value"), list, of }
}

const JSON: Option<Of> = Some(Of::Json);
const JSONB: Option<Of> = Some(Of::Jsonb);

const ROWS: &[Rows] = &[
    rows("json_array_elements", &[value("json_elements", JSON)]),
    rows("jsonb_array_elements", &[value("jsonb_elements", JSONB)]),
    rows("json_array_elements_text", &[value("json_elements_text", None)]),
    rows("jsonb_array_elements_text", &[value("jsonb_elements_text", None)]),
    rows("json_each", &[column(Some("key"), "json_keys"), value("json_values", JSON)]),
    rows("jsonb_each", &[column(Some("key"), "jsonb_keys"), value("jsonb_values", JSONB)]),
    rows("json_each_text", &[column(Some("key"), "json_keys"), value("json_values_text", None)]),
    rows("jsonb_each_text", &[column(Some("key"), "jsonb_keys"), value("jsonb_values_text", None)]),
    rows("json_object_keys", &[column(None, "json_keys")]),
    rows("jsonb_object_keys", &[column(None, "jsonb_keys")]),
    rows("jsonb_path_query", &[Column { name: None, list: "jsonb_path_items", of: JSONB }]),
    rows("regexp_matches", &[column(None, "regexp_groups")]),
    rows("regexp_split_to_table", &[column(None, "regexp_split_to_array")]),
    rows("string_to_table", &[column(None, "string_to_array")]),
    rows("generate_subscripts", &[column(None, PLACES)]),
];

/// Stands for the places of an array.
const PLACES: &str = "array_places";

/// Words, one of which is in each text that this concerns.
const WORDS: [&str; 7] =
    ["json", "regexp_", "string_to_table", "string_agg", "generate_s", "gen_random_uuid", "unnest"];

/// Writes calls of functions that return rows, and of JSON aggregates, as the engine can plan them.
///
/// # Errors
/// 0A000 for functions that return rows where none can be, and for `json_agg(DISTINCT …)`, which has no order of its own here; 42601 for records whose columns are not
/// defined.
pub(super) fn write_as_lists(statement: &mut EngineStatement, text: &str) -> Result<()> {
    let is_there = |word: &&str| {
        text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    if !WORDS.iter().any(is_there) {
        return Ok(());
    }
    let Some(statement) = parsed(statement) else { return Ok(()) };
    let mut error = None;
    row_functions::settle(statement)?;
    if let ControlFlow::Break(refusal) = statement.walk_mut(&mut RowsInFrom) {
        return Err(refusal);
    }
    let _ = walk_expressions_mut(statement, |expr| {
        if let Some(Err(refusal)) = written(expr) {
            error = Some(refusal);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    error.map_or(Ok(()), Err)
}

fn rows_of(name: &ObjectName) -> Option<&'static Rows> {
    let name = named(name)?;
    ROWS.iter().find(|rows| rows.name == name)
}

/// Replaces one call; its arguments have been looked at.
fn written(expr: &mut Expr) -> Option<Result<()>> {
    let Expr::Function(function) = expr else { return None };
    if let Some(rows) = rows_of(&function.name) {
        // A record in SELECT is left to be refused.
        let [column] = rows.columns else { return None };
        *expr = column_of(column, positional(&function.args)?);
        return Some(Ok(()));
    }
    let name = named(&function.name)?;
    match name.as_str() {
        "json_agg" => Some(elements(function, "json_of_elements")),
        "jsonb_agg" if is_distinct(function) => {
            let list = sorted_distinct(function)?;
            *expr = call("to_jsonb", vec![list]);
            return Some(Ok(()));
        }
        "jsonb_agg" => Some(elements(function, "jsonb_of_elements")),
        "json_object_agg" => Some(members(function, "json_of_members")),
        "jsonb_object_agg" => Some(members(function, "jsonb_of_members")),
        "string_agg" => joined(function).map(Ok),
        "gen_random_uuid" => {
            *expr = cast(call("uuid", Vec::new()), DataType::Uuid);
            return Some(Ok(()));
        }
        _ => None,
    }
    .map(|written| {
        *expr = written?;
        Ok(())
    })
}

fn column_of(column: &Column, args: Vec<Expr>) -> Expr {
    let list = match column.list {
        PLACES => {
            let length = cast(call("array_length", args), DataType::Integer(None));
            let first = Expr::value(ast::Value::Number("1".into(), false));
            call("generate_series", vec![first, length])
        }
        list => call(list, args),
    };
    let values = call("unnest", vec![list]);
    match column.of {
        Some(Of::Json) => cast(values, DataType::JSON),
        Some(Of::Jsonb) => cast(values, DataType::JSONB),
        None => values,
    }
}

/// The name of a function that returns rows of one column, and the lists of its values; of `unnest`, as many as it has
/// arrays.
pub(super) fn list_of(function: &Function) -> Option<(String, Vec<Expr>)> {
    let name = named(&function.name)?;
    let args = positional(&function.args)?;
    let lists = match name.as_str() {
        "unnest" => args,
        "generate_series" => vec![Expr::Function(function.clone())],
        _ => match rows_of(&function.name)?.columns {
            [Column { list: PLACES, .. }] => return None,
            [Column { list, of: None, .. }] => vec![call(list, args)],
            _ => return None,
        },
    };
    Some((name, lists))
}

fn is_distinct(function: &Function) -> bool {
    matches!(
        &function.args,
        FunctionArguments::List(list)
            if list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
    )
}

/// The call as `array_agg` of other arguments, with its order, filter and window.
fn array_agg(function: &Function, arg: Expr) -> Expr {
    let mut function = function.clone();
    function.name = ObjectName::from(vec![Ident::new("array_agg")]);
    if let FunctionArguments::List(list) = &mut function.args {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))];
    }
    Expr::Function(function)
}

fn refused_distinct(name: &str) -> Error {
    Error::unsupported(format!("{name}(DISTINCT …) is not supported"))
        .with_hint("use jsonb_agg(DISTINCT …), or SELECT DISTINCT in a subquery")
}

fn elements(function: &Function, of_list: &str) -> Result<Expr> {
    if is_distinct(function) {
        return Err(refused_distinct("json_agg"));
    }
    match positional(&function.args).as_deref() {
        Some([value]) => {
            let element = call("json_element_of", vec![value.clone()]);
            Ok(call(of_list, vec![array_agg(function, element)]))
        }
        _ => Err(Error::invalid("json_agg takes one value").with_sqlstate("42883")),
    }
}

/// `string_agg` in an order of its own, with a literal between the texts; the engine's can have one order in a query.
/// What is distinct is sorted, as in PostgreSQL.
fn joined(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let is_ordered =
        list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
    if function.over.is_some() || !is_ordered && !is_distinct(function) {
        return None;
    }
    let args = positional(&function.args)?;
    let [value, delimiter] = args.as_slice() else { return None };
    if !is_literal(delimiter) {
        return None;
    }
    let mut list = array_agg(function, value.clone());
    if let (true, Expr::Function(function)) = (is_distinct(function), &list) {
        list = sorted_distinct(function)?;
    }
    Some(call("joined_elements", vec![list, delimiter.clone()]))
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => !matches!(value.value, ast::Value::Placeholder(_)),
        Expr::Cast { expr, .. } | Expr::Nested(expr) => is_literal(expr),
        _ => false,
    }
}

fn members(function: &Function, of_list: &str) -> Result<Expr> {
    if is_distinct(function) {
        return Err(refused_distinct("json_object_agg"));
    }
    match positional(&function.args).as_deref() {
        Some([key, value]) => {
            let key = cast(key.clone(), DataType::Text);
            let value = call("json_element_of", vec![value.clone()]);
            let member = call("json_member", vec![key, value]);
            Ok(call(of_list, vec![array_agg(function, member)]))
        }
        _ => Err(Error::invalid("json_object_agg takes a key and a value").with_sqlstate("42883")),
    }
}

/// `array_agg(DISTINCT x ORDER BY x)`: PostgreSQL sorts what is distinct.
fn sorted_distinct(function: &Function) -> Option<Expr> {
    let mut function = function.clone();
    function.name = ObjectName::from(vec![Ident::new("array_agg")]);
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = list.args.as_slice() else {
        return None;
    };
    let is_ordered =
        list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
    if !is_ordered {
        let order = OrderByExpr {
            expr: value.clone(),
            options: OrderByOptions { asc: None, nulls_first: None },
            with_fill: None,
        };
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![order]));
    }
    Some(Expr::Function(function))
}

/// Functions in FROM as queries of their columns.
struct RowsInFrom;

impl VisitorMut for RowsInFrom {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Error> {
        write_as_unnest(table);
        match table {
            // Of several arrays, all columns have this name.
            TableFactor::UNNEST {
                alias: alias @ None,
                array_exprs,
                with_ordinality: false,
                ..
            } => {
                let name = Ident::new("unnest");
                let place = |place| match place {
                    0 => name.clone(),
                    place => Ident::with_quote('"', column_names::marked("unnest", place)),
                };
                let columns = (0..array_exprs.len()).map(|at| named_as(&place(at))).collect();
                *alias = Some(TableAlias { explicit: true, name: name.clone(), columns, at: None });
            }
            TableFactor::UNNEST { alias: Some(alias), array_exprs, .. }
                if alias.columns.is_empty() && array_exprs.len() == 1 =>
            {
                alias.columns.push(named_as(&alias.name));
            }
            TableFactor::Table {
                name, args: Some(call), alias, with_ordinality: false, ..
            } => {
                if let Some(record) = records::of(name) {
                    return match records::table_of(record, &call.args, alias.as_ref()) {
                        Ok(by) => {
                            replace(by, table);
                            ControlFlow::Continue(())
                        }
                        Err(error) => ControlFlow::Break(error),
                    };
                }
                if let Some(rows) = rows_of(name) {
                    replace(table_of(rows, &call.args, alias.take()), table);
                }
            }
            TableFactor::Function { name, args, alias, with_ordinality: false, .. } => {
                if let Some(record) = records::of(name) {
                    return match records::table_of(record, args, alias.as_ref()) {
                        Ok(by) => {
                            replace(by, table);
                            ControlFlow::Continue(())
                        }
                        Err(error) => ControlFlow::Break(error),
                    };
                }
                if let Some(rows) = rows_of(name) {
                    replace(table_of(rows, args, alias.take()), table);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// `LATERAL unnest(…)` as it is read without LATERAL.
pub(super) fn write_as_unnest(table: &mut TableFactor) {
    let TableFactor::Function { name, args, alias, with_ordinality, .. } = table else { return };
    if named(name).as_deref() != Some("unnest") {
        return;
    }
    let arrays = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(array)) => Some(array.clone()),
        _ => None,
    });
    if let Some(array_exprs) = arrays.collect() {
        *table = TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: *with_ordinality,
        };
    }
}

fn replace(by: Option<TableFactor>, table: &mut TableFactor) {
    if let Some(by) = by {
        *table = by;
    }
}

fn named_as(name: &Ident) -> TableAliasColumnDef {
    TableAliasColumnDef { name: name.clone(), data_type: None }
}

fn table_of(rows: &Rows, args: &[FunctionArg], alias: Option<TableAlias>) -> Option<TableFactor> {
    let list = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: args.to_vec(),
        clauses: Vec::new(),
    });
    let args = positional(&list)?;
    let mut alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::new(rows.name),
        columns: Vec::new(),
        at: None,
    });
    if let ([Column { name: None, .. }], true) = (rows.columns, alias.columns.is_empty()) {
        alias.columns.push(named_as(&alias.name));
    }
    let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql("SELECT 1");
    let mut subquery = parser.and_then(|mut parser| parser.parse_query()).ok()?;
    let ast::SetExpr::Select(select) = subquery.body.as_mut() else { return None };
    let item = |column: &Column| SelectItem::ExprWithAlias {
        expr: column_of(column, args.clone()),
        alias: Ident::new(column.name.unwrap_or(rows.name)),
    };
    select.projection = rows.columns.iter().map(item).collect();
    let lateral = args.iter().any(reads_columns);
    Some(TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str, expected: &str) {
        let mut statement =
            datafusion_sql::parser::DFParser::parse_sql_with_dialect(sql, &PostgreSqlDialect {})
                .unwrap()
                .pop_front()
                .unwrap();
        write_as_lists(&mut statement, sql).unwrap();
        assert_eq!(statement.to_string(), expected);
    }

    #[test]
    fn rows_are_lists_that_are_taken_apart() {
        check(
            "SELECT jsonb_array_elements(x) FROM t",
            "SELECT CAST(unnest(jsonb_elements(x)) AS JSONB) FROM t",
        );
        check(
            "SELECT * FROM json_each_text('{}')",
            "SELECT * FROM (SELECT unnest(json_keys('{}')) AS key, \
             unnest(json_values_text('{}')) AS value) AS json_each_text",
        );
        check(
            "SELECT w FROM t, regexp_split_to_table(t.s, ' ') AS w",
            "SELECT w FROM t, LATERAL (SELECT unnest(regexp_split_to_array(t.s, ' ')) AS \
             regexp_split_to_table) AS w (w)",
        );
        check("SELECT generate_series(1, 3)", "SELECT unnest(generate_series(1, 3))");
        check("SELECT u FROM UNNEST(x) AS u", "SELECT u FROM UNNEST(x) AS u (u)");
        check("SELECT u FROM UNNEST(ARRAY[1]) AS u", "SELECT u FROM UNNEST(ARRAY[1]) AS u (u)");
    }

    #[test]
    fn texts_are_joined_in_an_order_of_their_own() {
        check("SELECT string_agg(s, ',') FROM t", "SELECT string_agg(s, ',') FROM t");
        check(
            "SELECT string_agg(s, ',' ORDER BY x DESC) FROM t",
            "SELECT joined_elements(array_agg(s ORDER BY x DESC), ',') FROM t",
        );
        check(
            "SELECT string_agg(DISTINCT s, ',') FILTER (WHERE x) FROM t",
            "SELECT joined_elements(array_agg(DISTINCT s ORDER BY s) FILTER (WHERE x), ',') FROM t",
        );
    }

    #[test]
    fn json_aggregates_are_lists_that_are_joined() {
        check(
            "SELECT json_agg(x ORDER BY y) FILTER (WHERE z) FROM t",
            "SELECT json_of_elements(array_agg(json_element_of(x) ORDER BY y) FILTER (WHERE z)) FROM t",
        );
        check(
            "SELECT jsonb_object_agg(k, v) FROM t",
            "SELECT jsonb_of_members(array_agg(json_member(CAST(k AS TEXT), json_element_of(v)))) FROM t",
        );
        check(
            "SELECT jsonb_agg(DISTINCT x) FROM t",
            "SELECT to_jsonb(array_agg(DISTINCT x ORDER BY x)) FROM t",
        );
    }
}
