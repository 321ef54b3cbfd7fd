//! All rows of small tables, kept as the batch that a report gives, until the table changes.
//!
//! Statements join reports with small tables, and need all of their rows each time. **Invariant:** a batch is that of one
//! version of its table and of the fresh rows that this lacks. It takes its place in the cache as chunks do.

use arrow_array::RecordBatch;
use stoa_ingest::FreshRows;
use stoa_table::Table;

/// All rows of some columns of a table.
pub(crate) struct SmallTable {
    /// The columns, by field id.
    fields: Vec<i32>,
    version: Version,
    batch: RecordBatch,
}

/// What the rows of a table depend on.
#[derive(PartialEq, Eq)]
pub(crate) struct Version {
    metadata_location: String,
    fresh_rows: u64,
    fresh_end: u64,
}

impl Version {
    /// That of a version of a table and the fresh rows that it lacks.
    pub(crate) fn of(table: &Table, fresh: &FreshRows) -> Self {
        Self {
            metadata_location: table.metadata_location().to_owned(),
            fresh_rows: fresh.rows(),
            fresh_end: if fresh.is_empty() { 0 } else { fresh.end_position() },
        }
    }
}

impl SmallTable {
    /// The rows of a version.
    pub(crate) fn new(fields: Vec<i32>, version: Version, batch: RecordBatch) -> Self {
        Self { fields, version, batch }
    }

    /// The rows, if they are those of these columns in this version.
    pub(crate) fn batch_of(&self, fields: &[i32], version: &Version) -> Option<&RecordBatch> {
        (self.fields == fields && self.version == *version).then_some(&self.batch)
    }

    /// Its memory, bytes, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.batch.get_array_memory_size() + 4 * self.fields.len() + size_of::<Self>()
    }
}
