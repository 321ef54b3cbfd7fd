//! Cells that are in no file yet.

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
    let mut builder = CellBatchBuilder::new();
    for cell in cells.iter().filter(|cell| rows.iter().any(|range| range.contains(cell))) {
        builder.push(cell)?;
    }
    Ok(builder.finish())
}
