//! Which requests fail, and how.

use std::sync::atomic::{AtomicU64, Ordering};

use stoa_error::{Error, Result};

use super::ProxyOptions;

/// What becomes of a request that does not go through well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// 503, the store never sees it.
    SlowDown,
    /// 500, the store never sees it.
    InternalError,
    /// The store does it, nobody is told.
    Lost,
    /// Half of the answer's body.
    Truncated,
}

/// Decides for each request in the order of arrival.
#[derive(Debug)]
pub(super) struct Faults {
    errors: f64,
    lost: f64,
    truncated: f64,
    seed: u64,
    number: AtomicU64,
}

impl Faults {
    pub(super) fn new(options: &ProxyOptions) -> Result<Self> {
        let shares = [options.errors, options.lost, options.truncated];
        if !shares.iter().all(|share| (0.0..=1.0).contains(share))
            || shares.iter().sum::<f64>() > 1.0
        {
            return Err(Error::invalid("shares of faults are from 0 to 1, together at most 1"));
        }
        Ok(Self {
            errors: options.errors,
            lost: options.lost,
            truncated: options.truncated,
            seed: options.seed,
            number: AtomicU64::new(0),
        })
    }

    /// What becomes of the next request.
    pub(super) fn next(&self, is_read: bool) -> Option<Fault> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let chance = mixed(self.seed ^ mixed(number)) as f64 / u64::MAX as f64;
        if chance < self.errors {
            return Some(if number.is_multiple_of(2) {
                Fault::SlowDown
            } else {
                Fault::InternalError
            });
        }
        if chance < self.errors + self.lost {
            return Some(Fault::Lost);
        }
        let truncated = is_read && chance < self.errors + self.lost + self.truncated;
        truncated.then_some(Fault::Truncated)
    }
}

/// SplitMix64's mixer.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
