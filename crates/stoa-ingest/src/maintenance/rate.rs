//! A steady rate of bytes.

use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use stoa_env::Env;
use stoa_table::Throttle;

/// Time that may be saved up: what was not used a while ago is gone.
const BURST: Duration = Duration::from_millis(250);

/// Lets bytes through at a rate. Whoever takes pays afterwards: the next one waits until it is paid.
#[derive(Debug)]
pub(super) struct Rate {
    env: Env,
    bytes_per_second: u64,
    /// When everything taken so far is paid for.
    paid: Mutex<Instant>,
}

impl Rate {
    pub(super) fn new(env: Env, bytes_per_second: u64) -> Self {
        let paid = Mutex::new(env.monotonic());
        Self { env, bytes_per_second: bytes_per_second.max(1), paid }
    }

    /// Takes `bytes` at `now`; how long to wait before they may be used.
    fn charge(&self, bytes: u64, now: Instant) -> Duration {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let mut paid = self.paid.lock();
        let begin = (*paid).max(now.checked_sub(BURST).unwrap_or(now));
        *paid = begin.checked_add(cost).unwrap_or(begin);
        begin.saturating_duration_since(now)
    }
}

impl Throttle for Rate {
    fn take(&self, bytes: u64) -> BoxFuture<'_, ()> {
        let wait = self.charge(bytes, self.env.monotonic());
        match wait.is_zero() {
            true => std::future::ready(()).boxed(),
            false => self.env.sleep(wait).boxed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_at_the_rate_and_idle_time_is_not_saved_up() {
        let rate = Rate::new(Env::real(), 1000);
        let start = rate.env.monotonic() + Duration::from_secs(10);
        let at = |ms: u64| start + Duration::from_millis(ms);
        let charge = |bytes, ms| rate.charge(bytes, at(ms)).as_millis();
        // A quarter of a second is saved up, however long nothing was taken.
        assert_eq!(charge(500, 0), 0);
        assert_eq!(charge(1000, 0), 250);
        assert_eq!(charge(1, 1000), 250);
        assert_eq!(charge(100, 5000), 0);
    }
}
