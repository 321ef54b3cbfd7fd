//! The fresh rows that a reader of one version of a table adds to its data files.

use std::sync::{Arc, Weak};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use stoa_error::{Error, Result};
use stoa_table::Table;

use super::Chunk;
use crate::project::project;

/// Rows that are not in a data file of the table's version they were asked for, in log order.
/// Cheap to clone. They stay as they are, and in memory, for as long as this value lives.
#[derive(Clone, Debug)]
pub struct FreshRows {
    schema: SchemaRef,
    schema_id: i32,
    chunks: Arc<[Arc<Chunk>]>,
}

/// Which rows a batch of [`FreshRows`] has, for whoever keeps something that was made of them: they
/// never change. Does not keep them in memory.
#[derive(Clone, Debug)]
pub struct FreshBatchId {
    number: u64,
    chunk: Weak<Chunk>,
}

impl FreshBatchId {
    /// The same for the same rows, whatever version of the table shows them; not used again for
    /// others in this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether nobody will be given these rows any more: they are in a file, or in a larger batch.
    pub fn is_gone(&self) -> bool {
        self.chunk.strong_count() == 0
    }
}

impl FreshRows {
    pub(crate) fn new(schema: SchemaRef, schema_id: i32, chunks: Vec<Arc<Chunk>>) -> Self {
        Self { schema, schema_id, chunks: chunks.into() }
    }

    /// No rows of `table`.
    pub fn none(table: &Table) -> Self {
        Self::new(table.schema(), table.schema_id(), Vec::new())
    }

    /// Whether `table` knows the schemas of all these rows. A version that does not is older than
    /// some of them.
    ///
    /// # Errors
    /// `Unsupported` for types that cannot be read.
    pub(crate) fn has_schemas_of(&self, table: &Table) -> Result<bool> {
        let mut known = self.schema_id;
        for id in self.chunks.iter().map(|chunk| chunk.schema_id()) {
            if id != known && id != self.schema_id {
                if table.schema_by_id(id)?.is_none() {
                    return Ok(false);
                }
                known = id;
            }
        }
        Ok(true)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// How many there are.
    pub fn rows(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.rows() as u64).sum()
    }

    /// The position after the last of them; 0 where there are none.
    pub fn end_position(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.end()).max().unwrap_or(0)
    }

    /// Bytes of memory that they hold.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.bytes()).sum()
    }

    /// The number of batches.
    pub fn batch_count(&self) -> usize {
        self.chunks.len()
    }

    /// The columns of the batches: those of the version of the table that was asked for.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Batch `index` of [`Self::batch_count`]; `None` beyond. Rows written under an older schema
    /// are projected to this one: their new columns are NULL.
    ///
    /// # Errors
    /// `Internal` where rows of an older schema do not fit.
    pub fn batch(&self, index: usize) -> Option<Result<RecordBatch>> {
        self.chunks.get(index).map(|chunk| self.adapted(chunk))
    }

    /// Which rows batch `index` has; `None` beyond.
    pub fn batch_id(&self, index: usize) -> Option<FreshBatchId> {
        let chunk = self.chunks.get(index)?;
        Some(FreshBatchId { number: chunk.number(), chunk: Arc::downgrade(chunk) })
    }

    /// Rows of batch `index`; 0 beyond.
    pub fn batch_rows(&self, index: usize) -> usize {
        self.chunks.get(index).map_or(0, |chunk| chunk.rows())
    }

    /// All batches.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        self.chunks.iter().map(|chunk| self.adapted(chunk))
    }

    fn adapted(&self, chunk: &Chunk) -> Result<RecordBatch> {
        let batch = chunk.batch();
        if Arc::ptr_eq(batch.schema_ref(), &self.schema) {
            return Ok(batch.clone());
        }
        if chunk.schema_id() != self.schema_id {
            return project(batch, &self.schema);
        }
        // The same columns: only the object that describes them is another one.
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(
            |source| {
                Error::internal(format!("schema {} is not what it was", self.schema_id))
                    .with_source(source)
            },
        )
    }
}
