//! `json_populate_record(NULL::t, x)` and its like in FROM: records whose columns are those of a table.
//!
//! ```text
//! json_populate_recordset(NULL::t, x) AS r  ─►  json_to_recordset(x) AS r (a int, b text)
//! ```
//! In: a parsed statement, and the columns of the tables that it names there. Out: the same with the records taken apart
//! ([`super::records`]).

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    DataType, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, TableAlias,
    TableAliasColumnDef, TableFactor, Value, VisitorMut,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result, Subject};

use crate::calls::named;
use crate::records;
use crate::walk::WalkMut;

/// The functions, and those of records whose columns are defined in the query.
const FUNCTIONS: [(&str, &str); 4] = [
    ("json_populate_record", "json_to_record"),
    ("jsonb_populate_record", "jsonb_to_record"),
    ("json_populate_recordset", "json_to_recordset"),
    ("jsonb_populate_recordset", "jsonb_to_recordset"),
];

/// Columns of a table: names, and types as SQL writes them.
pub type Columns = Vec<(String, String)>;

/// Whether a text may have such a call.
pub fn may_be_in(text: &str) -> bool {
    text.as_bytes().windows(9).any(|window| window.eq_ignore_ascii_case(b"_populate"))
}

/// The tables whose columns the records have.
///
/// # Errors
/// A record that is not NULL (0A000).
pub fn tables_of(statement: &mut EngineStatement) -> Result<Vec<ObjectName>> {
    let mut tables = Vec::new();
    walk(statement, &mut |call| {
        tables.push(call.table.clone());
        Ok(None)
    })?;
    Ok(tables)
}

/// Writes the calls with the columns of their tables.
///
/// # Errors
/// As [`tables_of`].
pub fn write_columns(
    statement: &mut EngineStatement,
    columns: &HashMap<String, Columns>,
) -> Result<()> {
    walk(statement, &mut |call| {
        let Some(columns) = columns.get(&call.table.to_string()) else { return Ok(None) };
        let mut alias = call.alias.clone().unwrap_or_else(|| TableAlias {
            explicit: true,
            name: Ident::new(call.function),
            columns: Vec::new(),
            at: None,
        });
        let given = std::mem::take(&mut alias.columns);
        let typed = columns.iter().map(|(name, of)| {
            let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(of);
            let data_type = parser.and_then(|mut parser| parser.parse_data_type()).ok();
            TableAliasColumnDef { name: Ident::with_quote('"', name), data_type }
        });
        alias.columns = typed.collect();
        let Some(records) = records::of(&ObjectName::from(vec![Ident::new(call.record)])) else {
            return Ok(None);
        };
        let mut table = records::table_of(records, std::slice::from_ref(call.json), Some(&alias))?;
        if let Some(TableFactor::Derived { alias: Some(alias), .. }) = &mut table {
            for (column, given) in alias.columns.iter_mut().zip(given) {
                *column = given;
            }
        }
        Ok(table)
    })
}

/// A call, as it stands in FROM.
struct Call<'a> {
    function: &'static str,
    record: &'static str,
    table: &'a ObjectName,
    json: &'a FunctionArg,
    alias: &'a Option<TableAlias>,
}

type Replace<'a> = &'a mut dyn FnMut(Call<'_>) -> Result<Option<TableFactor>>;

fn walk(statement: &mut EngineStatement, replace: Replace<'_>) -> Result<()> {
    let Some(statement) = crate::adapt::parsed(statement) else { return Ok(()) };
    match statement.walk_mut(&mut Calls { replace }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Calls<'a> {
    replace: Replace<'a>,
}

impl VisitorMut for Calls<'_> {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Error> {
        let (name, args, alias) = match &*table {
            TableFactor::Table { name, args: Some(call), alias, .. } => (name, &call.args, alias),
            TableFactor::Function { name, args, alias, .. } => (name, args, alias),
            _ => return ControlFlow::Continue(()),
        };
        let name = named(name).unwrap_or_default();
        let Some((function, record)) = FUNCTIONS.iter().find(|(of, _)| *of == name) else {
            return ControlFlow::Continue(());
        };
        let called = match args.as_slice() {
            [base, json] => table_of_null(base).map(|table| (table, json)),
            _ => None,
        };
        let Some((of, json)) = called else {
            let said = format!("{function} of a record that is not NULL is not supported");
            let error =
                Error::unsupported(said).with_hint(format!("write {function}(NULL::table, …)"));
            return ControlFlow::Break(error.about(Subject::OnlyCall((*function).to_owned())));
        };
        match (self.replace)(Call { function, record, table: of, json, alias }) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(by)) => {
                *table = by;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// The table that `NULL::table` names.
fn table_of_null(base: &FunctionArg) -> Option<&ObjectName> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Cast { expr, data_type, .. })) = base
    else {
        return None;
    };
    match (expr.as_ref(), data_type) {
        (Expr::Value(value), DataType::Custom(table, _)) if value.value == Value::Null => {
            Some(table)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::parser::DFParser;

    use super::*;

    #[test]
    fn records_have_the_columns_of_a_table() {
        let sql = "SELECT * FROM json_populate_record(NULL::t, '{}') AS r";
        let mut statement = DFParser::parse_sql_with_dialect(sql, &PostgreSqlDialect {}).unwrap();
        let mut statement = statement.pop_front().unwrap();
        assert_eq!(tables_of(&mut statement).unwrap()[0].to_string(), "t");
        let columns = vec![("a".to_owned(), "integer".to_owned())];
        write_columns(&mut statement, &HashMap::from([("t".to_owned(), columns)])).unwrap();
        assert_eq!(
            statement.to_string(),
            "SELECT * FROM (SELECT CAST(json_record_text(value, 'a') AS INTEGER) AS \"a\" \
             FROM (SELECT json_record_of('{}') AS value) AS value) AS r (\"a\")"
        );
    }
}
