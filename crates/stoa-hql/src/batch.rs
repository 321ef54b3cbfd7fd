//! Cells in columns: the seam between the language and a store.
//!
//! A batch is an Arrow record batch of the fixed schema [`cell_schema`], no nulls:
//!
//! | column | Arrow | Iceberg | holds |
//! |---|---|---|---|
//! | `row` | Binary | binary | the row key |
//! | `family` | Int32 | int | the family's id, 0–255 |
//! | `qualifier` | Binary | binary | the column qualifier |
//! | `timestamp` | Int64 | long | nanoseconds since 1970-01-01 UTC |
//! | `value` | Binary | binary | the value |
//! | `kind` | Int32 | int | [`CellKind::code`] |
//!
//! Family and kind are as wide as the narrowest integer of Iceberg, so that a batch goes into a
//! table file as it is. ORC keeps minima and maxima of strings but not of binary columns: a store
//! that wants to leave out files by row stores rows that are UTF-8 as strings.
//!
//! **Invariants:** a [`CellBatch`] has the schema above, no nulls, families 0–255 and kinds that
//! exist. It is sorted only where its source says so.
//!
//! Not here: the order of cells (`cell`), merging (`read`).

mod builder;
mod order;
mod run;
mod sort;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, BinaryArray, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_error::{Error, Result};

pub use builder::CellBatchBuilder;
pub use run::SortedRun;
pub use sort::{is_sorted, sort_cells};

use crate::cell::{CellKind, CellRef, FamilyId};

/// Name of the column with the row key.
pub const ROW: &str = "row";
/// Name of the column with the family id.
pub const FAMILY: &str = "family";
/// Name of the column with the qualifier.
pub const QUALIFIER: &str = "qualifier";
/// Name of the column with the timestamp.
pub const TIMESTAMP: &str = "timestamp";
/// Name of the column with the value.
pub const VALUE: &str = "value";
/// Name of the column with the kind's code.
pub const KIND: &str = "kind";

/// Cells after which a builder's batch is handed on.
pub const BATCH_CELLS: usize = 32 << 10;
/// Bytes of keys and values after which a builder's batch is handed on.
pub const BATCH_BYTES: usize = 8 << 20;

/// The schema of every batch of cells.
pub fn cell_schema() -> SchemaRef {
    static SCHEMA: OnceLock<SchemaRef> = OnceLock::new();
    let make = || {
        let field = |name: &str, kind| Field::new(name, kind, false);
        Arc::new(Schema::new(vec![
            field(ROW, DataType::Binary),
            field(FAMILY, DataType::Int32),
            field(QUALIFIER, DataType::Binary),
            field(TIMESTAMP, DataType::Int64),
            field(VALUE, DataType::Binary),
            field(KIND, DataType::Int32),
        ]))
    };
    Arc::clone(SCHEMA.get_or_init(make))
}

/// A batch of cells. Cloning and slicing share the memory.
#[derive(Clone, Debug)]
pub struct CellBatch {
    rows: BinaryArray,
    families: Int32Array,
    qualifiers: BinaryArray,
    timestamps: Int64Array,
    values: BinaryArray,
    kinds: Int32Array,
    /// Where they are not the timestamps.
    revisions: Option<Int64Array>,
    /// Whether no cell written before can have one of the timestamps.
    new_timestamps: bool,
}

/// The columns of a [`CellBatch`], all of one length and without nulls.
#[derive(Clone, Debug)]
pub struct CellColumns {
    /// Row keys.
    pub rows: BinaryArray,
    /// Ids of families, 0–255.
    pub families: Int32Array,
    /// Qualifiers.
    pub qualifiers: BinaryArray,
    /// Nanoseconds since 1970-01-01 UTC.
    pub timestamps: Int64Array,
    /// Values; empty in markers.
    pub values: BinaryArray,
    /// [`CellKind::code`]s.
    pub kinds: Int32Array,
    /// [`CellRef::revision`]s, where they are not the timestamps.
    pub revisions: Option<Int64Array>,
}

impl CellBatch {
    /// Takes a record batch as cells.
    ///
    /// # Errors
    /// [`Corrupt`](stoa_error::ErrorKind::Corrupt) if columns, types, families or kinds are not
    /// those of [`cell_schema`], or something is NULL.
    pub fn try_new(batch: &RecordBatch) -> Result<Self> {
        Self::of_columns(CellColumns {
            rows: column(batch, ROW)?,
            families: column(batch, FAMILY)?,
            qualifiers: column(batch, QUALIFIER)?,
            timestamps: column(batch, TIMESTAMP)?,
            values: column(batch, VALUE)?,
            kinds: column(batch, KIND)?,
            revisions: None,
        })
    }

    /// Takes columns as cells.
    ///
    /// # Errors
    /// [`Corrupt`](stoa_error::ErrorKind::Corrupt) if lengths differ, something is NULL, or families
    /// or kinds do not exist.
    pub fn of_columns(columns: CellColumns) -> Result<Self> {
        let CellColumns { rows, families, qualifiers, timestamps, values, kinds, revisions } =
            columns;
        let arrays: [&dyn Array; 6] = [&rows, &families, &qualifiers, &timestamps, &values, &kinds];
        let arrays = arrays.into_iter().chain(revisions.as_ref().map(|array| array as &dyn Array));
        if arrays.into_iter().any(|array| array.len() != rows.len() || array.null_count() > 0) {
            return Err(Error::corrupt("columns of cells differ in length or hold NULL"));
        }
        if let Some(family) = families.values().iter().find(|family| !(0..=255).contains(*family)) {
            return Err(Error::corrupt(format!("cells hold the family id {family}, past 255")));
        }
        let exists = |kind: &&i32| CellKind::from_code(**kind).is_some();
        if let Some(kind) = kinds.values().iter().find(|kind| !exists(kind)) {
            return Err(Error::corrupt(format!("cells hold the unknown kind {kind}")));
        }
        let new_timestamps = false;
        Ok(Self {
            rows,
            families,
            qualifiers,
            timestamps,
            values,
            kinds,
            revisions,
            new_timestamps,
        })
    }

    /// The columns; shares the memory.
    pub fn columns(&self) -> CellColumns {
        CellColumns {
            rows: self.rows.clone(),
            families: self.families.clone(),
            qualifiers: self.qualifiers.clone(),
            timestamps: self.timestamps.clone(),
            values: self.values.clone(),
            kinds: self.kinds.clone(),
            revisions: self.revisions.clone(),
        }
    }

    /// Notes that all timestamps are fresh from a store's source, so that no cell written before can
    /// be equal to one of these.
    #[must_use]
    pub fn with_new_timestamps(self) -> Self {
        Self { new_timestamps: true, ..self }
    }

    /// Whether all timestamps are known to be new; if not, some may have been given by hand.
    pub fn has_new_timestamps(&self) -> bool {
        self.new_timestamps
    }

    /// All cells with this revision.
    #[must_use]
    pub fn with_revision(self, revision: i64) -> Self {
        let revisions = Some(Int64Array::from_value(revision, self.len()));
        Self { revisions, ..self }
    }

    /// The [revision](CellRef::revision) of cell `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len), as indexing a slice does.
    pub fn revision(&self, index: usize) -> i64 {
        self.revisions.as_ref().unwrap_or(&self.timestamps).value(index)
    }

    /// The batch as Arrow sees it; shares the memory.
    ///
    /// # Errors
    /// Never for batches of this crate; Arrow checks the lengths again.
    pub fn to_record_batch(&self) -> Result<RecordBatch> {
        let columns: Vec<Arc<dyn Array>> = vec![
            Arc::new(self.rows.clone()),
            Arc::new(self.families.clone()),
            Arc::new(self.qualifiers.clone()),
            Arc::new(self.timestamps.clone()),
            Arc::new(self.values.clone()),
            Arc::new(self.kinds.clone()),
        ];
        RecordBatch::try_new(cell_schema(), columns)
            .map_err(|e| Error::internal("columns of cells do not fit together").with_source(e))
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cell at `index`, from 0.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len), as indexing a slice does.
    pub fn cell(&self, index: usize) -> CellRef<'_> {
        CellRef {
            row: self.rows.value(index),
            family: family(self.families.value(index)),
            qualifier: self.qualifiers.value(index),
            timestamp: self.timestamps.value(index),
            value: self.values.value(index),
            kind: self.kind(index),
            revision: self.revision(index),
        }
    }

    /// The row key of cell `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len), as indexing a slice does.
    #[inline]
    pub fn row(&self, index: usize) -> &[u8] {
        self.rows.value(index)
    }

    /// All cells in their order.
    pub fn iter(&self) -> impl Iterator<Item = CellRef<'_>> {
        (0..self.len()).map(|index| self.cell(index))
    }

    /// The cells of `range`; shares the memory.
    ///
    /// # Panics
    /// If `range` goes beyond the batch, as slicing does.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let (offset, length) = (range.start, range.len());
        Self {
            rows: self.rows.slice(offset, length),
            families: self.families.slice(offset, length),
            qualifiers: self.qualifiers.slice(offset, length),
            timestamps: self.timestamps.slice(offset, length),
            values: self.values.slice(offset, length),
            kinds: self.kinds.slice(offset, length),
            revisions: self.revisions.as_ref().map(|array| array.slice(offset, length)),
            new_timestamps: self.new_timestamps,
        }
    }

    /// Bytes of memory that the cells take, if nothing else shares their buffers.
    pub fn memory_bytes(&self) -> usize {
        // Three offsets, family, timestamp, kind; maybe a revision.
        let fixed = if self.revisions.is_some() { 36 } else { 28 };
        self.data_bytes() + self.len() * fixed
    }

    /// Whether some cell hides others.
    pub fn has_deletes(&self) -> bool {
        self.kinds.values().iter().any(|kind| *kind != CellKind::INSERT_CODE)
    }

    /// Bytes of row keys.
    pub fn row_bytes(&self) -> usize {
        contiguous(&self.rows).len()
    }

    /// Bytes of values.
    pub fn value_bytes(&self) -> usize {
        contiguous(&self.values).len()
    }

    /// Bytes of row keys, qualifiers and values.
    pub fn data_bytes(&self) -> usize {
        self.row_bytes() + contiguous(&self.qualifiers).len() + self.value_bytes()
    }

    /// All row keys, qualifiers or values one behind the other: for a quick look at their bytes.
    pub(crate) fn contiguous(&self) -> [&[u8]; 3] {
        [contiguous(&self.rows), contiguous(&self.qualifiers), contiguous(&self.values)]
    }

    /// Timestamps in the order of the cells.
    pub fn timestamps(&self) -> &[i64] {
        self.timestamps.values()
    }

    fn kind(&self, index: usize) -> CellKind {
        // Checked when the batch was made.
        CellKind::from_code(self.kinds.value(index)).unwrap_or(CellKind::Insert)
    }
}

fn family(id: i32) -> FamilyId {
    // Checked when the batch was made.
    FamilyId::try_from(id).unwrap_or(FamilyId::MAX)
}

fn contiguous(array: &BinaryArray) -> &[u8] {
    let offsets = array.value_offsets();
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => &array.value_data()[*first as usize..*last as usize],
        _ => &[],
    }
}

fn column<A: Array + Clone + 'static>(batch: &RecordBatch, name: &str) -> Result<A> {
    let array = batch
        .column_by_name(name)
        .ok_or_else(|| Error::corrupt(format!("cells have no column {name}")))?;
    if array.null_count() > 0 {
        return Err(Error::corrupt(format!("column {name} of cells holds NULL")));
    }
    array.as_any().downcast_ref::<A>().cloned().ok_or_else(|| {
        Error::corrupt(format!("column {name} of cells is of type {}", array.data_type()))
    })
}

#[cfg(test)]
mod tests;
