//! Arrow batches to `DataRow` messages and to the rows of `COPY`.
//!
//! In: a schema, a format (text or binary) per column, batches. Out: bytes appended to a buffer.
//!
//! ```text
//!  batch ─► one typed Column per field (dispatch on the type once per batch)
//!        ─► per row: 'D' length count { length value }…   straight into the output buffer
//! ```
//!
//! **Invariant:** a value's bytes depend on the column's type, its format and the session's zone
//! only. Nothing is allocated per cell, except for JSON text in arrays and for wide decimals.
//! Not here: when to flush (see `wire`), which types exist (see `types`).

mod column;
mod copy_binary;
mod copy_data;
mod copy_rows;
mod copy_text;
mod json;
mod list;
mod values;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use stoa_error::{Error, Result};

use stoa_sql::intervals::IntervalStyle;

use crate::format::Format;
use crate::types::zone::Zone;
use crate::types::{PgType, field_type};

use column::Column;
pub(crate) use copy_binary::CopyBinaryEncoder;
pub(crate) use copy_rows::CopyEncoder;
pub(crate) use copy_text::{CopyOutFormat, CopyTextEncoder};

/// What of the session shows in values' text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// The zone that instants are written in.
    pub(crate) zone: Zone,
    /// How intervals are written.
    pub(crate) intervals: IntervalStyle,
}

/// Writes the rows of one result.
#[derive(Debug)]
pub(crate) struct RowEncoder {
    schema: SchemaRef,
    types: Vec<PgType>,
    formats: Vec<Format>,
    style: Style,
}

/// The columns of one batch, ready to be written row by row.
#[derive(Debug)]
pub(crate) struct EncodedColumns {
    columns: Vec<Column>,
    /// How many there are, as messages say it.
    count: u16,
    rows: usize,
}

impl RowEncoder {
    /// For rows of `schema`; `formats` has one entry per column.
    pub(crate) fn new(schema: SchemaRef, formats: Vec<Format>, style: Style) -> Self {
        let types = schema.fields().iter().map(|field| field_type(field)).collect();
        Self { schema, types, formats, style }
    }

    /// The columns' wire types.
    pub(crate) fn types(&self) -> &[PgType] {
        &self.types
    }

    /// The columns' formats.
    pub(crate) fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// The columns.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Prepares a batch.
    ///
    /// # Errors
    /// The batch has other columns than the schema, or more than a message can have.
    pub(crate) fn columns(&self, batch: &RecordBatch) -> Result<EncodedColumns> {
        if batch.num_columns() != self.schema.fields().len() {
            return Err(Error::internal(format!(
                "a batch has {} columns, its schema {}",
                batch.num_columns(),
                self.schema.fields().len()
            )));
        }
        let count = u16::try_from(batch.num_columns())
            .map_err(|_| Error::unsupported("a result has more than 65535 columns"))?;
        let fields = self.schema.fields().iter().zip(&self.formats);
        let columns = fields
            .zip(batch.columns())
            .map(|((field, format), array)| Column::new(field, array, *format, self.style))
            .collect::<Result<_>>()?;
        Ok(EncodedColumns { columns, count, rows: batch.num_rows() })
    }
}

impl EncodedColumns {
    /// Rows in the batch.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Appends `DataRow` messages for the rows of `range` until `out` holds `bytes_max` or more;
    /// returns the first row not written.
    ///
    /// # Errors
    /// A row needs more than the 2 GiB a message can have; nothing of it is appended.
    pub(crate) fn put_rows(
        &self,
        range: Range<usize>,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        for row in range.clone() {
            if out.len() >= bytes_max {
                return Ok(row);
            }
            let start = out.len();
            out.extend_from_slice(&[b'D', 0, 0, 0, 0]);
            self.put_fields(row, out);
            let Ok(length) = i32::try_from(out.len() - start - 1) else {
                out.truncate(start);
                return Err(row_too_large());
            };
            out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        }
        Ok(range.end)
    }

    /// Appends the number of columns, and each column's length and value.
    fn put_fields(&self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.count.to_be_bytes());
        for column in &self.columns {
            column.put_field(row, out);
        }
    }

    fn column(&self, index: usize) -> Option<&Column> {
        self.columns.get(index)
    }
}

fn row_too_large() -> Error {
    Error::unsupported("a row is larger than 2 GiB")
        .with_sqlstate("54000")
        .with_hint("select fewer columns")
}

/// Makes an encoder with all columns in one format.
pub(crate) fn uniform(schema: SchemaRef, format: Format, style: Style) -> Arc<RowEncoder> {
    let formats = vec![format; schema.fields().len()];
    Arc::new(RowEncoder::new(schema, formats, style))
}

#[cfg(test)]
mod tests;
