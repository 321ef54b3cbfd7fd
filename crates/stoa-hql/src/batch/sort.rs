//! Puts the cells of a batch into the order of cells.

use std::cmp::Ordering;

use stoa_error::Result;

use super::order::row_prefix;
use super::{CellBatch, CellBatchBuilder};

/// The batch in the order of cells. Of cells that are equal in everything but the value, the last
/// one stays, as if each had been written over the one before.
///
/// # Errors
/// As [`CellBatchBuilder::push`].
pub fn sort_cells(batch: &CellBatch) -> Result<CellBatch> {
    if is_sorted(batch) {
        return Ok(batch.clone());
    }
    // Eight bytes of the row decide most comparisons without a look into the batch.
    let mut order: Vec<(u64, u32)> =
        (0..batch.len()).map(|i| (row_prefix(&batch.rows, i), i as u32)).collect();
    order.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0)
            .then_with(|| compare(batch, a.1, b.1))
            // Last written first, so that the first of equals is the one to keep.
            .then_with(|| b.1.cmp(&a.1))
    });
    let mut sorted = CellBatchBuilder::new();
    let mut previous: Option<u32> = None;
    for (_, index) in order {
        let repeated = previous.is_some_and(|p| compare(batch, p, index) == Ordering::Equal);
        if !repeated {
            sorted.push(batch.cell(index as usize))?;
        }
        previous = Some(index);
    }
    let sorted = sorted.finish();
    Ok(if batch.new_timestamps { sorted.with_new_timestamps() } else { sorted })
}

/// Whether the cells are in order, each once.
pub fn is_sorted(batch: &CellBatch) -> bool {
    (1..batch.len()).all(|i| compare(batch, i as u32 - 1, i as u32) == Ordering::Less)
}

fn compare(batch: &CellBatch, a: u32, b: u32) -> Ordering {
    batch.order(a as usize, batch, b as usize)
}
