//! Counts of latencies that can be added up, whatever the buckets of the daemon that counted are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stoa_query::{LatencyHistogram, interpolated};

/// Counts by the upper end of their bucket, nanoseconds; that of the longest ends with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Latencies(BTreeMap<u64, u64>);

impl Latencies {
    /// Of the counts of a [`LatencyHistogram`], of which the longest took `longest_us`.
    pub(crate) fn of(counts: &[u64], longest_us: u64) -> Self {
        let there = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let longest_ns = longest_us.saturating_mul(1000);
        let upper_ns = |index| {
            let upper = (LatencyHistogram::bucket_upper_us(index) * 1000.0).round() as u64;
            upper.min(longest_ns)
        };
        let mut all = Self::default();
        for (index, count) in there {
            all.add(&Self(BTreeMap::from([(upper_ns(index), *count)])));
        }
        all
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (upper_ns, count) in &other.0 {
            let sum = self.0.entry(*upper_ns).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// The latency in milliseconds that a `share` (0 to 1) does not exceed; `None` where there are none.
    pub(crate) fn percentile_ms(&self, share: f64) -> Option<f64> {
        interpolated(self.0.iter().map(|(upper_ns, count)| (*upper_ns as f64, *count)), share)
            .map(|ns| ns / 1e6)
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
        Latencies::of(&counts, u64::MAX)
    }

    #[test]
    fn percentiles_are_of_all_together_and_no_mean_of_percentiles() {
        // 99 fast ones here, one slow one there: each alone has its own p50.
        let mut all = counts(&[(10, 99)]);
        all.add(&counts(&[(20, 1)]));
        let near = |share: f64, wanted: f64| {
            let found = all.percentile_ms(share).unwrap();
            assert!((found / wanted - 1.0).abs() < 0.001, "{share}: {found}");
        };
        // The middle one of its bucket, the last one of it, and the last of all.
        near(0.5, 0.939);
        near(0.99, 1.023);
        near(0.999, 1_048.576);
        assert_eq!(
            Latencies::of(&[0, 4], 1).percentile_ms(1.0),
            Some(0.001),
            "no longer than the longest"
        );
        assert_eq!(Latencies::default().percentile_ms(0.5), None);
    }

    #[test]
    fn buckets_of_another_build_are_added_all_the_same() {
        let mut all = counts(&[(10, 2)]);
        let other: Latencies = serde_json::from_str(r#"{"500000":1,"1024000":1}"#).unwrap();
        all.add(&other);
        assert_eq!(serde_json::to_string(&all).unwrap(), r#"{"500000":1,"1024000":3}"#);
        let first = all.percentile_ms(0.25).unwrap();
        assert!((0.45..0.5).contains(&first), "{first}");
    }

    #[test]
    fn the_same_as_one_daemon_computes() {
        let mut counts = vec![0; 160];
        for (index, count) in counts.iter_mut().enumerate() {
            *count = (index * 7919 % 13) as u64;
        }
        for share in [0.01, 0.5, 0.95, 0.99, 1.0] {
            let one = LatencyHistogram::percentile_us(&counts, share, u64::MAX).unwrap() / 1000.0;
            let merged = Latencies::of(&counts, u64::MAX).percentile_ms(share).unwrap();
            assert!((one - merged).abs() <= one * 1e-3 + 1e-6, "{share}: {one} {merged}");
        }
    }
}
