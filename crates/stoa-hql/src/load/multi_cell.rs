//! A row per line; the header names the column of each field.

use stoa_error::{Error, Result};

use super::families::Families;
use super::fields::{Fields, split_column};
use super::header::column_not_found;
use super::row_key::{push_part, push_random};
use super::sink::Sink;
use crate::cell::FamilyId;
use crate::escape::unescape;
use crate::lang::ast::{KeyFormat, LoadOptions};
use crate::time_text::{Zone, parse_load_timestamp};

/// How lines become cells.
pub(super) struct MultiCell {
    separator: u8,
    zone: Zone,
    unescape: bool,
    uniquify_chars: u8,
    /// Number of columns.
    columns: usize,
    /// Fields of the row key and their format.
    key: Vec<(usize, KeyFormat)>,
    timestamp: Option<usize>,
    /// Fields that become cells.
    cells: Vec<CellColumn>,
    fields: Fields,
    row: Vec<u8>,
    value: Vec<u8>,
}

struct CellColumn {
    field: usize,
    family: FamilyId,
    qualifier: Vec<u8>,
    counter: bool,
}

impl MultiCell {
    /// The plan for files with these columns.
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) if a column that the options name is missing;
    /// [`NotFound`](stoa_error::ErrorKind::NotFound) if one is of no family and such columns are
    /// not to be ignored.
    pub(super) fn new(
        names: &[Vec<u8>],
        options: &LoadOptions,
        separator: u8,
        zone: Zone,
        families: &mut Families,
    ) -> Result<Self> {
        let place = |name: &str| {
            let found = names.iter().position(|known| known == name.as_bytes());
            found.ok_or_else(|| column_not_found(name, names))
        };
        let mut key = Vec::new();
        for column in &options.row_key_columns {
            key.push((place(&column.name)?, column.format));
        }
        if key.is_empty() {
            key.push((0, KeyFormat::Plain));
        }
        let timestamp = options.timestamp_column.as_deref().map(place).transpose()?;
        let mut cells = Vec::new();
        for (field, name) in names.iter().enumerate() {
            let is_key = key.iter().any(|(at, _)| *at == field);
            let stored = !is_key || options.duplicate_key_columns;
            if stored && timestamp != Some(field) {
                cells.extend(cell_column(field, name, options, families)?);
            }
        }
        Ok(Self {
            separator,
            zone,
            unescape: !options.no_escape,
            uniquify_chars: options.row_uniquify_chars,
            columns: names.len(),
            key,
            timestamp,
            cells,
            fields: Fields::default(),
            row: Vec::new(),
            value: Vec::new(),
        })
    }

    /// Whether lines tell their timestamp.
    pub(super) fn has_timestamps(&self) -> bool {
        self.timestamp.is_some()
    }

    /// Adds the cells of a line.
    pub(super) fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<()> {
        self.fields.find(line, self.separator);
        if self.fields.len() > self.columns {
            sink.warn(number, format_args!("field count does not match header"));
            return Ok(());
        }
        let escaped = self.unescape && memchr::memchr(b'\\', line).is_some();
        if !self.make_row(line, escaped, number, sink) {
            return Ok(());
        }
        let mut timestamp = None;
        if let Some(field) = self.timestamp {
            let text = self.fields.get(line, field).unwrap_or_default();
            timestamp = parse_load_timestamp(text, self.zone);
            if timestamp.is_none() {
                sink.warn(number, format_args!("invalid timestamp"));
                return Ok(());
            }
        }
        for column in &self.cells {
            let Some(mut value) = self.fields.get(line, column.field) else { continue };
            if matches!(value, b"" | b"NULL" | b"\\N") {
                continue;
            }
            if escaped {
                self.value.clear();
                unescape(value, &mut self.value);
                value = &self.value;
            }
            let place = (column.family, column.qualifier.as_slice());
            sink.value(&self.row, place, timestamp, value, column.counter, number)?;
        }
        Ok(())
    }

    /// Puts the row key together; tells and says no if there is none.
    fn make_row(&mut self, line: &[u8], escaped: bool, number: u64, sink: &mut Sink) -> bool {
        self.row.clear();
        for (field, format) in &self.key {
            let Some(part) = self.fields.get(line, *field) else {
                sink.warn(number, format_args!("missing row key field"));
                return false;
            };
            if escaped {
                self.value.clear();
                unescape(part, &mut self.value);
                push_part(&self.value, *format, &mut self.row);
            } else {
                push_part(part, *format, &mut self.row);
            }
        }
        if self.row.is_empty() || self.row.contains(&0) {
            let what = if self.row.is_empty() { "zero-length row key" } else { "NUL in row key" };
            sink.warn(number, format_args!("{what}"));
            return false;
        }
        push_random(self.uniquify_chars, &mut self.row);
        true
    }
}

/// The column of a field; none if it is to be ignored.
fn cell_column(
    field: usize,
    name: &[u8],
    options: &LoadOptions,
    families: &mut Families,
) -> Result<Option<CellColumn>> {
    let (family, qualifier) = split_column(name);
    if let Some(id) = families.id(family)? {
        let qualifier = qualifier.to_vec();
        return Ok(Some(CellColumn {
            field,
            family: id,
            qualifier,
            counter: families.is_counter(id),
        }));
    }
    if options.ignore_unknown_columns {
        return Ok(None);
    }
    let name = String::from_utf8_lossy(family);
    let known: Vec<String> =
        families.names().iter().map(|n| String::from_utf8_lossy(n).into_owned()).collect();
    Err(Error::not_found(format!("line 1: no column family '{name}'"))
        .with_sqlstate("42703")
        .with_detail(format!("the table has {}", known.join(", ")))
        .with_hint("IGNORE_UNKNOWN_COLUMNS passes over fields of other columns"))
}
