//! How far a load has come.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters that grow while a [`BatchReader`](crate::BatchReader) works; read from any thread.
///
/// Bytes are those of the files as they lie on disk (compressed), so that `bytes_read` over
/// `bytes_total` is the share done.
#[derive(Debug, Default)]
pub struct Progress {
    bytes_total: AtomicU64,
    bytes_read: AtomicU64,
    rows_read: AtomicU64,
    rows_rejected: AtomicU64,
}

impl Progress {
    /// Bytes of all inputs; 0 where a stream's length is not known.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total.load(Relaxed)
    }

    /// Bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Relaxed)
    }

    /// Rows handed out so far.
    pub fn rows_read(&self) -> u64 {
        self.rows_read.load(Relaxed)
    }

    /// Lines rejected so far.
    pub fn rows_rejected(&self) -> u64 {
        self.rows_rejected.load(Relaxed)
    }

    pub(crate) fn add_total(&self, bytes: u64) {
        self.bytes_total.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add_read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn set_read(&self, bytes: u64) {
        self.bytes_read.store(bytes, Relaxed);
    }

    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows_read.fetch_add(rows, Relaxed);
    }

    pub(crate) fn add_rejected(&self) {
        self.rows_rejected.fetch_add(1, Relaxed);
    }
}
