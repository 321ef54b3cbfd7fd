//! What the readers of all formats share: batches of one file, their size, their share of the
//! progress.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use stoa_error::{Error, Result};

use crate::Progress;
use crate::column::Column;
use crate::rejects::Rejects;

/// Text bytes after which a batch is handed out even if it has fewer rows than asked for: wide
/// rows must not fill memory, and the offsets of a text column have 31 bits.
pub(crate) const BATCH_BYTES: usize = 32 << 20;

/// One opened file.
pub(crate) trait FileBatches: Send {
    /// The next batch of the target schema, `None` at the end.
    fn next_batch(&mut self, rejects: &mut Rejects) -> Result<Option<RecordBatch>>;
}

/// What a file that is not read front to back adds to the progress.
pub(crate) struct FileShare {
    progress: Arc<Progress>,
    before: u64,
    bytes: u64,
}

impl FileShare {
    /// The share of a file of `bytes` bytes where the files before it have `before`.
    pub fn new(progress: Arc<Progress>, before: u64, bytes: u64) -> Self {
        Self { progress, before, bytes }
    }

    /// Says that `done` of `total` (rows, batches) are read.
    pub fn advance(&self, done: u64, total: u64) {
        let share = u128::from(self.bytes) * u128::from(done.min(total)) / u128::from(total.max(1));
        self.progress.set_read(self.before + share as u64);
    }

    /// Says that `bytes` of the file are read.
    pub fn advance_to(&self, bytes: u64) {
        self.progress.set_read(self.before + bytes.min(self.bytes));
    }
}

/// The batch of what is in `columns`, or `None` if nothing is.
pub(crate) fn finish_batch(
    target: &SchemaRef,
    columns: &mut [Column],
    rows: usize,
) -> Result<Option<RecordBatch>> {
    if rows == 0 {
        return Ok(None);
    }
    let arrays = columns.iter_mut().map(Column::finish).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(target.clone(), arrays, &options)
        .map(Some)
        .map_err(|e| Error::internal("cannot build a batch of the loaded rows").with_source(e))
}
