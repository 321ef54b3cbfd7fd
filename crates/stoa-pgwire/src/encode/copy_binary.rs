//! Rows of `COPY … TO STDOUT` in PostgreSQL's binary format.
//!
//! The header stands before the first row in its message, and the trailer in one of its own, as
//! PostgreSQL sends them: there are clients that count on it.

use std::sync::Arc;

use arrow_array::RecordBatch;
use stoa_error::Result;

use super::copy_data::{begin, finish};
use super::{EncodedColumns, RowEncoder};

/// Signature, no flags, no extension.
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Writes `CopyData` messages, one per row.
#[derive(Debug)]
pub(crate) struct CopyBinaryEncoder {
    rows: Arc<RowEncoder>,
    has_begun: bool,
}

impl CopyBinaryEncoder {
    /// For rows of the encoder's schema, whose formats must be binary.
    pub(crate) fn new(rows: Arc<RowEncoder>) -> Self {
        Self { rows, has_begun: false }
    }

    /// Prepares a batch.
    pub(crate) fn columns(&self, batch: &RecordBatch) -> Result<EncodedColumns> {
        self.rows.columns(batch)
    }

    /// Appends one row, the first with the header before it.
    ///
    /// # Errors
    /// The row is too large for a message; nothing of it is appended.
    pub(crate) fn put_row(
        &mut self,
        columns: &EncodedColumns,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = self.begin(out);
        columns.put_fields(row, out);
        finish(start, out)
    }

    /// Appends what stands after the last row.
    pub(crate) fn put_trailer(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let start = self.begin(out);
        out.extend_from_slice(&TRAILER);
        finish(start, out)
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> usize {
        let start = begin(out);
        if !std::mem::replace(&mut self.has_begun, true) {
            out.extend_from_slice(HEADER);
        }
        start
    }
}
