//! A row: the columns of a batch bound to writers once, then row after row.

use arrow_array::RecordBatch;
use stoa_error::Result;
use stoa_orc::{TypeKind, TypeTree};

use super::RowFormat;
use super::nested::Fields;
use super::values::{Put, bind_value};

/// Knows the file's type and the format.
pub(super) struct RowWriter {
    format: RowFormat,
    /// Whether the file's type is no struct: a row is a bare value.
    is_bare: bool,
}

impl RowWriter {
    pub(super) fn new(types: &TypeTree, format: RowFormat) -> Self {
        let is_bare = types.types()[0].kind != TypeKind::Struct;
        Self { format, is_bare }
    }

    /// Chooses a writer for each column.
    pub(super) fn bind<'a>(&self, batch: &'a RecordBatch) -> Result<BatchRows<'a>> {
        match batch.columns() {
            [value] if self.is_bare => bind_value(value.as_ref(), self.format).map(BatchRows::Bare),
            columns => {
                let schema = batch.schema_ref();
                Fields::bind(schema.fields(), columns, self.format).map(BatchRows::Struct)
            }
        }
    }
}

/// Rows of a batch.
pub(super) enum BatchRows<'a> {
    Bare(Put<'a>),
    Struct(Fields<'a>),
}

impl BatchRows<'_> {
    /// Appends a row and the end of its line.
    #[inline]
    pub(super) fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Bare(put) => put(row, out),
            Self::Struct(fields) => fields.write(row, out),
        }
        out.push(b'\n');
    }
}
