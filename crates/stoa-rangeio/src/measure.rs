//! What requests are seen to take.

use std::sync::Mutex;
use std::time::Duration;

use crate::StoreProfile;

/// Weight of a new sample.
const WEIGHT: f64 = 0.1;
/// Smallest answer whose flow says something about bandwidth.
const BANDWIDTH_BYTES_MIN: u64 = 256 << 10;

/// A profile whose latency and bandwidth follow the requests.
#[derive(Debug)]
pub(crate) struct Estimator(Mutex<Estimate>);

#[derive(Debug)]
struct Estimate {
    profile: StoreProfile,
    latencies: u64,
    bandwidths: u64,
}

impl Estimator {
    pub fn new(profile: StoreProfile) -> Self {
        Self(Mutex::new(Estimate { profile, latencies: 0, bandwidths: 0 }))
    }

    /// The profile as measured so far.
    pub fn profile(&self) -> StoreProfile {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).profile
    }

    /// Takes in one request: time to its first byte, time from there, bytes.
    pub fn sample(&self, first_byte: Duration, flow: Duration, bytes: u64) {
        let mut estimate = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let latency = mix(
            estimate.profile.latency.as_secs_f64(),
            first_byte.as_secs_f64(),
            &mut estimate.latencies,
        );
        estimate.profile.latency = Duration::try_from_secs_f64(latency).unwrap_or(first_byte);
        // An answer that was there at once did not flow through a network.
        if bytes >= BANDWIDTH_BYTES_MIN && flow > Duration::from_micros(100) {
            let seen = bytes as f64 / flow.as_secs_f64();
            estimate.profile.bandwidth =
                mix(estimate.profile.bandwidth, seen, &mut estimate.bandwidths);
        }
    }
}

/// The mean of the first samples, then a moving one; the preset counts like one sample.
fn mix(known: f64, seen: f64, samples: &mut u64) -> f64 {
    *samples += 1;
    let weight = (1.0 / (*samples + 1) as f64).max(WEIGHT);
    known + (seen - known) * weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_follows_what_is_seen() {
        let estimator = Estimator::new(StoreProfile::default());
        for _ in 0..60 {
            estimator.sample(Duration::from_millis(80), Duration::from_millis(20), 1_000_000);
            estimator.sample(Duration::from_millis(80), Duration::from_millis(1), 100);
        }
        let profile = estimator.profile();
        assert!((profile.latency.as_secs_f64() - 0.08).abs() < 0.001, "{profile:?}");
        assert!((profile.bandwidth - 50e6).abs() < 1e6, "{profile:?}");
    }
}
