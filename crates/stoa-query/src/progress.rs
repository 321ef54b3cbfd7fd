//! What a running query counts; shared with its scan operators.
//!
//! In: counts, from whatever thread. Out: figures of [`crate::QueryInfo`], and how the query is executed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use stoa_report::Work;
use stoa_store::Charge;

use crate::live_plan::Execution;
use crate::spent::Spent;

/// Counters of one query.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) rows: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) memory_bytes: AtomicU64,
    pub(crate) memory_peak_bytes: AtomicU64,
    rows_planned: AtomicU64,
    rows_scanned: AtomicU64,
    pub(crate) queued: AtomicBool,
    pub(crate) short_path: AtomicBool,
    hedges: AtomicU64,
    chunk_hits: AtomicU64,
    chunk_misses: AtomicU64,
    /// What it asks of object stores.
    pub(crate) charge: Arc<Charge>,
    execution: Mutex<Execution>,
}

impl Progress {
    /// Notes whether the query waits for an executor.
    pub(crate) fn set_queued(&self, queued: bool) {
        self.queued.store(queued, Ordering::Relaxed);
    }

    /// Counts rows of files that will be scanned.
    pub(crate) fn plan_rows(&self, rows: u64) {
        self.rows_planned.fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts rows of files that were scanned or left out.
    pub(crate) fn scan_rows(&self, rows: u64) {
        self.rows_scanned.fetch_add(rows, Ordering::Relaxed);
    }

    /// The share of its rows that were scanned, 0 to 1; `None` if it scans no files.
    pub(crate) fn share(&self) -> Option<f64> {
        let planned = self.rows_planned.load(Ordering::Relaxed);
        let scanned = self.rows_scanned.load(Ordering::Relaxed);
        (planned > 0).then(|| (scanned as f64 / planned as f64).min(1.0))
    }

    /// Counts memory that was taken.
    pub(crate) fn take_memory(&self, bytes: usize) {
        let bytes = bytes as u64;
        let now = self.memory_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.memory_peak_bytes.fetch_max(now, Ordering::Relaxed);
    }

    /// Counts memory that was given back.
    pub(crate) fn give_memory_back(&self, bytes: usize) {
        self.memory_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Notes that the query is answered without the planner.
    pub(crate) fn set_short_path(&self) {
        self.short_path.store(true, Ordering::Relaxed);
    }

    /// Counts reads that were sent a second time.
    pub(crate) fn add_hedges(&self, hedges: u64) {
        self.hedges.fetch_add(hedges, Ordering::Relaxed);
    }

    /// Counts what finding rows in the memory of reports took.
    pub(crate) fn add_work(&self, work: &Work) {
        self.requests.fetch_add(work.requests, Ordering::Relaxed);
        self.bytes_read.fetch_add(work.bytes_read, Ordering::Relaxed);
        self.chunk_hits.fetch_add(work.chunk_hits, Ordering::Relaxed);
        self.chunk_misses.fetch_add(work.chunk_misses, Ordering::Relaxed);
        self.add_hedges(work.hedges);
    }

    /// What it took of caches and object stores so far.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            store: self.charge.charged(),
            hedges: self.hedges.load(Ordering::Relaxed),
            chunk_hits: self.chunk_hits.load(Ordering::Relaxed),
            chunk_misses: self.chunk_misses.load(Ordering::Relaxed),
        }
    }

    /// Notes how the query is executed; the last of its plans counts.
    pub(crate) fn set_execution(&self, execution: Execution) {
        *self.execution.lock() = execution;
    }

    /// How the query is executed.
    pub(crate) fn execution(&self) -> Execution {
        self.execution.lock().clone()
    }
}
