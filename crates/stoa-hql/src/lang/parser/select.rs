//! SELECT and DUMP TABLE.

use super::super::ast::{ColumnExpr, DumpTable, QualifierExpr, Select, SelectOptions, Statement};
use super::super::cursor::{Cursor, Token};
use super::conditions::conditions;
use super::{Result, field_separator, set_once};

const OPTIONS: [&str; 17] = [
    "MAX_VERSIONS",
    "REVS",
    "LIMIT",
    "OFFSET",
    "ROW_LIMIT",
    "ROW_OFFSET",
    "CELL_LIMIT",
    "CELL_OFFSET",
    "CELL_LIMIT_PER_FAMILY",
    "INTO",
    "DISPLAY_TIMESTAMPS",
    "DISPLAY_REVISIONS",
    "KEYS_ONLY",
    "NO_CACHE",
    "NO_ESCAPE",
    "RETURN_DELETES",
    "SCAN_AND_FILTER_ROWS",
];
const DUMP_OPTIONS: [&str; 9] = [
    "COLUMNS",
    "WHERE",
    "MAX_VERSIONS",
    "REVS",
    "BUCKETS",
    "INTO",
    "NO_TIMESTAMPS",
    "NO_ESCAPE",
    "FS",
];

pub(super) fn select(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let mut select = Select { cells: accept_cells(cursor), ..Select::default() };
    select.columns = columns(cursor)?;
    cursor.expect("FROM")?;
    select.table = cursor.name("a table")?;
    if cursor.accept("WHERE") {
        select.conditions = conditions(cursor)?;
    }
    while option(cursor, &mut select.options)? {}
    if cursor.at_word("WHERE") {
        let hint = Some("SELECT … FROM … WHERE conditions options".to_owned());
        return Err(cursor.error("WHERE stands behind options".to_owned(), hint));
    }
    if matches!(cursor.peek(), Token::Word(_)) {
        return Err(cursor.expected_one_of("an option or the end of the statement", &OPTIONS));
    }
    let SelectOptions { row_offset, cell_offset, .. } = &select.options;
    if row_offset.is_some() && cell_offset.is_some() {
        let text = "OFFSET and CELL_OFFSET cannot be combined".to_owned();
        return Err(cursor.error(text, Some("leave one of both out".to_owned())));
    }
    Ok(Statement::Select(select))
}

/// `CELLS`, unless it is the name of the first column.
fn accept_cells(cursor: &mut Cursor<'_>) -> bool {
    let named = match cursor.peek_second() {
        Token::Symbol("," | ":") => true,
        Token::Word(word) => word.eq_ignore_ascii_case("FROM"),
        _ => false,
    };
    !named && cursor.accept("CELLS")
}

/// `*`, or columns; empty is all.
fn columns(cursor: &mut Cursor<'_>) -> Result<Vec<ColumnExpr>> {
    if cursor.accept_symbol("*") {
        return Ok(Vec::new());
    }
    let mut columns = vec![column(cursor)?];
    while cursor.accept_symbol(",") {
        columns.push(column(cursor)?);
    }
    Ok(columns)
}

/// `cf`, `cf:q`, `cf:*`, `cf:^p`, `cf:/re/`; quotes around the qualifier, or around both.
pub(super) fn column(cursor: &mut Cursor<'_>) -> Result<ColumnExpr> {
    let quoted = matches!(cursor.peek(), Token::Quoted(_));
    if cursor.at_word("FROM") {
        return Err(cursor.expected("a column or *"));
    }
    let name = cursor.name("a column or *")?;
    if cursor.accept_colon() {
        return Ok(ColumnExpr { family: name, qualifier: qualifier(cursor)? });
    }
    let whole = name.split_once(':').filter(|(family, _)| quoted && !family.is_empty());
    Ok(match whole {
        Some((family, exact)) => ColumnExpr {
            family: family.to_owned(),
            qualifier: QualifierExpr::Exact(exact.to_owned()),
        },
        None => ColumnExpr { family: name, qualifier: QualifierExpr::Any },
    })
}

fn qualifier(cursor: &mut Cursor<'_>) -> Result<QualifierExpr> {
    if cursor.at_blank() {
        cursor.skip_to_token();
        return Ok(QualifierExpr::Exact(String::new()));
    }
    match cursor.peek() {
        Token::Symbol("/") => cursor.regexp().map(QualifierExpr::Regexp),
        Token::Symbol("*") => {
            cursor.advance();
            Ok(QualifierExpr::Any)
        }
        Token::Symbol("^") => {
            cursor.advance();
            qualifier_text(cursor).map(QualifierExpr::Prefix)
        }
        _ => qualifier_text(cursor).map(QualifierExpr::Exact),
    }
}

fn qualifier_text(cursor: &mut Cursor<'_>) -> Result<String> {
    match cursor.peek() {
        Token::Quoted(text) => {
            cursor.advance();
            Ok(text.to_owned())
        }
        Token::OpenQuote => Err(cursor.expected("a qualifier")),
        _ => Ok(cursor.bare_text().to_owned()),
    }
}

fn option(cursor: &mut Cursor<'_>, options: &mut SelectOptions) -> Result<bool> {
    if flag(cursor, options) {
        return Ok(true);
    }
    if cursor.accept_any(&["MAX_VERSIONS", "MAX_REVISIONS", "REVS"]) {
        cursor.skip_equals();
        let versions = cursor.number("a number of versions")?;
        set_once(&mut options.max_versions, versions, "MAX_VERSIONS", cursor)?;
        return Ok(true);
    }
    if cursor.accept("INTO") {
        cursor.expect("FILE")?;
        let file = cursor.literal("a file")?;
        set_once(&mut options.into_file, file, "INTO FILE", cursor)?;
        return Ok(true);
    }
    if cursor.accept("FS") {
        let separator = field_separator(cursor)?;
        set_once(&mut options.field_separator, separator, "FS", cursor)?;
        return Ok(true);
    }
    let counts: [(&[&str], &mut Option<u64>); 5] = [
        (&["CELL_LIMIT_PER_FAMILY"], &mut options.cell_limit_per_family),
        (&["CELL_LIMIT"], &mut options.cell_limit),
        (&["CELL_OFFSET"], &mut options.cell_offset),
        (&["LIMIT", "ROW_LIMIT"], &mut options.row_limit),
        (&["OFFSET", "ROW_OFFSET"], &mut options.row_offset),
    ];
    for (words, slot) in counts {
        if cursor.accept_any(words) {
            cursor.skip_equals();
            let count = cursor.number("a count")?;
            set_once(slot, count, words[0], cursor)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn flag(cursor: &mut Cursor<'_>, options: &mut SelectOptions) -> bool {
    let flags: [(&[&str], &mut bool); 7] = [
        (&["DISPLAY_TIMESTAMPS"], &mut options.display_timestamps),
        (&["DISPLAY_REVISIONS"], &mut options.display_revisions),
        (&["KEYS_ONLY"], &mut options.keys_only),
        (&["NO_CACHE"], &mut options.no_cache),
        (&["NO_ESCAPE", "NOESCAPE"], &mut options.no_escape),
        (&["RETURN_DELETES"], &mut options.return_deletes),
        (&["SCAN_AND_FILTER_ROWS"], &mut options.scan_and_filter_rows),
    ];
    for (words, slot) in flags {
        if cursor.accept_any(words) {
            *slot = true;
            return true;
        }
    }
    false
}

pub(super) fn dump(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("TABLE")?;
    let mut dump = DumpTable { table: cursor.name("a table")?, ..DumpTable::default() };
    if cursor.accept("COLUMNS") {
        dump.columns = columns(cursor)?;
    }
    if cursor.accept("WHERE") {
        dump.conditions = conditions(cursor)?;
        if !dump.conditions.columns.is_empty() {
            let hint = "SELECT … INTO FILE knows conditions on columns".to_owned();
            let text = "DUMP TABLE takes rows, times and VALUE REGEXP only".to_owned();
            return Err(cursor.error(text, Some(hint)));
        }
    }
    while dump_option(cursor, &mut dump)? {}
    match cursor.peek() {
        Token::Word(_) => {
            Err(cursor.expected_one_of("an option or the end of the statement", &DUMP_OPTIONS))
        }
        _ => Ok(Statement::DumpTable(dump)),
    }
}

fn dump_option(cursor: &mut Cursor<'_>, dump: &mut DumpTable) -> Result<bool> {
    if cursor.accept_any(&["MAX_VERSIONS", "MAX_REVISIONS", "REVS"]) {
        cursor.skip_equals();
        let versions = cursor.number("a number of versions")?;
        set_once(&mut dump.max_versions, versions, "MAX_VERSIONS", cursor)?;
    } else if cursor.accept("BUCKETS") {
        cursor.skip_equals();
        let buckets = cursor.number("a number of buckets")?;
        set_once(&mut dump.buckets, buckets, "BUCKETS", cursor)?;
    } else if cursor.accept("INTO") {
        cursor.expect("FILE")?;
        let file = cursor.literal("a file")?;
        set_once(&mut dump.into_file, file, "INTO FILE", cursor)?;
    } else if cursor.accept("FS") {
        let separator = field_separator(cursor)?;
        set_once(&mut dump.field_separator, separator, "FS", cursor)?;
    } else if cursor.accept("NO_TIMESTAMPS") {
        dump.no_timestamps = true;
    } else if cursor.accept_any(&["NO_ESCAPE", "NOESCAPE"]) {
        dump.no_escape = true;
    } else {
        return Ok(false);
    }
    Ok(true)
}
