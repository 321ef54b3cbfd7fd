//! Where parsed cells go: the batch, the counts, the warnings.

use std::sync::Arc;

use stoa_error::Result;

use super::WARNINGS_MAX;
use crate::batch::{CellBatch, CellBatchBuilder};
use crate::cell::{CellKind, CellRef, FamilyId};
use crate::read::is_counter_value;
use crate::store::CellStore;

/// Timestamps that are taken from the source at once.
const RESERVED: u32 = 4096;

/// What a load has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadCounts {
    /// Cells, markers among them.
    pub(crate) cells: u64,
    /// Bytes of the row keys of all cells.
    pub(crate) key_bytes: u64,
    /// Bytes of values.
    pub(crate) value_bytes: u64,
}

/// Takes cells; gives those without a timestamp the next one of the store.
pub(super) struct Sink {
    pub(super) builder: CellBatchBuilder,
    pub(super) counts: LoadCounts,
    store: Arc<dyn CellStore>,
    next_timestamp: i64,
    timestamps_left: u32,
    /// Whether the file gave a timestamp to a cell of the batch.
    given: bool,
    warnings: Vec<String>,
    warnings_more: u64,
}

impl Sink {
    pub(super) fn new(store: Arc<dyn CellStore>) -> Self {
        Self {
            builder: CellBatchBuilder::new(),
            counts: LoadCounts::default(),
            store,
            next_timestamp: 0,
            timestamps_left: 0,
            given: false,
            warnings: Vec::new(),
            warnings_more: 0,
        }
    }

    #[inline]
    fn timestamp_or(&mut self, given: Option<i64>) -> i64 {
        self.given |= given.is_some();
        given.unwrap_or_else(|| self.timestamp())
    }

    #[inline]
    fn timestamp(&mut self) -> i64 {
        if self.timestamps_left == 0 {
            self.next_timestamp = self.store.timestamps().reserve(RESERVED);
            self.timestamps_left = RESERVED;
        }
        self.timestamps_left -= 1;
        let timestamp = self.next_timestamp;
        self.next_timestamp += 1;
        timestamp
    }

    /// The batch. Timestamps that are left are not used later: a marker that somebody writes in
    /// the meantime must not hide cells that come after it.
    pub(super) fn finish(&mut self) -> CellBatch {
        self.timestamps_left = 0;
        let batch = self.builder.finish();
        if std::mem::take(&mut self.given) { batch } else { batch.with_new_timestamps() }
    }

    /// Adds a value. One that is no number is passed over if the family is a counter.
    #[inline]
    pub(super) fn value(
        &mut self,
        row: &[u8],
        (family, qualifier): (FamilyId, &[u8]),
        timestamp: Option<i64>,
        value: &[u8],
        counter: bool,
        line: u64,
    ) -> Result<()> {
        if counter && !is_counter_value(value) {
            let value = String::from_utf8_lossy(value).into_owned();
            self.warn(line, format_args!("\"{value}\" is no number for a counter"));
            return Ok(());
        }
        let timestamp = self.timestamp_or(timestamp);
        self.count(row, value);
        self.builder.push_insert(row, family, qualifier, timestamp, value)
    }

    /// Adds a marker.
    pub(super) fn marker(
        &mut self,
        row: &[u8],
        (family, qualifier): (FamilyId, &[u8]),
        timestamp: Option<i64>,
        kind: CellKind,
    ) -> Result<()> {
        let timestamp = self.timestamp_or(timestamp);
        self.count(row, &[]);
        let marker = CellRef::insert(row, family, qualifier, timestamp, &[]);
        self.builder.push(CellRef { kind, ..marker })
    }

    /// Tells that a line, or a cell of it, was passed over.
    #[cold]
    pub(super) fn warn(&mut self, line: u64, what: std::fmt::Arguments<'_>) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(format!("warn: {what} on line {line}, skipping..."));
        } else {
            self.warnings_more += 1;
        }
    }

    /// The warnings so far, each once.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// How many warnings were not kept.
    pub(super) fn warnings_more(&self) -> u64 {
        self.warnings_more
    }

    fn count(&mut self, row: &[u8], value: &[u8]) {
        self.counts.cells += 1;
        self.counts.key_bytes += row.len() as u64;
        self.counts.value_bytes += value.len() as u64;
    }
}
