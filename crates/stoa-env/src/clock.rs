//! What time it is.
#![allow(clippy::disallowed_methods)]

use std::time::{Instant, SystemTime};

use chrono::{DateTime, Utc};

/// Wall-clock time; may step backwards.
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Wall-clock time in UTC.
pub fn now_utc() -> DateTime<Utc> {
    Utc::now()
}

/// Milliseconds since 1970-01-01 00:00:00 UTC.
pub fn unix_ms() -> i64 {
    now_utc().timestamp_millis()
}

/// A clock that never steps backwards, for measuring how long something took.
pub fn monotonic() -> Instant {
    Instant::now()
}
