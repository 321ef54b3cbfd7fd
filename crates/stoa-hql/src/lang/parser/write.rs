//! INSERT and DELETE.

use super::super::ast::{Delete, DeleteVersions, InsertCell, Statement, Text};
use super::super::cursor::{Cursor, Token};
use super::{Result, list};

pub(super) fn insert(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("INTO")?;
    let table = cursor.name("a table")?;
    cursor.expect("VALUES")?;
    let mut cells = vec![insert_cell(cursor)?];
    while cursor.accept_symbol(",") {
        cells.push(insert_cell(cursor)?);
    }
    Ok(Statement::Insert { table, cells })
}

fn insert_cell(cursor: &mut Cursor<'_>) -> Result<InsertCell> {
    let wrong = cursor.error(
        "a cell has three or four parts".to_owned(),
        Some("write (row, column, value) or (timestamp, row, column, value)".to_owned()),
    );
    let mut parts = list(cursor, insert_part)?.into_iter();
    let parts = (parts.next(), parts.next(), parts.next(), parts.next(), parts.next());
    let (timestamp, row, column, value) = match parts {
        (Some(row), Some(column), Some(value), None, None) => (None, row, column, value),
        (Some(time), Some(row), Some(column), Some(value), None) => {
            (Some(time), row, column, value)
        }
        _ => return Err(wrong),
    };
    let literal = |text: Text| match text {
        Text::Literal(text) => Ok(text),
        Text::Guid => Err(cursor.error("GUID() is for rows and values".to_owned(), None)),
    };
    let timestamp = timestamp.map(literal).transpose()?;
    Ok(InsertCell { timestamp, row, column: literal(column)?, value })
}

fn insert_part(cursor: &mut Cursor<'_>) -> Result<Text> {
    if cursor.at_word("GUID") && cursor.peek_second() == Token::Symbol("(") {
        cursor.advance();
        cursor.expect_symbol("(")?;
        cursor.expect_symbol(")")?;
        return Ok(Text::Guid);
    }
    cursor.literal("a literal or GUID()").map(Text::Literal)
}

pub(super) fn delete(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let mut columns = Vec::new();
    if !cursor.accept_symbol("*") {
        columns.push(delete_column(cursor)?);
        while cursor.accept_symbol(",") {
            columns.push(delete_column(cursor)?);
        }
    }
    cursor.expect("FROM")?;
    let table = cursor.name("a table")?;
    cursor.expect_all(&["WHERE", "ROW"])?;
    cursor.expect_symbol("=")?;
    let row = cursor.literal("a row")?;
    let versions = match () {
        () if cursor.accept("TIMESTAMP") => DeleteVersions::UpTo(cursor.literal("a timestamp")?),
        () if cursor.accept("VERSION") => DeleteVersions::Exactly(cursor.literal("a timestamp")?),
        () => DeleteVersions::All,
    };
    Ok(Statement::Delete(Delete { columns, table, row, versions }))
}

/// `cf`, `cf:q`, or both in quotes.
fn delete_column(cursor: &mut Cursor<'_>) -> Result<String> {
    let mut column = cursor.name("a column or *")?;
    if !cursor.accept_colon() {
        return Ok(column);
    }
    column.push(':');
    match cursor.peek() {
        Token::Quoted(text) if !cursor.at_blank() => {
            column.push_str(text);
            cursor.advance();
        }
        _ => column.push_str(cursor.bare_text()),
    }
    Ok(column)
}
