//! Large scans out of the chunks that reports use: columns that are scanned again and again are decoded once.
//!
//! ```text
//! row groups ─bounds─► those that may match ─chunks of judged columns─► rows ─chunks of the others─► batches
//! ```
//! In: a file of a snapshot, the columns wanted, a [`ScanFilter`]. Out: batches of these columns, of the rows that
//! the filter keeps. Conditions are judged on values as chunks keep them, packed or coded; only what is left becomes
//! arrays of the columns' types.
//!
//! **Invariants:** every row for which the filter may hold is there, in the order of the file. What a scan keeps is
//! within the cache's bound, and never takes the place of what reports keep.
//! Not here: files with deleted rows or defaults and files that are not ORC, which are read by `stoa-table`.

mod columns;
mod file_scan;
mod filter;
mod judge;
mod members;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use arrow_schema::SchemaRef;
use stoa_rangeio::ReadMetrics;
use stoa_table::{ScanFile, Table};

pub(crate) use columns::BatchColumns;
pub use file_scan::FileScan;
pub use filter::ScanFilter;
pub use judge::RowJudge;
pub use members::Members;

use crate::identity::is_remote;
use crate::report::{Column, ValueKind, kind_of};
use crate::reports::Reports;

/// What a scan wants of each file.
#[derive(Clone, Debug)]
pub struct ChunkScan {
    /// The version of the table.
    pub table: Table,
    /// Columns that are read, each once: first those of `schema`, in its order, then those that are only judged.
    pub columns: Vec<Column>,
    /// Names and types of the batches' columns.
    pub schema: SchemaRef,
    /// Which rows are wanted; its columns are indexes into `columns`.
    pub filter: ScanFilter,
    /// Most rows of a batch.
    pub batch_rows: usize,
    /// What may become known while the scan runs.
    pub judges: Vec<Arc<dyn RowJudge>>,
    /// Whether chunks that are read are kept ([`Reports::admits`]).
    pub keeps: bool,
}

impl ChunkScan {
    /// Bytes of the columns of `rows` rows as chunks keep them, about, at most.
    fn bytes(&self, rows: u64) -> u64 {
        let width = self.columns.iter().map(|column| match kind_of(&column.data_type) {
            Some(ValueKind::Text) => 32,
            Some(_) => 8,
            None => 0,
        });
        rows.saturating_mul(width.sum())
    }
}

impl Reports {
    /// Whether a scan of `files` is to go through chunks. It is if all of its columns have been scanned before, by another
    /// statement than the one of this number, and there is room for them beside what reports keep: what is scanned once, or
    /// is too large, would only pass through. Counts as a scan of these columns.
    pub fn admits(&self, scan: &ChunkScan, files: &[Arc<ScanFile>], statement: u64) -> bool {
        self.has_room(scan, files)
            && self.seen.again(
                scan.table.uuid(),
                scan.columns.iter().map(|c| c.field_id),
                statement,
            )
    }

    /// Whether a scan that is not admitted may go through chunks that are not kept, for who has a use for packed and coded
    /// values: of files that are near, since little is asked for at a time.
    pub fn passes(&self, scan: &ChunkScan, files: &[Arc<ScanFile>]) -> bool {
        self.has_room(scan, files) && !files.iter().any(|file| is_remote(&file.location))
    }

    /// Whether chunks of all columns can be, and would find room.
    fn has_room(&self, scan: &ChunkScan, files: &[Arc<ScanFile>]) -> bool {
        let rows = files.iter().map(|file| file.rows).sum();
        let can_be = !files.is_empty()
            && scan.columns.iter().all(|column| kind_of(&column.data_type).is_some());
        can_be && scan.bytes(rows) <= self.cache.scan_bytes_max()
    }

    /// Begins to scan a plain file: of `parts` about equal runs of its stripes, the one numbered `part`. `None` where
    /// its row groups are too large to be chunks. Reads are counted in `metrics`.
    ///
    /// # Errors
    /// Those of reading the file's tail and indexes.
    pub async fn scan_file(
        self: &Arc<Self>,
        scan: &Arc<ChunkScan>,
        file: &Arc<ScanFile>,
        (part, parts): (usize, usize),
        metrics: &Arc<ReadMetrics>,
    ) -> stoa_error::Result<Option<FileScan>> {
        FileScan::open(Arc::clone(self), Arc::clone(scan), file, (part, parts), metrics).await
    }
}
