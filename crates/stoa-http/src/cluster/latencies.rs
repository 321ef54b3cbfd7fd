//! Counts of latencies that can be added up, whatever the buckets of the daemon that counted are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stoa_query::LatencyHistogram;

/// Counts by the upper end of their bucket, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Latencies(BTreeMap<u64, u64>);

impl Latencies {
    /// Of the counts of a [`LatencyHistogram`].
    pub(crate) fn of(counts: &[u64]) -> Self {
        let there = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let upper_ns = |index| (LatencyHistogram::bucket_upper_us(index) * 1000.0).round() as u64;
        Self(there.map(|(index, count)| (upper_ns(index), *count)).collect())
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (upper_ns, count) in &other.0 {
            let sum = self.0.entry(*upper_ns).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// The latency in milliseconds that a `share` (0 to 1) does not exceed; `None` where there are none.
    pub(crate) fn percentile_ms(&self, share: f64) -> Option<f64> {
        let total = self.0.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        let wanted = ((total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0_u64;
        let reached = self.0.iter().find(|(_, count)| {
            seen = seen.saturating_add(**count);
            seen >= wanted
        });
        reached.map(|(upper_ns, _)| *upper_ns as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts with `count` in the bucket that ends at 2 to the power of `doublings` microseconds.
    fn counts(all: &[(usize, u64)]) -> Latencies {
        let mut counts = vec![0; 160];
        for (doublings, count) in all {
            counts[doublings * 4 - 1] = *count;
        }
        Latencies::of(&counts)
    }

    #[test]
    fn percentiles_are_of_all_together_and_no_mean_of_percentiles() {
        // 99 fast ones here, one slow one there: each alone has its own p50.
        let mut all = counts(&[(10, 99)]);
        all.add(&counts(&[(20, 1)]));
        assert_eq!(all.percentile_ms(0.5), Some(1.024));
        assert_eq!(all.percentile_ms(0.99), Some(1.024));
        assert_eq!(all.percentile_ms(0.999), Some(1_048.576));
        assert_eq!(Latencies::default().percentile_ms(0.5), None);
    }

    #[test]
    fn buckets_of_another_build_are_added_all_the_same() {
        let mut all = counts(&[(10, 2)]);
        let other: Latencies = serde_json::from_str(r#"{"500000":1,"1024000":1}"#).unwrap();
        all.add(&other);
        assert_eq!(serde_json::to_string(&all).unwrap(), r#"{"500000":1,"1024000":3}"#);
        assert_eq!(all.percentile_ms(0.25), Some(0.5));
    }

    #[test]
    fn the_same_as_one_daemon_computes() {
        let mut counts = vec![0; 160];
        for (index, count) in counts.iter_mut().enumerate() {
            *count = (index * 7919 % 13) as u64;
        }
        for share in [0.01, 0.5, 0.95, 0.99, 1.0] {
            let one = LatencyHistogram::percentile_us(&counts, share).unwrap() / 1000.0;
            let merged = Latencies::of(&counts).percentile_ms(share).unwrap();
            assert!((one - merged).abs() <= one * 1e-3 + 1e-6, "{share}: {one} {merged}");
        }
    }
}
