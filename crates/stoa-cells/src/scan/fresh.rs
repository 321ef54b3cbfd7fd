//! Cells that are in no file yet.

use std::ops::{Bound, RangeBounds};

use futures::stream;
use stoa_error::Result;
use stoa_hql::batch::sort_cells;
use stoa_hql::scan::{KeyRange, Pushdown};
use stoa_hql::{CellBatch, CellBatchBuilder, CellStream};
use stoa_ingest::FreshRows;

use super::fused;
use crate::layout::to_cells;

/// An input for each batch of fresh rows, made when it is asked for.
pub(super) fn inputs(fresh: &FreshRows, pushdown: &Pushdown) -> Vec<CellStream> {
    let input = |index: usize| {
        let (fresh, rows) = (fresh.clone(), pushdown.rows.clone());
        fused(stream::once(async move { input(&fresh, index, &rows) }))
    };
    (0..fresh.batch_count()).map(input).collect()
}

fn input(fresh: &FreshRows, index: usize, rows: &[KeyRange]) -> Result<CellBatch> {
    let Some(batch) = fresh.batch(index) else { return Ok(CellBatchBuilder::new().finish()) };
    let cells = to_cells(&batch?)?;
    sort_cells(&only(cells, rows)?)
}

/// The cells of the wanted rows.
fn only(cells: CellBatch, rows: &[KeyRange]) -> Result<CellBatch> {
    if rows.is_empty() {
        return Ok(cells);
    }
    let bounds: Vec<_> = rows.iter().map(KeyRange::row_bounds).collect();
    let holds =
        |bounds: &(Bound<&[u8]>, Bound<&[u8]>), row| RangeBounds::<[u8]>::contains(bounds, row);
    let wanted = |index: &usize| bounds.iter().any(|bounds| holds(bounds, cells.row(*index)));
    let mut builder = CellBatchBuilder::new();
    for index in (0..cells.len()).filter(wanted) {
        builder.push_from(&cells, index)?;
    }
    Ok(builder.finish())
}
