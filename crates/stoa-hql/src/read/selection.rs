//! Conditions on values and on columns of a row.

use stoa_error::{Error, ErrorKind, Result};

use super::BUFFER_BYTES_MAX;
use super::limits::Limits;
use crate::batch::{CellBatch, CellBatchBuilder};
use crate::cell::CellRef;
use crate::pattern::Pattern;
use crate::scan::{Combine, ScanSpec, ValueFilter};

/// Lets through the cells whose value matches and whose row meets the conditions.
///
/// Whether a row meets its conditions is known at its end, unless one of them is enough; until
/// then its cells are kept.
pub(super) struct Selection {
    value_pattern: Option<Pattern>,
    predicates: Vec<ValueFilter>,
    combine: Combine,
    matching_cells_only: bool,
    /// Which conditions the row has met.
    met: Vec<bool>,
    kept: CellBatchBuilder,
    pub(super) limits: Limits,
}

impl Selection {
    pub(super) fn new(spec: &ScanSpec) -> Self {
        Self {
            value_pattern: spec.value_pattern.clone(),
            predicates: spec.predicates.iter().map(|p| p.value.clone()).collect(),
            combine: spec.combine,
            matching_cells_only: spec.matching_cells_only,
            met: vec![false; spec.predicates.len()],
            kept: CellBatchBuilder::new(),
            limits: Limits::new(spec),
        }
    }

    /// Whether everything goes through.
    pub(super) fn is_open(spec: &ScanSpec) -> bool {
        spec.value_pattern.is_none() && spec.predicates.is_empty() && Limits::is_open(spec)
    }

    /// Takes a cell; `wanted` says whether its column is to be returned, `asked` which conditions
    /// speak of its column.
    pub(super) fn accept(
        &mut self,
        cell: CellRef<'_>,
        wanted: bool,
        asked: &[usize],
    ) -> Result<()> {
        if self.predicates.is_empty() {
            return if wanted { self.pass(cell) } else { Ok(()) };
        }
        let mut matches = false;
        if !cell.kind.is_delete() {
            for index in asked {
                let predicate = self.predicates.get(*index);
                if predicate.is_some_and(|predicate| predicate.accepts(cell.value)) {
                    matches = true;
                    self.met[*index] = true;
                }
            }
        }
        if !wanted || (self.matching_cells_only && !matches) {
            return Ok(());
        }
        if self.combine == Combine::Any && self.is_met() {
            self.release()?;
            return self.pass(cell);
        }
        self.keep(cell)
    }

    /// Tells that the row has no more cells.
    pub(super) fn end_row(&mut self) -> Result<()> {
        if self.predicates.is_empty() {
            return Ok(());
        }
        if self.is_met() {
            self.release()?;
        }
        self.kept = CellBatchBuilder::new();
        self.met.fill(false);
        Ok(())
    }

    fn is_met(&self) -> bool {
        match self.combine {
            Combine::All => self.met.iter().all(|met| *met),
            Combine::Any => self.met.iter().any(|met| *met),
        }
    }

    fn keep(&mut self, cell: CellRef<'_>) -> Result<()> {
        if self.kept.data_bytes() > BUFFER_BYTES_MAX {
            let row = String::from_utf8_lossy(cell.row).into_owned();
            let text = format!("row \"{row}\" is too large for conditions on its columns");
            return Err(Error::new(ErrorKind::Exhausted, text)
                .with_hint("SELECT CELLS with one condition, or ask for fewer columns"));
        }
        self.kept.push(cell)
    }

    fn release(&mut self) -> Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let kept: CellBatch = self.kept.finish();
        kept.iter().try_for_each(|cell| self.pass(cell))
    }

    fn pass(&mut self, cell: CellRef<'_>) -> Result<()> {
        let matches = |pattern: &Pattern| cell.kind.is_delete() || pattern.is_match(cell.value);
        if self.value_pattern.as_ref().is_some_and(|pattern| !matches(pattern)) {
            return Ok(());
        }
        self.limits.accept(cell)
    }
}
