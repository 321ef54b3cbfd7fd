//! `unnest(a) WITH ORDINALITY`, which the engine reads and forgets: a second list beside the first, of the places.
//!
//! ```text
//! unnest(a) WITH ORDINALITY AS t (x, n)  ─►  unnest(a, generate_series(1::bigint, cardinality(a))) AS t (x, n)
//! ```

use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    CastKind, DataType, Expr, Ident, TableAlias, TableAliasColumnDef, TableFactor, Value, VisitMut,
    VisitorMut,
};
use stoa_error::{Error, Result};

use crate::adapt::parsed;
use crate::calls::call;
use crate::sets::write_as_unnest;

/// Bytes of the arrays, which are written twice.
const ARRAYS_BYTES_MAX: usize = 64 << 10;

/// Writes the places of `unnest` as a list.
///
/// # Errors
/// 0A000 for other functions.
pub(super) fn write_as_list(statement: &mut EngineStatement, text: &str) -> Result<()> {
    let is_there = |window: &[u8]| window.eq_ignore_ascii_case(b"ordinality");
    if !text.as_bytes().windows(10).any(is_there) {
        return Ok(());
    }
    let Some(statement) = parsed(statement) else { return Ok(()) };
    match statement.visit(&mut Ordinality) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            let message = "WITH ORDINALITY is supported for unnest only";
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
            | TableFactor::Function { with_ordinality: true, .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
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
    let alias = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::new("unnest"),
        columns: Vec::new(),
        at: None,
    });
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
        ] {
            assert_eq!(written(sql).unwrap(), expected);
        }
        assert!(written("SELECT * FROM f(a) WITH ORDINALITY").is_err());
    }
}
