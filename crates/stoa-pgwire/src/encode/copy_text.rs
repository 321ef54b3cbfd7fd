//! Rows as lines of `COPY … TO STDOUT`, in PostgreSQL's text and CSV formats.

use std::sync::Arc;

use arrow_array::RecordBatch;
use stoa_error::Result;

use super::column::Column;
use super::copy_data::{begin, finish};
use super::{EncodedColumns, RowEncoder};

/// How lines look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyOutFormat {
    /// CSV instead of text.
    pub(crate) csv: bool,
    /// Between columns.
    pub(crate) delimiter: u8,
    /// What stands for NULL.
    pub(crate) null_text: String,
    /// Around CSV values that need it.
    pub(crate) quote: u8,
    /// Before a quote within quotes.
    pub(crate) escape: u8,
    /// Whether the first line names the columns.
    pub(crate) header: bool,
    /// Whether all CSV values but NULL are quoted.
    pub(crate) force_quote: bool,
}

impl CopyOutFormat {
    /// PostgreSQL's defaults for text.
    pub(crate) fn text() -> Self {
        Self {
            csv: false,
            delimiter: b'\t',
            null_text: "\\N".to_owned(),
            quote: b'"',
            escape: b'"',
            header: false,
            force_quote: false,
        }
    }

    /// PostgreSQL's defaults for CSV.
    pub(crate) fn csv() -> Self {
        Self { csv: true, delimiter: b',', null_text: String::new(), ..Self::text() }
    }
}

/// Writes `CopyData` messages, one per row.
#[derive(Debug)]
pub(crate) struct CopyTextEncoder {
    rows: Arc<RowEncoder>,
    format: CopyOutFormat,
    cell: Vec<u8>,
}

impl CopyTextEncoder {
    /// For rows of the encoder's schema, whose formats must be text.
    pub(crate) fn new(rows: Arc<RowEncoder>, format: CopyOutFormat) -> Self {
        Self { rows, format, cell: Vec::new() }
    }

    /// Prepares a batch.
    pub(crate) fn columns(&self, batch: &RecordBatch) -> Result<EncodedColumns> {
        self.rows.columns(batch)
    }

    /// Appends the line with the columns' names, if the format has one.
    pub(crate) fn put_header(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if !self.format.header {
            return Ok(());
        }
        let start = begin(out);
        let rows = Arc::clone(&self.rows);
        for (index, field) in rows.schema().fields().iter().enumerate() {
            if index > 0 {
                out.push(self.format.delimiter);
            }
            self.cell.clear();
            self.cell.extend_from_slice(field.name().as_bytes());
            self.put_cell(out);
        }
        end_line(start, out)
    }

    /// Appends one row.
    ///
    /// # Errors
    /// The row is too large for a message; nothing of it is appended.
    pub(crate) fn put_row(
        &mut self,
        columns: &EncodedColumns,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = begin(out);
        for index in 0..self.rows.schema().fields().len() {
            if index > 0 {
                out.push(self.format.delimiter);
            }
            match columns.column(index) {
                Some(column) if !column.is_null(row) => self.put_value(column, row, out),
                _ => out.extend_from_slice(self.format.null_text.as_bytes()),
            }
        }
        end_line(start, out)
    }

    fn put_value(&mut self, column: &Column, row: usize, out: &mut Vec<u8>) {
        self.cell.clear();
        column.values().put_text(row, &mut self.cell);
        self.put_cell(out);
    }

    fn put_cell(&self, out: &mut Vec<u8>) {
        if self.format.csv {
            self.put_csv(out);
        } else {
            self.put_escaped(out);
        }
    }

    fn put_csv(&self, out: &mut Vec<u8>) {
        let format = &self.format;
        let needs_quotes = format.force_quote
            || self.cell == format.null_text.as_bytes()
            || self.cell == b"\\."
            || self.cell.iter().any(|byte| {
                *byte == format.delimiter || *byte == format.quote || matches!(byte, b'\n' | b'\r')
            });
        if !needs_quotes {
            out.extend_from_slice(&self.cell);
            return;
        }
        out.push(format.quote);
        for byte in &self.cell {
            if *byte == format.quote || *byte == format.escape {
                out.push(format.escape);
            }
            out.push(*byte);
        }
        out.push(format.quote);
    }

    fn put_escaped(&self, out: &mut Vec<u8>) {
        for byte in &self.cell {
            let escaped = match byte {
                b'\\' => b'\\',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0x08 => b'b',
                0x0b => b'v',
                0x0c => b'f',
                other if *other == self.format.delimiter => *other,
                other => {
                    out.push(*other);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', escaped]);
        }
    }
}

fn end_line(start: usize, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'\n');
    finish(start, out)
}
