//! Rows of `COPY … TO STDOUT` in the format that it asks for.

use arrow_array::RecordBatch;
use stoa_error::Result;

use super::{CopyBinaryEncoder, CopyTextEncoder, EncodedColumns};

/// Writes `CopyData` messages, one per row.
#[derive(Debug)]
pub(crate) enum CopyEncoder {
    Text(CopyTextEncoder),
    Binary(CopyBinaryEncoder),
}

impl CopyEncoder {
    /// Prepares a batch.
    pub(crate) fn columns(&self, batch: &RecordBatch) -> Result<EncodedColumns> {
        match self {
            Self::Text(encoder) => encoder.columns(batch),
            Self::Binary(encoder) => encoder.columns(batch),
        }
    }

    /// Appends what stands before all rows in a message of its own.
    pub(crate) fn put_header(&mut self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Text(encoder) => encoder.put_header(out),
            Self::Binary(_) => Ok(()),
        }
    }

    /// Appends one row.
    ///
    /// # Errors
    /// The row is too large for a message (54000); nothing of it is appended.
    pub(crate) fn put_row(
        &mut self,
        columns: &EncodedColumns,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self {
            Self::Text(encoder) => encoder.put_row(columns, row, out),
            Self::Binary(encoder) => encoder.put_row(columns, row, out),
        }
    }

    /// Appends what stands after all rows.
    pub(crate) fn put_trailer(&mut self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Text(_) => Ok(()),
            Self::Binary(encoder) => encoder.put_trailer(out),
        }
    }
}
