//! A cell per line: `[timestamp] row column value [marker]`.

use stoa_error::{Error, Place, Result};

use super::families::Families;
use super::fields::{Fields, split_column};
use super::sink::Sink;
use crate::cell::{CellKind, FamilyId, WHOLE_ROW};
use crate::escape::unescape;
use crate::lang::ast::LoadOptions;
use crate::time_text::{Zone, parse_load_timestamp};

/// How lines become cells.
pub(super) struct SingleCell {
    separator: u8,
    zone: Zone,
    unescape: bool,
    ignore_unknown: bool,
    has_timestamp: bool,
    fields: Fields,
    row: Vec<u8>,
    column: Vec<u8>,
    value: Vec<u8>,
    /// The family that was looked up last.
    known: Option<(Vec<u8>, FamilyId, bool)>,
}

impl SingleCell {
    pub(super) fn new(
        has_timestamp: bool,
        options: &LoadOptions,
        separator: u8,
        zone: Zone,
    ) -> Self {
        Self {
            separator,
            zone,
            unescape: !options.no_escape,
            ignore_unknown: options.ignore_unknown_columns,
            has_timestamp,
            fields: Fields::default(),
            row: Vec::new(),
            column: Vec::new(),
            value: Vec::new(),
            known: None,
        }
    }

    /// Whether lines tell their timestamp.
    pub(super) fn has_timestamps(&self) -> bool {
        self.has_timestamp
    }

    /// Adds the cell of a line.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound) if its family does not exist and such cells
    /// are not to be ignored.
    pub(super) fn line(
        &mut self,
        line: &[u8],
        number: u64,
        families: &mut Families,
        sink: &mut Sink,
    ) -> Result<()> {
        self.fields.find(line, self.separator);
        let first = usize::from(self.has_timestamp);
        let field = |index: usize| self.fields.get(line, first + index);
        let (Some(row), Some(column), Some(value)) = (field(0), field(1), field(2)) else {
            sink.warn(number, format_args!("too few fields"));
            return Ok(());
        };
        let marker = field(3);
        if self.fields.len() > first + 4 {
            sink.warn(number, format_args!("too many fields"));
            return Ok(());
        }
        let mut timestamp = None;
        if self.has_timestamp {
            timestamp =
                self.fields.get(line, 0).and_then(|text| parse_load_timestamp(text, self.zone));
            if timestamp.is_none() {
                sink.warn(number, format_args!("invalid timestamp format"));
                return Ok(());
            }
        }
        let escaped = self.unescape && memchr::memchr(b'\\', line).is_some();
        copy(row, escaped, &mut self.row);
        copy(column, escaped, &mut self.column);
        copy(value, escaped, &mut self.value);
        if self.row.is_empty() || self.row.contains(&0) || self.column.contains(&0) {
            let what = if self.row.is_empty() {
                "zero-length row key"
            } else {
                "NUL in row or column key"
            };
            sink.warn(number, format_args!("{what}"));
            return Ok(());
        }
        // SELECT … RETURN_DELETES leaves the column's field out where a row is deleted.
        let of_row = self.column.is_empty() && matches!(self.value.as_slice(), b"DELETE ROW");
        let marker = marker.or(of_row.then_some(b"DELETE ROW"));
        match marker {
            None | Some(b"") => self.add_value(timestamp, number, families, sink),
            Some(word) => self.add_marker(word, timestamp, number, families, sink),
        }
    }

    fn add_value(
        &mut self,
        timestamp: Option<i64>,
        number: u64,
        families: &mut Families,
        sink: &mut Sink,
    ) -> Result<()> {
        let Some((family, counter)) = self.family(number, families)? else { return Ok(()) };
        let qualifier = split_column(&self.column).1;
        sink.value(&self.row, (family, qualifier), timestamp, &self.value, counter, number)
    }

    fn add_marker(
        &mut self,
        word: &[u8],
        timestamp: Option<i64>,
        number: u64,
        families: &mut Families,
        sink: &mut Sink,
    ) -> Result<()> {
        let has_qualifier = self.column.contains(&b':');
        // `DELETE` alone means as much as the line names; SELECT … RETURN_DELETES prints blanks.
        let kind = match word {
            b"DELETE" if self.column.is_empty() => CellKind::DeleteRow,
            b"DELETE" if !has_qualifier => CellKind::DeleteFamily,
            b"DELETE" => CellKind::DeleteCell,
            b"DELETE_ROW" | b"DELETE ROW" => CellKind::DeleteRow,
            b"DELETE_COLUMN_FAMILY" | b"DELETE COLUMN FAMILY" => CellKind::DeleteFamily,
            b"DELETE_CELL" | b"DELETE CELL" => CellKind::DeleteCell,
            b"DELETE_CELL_VERSION" | b"DELETE CELL VERSION" => CellKind::DeleteVersion,
            _ => {
                sink.warn(number, format_args!("unknown marker in the last field"));
                return Ok(());
            }
        };
        if kind == CellKind::DeleteRow {
            return sink.marker(&self.row, (WHOLE_ROW, b""), timestamp, kind);
        }
        let Some((family, _)) = self.family(number, families)? else { return Ok(()) };
        let qualifier = match kind {
            CellKind::DeleteFamily => &[],
            _ => split_column(&self.column).1,
        };
        sink.marker(&self.row, (family, qualifier), timestamp, kind)
    }

    /// The family of the line and whether it is a counter; none if it is unknown and ignored.
    fn family(&mut self, number: u64, families: &mut Families) -> Result<Option<(FamilyId, bool)>> {
        let name = split_column(&self.column).0;
        if let Some((known, id, counter)) = &self.known
            && known == name
        {
            return Ok(Some((*id, *counter)));
        }
        if let Some(id) = families.id(name)? {
            let counter = families.is_counter(id);
            self.known = Some((name.to_vec(), id, counter));
            return Ok(Some((id, counter)));
        }
        if self.ignore_unknown {
            return Ok(None);
        }
        let name = String::from_utf8_lossy(name);
        Err(Error::not_found(format!("no column family '{name}'"))
            .at(Place::Line(number))
            .with_sqlstate("42703")
            .with_hint("IGNORE_UNKNOWN_COLUMNS passes over cells of other columns"))
    }
}

fn copy(field: &[u8], escaped: bool, into: &mut Vec<u8>) {
    into.clear();
    if escaped { unescape(field, into) } else { into.extend_from_slice(field) }
}
