//! What statements take of caches and object stores.

use stoa_store::Charged;

/// What a statement, or many together, took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Requests to object stores, of whatever kind, and their price. Local files cost nothing and are
    /// not among them.
    pub store: Charged,
    /// Reads that were sent a second time because the first was slow.
    pub hedges: u64,
    /// Chunks that reports and scans found in memory.
    pub chunk_hits: u64,
    /// Chunks that they did not find there.
    pub chunk_misses: u64,
}

impl Spent {
    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            store: self.store.plus(&other.store),
            hedges: self.hedges + other.hedges,
            chunk_hits: self.chunk_hits + other.chunk_hits,
            chunk_misses: self.chunk_misses + other.chunk_misses,
        }
    }

    /// The share of chunks that were in memory, 0 to 1; `None` where none was asked for.
    pub fn hit_ratio(&self) -> Option<f64> {
        let asked = self.chunk_hits + self.chunk_misses;
        (asked > 0).then(|| self.chunk_hits as f64 / asked as f64)
    }
}
