//! What this daemon knows of its talk with each peer.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use stoa_cluster::DaemonId;

/// Weight of a new value in the average round trip: one of so many.
const ROUND_TRIP_WEIGHT: u64 = 8;

/// What this daemon has exchanged with one peer since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatistics {
    /// The peer.
    pub daemon: DaemonId,
    /// Whether there is a connection to it.
    pub connected: bool,
    /// Whether there is a connection from it.
    pub connected_from: bool,
    /// The protocol spoken over the connection to it.
    pub protocol: Option<u16>,
    /// Its build, as it says.
    pub build: Option<String>,
    /// Calls to it that wait for their answers.
    pub in_flight: usize,
    /// Calls to it that have ended; dropped ones do not count.
    pub calls: u64,
    /// Of those, the ones that the peer did not answer.
    pub failures: u64,
    /// Bytes read from connections to it.
    pub bytes_in: u64,
    /// Bytes written to connections to it.
    pub bytes_out: u64,
    /// Moving average of the time from a call to its answer in µs, the peer's work included; 0 before the
    /// first answer.
    pub round_trip_us: u64,
}

/// Counters of the calls to one peer.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) in_flight: AtomicUsize,
    pub(crate) calls: AtomicU64,
    pub(crate) failures: AtomicU64,
    /// In nanoseconds.
    round_trip: AtomicU64,
}

impl Counters {
    pub(crate) fn answered(&self, after: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let average = self.round_trip.load(Ordering::Relaxed);
        let average = match average {
            0 => after,
            // Two calls at once may lose one of the values, which does not matter.
            _ => average - average / ROUND_TRIP_WEIGHT + after / ROUND_TRIP_WEIGHT,
        };
        self.round_trip.store(average, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn round_trip_us(&self) -> u64 {
        self.round_trip.load(Ordering::Relaxed).div_ceil(1000)
    }
}
