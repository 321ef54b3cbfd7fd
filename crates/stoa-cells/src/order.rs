//! Cells in the order in which a file of their table holds them.
//!
//! In: cells in any order. Out: rows of the table: those whose row key is text first, then the others,
//! each in the order of cells. Of cells that are equal in everything but the value, the one that is
//! seen stays.

use std::collections::VecDeque;
use std::fmt;

use arrow_array::RecordBatch;
use stoa_error::Result;
use stoa_hql::batch::SortedRun;
use stoa_hql::{CellBatch, CellBatchBuilder};
use stoa_ingest::{FlushOrder, SortedRows};
use stoa_table::Table;

use crate::layout::{KIND_CELLS, KIND_PROPERTY, Layout, all_text, to_cells};

/// Sorts the fresh rows of tables of cells when they are flushed; leaves tables of other kinds alone.
/// Hand it to [`stoa_ingest::IngestOptions::order`].
#[derive(Clone, Copy, Default)]
pub struct CellFlushOrder;

impl fmt::Debug for CellFlushOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CellFlushOrder")
    }
}

impl FlushOrder for CellFlushOrder {
    fn sort(&self, table: &Table, batches: &[RecordBatch]) -> Result<Option<SortedRows>> {
        if table.property(KIND_PROPERTY) != Some(KIND_CELLS) {
            return Ok(None);
        }
        let cells = batches.iter().map(to_cells).collect::<Result<Vec<_>>>()?;
        let rows = FileRows::new(SortedRun::of_sorted(cells), Layout::of(table)?);
        Ok(Some(Box::new(rows)))
    }
}

/// A sorted run as rows of a file.
pub(crate) struct FileRows {
    run: SortedRun,
    layout: Layout,
    /// Cells whose row key is no text.
    others: VecDeque<CellBatch>,
}

impl FileRows {
    pub(crate) fn new(run: SortedRun, layout: Layout) -> Self {
        Self { run, layout, others: VecDeque::new() }
    }

    /// Takes out the cells whose row key is no text.
    fn text_of(&mut self, cells: CellBatch) -> Result<CellBatch> {
        let (mut text, mut others) = (CellBatchBuilder::new(), CellBatchBuilder::new());
        for (index, cell) in cells.iter().enumerate() {
            let is_text = std::str::from_utf8(cell.row).is_ok();
            if is_text { &mut text } else { &mut others }.push_from(&cells, index)?;
        }
        self.others.push_back(others.finish());
        Ok(text.finish())
    }

    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(cells) = self.run.next().transpose()? {
            let rows = self.layout.to_rows(&cells)?;
            if all_text(&rows) {
                return Ok(Some(rows));
            }
            let text = self.text_of(cells)?;
            if !text.is_empty() {
                return self.layout.to_rows(&text).map(Some);
            }
        }
        self.others.pop_front().map(|cells| self.layout.to_rows(&cells)).transpose()
    }
}

impl Iterator for FileRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_rows().transpose()
    }
}
