//! What a log has done so far, as numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{LogId, LogPosition};

/// A log at one moment: what console, `system.*` and metrics show.
#[derive(Clone, Debug)]
pub struct LogStatus {
    /// The directory or URL.
    pub place: String,
    /// The log.
    pub log: LogId,
    /// Counts openings.
    pub epoch: u64,
    /// Segments, the newest included.
    pub segments: usize,
    /// Their bytes.
    pub segment_bytes: u64,
    /// The last frame written.
    pub written: LogPosition,
    /// The last frame known to be durable.
    pub durable: LogPosition,
    /// What has been released.
    pub released: LogPosition,
    /// Bytes of frames queued or being written.
    pub in_flight_bytes: usize,
    /// Appends accepted since the log was opened.
    pub appends: u64,
    /// Their payload bytes.
    pub payload_bytes: u64,
    /// Appends that had to wait for room.
    pub waits: u64,
    /// Appends that were refused after waiting.
    pub refusals: u64,
    /// Syncs, those of new segments not counted.
    pub syncs: u64,
    /// Frames per group.
    pub group_frames: Distribution,
    /// Bytes per group.
    pub group_bytes: Distribution,
    /// Microseconds per sync.
    pub sync_us: Distribution,
    /// Why the log has stopped, if it has.
    pub poisoned: Option<String>,
}

/// How often which sizes occurred, in powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// Upper bound (inclusive) and number of values of each bucket that has any, ascending.
    pub buckets: Vec<(u64, u64)>,
}

impl Distribution {
    /// The upper bound of the bucket below which `share` (0 to 1) of the values are; 0 where
    /// there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut below = 0;
        for &(upper, count) in &self.buckets {
            below += count;
            if below >= wanted {
                return upper;
            }
        }
        0
    }
}

/// Counters of a log, written by whoever does the thing.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) appends: AtomicU64,
    pub(crate) payload_bytes: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) refusals: AtomicU64,
    pub(crate) group_frames: Histogram,
    pub(crate) group_bytes: Histogram,
    pub(crate) sync_us: Histogram,
}

impl Stats {
    pub(crate) fn synced(&self, took: Duration) {
        self.sync_us.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// Counts values by powers of two: bucket n holds those of n significant bits.
#[derive(Debug)]
pub(crate) struct Histogram {
    sum: AtomicU64,
    buckets: [AtomicU64; 65],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { sum: AtomicU64::new(0), buckets: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Histogram {
    pub(crate) fn record(&self, value: u64) {
        count(&self.sum, value);
        let bits = (u64::BITS - value.leading_zeros()) as usize;
        if let Some(bucket) = self.buckets.get(bits) {
            count(bucket, 1);
        }
    }

    pub(crate) fn distribution(&self) -> Distribution {
        let upper = |bits: usize| if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<(u64, u64)> = counts
            .enumerate()
            .filter(|&(_, count)| count > 0)
            .map(|(bits, count)| (upper(bits), count))
            .collect();
        Distribution {
            count: buckets.iter().map(|&(_, count)| count).sum(),
            sum: self.sum.load(Ordering::Relaxed),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_powers_of_two() {
        let histogram = Histogram::default();
        for value in [0, 1, 2, 3, 4, u64::MAX - 10] {
            histogram.record(value);
        }
        let found = histogram.distribution();
        assert_eq!(found.buckets, [(0, 1), (1, 1), (3, 2), (7, 1), (u64::MAX, 1)]);
        assert_eq!(found.count, 6);
        assert_eq!(
            (found.quantile(0.5), found.quantile(0.6), found.quantile(1.0)),
            (3, 3, u64::MAX)
        );
        assert_eq!(Distribution::default().quantile(0.99), 0);
    }
}
