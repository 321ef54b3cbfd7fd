//! Offsets and limits, in rows and in cells; and the batches that come out.
//!
//! First OFFSET, then CELL_LIMIT_PER_FAMILY, then CELL_OFFSET; LIMIT and CELL_LIMIT count what is
//! left (Hypertable's tests of offsets show as much).

use std::collections::VecDeque;
use std::ops::Range;

use stoa_error::Result;

use crate::batch::{CellBatch, CellBatchBuilder};
use crate::cell::{CellRef, FamilyId};
use crate::scan::ScanSpec;

/// Stretches from which on a slice of a batch is handed on instead of copied.
const SLICE_CELLS_MIN: usize = 2048;

/// Counts what goes through, and collects it.
pub(super) struct Limits {
    row_offset: u64,
    row_limit: u64,
    cell_offset: u64,
    cell_limit: u64,
    cell_limit_per_family: u64,
    keys_only: bool,
    /// The row of the last cell; empty before the first one.
    row: Vec<u8>,
    family: FamilyId,
    rows_seen: u64,
    cells_seen: u64,
    cells_of_family: u64,
    /// Rows of which something was returned, and whether the last one is of them.
    rows_returned: u64,
    row_returned: bool,
    done: bool,
    out: CellBatchBuilder,
    ready: VecDeque<CellBatch>,
}

impl Limits {
    pub(super) fn new(spec: &ScanSpec) -> Self {
        let row_limit = spec.row_limit.unwrap_or(u64::MAX);
        let cell_limit = spec.cell_limit.unwrap_or(u64::MAX);
        Self {
            row_offset: spec.row_offset,
            row_limit,
            cell_offset: spec.cell_offset,
            cell_limit,
            cell_limit_per_family: spec.cell_limit_per_family.unwrap_or(u64::MAX),
            keys_only: spec.keys_only,
            row: Vec::new(),
            family: 0,
            rows_seen: 0,
            cells_seen: 0,
            cells_of_family: 0,
            rows_returned: 0,
            row_returned: false,
            done: row_limit == 0 || cell_limit == 0,
            out: CellBatchBuilder::new(),
            ready: VecDeque::new(),
        }
    }

    /// Whether everything goes through.
    pub(super) fn is_open(spec: &ScanSpec) -> bool {
        spec.row_offset == 0
            && spec.cell_offset == 0
            && spec.row_limit.is_none()
            && spec.cell_limit.is_none()
            && spec.cell_limit_per_family.is_none()
    }

    /// Whether nothing more can go through.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn accept(&mut self, cell: CellRef<'_>) -> Result<()> {
        if self.done {
            return Ok(());
        }
        if self.row != cell.row {
            self.row.clear();
            self.row.extend_from_slice(cell.row);
            self.rows_seen += 1;
            self.row_returned = false;
            self.family = cell.family;
            self.cells_of_family = 0;
        } else if self.family != cell.family {
            self.family = cell.family;
            self.cells_of_family = 0;
        }
        if self.rows_seen <= self.row_offset {
            return Ok(());
        }
        self.cells_of_family += 1;
        if self.cells_of_family > self.cell_limit_per_family {
            return Ok(());
        }
        self.cells_seen += 1;
        if self.cells_seen <= self.cell_offset {
            return Ok(());
        }
        if !self.row_returned && self.rows_returned == self.row_limit {
            self.done = true;
            return Ok(());
        }
        self.rows_returned += u64::from(!self.row_returned);
        self.row_returned = true;
        self.done = self.cells_seen - self.cell_offset >= self.cell_limit;
        self.put(cell)
    }

    /// Takes a stretch of a batch as it is; for specs that let everything through.
    pub(super) fn accept_all(&mut self, batch: &CellBatch, range: Range<usize>) -> Result<()> {
        if range.len() >= SLICE_CELLS_MIN && !self.keys_only {
            self.flush();
            self.ready.push_back(batch.slice(range));
            return Ok(());
        }
        self.out.append(batch, range, self.keys_only)?;
        self.flush_if_full();
        Ok(())
    }

    /// The next batch that is complete.
    pub(super) fn take_ready(&mut self) -> Option<CellBatch> {
        self.ready.pop_front()
    }

    /// Makes what is collected a batch.
    pub(super) fn flush(&mut self) {
        if !self.out.is_empty() {
            self.ready.push_back(self.out.finish());
        }
    }

    fn put(&mut self, cell: CellRef<'_>) -> Result<()> {
        let value = if self.keys_only { &[] } else { cell.value };
        self.out.push(CellRef { value, ..cell })?;
        self.flush_if_full();
        Ok(())
    }

    fn flush_if_full(&mut self) {
        if self.out.is_full() {
            self.flush();
        }
    }
}
