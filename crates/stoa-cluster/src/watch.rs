//! Patience: how long a row has been seen unchanged.
//!
//! The database's clock alone says whether a lease has expired, and that clock may jump forwards, for
//! example after a failover. So whoever wants to take something away from its holder also waits until
//! it has seen the same row for the whole time to live, on its own monotonic clock. A holder that
//! is alive changes the row (`until`) with each renewal.
//!
//! After a pause in reading, waiting starts anew: while the database was away nobody could renew.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Monotonic;

/// What was seen of rows with keys `K`, of which `V` changes with each sign of life.
#[derive(Clone, Debug)]
pub struct Watch<K, V> {
    seen: BTreeMap<K, Seen<V>>,
    pause_max: Duration,
}

#[derive(Clone, Debug)]
struct Seen<V> {
    value: V,
    /// When the first read that showed this value was answered.
    since: Monotonic,
    last: Monotonic,
}

impl<K: Ord, V: PartialEq> Watch<K, V> {
    /// Reads further apart than `pause_max` do not count as one observation.
    pub fn new(pause_max: Duration) -> Self {
        Self { seen: BTreeMap::new(), pause_max }
    }

    /// Takes note of a row, in an answer that arrived at `now`.
    ///
    /// Answers must come in the order in which the database gave them; drop those that do not.
    pub fn see(&mut self, key: K, value: V, now: Monotonic) {
        let pause_max = self.pause_max;
        match self.seen.get_mut(&key) {
            Some(seen) if seen.value == value && now.since(seen.last) <= pause_max => {
                seen.last = now
            }
            _ => drop(self.seen.insert(key, Seen { value, since: now, last: now })),
        }
    }

    /// Forgets a row.
    pub fn forget(&mut self, key: &K) {
        self.seen.remove(key);
    }

    /// For how long the row had been unchanged when it was last read; zero if it was never seen.
    pub fn unchanged_for(&self, key: &K) -> Duration {
        self.seen.get(key).map_or(Duration::ZERO, |seen| seen.last.since(seen.since))
    }

    /// When the row was first seen as it was last seen.
    pub fn since(&self, key: &K) -> Option<Monotonic> {
        self.seen.get(key).map(|seen| seen.since)
    }
}
