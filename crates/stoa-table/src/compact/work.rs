//! What a compaction works with and under: memory, I/O share, being told to stop, being watched.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use arrow_array::RecordBatch;
use futures::future::BoxFuture;
use stoa_error::{Error, ErrorKind, Result};

use super::CompactionGroup;
use crate::Table;

/// Under what a compaction works.
#[derive(Clone, Debug)]
pub struct CompactionWork {
    /// Bytes that it may hold, about: for windows of row groups of every run, and for the stripe
    /// being written, which is made smaller than the table asks for if it takes more than this. One
    /// row group and the dictionaries of one stripe per run are held even if that is more.
    pub memory_max_bytes: usize,
    /// Asked before every read.
    pub throttle: Option<Arc<dyn Throttle>>,
    /// Ends the work early.
    pub cancel: CancelToken,
    /// Counts what was done.
    pub progress: Arc<CompactionProgress>,
    /// Decides about rows while they are merged.
    pub hooks: Option<Arc<dyn MergeHooks>>,
}

impl Default for CompactionWork {
    fn default() -> Self {
        Self {
            memory_max_bytes: 256 << 20,
            throttle: None,
            cancel: CancelToken::default(),
            progress: Arc::default(),
            hooks: None,
        }
    }
}

/// Gives background work its share of the disk.
pub trait Throttle: Send + Sync + fmt::Debug {
    /// Comes back when another `bytes` may be read and as many written.
    fn take(&self, bytes: u64) -> BoxFuture<'_, ()>;
}

/// Tells work to end. Clones tell the same work.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    cancelled: Arc<AtomicBool>,
}

impl CancelToken {
    /// Not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the work to end; it does so before its next read.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Whether it was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }
}

/// Chooses what happens to rows while they are merged, per group.
pub trait MergeHooks: Send + Sync + fmt::Debug {
    /// The hook for the merge of `group`; `None` to keep all rows as they are.
    ///
    /// # Errors
    /// Whatever the implementation finds; the group is not compacted then.
    fn hook(&self, table: &Table, group: &CompactionGroup) -> Result<Option<Box<dyn MergeHook>>>;
}

/// Sees the rows of one merge in the order of the table and gives back those that stay, such as the
/// versions of a cell that are kept. Rows of equal key come oldest file first. It may hold rows
/// back until later, and it must keep their order.
pub trait MergeHook: Send {
    /// Takes the next rows; gives back rows to be written.
    ///
    /// # Errors
    /// Whatever the implementation finds; nothing is committed then.
    fn merge(&mut self, batch: RecordBatch) -> Result<RecordBatch>;

    /// There are no more rows; gives back what was held back.
    ///
    /// # Errors
    /// As [`Self::merge`].
    fn finish(&mut self) -> Result<Option<RecordBatch>>;

    /// How many rows were dropped so far. Rows read less these must be the rows written.
    fn dropped(&self) -> u64;
}

/// Counters that grow while compactions run. Share one between several to sum them up.
#[derive(Debug, Default)]
pub struct CompactionProgress {
    groups_planned: AtomicU64,
    groups_done: AtomicU64,
    files_read: AtomicU64,
    files_written: AtomicU64,
    rows_read: AtomicU64,
    rows_written: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident, $add:ident;)*) => {
        impl CompactionProgress {
            $($(#[$doc])* pub fn $name(&self) -> u64 {
                self.$name.load(Relaxed)
            }

            pub(super) fn $add(&self, more: u64) {
                self.$name.fetch_add(more, Relaxed);
            })*
        }
    };
}

counters! {
    /// Groups of files that were chosen.
    groups_planned, add_groups_planned;
    /// Groups that are committed, or were given up because others were faster.
    groups_done, add_groups_done;
    /// Files read to their end.
    files_read, add_files_read;
    /// Files committed.
    files_written, add_files_written;
    /// Rows decoded.
    rows_read, add_rows_read;
    /// Rows given to the writer.
    rows_written, add_rows_written;
    /// Bytes read from data files.
    bytes_read, add_bytes_read;
    /// Bytes of files committed.
    bytes_written, add_bytes_written;
}

/// One door for everything that is asked before a read and counted after it.
pub(super) struct Meter<'a> {
    pub(super) work: &'a CompactionWork,
    pub(super) table: &'a Table,
}

impl Meter<'_> {
    /// Comes back when `bytes` may be read.
    pub(super) async fn read(&self, bytes: u64) -> Result<()> {
        if let Some(throttle) = &self.work.throttle {
            throttle.take(bytes).await;
        }
        self.go_on()?;
        self.work.progress.add_bytes_read(bytes);
        Ok(())
    }

    /// Fails if the work was cancelled.
    pub(super) fn go_on(&self) -> Result<()> {
        if !self.work.cancel.is_cancelled() {
            return Ok(());
        }
        let what = format!("table {}: compaction was cancelled", self.table.ident());
        Err(Error::new(ErrorKind::Cancelled, what))
    }
}
