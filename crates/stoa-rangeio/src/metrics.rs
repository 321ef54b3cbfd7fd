//! What reading cost.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters that grow while reads run. Share one between readers to sum them up.
#[derive(Debug, Default)]
pub struct ReadMetrics {
    requests: AtomicU64,
    bytes_needed: AtomicU64,
    bytes_read: AtomicU64,
    elapsed_us: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Requests sent to the store.
    pub requests: u64,
    /// Bytes somebody asked for, each once per call.
    pub bytes_needed: u64,
    /// Bytes that came back.
    pub bytes_read: u64,
    /// Time callers waited in `read`, summed over calls (which may overlap).
    pub elapsed: Duration,
}

impl ReadMetrics {
    /// The counters now.
    pub fn counts(&self) -> ReadCounts {
        ReadCounts {
            requests: self.requests.load(Relaxed),
            bytes_needed: self.bytes_needed.load(Relaxed),
            bytes_read: self.bytes_read.load(Relaxed),
            elapsed: Duration::from_micros(self.elapsed_us.load(Relaxed)),
        }
    }

    pub(crate) fn add_call(&self, bytes_needed: u64, elapsed: Duration) {
        self.bytes_needed.fetch_add(bytes_needed, Relaxed);
        self.elapsed_us.fetch_add(elapsed.as_micros().try_into().unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn add_request(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_bytes_read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Relaxed);
    }
}
