//! Cells as lines.
//!
//! ```text
//! [revision FS] [timestamp FS] row FS family[:qualifier] FS value [FS marker]
//! ```
//! A marker for a row has no family and no separator in its place (so does Hypertable's).

use crate::batch::CellBatch;
use crate::cell::{CellKind, CellRef, FamilyId};
use crate::escape::escape;
use crate::schema::TableSchema;
use crate::time_text::{TimestampFormat, TimestampPrinter, Zone};

/// How cells are printed.
pub struct CellFormat {
    /// Family names by id.
    names: Vec<Vec<u8>>,
    separator: u8,
    escape: bool,
    keys_only: bool,
    revisions: bool,
    timestamps: bool,
    printer: TimestampPrinter,
}

impl CellFormat {
    /// Row, column and value of a table's cells, separated by TAB, escaped.
    pub fn new(schema: &TableSchema) -> Self {
        let mut names = vec![Vec::new(); usize::from(FamilyId::MAX) + 1];
        for family in schema.living() {
            names[usize::from(family.id)] = family.name.clone().into_bytes();
        }
        Self::with_names(names)
    }

    /// The same, with the names of families from id 1 on.
    pub(crate) fn of_names(names: Vec<Vec<u8>>) -> Self {
        let mut format = Self::with_names(Vec::new());
        format.set_names(names);
        format
    }

    /// Gives families other names, from id 1 on.
    pub(crate) fn set_names(&mut self, names: Vec<Vec<u8>>) {
        self.names = vec![Vec::new()];
        self.names.extend(names);
        self.names.resize(usize::from(FamilyId::MAX) + 1, Vec::new());
    }

    fn with_names(names: Vec<Vec<u8>>) -> Self {
        Self {
            names,
            separator: b'\t',
            escape: true,
            keys_only: false,
            revisions: false,
            timestamps: false,
            printer: TimestampPrinter::new(TimestampFormat::Default, Zone::Utc),
        }
    }

    /// Separates fields by this byte; a TAB within them is then not escaped.
    #[must_use]
    pub fn with_separator(mut self, separator: u8) -> Self {
        self.separator = separator;
        self
    }

    /// Prints bytes as they are.
    #[must_use]
    pub fn without_escapes(mut self) -> Self {
        self.escape = false;
        self
    }

    /// Prints rows only, a line per cell.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// Prints timestamps first.
    #[must_use]
    pub fn with_timestamps(mut self, format: TimestampFormat, zone: Zone) -> Self {
        self.timestamps = true;
        self.printer = TimestampPrinter::new(format, zone);
        self
    }

    /// Prints revisions before everything else. A cell's revision is its timestamp in nanoseconds:
    /// Stoa has no other (Hypertable's differs where a writer sets the timestamp).
    #[must_use]
    pub fn with_revisions(mut self) -> Self {
        self.revisions = true;
        self
    }

    /// The line that files begin with.
    pub fn header(&self) -> Vec<u8> {
        let mut names = Vec::new();
        names.extend(self.revisions.then_some("revision"));
        names.extend(self.timestamps.then_some("timestamp"));
        names.push("row");
        if !self.keys_only {
            names.extend(["column", "value"]);
        }
        let separator = char::from(self.separator).to_string();
        format!("#{}\n", names.join(&separator)).into_bytes()
    }

    /// Appends the lines of a batch to `out`.
    pub fn write(&mut self, batch: &CellBatch, out: &mut Vec<u8>) {
        out.reserve(batch.data_bytes() + 16 * batch.len());
        if self.escape && self.has_special_bytes(batch) {
            let tab = self.separator == b'\t';
            let escaped = |bytes: &[u8], out: &mut Vec<u8>| escape(bytes, tab, out);
            batch.iter().for_each(|cell| self.write_cell(&cell, escaped, out));
        } else {
            let plain = |bytes: &[u8], out: &mut Vec<u8>| out.extend_from_slice(bytes);
            batch.iter().for_each(|cell| self.write_cell(&cell, plain, out));
        }
    }

    /// Whether some byte may have to be escaped; one look over all of them is cheaper than one
    /// at each.
    fn has_special_bytes(&self, batch: &CellBatch) -> bool {
        batch.contiguous().into_iter().any(|bytes| {
            memchr::memchr3(b'\\', b'\n', 0, bytes).is_some()
                || memchr::memchr(b'\t', bytes).is_some()
        })
    }

    #[inline]
    fn write_cell(
        &mut self,
        cell: &CellRef<'_>,
        text: impl Fn(&[u8], &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) {
        if self.revisions {
            crate::time_text::push_integer(cell.timestamp, out);
            out.push(self.separator);
        }
        if self.timestamps {
            self.printer.print(cell.timestamp, out);
            out.push(self.separator);
        }
        text(cell.row, out);
        if self.keys_only {
            out.push(b'\n');
            return;
        }
        out.push(self.separator);
        if cell.kind != CellKind::DeleteRow {
            out.extend_from_slice(&self.names[usize::from(cell.family)]);
            if !cell.qualifier.is_empty() {
                out.push(b':');
                text(cell.qualifier, out);
            }
            out.push(self.separator);
        }
        text(cell.value, out);
        if cell.kind.is_delete() {
            out.push(self.separator);
            out.extend_from_slice(cell.kind.label().as_bytes());
        }
        out.push(b'\n');
    }
}
