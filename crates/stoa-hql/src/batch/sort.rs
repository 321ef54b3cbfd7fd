//! Puts the cells of a batch into the order of cells.

use std::cmp::Ordering;

use stoa_error::Result;

use super::{CellBatch, SortedRun};

/// The batch in the order of cells. Of cells that are equal in everything but the value, the last
/// one stays, as if each had been written over the one before.
///
/// # Errors
/// As [`CellBatchBuilder::push`](super::CellBatchBuilder::push).
pub fn sort_cells(batch: &CellBatch) -> Result<CellBatch> {
    if is_sorted(batch) {
        return Ok(batch.clone());
    }
    let sorted = SortedRun::new(vec![batch.clone()]).into_batch()?;
    Ok(if batch.new_timestamps { sorted.with_new_timestamps() } else { sorted })
}

/// Whether the cells are in order, each once.
pub fn is_sorted(batch: &CellBatch) -> bool {
    (1..batch.len()).all(|i| batch.order(i - 1, batch, i) == Ordering::Less)
}
