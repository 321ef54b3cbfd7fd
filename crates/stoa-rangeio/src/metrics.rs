//! What reading cost.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters that grow while reads run. Share one between readers to sum them up.
#[derive(Debug, Default)]
pub struct ReadMetrics {
    calls: AtomicU64,
    requests: AtomicU64,
    retries: AtomicU64,
    hedges: AtomicU64,
    bytes_needed: AtomicU64,
    bytes_read: AtomicU64,
    elapsed_us: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Calls of `read`: round trips, seen from the caller.
    pub calls: u64,
    /// Requests sent to the store, retries and hedges among them.
    pub requests: u64,
    /// Requests sent again because one failed.
    pub retries: u64,
    /// Requests sent a second time because the first was slow.
    pub hedges: u64,
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
            calls: self.calls.load(Relaxed),
            requests: self.requests.load(Relaxed),
            retries: self.retries.load(Relaxed),
            hedges: self.hedges.load(Relaxed),
            bytes_needed: self.bytes_needed.load(Relaxed),
            bytes_read: self.bytes_read.load(Relaxed),
            elapsed: Duration::from_micros(self.elapsed_us.load(Relaxed)),
        }
    }

    pub(crate) fn add_call(&self, bytes_needed: u64, elapsed: Duration) {
        self.calls.fetch_add(1, Relaxed);
        self.bytes_needed.fetch_add(bytes_needed, Relaxed);
        self.elapsed_us.fetch_add(elapsed.as_micros().try_into().unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn add_request(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_retry(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_hedge(&self) {
        self.hedges.fetch_add(1, Relaxed);
    }

    /// Counts a hedge if that keeps hedges within `share_max` of all requests.
    pub(crate) fn try_add_hedge(&self, share_max: f64) -> bool {
        let requests = self.requests.load(Relaxed) as f64;
        // One is always allowed, or the first straggler of a reader would have to be borne.
        let allowed = (requests * share_max).max(1.0);
        self.hedges
            .fetch_update(Relaxed, Relaxed, |hedges| {
                ((hedges as f64) < allowed).then_some(hedges + 1)
            })
            .is_ok()
    }

    pub(crate) fn add_bytes_read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Relaxed);
    }
}
