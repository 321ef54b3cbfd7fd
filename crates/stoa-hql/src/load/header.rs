//! What the first line says.
//!
//! In 2008 the first line was always the header, with or without `#`; in 2016 a first line without
//! `#` was data (reference §1.4). Both are taken, by the first rule that fits:
//!
//! 1. HEADER_FILE: its line is the header, the file has data only.
//! 2. SINGLE_CELL_FORMAT: no header; the number of fields tells whether there is a timestamp.
//! 3. `#`: a header.
//! 4. All columns that ROW_KEY_COLUMN and TIMESTAMP_COLUMN name are in the line: a header.
//! 5. `[timestamp] row|rowkey column|columnkey value`: a header of the single-cell format.
//! 6. All fields behind the first are families of the table: a header.
//! 7. Three or four fields, and no ROW_KEY_COLUMN: data of the single-cell format.

use stoa_error::{Error, Result};

use super::families::Families;
use super::fields::{Fields, split_column};
use crate::lang::ast::LoadOptions;

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A row per line; the names of the columns.
    MultiCell(Vec<Vec<u8>>),
    /// A cell per line.
    SingleCell {
        /// Whether its timestamp comes first.
        has_timestamp: bool,
    },
}

/// What the first line of a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) layout: Layout,
    /// Whether the first line is data.
    pub(super) is_data: bool,
    /// Whether lines end with CR LF.
    pub(super) crlf: bool,
}

impl Header {
    /// What `header`, the line of the HEADER_FILE, says.
    pub(super) fn of_file(header: &[u8], separator: u8) -> Self {
        let (line, crlf) = without_cr(header);
        let layout = layout_of(&names(without_mark(line).unwrap_or(line), separator));
        Self { layout, is_data: true, crlf }
    }

    /// What the first line of the file says.
    pub(super) fn of_line(
        line: &[u8],
        options: &LoadOptions,
        separator: u8,
        families: &Families,
    ) -> Result<Self> {
        let (line, crlf) = without_cr(line);
        let header = |layout| Ok(Self { layout, is_data: false, crlf });
        let data = |has_timestamp| {
            Ok(Self { layout: Layout::SingleCell { has_timestamp }, is_data: true, crlf })
        };
        let fields = names(line, separator);
        if options.single_cell_format {
            return match fields.len() {
                3..=5 => data(has_timestamp(&fields)),
                _ => Err(bad_format(line)),
            };
        }
        if let Some(marked) = without_mark(line) {
            return header(layout_of(&names(marked, separator)));
        }
        let keys = options.row_key_columns.iter().map(|column| &column.name);
        let named: Vec<&String> = keys.chain(&options.timestamp_column).collect();
        let has = |name: &String| fields.iter().any(|field| field == name.as_bytes());
        if !named.is_empty() && named.iter().all(|name| has(name)) {
            return header(layout_of(&fields));
        }
        let layout = layout_of(&fields);
        let is_known = |name: &Vec<u8>| families.contains(split_column(name).0);
        let all_known = fields.len() > 1 && fields[1..].iter().all(is_known);
        match layout {
            Layout::SingleCell { .. } => header(layout),
            _ if all_known && named.is_empty() => header(layout),
            _ if named.is_empty() && (3..=4).contains(&fields.len()) => {
                data(has_timestamp(&fields))
            }
            _ if named.is_empty() => Err(bad_format(line)),
            _ => Err(missing_column(&named, &fields)),
        }
    }
}

fn without_cr(line: &[u8]) -> (&[u8], bool) {
    line.strip_suffix(b"\r").map_or((line, false), |line| (line, true))
}

/// A header line without its `#` and the blanks behind it; none if there is none.
fn without_mark(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"#").map(<[u8]>::trim_ascii_start)
}

fn names(line: &[u8], separator: u8) -> Vec<Vec<u8>> {
    let mut fields = Fields::default();
    fields.find(line, separator);
    (0..fields.len()).filter_map(|i| fields.get(line, i)).map(<[u8]>::to_vec).collect()
}

/// The single-cell format if the names are those of its fields, else the multi-cell format.
fn layout_of(names: &[Vec<u8>]) -> Layout {
    let has_timestamp = names.first().is_some_and(|name| name == b"timestamp");
    let rest = if has_timestamp { &names[1..] } else { names };
    let is_cell = match rest {
        [row, column, value] => {
            (row == b"row" || row == b"rowkey")
                && (column == b"column" || column == b"columnkey")
                && value == b"value"
        }
        _ => false,
    };
    match is_cell {
        true => Layout::SingleCell { has_timestamp },
        false => Layout::MultiCell(names.to_vec()),
    }
}

/// Whether a line of data starts with a timestamp: with one field more than a cell has, unless
/// that is the word of a marker.
fn has_timestamp(fields: &[Vec<u8>]) -> bool {
    match fields {
        [_, _, _, last] => !last.starts_with(b"DELETE"),
        other => other.len() > 4,
    }
}

fn bad_format(line: &[u8]) -> Error {
    let start = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
    Error::invalid(format!("bad load file format: line 1 is \"{}\"", start.escape_debug()))
        .with_sqlstate("22P04")
        .with_hint("start with a header line of column names, or name them with HEADER_FILE")
}

fn missing_column(named: &[&String], fields: &[Vec<u8>]) -> Error {
    let has = |name: &String| fields.iter().any(|field| field == name.as_bytes());
    let missing = named.iter().find(|name| !has(name)).map_or("", |name| name.as_str());
    column_not_found(missing, fields)
}

/// The error of a column that the statement names and the header does not.
pub(super) fn column_not_found(name: &str, fields: &[Vec<u8>]) -> Error {
    let known: Vec<_> = fields.iter().map(|field| String::from_utf8_lossy(field)).collect();
    Error::invalid(format!("column '{name}' is not in the header of the file"))
        .with_sqlstate("42703")
        .with_hint(format!("the header has {}", known.join(", ")))
}
