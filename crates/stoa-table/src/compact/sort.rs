//! Rows in no order become sorted stretches, each as long as memory allows.

use arrow_array::RecordBatch;
use arrow_row::Rows;
use stoa_error::Result;

use super::merge::{BATCH_ROWS, gather};
use crate::order::TableOrder;

/// The rows of `batches` in the order of the table; rows of equal key stay in theirs.
pub(super) fn sort(order: &TableOrder, batches: &[RecordBatch]) -> Result<Vec<RecordBatch>> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let converter = order.converter(first)?;
    let keys: Vec<Rows> =
        batches.iter().map(|batch| order.keys(&converter, batch)).collect::<Result<_>>()?;
    let mut rows: Vec<(usize, usize)> = keys
        .iter()
        .enumerate()
        .flat_map(|(batch, keys)| (0..keys.num_rows()).map(move |row| (batch, row)))
        .collect();
    rows.sort_by(|a, b| keys[a.0].row(a.1).cmp(&keys[b.0].row(b.1)));
    rows.chunks(BATCH_ROWS).map(|rows| gather(batches, rows)).collect()
}
