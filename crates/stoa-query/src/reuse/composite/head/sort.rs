//! The order of rows.

use arrow::array::RecordBatch;
use datafusion::error::Result as EngineResult;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::sorts::sort::{SortExec, sort_batch};

/// Keys, and how many rows are wanted.
pub(super) struct Sort {
    keys: LexOrdering,
    fetch: Option<usize>,
}

impl Sort {
    pub(super) fn of(sort: &SortExec) -> Self {
        Self { keys: sort.expr().clone(), fetch: sort.fetch() }
    }

    /// The first rows in order.
    ///
    /// # Errors
    /// Those of the keys' expressions.
    pub(super) fn sorted(&self, batch: &RecordBatch) -> EngineResult<RecordBatch> {
        if batch.num_rows() < 2 {
            let wanted = self.fetch.unwrap_or(usize::MAX).min(batch.num_rows());
            return Ok(batch.slice(0, wanted));
        }
        sort_batch(batch, &self.keys, self.fetch)
    }
}
