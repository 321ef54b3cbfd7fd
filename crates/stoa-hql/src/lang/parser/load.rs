//! LOAD DATA INFILE.

use super::super::ast::{KeyColumn, KeyFormat, LoadData, LoadOptions, LoadTarget, Statement};
use super::super::cursor::{Cursor, Token};
use super::{Result, field_separator, set_once};

/// Random characters behind a row key at most: 21 of 6 bits each.
const UNIQUIFY_CHARS_MAX: u8 = 21;

const OPTIONS: [&str; 13] = [
    "ROW_KEY_COLUMN",
    "TIMESTAMP_COLUMN",
    "HEADER_FILE",
    "ROW_UNIQUIFY_CHARS",
    "FS",
    "DUP_KEY_COLS",
    "DUPLICATE_KEY_COLUMNS",
    "IGNORE_UNKNOWN_COLUMNS",
    "IGNORE_UNKNOWN_CFS",
    "SINGLE_CELL_FORMAT",
    "NO_ESCAPE",
    "NO_LOG",
    "RETURN_DELETES",
];

pub(super) fn load(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect_all(&["DATA", "INFILE"])?;
    let mut options = LoadOptions::default();
    while option(cursor, &mut options)? {}
    if matches!(cursor.peek(), Token::Word(_)) {
        return Err(cursor.expected_one_of("an option, or a file in quotes", &OPTIONS));
    }
    let source = cursor.literal("a file in quotes")?;
    cursor.expect("INTO")?;
    let target = match () {
        () if cursor.accept("TABLE") => LoadTarget::Table(cursor.name("a table")?),
        () if cursor.accept("FILE") => LoadTarget::File(cursor.literal("a file")?),
        () => return Err(cursor.expected_one_of("TABLE or FILE", &["TABLE", "FILE"])),
    };
    Ok(Statement::LoadData(LoadData { options, source, target }))
}

fn option(cursor: &mut Cursor<'_>, options: &mut LoadOptions) -> Result<bool> {
    if cursor.accept("ROW_KEY_COLUMN") {
        cursor.expect_symbol("=")?;
        options.row_key_columns.push(key_column(cursor)?);
        while cursor.accept_symbol("+") {
            options.row_key_columns.push(key_column(cursor)?);
        }
    } else if cursor.accept("TIMESTAMP_COLUMN") {
        cursor.expect_symbol("=")?;
        let name = cursor.name("a column of the file")?;
        set_once(&mut options.timestamp_column, name, "TIMESTAMP_COLUMN", cursor)?;
    } else if cursor.accept("HEADER_FILE") {
        cursor.expect_symbol("=")?;
        let file = cursor.literal("a file")?;
        set_once(&mut options.header_file, file, "HEADER_FILE", cursor)?;
    } else if cursor.accept("ROW_UNIQUIFY_CHARS") {
        cursor.expect_symbol("=")?;
        options.row_uniquify_chars = uniquify_chars(cursor)?;
    } else if cursor.accept("FS") {
        let separator = field_separator(cursor)?;
        set_once(&mut options.field_separator, separator, "FS", cursor)?;
    } else {
        return flag(cursor, options);
    }
    Ok(true)
}

fn uniquify_chars(cursor: &mut Cursor<'_>) -> Result<u8> {
    let text = format!("ROW_UNIQUIFY_CHARS is at most {UNIQUIFY_CHARS_MAX}");
    let wrong = cursor.error(text, None);
    let chars = cursor.number("a number of characters")?;
    if chars <= UNIQUIFY_CHARS_MAX { Ok(chars) } else { Err(wrong) }
}

fn flag(cursor: &mut Cursor<'_>, options: &mut LoadOptions) -> Result<bool> {
    if cursor.accept("RETURN_DELETES") {
        // Hypertable's manual lists it; it says nothing about a load.
        return Ok(true);
    }
    let flags: [(&[&str], &mut bool); 5] = [
        (&["DUPLICATE_KEY_COLUMNS", "DUP_KEY_COLS"], &mut options.duplicate_key_columns),
        (&["IGNORE_UNKNOWN_COLUMNS", "IGNORE_UNKNOWN_CFS"], &mut options.ignore_unknown_columns),
        (&["SINGLE_CELL_FORMAT"], &mut options.single_cell_format),
        (&["NO_ESCAPE", "NOESCAPE"], &mut options.no_escape),
        (&["NO_LOG"], &mut options.no_log),
    ];
    for (words, slot) in flags {
        if !cursor.accept_any(words) {
            continue;
        }
        *slot = true;
        if cursor.accept_symbol("=") {
            *slot = cursor.boolean().ok_or_else(|| cursor.expected("true or false"))?;
        }
        return Ok(true);
    }
    Ok(false)
}

fn key_column(cursor: &mut Cursor<'_>) -> Result<KeyColumn> {
    let wrong = cursor.error(
        "the width of a key column is 1 to 255 and followed by its name".to_owned(),
        Some("for instance \"%09id\", \"%-9id\" or \"%9id\"; \"\\%id\" is a name".to_owned()),
    );
    let text = cursor.name("a column of the file")?;
    let plain = |name: &str| KeyColumn { name: name.to_owned(), format: KeyFormat::Plain };
    if let Some(name) = text.strip_prefix("\\%") {
        return Ok(plain(&format!("%{name}")));
    }
    let Some(rest) = text.strip_prefix('%') else { return Ok(plain(&text)) };
    let (make, rest): (fn(u8) -> KeyFormat, &str) = match rest.as_bytes().first() {
        Some(b'0') => (KeyFormat::ZeroPadded, &rest[1..]),
        Some(b'-') => (KeyFormat::Left, &rest[1..]),
        _ => (KeyFormat::Right, rest),
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (width, name) = rest.split_at(digits);
    match width.parse() {
        Ok(width) if width > 0 && !name.is_empty() => {
            Ok(KeyColumn { name: name.to_owned(), format: make(width) })
        }
        _ => Err(wrong),
    }
}
