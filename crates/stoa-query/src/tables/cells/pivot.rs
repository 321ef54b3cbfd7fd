//! Cells in the order of rows, turned into rows with a column per family.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Builder, RecordBatch, StringBuilder};
use arrow::datatypes::SchemaRef;
use stoa_error::{Error, Result};
use stoa_hql::{CellBatch, CellRef, FamilyId};

/// Where a column's values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The row key.
    Key,
    /// The newest value of a family, as text.
    Text(FamilyId),
    /// The value of a family of counters.
    Counter(FamilyId),
}

/// Collects the cells of a row until the next row begins.
pub(super) struct Pivot {
    schema: SchemaRef,
    columns: Vec<Column>,
    /// Column of each family, `usize::MAX` for those that are not wanted.
    places: [usize; 256],
    key: Vec<u8>,
    /// Whether `key` is a row.
    open: bool,
    rows: usize,
}

struct Column {
    source: Source,
    values: Builder,
    /// Timestamp of the newest cell of this row.
    newest: Option<i64>,
    value: Vec<u8>,
}

enum Builder {
    Text(StringBuilder),
    Number(Int64Builder),
}

impl Pivot {
    pub(super) fn new(schema: SchemaRef, sources: &[Source]) -> Self {
        let mut places = [usize::MAX; 256];
        for (place, source) in sources.iter().enumerate() {
            if let Source::Text(family) | Source::Counter(family) = source {
                places[usize::from(*family)] = place;
            }
        }
        let columns = sources.iter().map(|source| Column {
            source: *source,
            values: match source {
                Source::Counter(_) => Builder::Number(Int64Builder::new()),
                _ => Builder::Text(StringBuilder::new()),
            },
            newest: None,
            value: Vec::new(),
        });
        let columns = columns.collect();
        Self { schema, columns, places, key: Vec::new(), open: false, rows: 0 }
    }

    /// Rows that are complete.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn push(&mut self, batch: &CellBatch) {
        batch.iter().for_each(|cell| self.push_cell(&cell));
    }

    fn push_cell(&mut self, cell: &CellRef<'_>) {
        if !self.open || cell.row != self.key {
            self.end_row();
            self.key.clear();
            self.key.extend_from_slice(cell.row);
            self.open = true;
        }
        let Some(column) = self.columns.get_mut(self.places[usize::from(cell.family)]) else {
            return;
        };
        if column.newest.is_none_or(|newest| cell.timestamp > newest) {
            column.newest = Some(cell.timestamp);
            column.value.clear();
            column.value.extend_from_slice(cell.value);
        }
    }

    /// Completes the last row.
    pub(super) fn end_row(&mut self) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        self.rows += 1;
        for column in &mut self.columns {
            let is_there = column.newest.take().is_some() || column.source == Source::Key;
            let bytes = if column.source == Source::Key { &self.key } else { &column.value };
            match &mut column.values {
                Builder::Text(values) if is_there => {
                    values.append_value(String::from_utf8_lossy(bytes));
                }
                Builder::Text(values) => values.append_null(),
                Builder::Number(values) => {
                    let text = std::str::from_utf8(bytes).ok().filter(|_| is_there);
                    values.append_option(text.and_then(|text| text.trim().parse().ok()));
                }
            }
        }
    }

    /// The complete rows.
    ///
    /// # Errors
    /// `Internal`, which would be a bug here.
    pub(super) fn take(&mut self) -> Result<RecordBatch> {
        let rows = std::mem::take(&mut self.rows);
        let columns = self.columns.iter_mut().map(|column| -> ArrayRef {
            match &mut column.values {
                Builder::Text(values) => Arc::new(values.finish()),
                Builder::Number(values) => Arc::new(values.finish()),
            }
        });
        let columns: Vec<ArrayRef> = columns.collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|e| Error::internal("rows of cells do not fit their columns").with_source(e))
    }
}
