//! What was not in memory here a short while ago: reports on it are sent to its home without another look.
//!
//! In: reports that were sent to the home of their part. Out: whether one that needs the same is to be sent there at once. A
//! look costs about a tenth of what it costs to forward a report. **Invariants:** what is remembered is about speed only, is
//! forgotten after [`KNOWN_FOR`], and takes a fixed amount of memory: two that share a place drive each other out.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use stoa_cluster::Monotonic;
use stoa_report::Report;
use uuid::Uuid;

/// For how long it is remembered, milliseconds.
const KNOWN_FOR_MS: u32 = 1000;

/// How many are remembered, at most.
const PLACES: usize = 4096;

/// What reports need that have the same columns, the same conditions beside the one on the first sort column, and the same
/// part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs(u64);

pub(super) struct Cold {
    hasher: RandomState,
    /// High half of the hash, and the millisecond until which it is known.
    places: Box<[AtomicU64]>,
    /// The millisecond until which anything is known.
    any_until: AtomicU64,
}

impl Cold {
    pub(super) fn new() -> Self {
        let places = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Self { hasher: RandomState::default(), places, any_until: AtomicU64::new(0) }
    }

    /// Whether anything may be known: if not, it is not worth while to find out what a report needs.
    pub(super) fn knows_any(&self, now: Monotonic) -> bool {
        self.any_until.load(Ordering::Relaxed) > milliseconds(now)
    }

    pub(super) fn needs(
        &self,
        table: Uuid,
        report: &Report,
        first_sort_column: i32,
        part: u32,
    ) -> Needs {
        let mut hasher = self.hasher.build_hasher();
        (table.as_u128(), part).hash(&mut hasher);
        for column in &report.columns {
            column.field_id.hash(&mut hasher);
        }
        for condition in &report.conditions {
            let field = report.columns.get(condition.column).map(|column| column.field_id);
            if field != Some(first_sort_column) {
                (field, &condition.test).hash(&mut hasher);
            }
        }
        Needs(hasher.finish())
    }

    /// Whether that was not in memory a short while ago.
    pub(super) fn knows(&self, needs: Needs, now: Monotonic) -> bool {
        let Some(place) = self.place(needs) else { return false };
        let (of, until) = parts(place.load(Ordering::Relaxed));
        // Milliseconds begin anew after 49 days.
        of == parts(needs.0).0 && (1..=KNOWN_FOR_MS).contains(&until.wrapping_sub(short(now)))
    }

    /// It is not in memory, and not to be.
    pub(super) fn note(&self, needs: Needs, now: Monotonic) {
        let until = short(now).wrapping_add(KNOWN_FOR_MS);
        if let Some(place) = self.place(needs) {
            let of = needs.0 & !u64::from(u32::MAX);
            place.store(of | u64::from(until), Ordering::Relaxed);
        }
        let any_until = milliseconds(now) + u64::from(KNOWN_FOR_MS);
        if self.any_until.load(Ordering::Relaxed) != any_until {
            self.any_until.store(any_until, Ordering::Relaxed);
        }
    }

    fn place(&self, needs: Needs) -> Option<&AtomicU64> {
        self.places.get(parts(needs.0).1 as usize % PLACES)
    }
}

/// The high and the low half.
fn parts(number: u64) -> (u32, u32) {
    ((number >> 32) as u32, number as u32)
}

fn milliseconds(time: Monotonic) -> u64 {
    u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX)
}

fn short(time: Monotonic) -> u32 {
    milliseconds(time) as u32
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(ms: u64) -> Monotonic {
        Monotonic(Duration::from_millis(ms))
    }

    #[test]
    fn what_is_noted_is_known_for_a_second() {
        let cold = Cold::new();
        let (one, other) = (Needs(7 << 32 | 5), Needs(8 << 32 | 5));
        // Also when 32 bits of milliseconds begin anew.
        for begin in [0, 10, 5000, u64::from(u32::MAX) - 300, u64::from(u32::MAX) + 77] {
            assert!(!cold.knows(one, at(begin + 1001)));
            cold.note(one, at(begin));
            assert!(cold.knows_any(at(begin)) && cold.knows_any(at(begin + 999)));
            assert!(cold.knows(one, at(begin)) && cold.knows(one, at(begin + 999)));
            assert!(!cold.knows(other, at(begin)), "at the same place");
            assert!(!cold.knows(one, at(begin + 1000)) && !cold.knows_any(at(begin + 1000)));
        }
        cold.note(other, at(9_000_000_000));
        assert!(!cold.knows(one, at(9_000_000_000)), "it was driven out");
    }
}
