//! Two clocks that must not be mixed up, so each has a type.
//!
//! Nothing here reads a clock: the caller passes the time in.

use std::ops::Add;
use std::time::Duration;

/// Time on this process's monotonic clock, since an origin of its own.
///
/// Means nothing to another process. For deadlines, timeouts and probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Monotonic(pub Duration);

/// Time on the database's clock (`clock_timestamp()`), since the Unix epoch.
///
/// May jump in both directions, for example after a failover. Only the database compares it with its
/// present; a daemon compares two values only for equality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatabaseTime(pub Duration);

impl Monotonic {
    /// How much later this is than `earlier`; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl DatabaseTime {
    /// How much later this is than `earlier`; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }
}

impl Add<Duration> for DatabaseTime {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }
}
