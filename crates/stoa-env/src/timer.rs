//! Waiting for time to pass, on the runtime's own clock.
//!
//! In: durations. Out: futures that are done later. Tests may stop this clock (`tokio::time::pause`),
//! which [`crate::clock`] knows nothing of, so whoever compares with it asks [`now`].
//!
//! Not here: time that a simulation decides ([`crate::Env`], which code is given that is to be driven).
#![allow(clippy::disallowed_methods)]

use std::time::Duration;

pub use tokio::time::error::Elapsed;
pub use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, Timeout};

/// Now, as this clock has it.
pub fn now() -> Instant {
    Instant::now()
}

/// Done after `duration`. Needs a runtime.
pub fn sleep(duration: Duration) -> Sleep {
    tokio::time::sleep(duration)
}

/// Done at `deadline`, at once where that has passed. Needs a runtime.
pub fn sleep_until(deadline: Instant) -> Sleep {
    tokio::time::sleep_until(deadline)
}

/// What `work` gives, or [`Elapsed`] where it is not done within `limit`; it is dropped then.
pub fn timeout<F: IntoFuture>(limit: Duration, work: F) -> Timeout<F::IntoFuture> {
    tokio::time::timeout(limit, work)
}

/// Ticks now and then after every `period`, which must not be zero.
pub fn interval(period: Duration) -> Interval {
    tokio::time::interval(period)
}
