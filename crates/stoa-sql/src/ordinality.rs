//! `WITH ORDINALITY`, which the engine reads and forgets. For `unnest` it becomes a second list beside the first, of the
//! places; for other functions that return rows, a query that numbers them.
//!
//! ```text
//! unnest(a) WITH ORDINALITY AS t (x, n)  ─►  unnest(a, generate_series(1::bigint, cardinality(a))) AS t (x, n)
//! f(a) WITH ORDINALITY AS t (x, n)       ─►  (SELECT *, row_number() OVER () AS ordinality FROM f(a) AS t) AS t (x, n)
//! ```

use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, Ident, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, Value, VisitorMut,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result};

use crate::adapt::parsed;
use crate::calls::{call, named};
use crate::reads::reads_columns;
use crate::row_functions::NAMES;
use crate::sets::write_as_unnest;
use crate::walk::WalkMut;

/// Bytes of the arrays, which are written twice.
const ARRAYS_BYTES_MAX: usize = 64 << 10;

/// Writes the numbers of the rows of functions.
///
/// # Errors
/// 0A000 for functions that return no rows, or records whose columns are defined in the query.
pub(super) fn write_as_list(statement: &mut EngineStatement, text: &str) -> Result<()> {
    let is_there = |window: &[u8]| window.eq_ignore_ascii_case(b"ordinality");
    if !text.as_bytes().windows(10).any(is_there) {
        return Ok(());
    }
    let Some(statement) = parsed(statement) else { return Ok(()) };
    match statement.walk_mut(&mut Ordinality) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            let message = "WITH ORDINALITY is not supported for this function";
            Err(Error::unsupported(message).with_hint("number the rows with row_number() OVER (…)"))
        }
    }
}

struct Ordinality;

impl VisitorMut for Ordinality {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        write_as_unnest(table);
        match table {
            TableFactor::UNNEST { with_ordinality, alias, array_exprs, .. } if *with_ordinality => {
                let bytes: usize = array_exprs.iter().map(|array| array.to_string().len()).sum();
                if bytes > ARRAYS_BYTES_MAX || array_exprs.is_empty() {
                    return ControlFlow::Break(());
                }
                *with_ordinality = false;
                number(array_exprs, alias);
                ControlFlow::Continue(())
            }
            TableFactor::Table { with_ordinality: true, .. }
            | TableFactor::Function { with_ordinality: true, .. } => match numbered(table) {
                Some(query) => {
                    *table = query;
                    ControlFlow::Continue(())
                }
                None => ControlFlow::Break(()),
            },
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The query that numbers the rows of a function; `None` for one that returns none.
fn numbered(table: &TableFactor) -> Option<TableFactor> {
    let mut within = table.clone();
    let (name, args, alias, is_numbered) = match &mut within {
        TableFactor::Table { name, args: Some(call), alias, with_ordinality, .. } => {
            (name, &call.args, alias, with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            (name, &*args, alias, with_ordinality)
        }
        _ => return None,
    };
    *is_numbered = false;
    let function = named(name).filter(|name| NAMES.contains(&name.as_str()))?;
    let lateral = args.iter().filter_map(value_of).any(reads_columns);
    let outer = alias.clone().unwrap_or_else(|| alias_of(&function));
    if outer.columns.iter().any(|column| column.data_type.is_some()) {
        return None;
    }
    // The column of a function has the name of its table, where none is given to it.
    *alias = Some(TableAlias { columns: Vec::new(), ..outer.clone() });
    let sql = "SELECT *, row_number() OVER () AS ordinality FROM f";
    let dialect = PostgreSqlDialect {};
    let mut subquery = Parser::new(&dialect).try_with_sql(sql).ok()?.parse_query().ok()?;
    let SetExpr::Select(select) = subquery.body.as_mut() else { return None };
    select.from.first_mut()?.relation = within;
    Some(TableFactor::Derived { lateral, subquery, alias: Some(outer), sample: None })
}

fn value_of(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
        | FunctionArg::Named { arg: FunctionArgExpr::Expr(value), .. } => Some(value),
        _ => None,
    }
}

fn alias_of(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None }
}

fn number(arrays: &mut Vec<Expr>, alias: &mut Option<TableAlias>) {
    let one = Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::Number("1".into(), false))),
        data_type: DataType::BigInt(None),
        array: false,
        format: None,
    };
    let lengths: Vec<Expr> =
        arrays.iter().map(|array| call("cardinality", vec![array.clone()])).collect();
    let length = match lengths.as_slice() {
        [length] => length.clone(),
        _ => call("greatest", lengths),
    };
    let is_one = arrays.len() == 1;
    arrays.push(call("generate_series", vec![one, length]));
    let alias = alias.get_or_insert_with(|| alias_of("unnest"));
    let column = |name: Ident| TableAliasColumnDef { name, data_type: None };
    while alias.columns.len() < arrays.len() {
        let name = match alias.columns.len() {
            place if place + 1 == arrays.len() => Ident::new("ordinality"),
            _ if is_one => alias.name.clone(),
            _ => Ident::new("unnest"),
        };
        alias.columns.push(column(name));
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::parser::DFParser;
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;

    use super::*;

    fn written(sql: &str) -> Result<String> {
        let mut statement = DFParser::parse_sql_with_dialect(sql, &PostgreSqlDialect {}).unwrap();
        let mut statement = statement.pop_front().unwrap();
        write_as_list(&mut statement, sql)?;
        Ok(statement.to_string())
    }

    #[test]
    fn places_are_a_list() {
        for (sql, expected) in [
            (
                "SELECT * FROM unnest('{1}'::int[]) WITH ORDINALITY AS t(x, n)",
                "SELECT * FROM UNNEST('{1}'::INT[], generate_series(CAST(1 AS BIGINT), cardinality('{1}'::INT[]))) AS t (x, n)",
            ),
            (
                "SELECT * FROM unnest(ARRAY[1]) WITH ORDINALITY",
                "SELECT * FROM UNNEST(ARRAY[1], generate_series(CAST(1 AS BIGINT), cardinality(ARRAY[1]))) AS unnest (unnest, ordinality)",
            ),
            (
                "SELECT * FROM generate_series(1, 2) WITH ORDINALITY AS t(x, n)",
                "SELECT * FROM (SELECT *, row_number() OVER () AS ordinality FROM generate_series(1, 2) AS t) AS t (x, n)",
            ),
            (
                "SELECT * FROM d, json_each(d.a) WITH ORDINALITY",
                "SELECT * FROM d, LATERAL (SELECT *, row_number() OVER () AS ordinality FROM json_each(d.a) AS json_each) AS json_each",
            ),
        ] {
            assert_eq!(written(sql).unwrap(), expected);
        }
        assert!(written("SELECT * FROM f(a) WITH ORDINALITY").is_err());
    }
}
