//! `SHOW` and `DESCRIBE`, with the names that Hive gives the columns.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use stoa_error::{Error, Result};

use crate::calls::function_names;
use crate::cursor::{Cursor, literal};
use crate::lexer::{DEFAULT_DATABASE, DEFAULT_NAMESPACE};
use crate::{partitions, rights};

/// The query whose rows are the answer.
///
/// # Errors
/// 42601; 0A000 for lists that Stoa has not.
pub(crate) fn translate(tokens: &[TokenWithSpan]) -> Result<String> {
    let mut cursor = Cursor::new(tokens);
    if cursor.take(&["describe"]) || cursor.take(&["desc"]) {
        return describe(&mut cursor);
    }
    cursor.expect(&["show"])?;
    if let Some(list) = rights::show(&mut cursor)? {
        return Ok(list);
    }
    match () {
        () if cursor.take(&["databases"]) || cursor.take(&["schemas"]) => {
            let condition = like(&mut cursor, &shown_database("schema_name"))?;
            Ok(format!(
                "SELECT {} AS database_name FROM information_schema.schemata WHERE schema_name NOT IN ('system', 'pg_catalog', \
                 'information_schema'){condition} ORDER BY 1",
                shown_database("schema_name")
            ))
        }
        () if cursor.take(&["tables"]) => tables(&mut cursor, ""),
        () if cursor.take(&["views"]) => tables(&mut cursor, " AND table_type = 'VIEW'"),
        () if cursor.take(&["columns"]) => columns(&mut cursor),
        () if cursor.take(&["functions"]) => functions(&mut cursor),
        () if cursor.take(&["partitions"]) => {
            let name = cursor.table()?;
            let only = match cursor.looking_at(&["partition"]) {
                true => format!(" {}", partitions::spec(&mut cursor)?),
                false => String::new(),
            };
            if !cursor.is_end() {
                return Err(Error::unsupported(
                    "WHERE, ORDER BY and LIMIT of SHOW PARTITIONS are not supported",
                )
                .with_hint("SHOW PARTITIONS name PARTITION (column = value) lists some of them"));
            }
            Ok(format!("SHOW PARTITION NAMES FROM {name}{only}"))
        }
        () if cursor.take(&["create", "table"]) => {
            let name = cursor.table()?;
            cursor.expect_end()?;
            Ok(format!("SHOW CREATE TABLE {name}"))
        }
        () if cursor.take(&["create", "database"]) || cursor.take(&["tblproperties"]) => {
            Err(Error::unsupported("this SHOW is not supported").with_hint(
                "SHOW CREATE TABLE and DESCRIBE FORMATTED show tables with their properties",
            ))
        }
        // A setting of Stoa's.
        () if matches!(cursor.peek(), Token::Word(_)) && *cursor.nth(1) == Token::EOF => {
            Ok(format!("SHOW {}", cursor.name()?))
        }
        () => Err(cursor
            .wrong("DATABASES, TABLES, VIEWS, COLUMNS, PARTITIONS, FUNCTIONS or CREATE TABLE")),
    }
}

/// The name of a schema as Hive's users know it.
fn shown_database(column: &str) -> String {
    format!(
        "CASE WHEN {column} = '{DEFAULT_NAMESPACE}' THEN '{DEFAULT_DATABASE}' ELSE {column} END"
    )
}

/// `[LIKE] 'pattern'`, where `*` is any text and `|` is or.
fn like(cursor: &mut Cursor<'_>, of: &str) -> Result<String> {
    let _ = cursor.take(&["like"]);
    if cursor.is_end() {
        return Ok(String::new());
    }
    let pattern = cursor.string()?;
    cursor.expect_end()?;
    let choices = pattern.split('|').map(|choice| {
        let choice = choice
            .to_lowercase()
            .replace('\\', "\\\\")
            .replace('%', "\\%")
            .replace('_', "\\_")
            .replace('*', "%");
        format!("{of} LIKE {}", literal(&choice))
    });
    Ok(format!(" AND ({})", choices.collect::<Vec<_>>().join(" OR ")))
}

fn database(cursor: &mut Cursor<'_>) -> Result<String> {
    if cursor.take(&["in"]) || cursor.take(&["from"]) {
        let name = cursor.name()?;
        let is_default = name == DEFAULT_DATABASE;
        return Ok(literal(if is_default { DEFAULT_NAMESPACE } else { &name }));
    }
    Ok("current_schema()".to_owned())
}

fn tables(cursor: &mut Cursor<'_>, kind: &str) -> Result<String> {
    let database = database(cursor)?;
    let condition = like(cursor, "table_name")?;
    Ok(format!(
        "SELECT table_name AS tab_name FROM information_schema.tables WHERE table_schema = {database}{kind}{condition} ORDER BY 1"
    ))
}

fn columns(cursor: &mut Cursor<'_>) -> Result<String> {
    if !(cursor.take(&["in"]) || cursor.take(&["from"])) {
        return Err(cursor.wrong("IN or FROM and a table"));
    }
    let first = cursor.name()?;
    let (schema, table) = match cursor.take_token(&Token::Period) {
        true => (literal(&first), cursor.name()?),
        false => (database(cursor)?, first),
    };
    let condition = like(cursor, "column_name")?;
    Ok(format!(
        "SELECT column_name AS field FROM information_schema.columns WHERE table_schema = {schema} AND table_name = \
         {}{condition} ORDER BY ordinal_position",
        literal(&table)
    ))
}

fn functions(cursor: &mut Cursor<'_>) -> Result<String> {
    let condition = like(cursor, "tab_name")?;
    let names: Vec<String> =
        function_names().into_iter().map(|name| format!("({})", literal(name))).collect();
    Ok(format!(
        "SELECT tab_name FROM (VALUES {}) AS functions (tab_name) WHERE true{condition} ORDER BY 1",
        names.join(", ")
    ))
}

fn describe(cursor: &mut Cursor<'_>) -> Result<String> {
    if cursor.take(&["function"]) {
        let _ = cursor.take(&["extended"]);
        let name = match cursor.peek() {
            Token::SingleQuotedString(_) => cursor.string()?,
            _ => cursor.name()?,
        };
        let said = match function_names().contains(&name.to_lowercase().as_str()) {
            true => format!("{name} is a function of Hive's; see docs/hiveql.md"),
            false => format!("Function '{name}' does not exist."),
        };
        return Ok(format!("SELECT {} AS tab_name", literal(&said)));
    }
    if cursor.looking_at(&["database"]) || cursor.looking_at(&["schema"]) {
        return Err(Error::unsupported("DESCRIBE DATABASE is not supported")
            .with_hint("SHOW DATABASES lists them"));
    }
    let is_detailed = cursor.take(&["formatted"]) || cursor.take(&["extended"]);
    let name = cursor.table()?;
    if cursor.is_end() {
        return Ok(format!("DESCRIBE {name}"));
    }
    if cursor.looking_at(&["partition"]) {
        let spec = partitions::spec(cursor)?;
        cursor.expect_end()?;
        let detailed = if is_detailed { "EXTENDED " } else { "" };
        return Ok(format!("DESCRIBE {detailed}{name} {spec}"));
    }
    if is_detailed {
        return Err(Error::unsupported("DESCRIBE of a column's statistics is not supported")
            .with_hint("DESCRIBE name column shows its type"));
    }
    let column = cursor.name()?;
    cursor.expect_end()?;
    let table = name.rsplit('.').next().unwrap_or(&name).trim_matches('"').to_owned();
    let schema = match name.contains("\".\"") {
        true => literal(name.split("\".\"").next().unwrap_or_default().trim_matches('"')),
        false => "current_schema()".to_owned(),
    };
    Ok(format!(
        "SELECT column_name AS col_name, data_type, CAST(NULL AS text) AS comment FROM information_schema.columns WHERE \
         table_schema = {schema} AND table_name = {} AND column_name = {}",
        literal(&table),
        literal(&column)
    ))
}
