//! How long queries take, counted in buckets.
//!
//! In: times. Out: percentiles, of all or of a window.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of latencies in buckets that grow by a quarter of a power of two, from 1 µs to days.
///
/// A percentile read from it is interpolated: at most 10 % off where few are near it, and never above the longest.
/// Snapshots of the counts taken at two times can be subtracted to see a window.
#[derive(Debug)]
pub struct LatencyHistogram {
    counts: Box<[AtomicU64]>,
    /// Since it was taken last.
    longest_us: AtomicU64,
}

const BUCKETS_PER_DOUBLING: usize = 4;
const BUCKETS: usize = 40 * BUCKETS_PER_DOUBLING;

impl Default for LatencyHistogram {
    fn default() -> Self {
        let counts = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self { counts, longest_us: AtomicU64::new(0) }
    }
}

impl LatencyHistogram {
    pub(crate) fn record(&self, micros: u64) {
        let bucket = Self::bucket_of(micros);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.longest_us.fetch_max(micros, Ordering::Relaxed);
    }

    /// The longest since [`Self::take_longest_us`] was called last, microseconds; 0 where there was none.
    pub fn longest_us(&self) -> u64 {
        self.longest_us.load(Ordering::Relaxed)
    }

    /// As [`Self::longest_us`]; the next call gives the longest from now on. For the one who samples.
    pub fn take_longest_us(&self) -> u64 {
        self.longest_us.swap(0, Ordering::Relaxed)
    }

    fn bucket_of(micros: u64) -> usize {
        let exact = (micros.max(1) as f64).log2() * BUCKETS_PER_DOUBLING as f64;
        (exact as usize).min(BUCKETS - 1)
    }

    /// Upper end of bucket `index`, microseconds.
    pub fn bucket_upper_us(index: usize) -> f64 {
        ((index + 1) as f64 / BUCKETS_PER_DOUBLING as f64).exp2()
    }

    /// Counts per bucket since the process started.
    pub fn snapshot(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// The latency in microseconds that a `share` (0 to 1) of `counts` does not exceed, of which the longest took
    /// `longest_us`; `None` where there are none.
    pub fn percentile_us(counts: &[u64], share: f64, longest_us: u64) -> Option<f64> {
        let ends = counts.iter().enumerate();
        let ends = ends.filter(|(_, count)| **count > 0);
        interpolated(ends.map(|(index, count)| (Self::bucket_upper_us(index), *count)), share)
            .map(|us| us.min(longest_us as f64))
    }
}

/// The value that a `share` (0 to 1) of some does not exceed, which are counted by the upper end of their bucket,
/// ascending: by nearest rank, and within its bucket as if the values there grew evenly, by their logarithm. The last end
/// is reached by the last value. `None` where there are none.
pub fn interpolated(ends: impl Iterator<Item = (f64, u64)> + Clone, share: f64) -> Option<f64> {
    let total = ends.clone().fold(0_u64, |sum, (_, count)| sum.saturating_add(count));
    let wanted = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
    let mut before = 0_u64;
    for (upper, count) in ends {
        let seen = before.saturating_add(count);
        if seen < wanted {
            before = seen;
            continue;
        }
        let rank = (wanted - before) as f64;
        // Values lie in the middle of what each has; those of the last bucket end where it ends.
        let rank = if seen == total { rank } else { rank - 0.5 };
        let width = 1.0 / BUCKETS_PER_DOUBLING as f64;
        return Some(upper * (width * (rank / count as f64 - 1.0)).exp2());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_come_from_the_right_bucket() {
        let histogram = LatencyHistogram::default();
        (0..99).for_each(|_| histogram.record(100));
        histogram.record(10_000);
        let counts = histogram.snapshot();
        let longest = histogram.take_longest_us();
        assert_eq!((longest, histogram.longest_us()), (10_000, 0));
        let p50 = LatencyHistogram::percentile_us(&counts, 0.5, longest).unwrap();
        let p999 = LatencyHistogram::percentile_us(&counts, 0.999, longest).unwrap();
        assert!((95.0..114.0).contains(&p50), "{p50}");
        assert!((p999 - 10_000.0).abs() < 1.0, "never above the longest: {p999}");
        assert_eq!(LatencyHistogram::percentile_us(&[], 0.5, 0), None);
    }

    /// Against the values themselves, sorted.
    #[test]
    fn percentiles_are_near_the_true_ones() {
        for (factor, many) in [(1.003, 3000), (1.02, 500), (1.5, 30)] {
            let histogram = LatencyHistogram::default();
            let values: Vec<u64> =
                (0..many).map(|n| (50.0 * f64::powi(factor, n)) as u64).collect();
            values.iter().for_each(|value| histogram.record(*value));
            let (counts, longest) = (histogram.snapshot(), histogram.longest_us());
            for share in [0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0] {
                let rank = ((values.len() as f64 * share).ceil() as usize).max(1);
                let (real, found) = (
                    values[rank - 1] as f64,
                    LatencyHistogram::percentile_us(&counts, share, longest).unwrap(),
                );
                let off = found / real - 1.0;
                assert!(off.abs() < 0.1, "{many} at {share}: {found} for {real}");
                assert!(found <= longest as f64);
                // Many in each bucket: it is told where in it.
                assert!(many < 1000 || off.abs() < 0.015, "{many} at {share}: {found} for {real}");
            }
        }
    }
}
