//! A second of a measurement.

use hdrhistogram::Histogram;
use serde::Serialize;

/// What clients saw in a second. Times in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Second {
    /// Reports answered.
    pub answered: u64,
    /// Median.
    pub p50_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
}

impl From<Histogram<u64>> for Second {
    fn from(latency_us: Histogram<u64>) -> Self {
        Self {
            answered: latency_us.len(),
            p50_us: latency_us.value_at_quantile(0.5),
            p99_us: latency_us.value_at_quantile(0.99),
            max_us: latency_us.max(),
        }
    }
}
