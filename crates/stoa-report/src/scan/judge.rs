//! Conditions that become known while a scan runs, such as the keys of the other side of a join.
//!
//! Not here: where they come from; this crate knows no plans.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use stoa_error::Result;

use super::ScanFilter;

/// Judges rows by what is known by now. It may leave out rows only that nobody above the scan needs.
pub trait RowJudge: Send + Sync + std::fmt::Debug {
    /// The columns that [`Self::keep`] wants, as indexes into the columns of the scan's batches, ascending.
    fn columns(&self) -> &[usize];

    /// What bounds of row groups and packed values can tell, and whether that is all that is known.
    fn filter(&self) -> (ScanFilter, bool);

    /// Which of some rows are kept; `None` where nothing is known yet. `rows` has [`Self::columns`].
    ///
    /// # Errors
    /// Those of computing it.
    fn keep(&self, rows: &RecordBatch) -> Result<Option<BooleanArray>>;
}

/// Rows by which a judge shows whether it is worth asking.
const TRIAL_ROWS: u64 = 32 << 10;

/// A judge that is asked as long as it leaves out enough rows.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) judge: Arc<dyn RowJudge>,
    seen: u64,
    kept: u64,
}

impl Judged {
    pub(crate) fn new(judge: Arc<dyn RowJudge>) -> Self {
        Self { judge, seen: 0, kept: 0 }
    }

    /// Whether it is worth asking: at least a quarter of the rows were left out.
    pub(crate) fn is_worth_it(&self) -> bool {
        self.seen < TRIAL_ROWS || self.kept < self.seen / 4 * 3
    }

    /// Which of some rows are kept; `None` for all.
    pub(crate) fn keep(&mut self, rows: &RecordBatch) -> Result<Option<BooleanArray>> {
        let kept = self.judge.keep(rows)?;
        if let Some(kept) = &kept {
            self.seen += rows.num_rows() as u64;
            self.kept += kept.true_count() as u64;
        }
        Ok(kept)
    }
}
