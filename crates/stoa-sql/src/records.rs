//! `json_to_record` and `json_to_recordset` in FROM, whose columns the alias defines.
//!
//! ```text
//! json_to_recordset(x) AS r (a int, b text[])
//!   ─► (SELECT CAST(json_record_text(value, 'a') AS int) AS a, CAST(json_record_array(value, 'b') AS text[]) AS b
//!       FROM (SELECT unnest(json_records_of(x)) AS value) AS value) AS r (a, b)
//! ```

use datafusion_sql::sqlparser::ast::{
    self, DataType, Expr, FunctionArg, FunctionArgumentList, FunctionArguments, Ident, Query,
    Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result};

use crate::calls::{call, cast, named, positional};
use crate::normalise;
use crate::reads::reads_columns;

/// A function that makes records of JSON.
pub(super) struct Records {
    name: &'static str,
    /// The function that makes the value of a record, or the list of them.
    made_by: &'static str,
    is_set: bool,
}

const RECORDS: [Records; 4] = [
    Records { name: "json_to_record", made_by: "json_record_of", is_set: false },
    Records { name: "jsonb_to_record", made_by: "jsonb_record_of", is_set: false },
    Records { name: "json_to_recordset", made_by: "json_records_of", is_set: true },
    Records { name: "jsonb_to_recordset", made_by: "jsonb_records_of", is_set: true },
];

pub(super) fn of(name: &ast::ObjectName) -> Option<&'static Records> {
    let name = named(name)?;
    RECORDS.iter().find(|records| records.name == name)
}

/// The call as a query; `None` where it is of another form.
///
/// # Errors
/// 42601 where no columns are defined.
pub(super) fn table_of(
    records: &Records,
    args: &[FunctionArg],
    alias: Option<&TableAlias>,
) -> Result<Option<TableFactor>> {
    let is_typed = |column: &TableAliasColumnDef| column.data_type.is_some();
    match alias.filter(|alias| alias.columns.iter().any(is_typed)) {
        Some(alias) => Ok(query_of(records, args, alias)),
        None => {
            let message = "a column definition list is required for functions returning \"record\"";
            Err(Error::invalid(message)
                .with_sqlstate("42601")
                .with_hint(format!("write {}(…) AS name (column type, …)", records.name)))
        }
    }
}

fn query_of(records: &Records, args: &[FunctionArg], alias: &TableAlias) -> Option<TableFactor> {
    let list = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: args.to_vec(),
        clauses: Vec::new(),
    });
    let args = positional(&list)?;
    let mut alias = alias.clone();
    let columns = alias.columns.iter().map(column).collect::<Option<Vec<_>>>()?;
    for column in &mut alias.columns {
        column.data_type = None;
    }
    let lateral = args.iter().any(reads_columns);
    let value = call(records.made_by, args);
    let value = if records.is_set { call("unnest", vec![value]) } else { value };
    let mut inner = query("SELECT 1")?;
    select_of(&mut inner)?.projection = vec![item(value, Ident::new("value"))];
    let mut outer = query("SELECT 1 FROM (SELECT 1) AS value")?;
    let select = select_of(&mut outer)?;
    select.projection = columns;
    let TableFactor::Derived { subquery, lateral: reads, .. } =
        &mut select.from.first_mut()?.relation
    else {
        return None;
    };
    (*subquery, *reads) = (inner, lateral);
    Some(TableFactor::Derived { lateral, subquery: outer, alias: Some(alias), sample: None })
}

fn query(text: &str) -> Option<Box<Query>> {
    Parser::new(&PostgreSqlDialect {}).try_with_sql(text).ok()?.parse_query().ok()
}

fn select_of(query: &mut Query) -> Option<&mut Select> {
    match query.body.as_mut() {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

fn item(expr: Expr, alias: Ident) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias }
}

fn column(column: &TableAliasColumnDef) -> Option<SelectItem> {
    let of = column.data_type.clone()?;
    let key = ast::Value::SingleQuotedString(normalise(&column.name));
    let value = Expr::Identifier(Ident::new("value"));
    let by = match &of {
        DataType::JSON | DataType::JSONB => "json_record_json",
        DataType::Array(_) => "json_record_array",
        _ => "json_record_text",
    };
    let value = call(by, vec![value, Expr::value(key)]);
    Some(item(cast(value, of), column.name.clone()))
}
