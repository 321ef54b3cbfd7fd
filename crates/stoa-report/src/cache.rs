//! Chunks, zones and tails of files in memory, under one bound.
//!
//! **Invariants:** the sum of what entries say they take stays within the bound; an entry never
//! changes. What was asked for once goes before what was asked for often, so a scan does not drive
//! out the chunks that reports live on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::chunk::Chunk;
use crate::files::FileTail;
use crate::zones::Zones;

/// Memory of an entry beside its content: key, hash table, counters, about.
const ENTRY_BYTES: usize = 96;

/// What is kept, by file (a number given out by `Reports`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// The tail of a file.
    Tail { file: u32 },
    /// Bounds of a column (by field id) in the row groups of a file.
    Zones { file: u32, field: i32 },
    /// A column of a row group, counted through the file.
    Chunk { file: u32, group: u32, field: i32 },
}

impl Key {
    fn file(self) -> u32 {
        match self {
            Self::Tail { file } | Self::Zones { file, .. } | Self::Chunk { file, .. } => file,
        }
    }
}

#[derive(Clone)]
enum Entry {
    Tail(Arc<FileTail>, usize),
    Zones(Arc<Zones>, usize),
    Chunk(Arc<Chunk>, usize),
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Entry> for Bytes {
    fn weight(&self, _key: &Key, entry: &Entry) -> u64 {
        let (Entry::Tail(_, bytes) | Entry::Zones(_, bytes) | Entry::Chunk(_, bytes)) = entry;
        (bytes + ENTRY_BYTES) as u64
    }
}

/// What reports keep in memory.
pub(crate) struct ChunkCache {
    entries: Cache<Key, Entry, Bytes>,
    chunk_hits: AtomicU64,
    chunk_misses: AtomicU64,
}

/// How full a cache is and how well it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Bytes in use, by what entries say they take.
    pub bytes: u64,
    /// The bound on them.
    pub bytes_max: u64,
    /// Chunks, zones and tails.
    pub entries: u64,
    /// Chunks that were there when they were asked for, since the start.
    pub chunk_hits: u64,
    /// Chunks that were not.
    pub chunk_misses: u64,
}

impl ChunkCache {
    /// Holds at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        // Chunks of 10,000 rows take 10 to 80 KB.
        let entries = usize::try_from(bytes_max / (24 << 10)).unwrap_or(usize::MAX).max(1024);
        Self {
            entries: Cache::with_weighter(entries, bytes_max, Bytes),
            chunk_hits: AtomicU64::new(0),
            chunk_misses: AtomicU64::new(0),
        }
    }

    /// How full it is and how well it does.
    pub(crate) fn status(&self) -> CacheStatus {
        CacheStatus {
            bytes: self.entries.weight(),
            bytes_max: self.entries.capacity(),
            entries: self.entries.len() as u64,
            chunk_hits: self.chunk_hits.load(Ordering::Relaxed),
            chunk_misses: self.chunk_misses.load(Ordering::Relaxed),
        }
    }

    /// Whether a tenth of it is free.
    pub(crate) fn has_room(&self) -> bool {
        self.entries.weight() <= self.entries.capacity() / 10 * 9
    }

    /// Drops everything.
    pub(crate) fn clear(&self) {
        self.entries.clear();
    }

    pub(crate) fn tail(&self, file: u32) -> Option<Arc<FileTail>> {
        match self.entries.get(&Key::Tail { file }) {
            Some(Entry::Tail(tail, _)) => Some(tail),
            _ => None,
        }
    }

    pub(crate) fn zones(&self, file: u32, field: i32) -> Option<Arc<Zones>> {
        match self.entries.get(&Key::Zones { file, field }) {
            Some(Entry::Zones(zones, _)) => Some(zones),
            _ => None,
        }
    }

    pub(crate) fn chunk(&self, file: u32, group: u32, field: i32) -> Option<Arc<Chunk>> {
        match self.entries.get(&Key::Chunk { file, group, field }) {
            Some(Entry::Chunk(chunk, _)) => Some(chunk),
            _ => None,
        }
    }

    pub(crate) fn put_tail(&self, file: u32, tail: Arc<FileTail>) {
        let bytes = tail.memory_bytes();
        self.entries.insert(Key::Tail { file }, Entry::Tail(tail, bytes));
    }

    pub(crate) fn put_zones(&self, file: u32, field: i32, zones: Arc<Zones>) {
        let bytes = zones.memory_bytes();
        self.entries.insert(Key::Zones { file, field }, Entry::Zones(zones, bytes));
    }

    pub(crate) fn put_chunk(&self, file: u32, group: u32, field: i32, chunk: Arc<Chunk>) {
        let bytes = chunk.memory_bytes();
        self.entries.insert(Key::Chunk { file, group, field }, Entry::Chunk(chunk, bytes));
    }

    /// Drops all that is kept of files for which `is_gone`.
    pub(crate) fn forget(&self, is_gone: impl Fn(u32) -> bool) {
        self.entries.retain(|key, _| !is_gone(key.file()));
    }

    pub(crate) fn count(&self, hits: u64, misses: u64) {
        self.chunk_hits.fetch_add(hits, Ordering::Relaxed);
        self.chunk_misses.fetch_add(misses, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for ChunkCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ChunkCache").field(&self.status()).finish()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;
    use crate::chunk::chunk;

    fn some_chunk(rows: i64) -> Arc<Chunk> {
        Arc::new(chunk(Int64Array::from_iter_values((0..rows).map(|n| n << 33))))
    }

    #[test]
    fn the_bound_holds_and_what_is_used_often_stays() {
        let cache = ChunkCache::new(1 << 20);
        let hot = some_chunk(1000);
        for group in 0..4 {
            cache.put_chunk(1, group, 7, hot.clone());
        }
        for scanned in 0..10_000 {
            assert!((0..4).all(|group| cache.chunk(1, group, 7).is_some()), "{scanned}");
            cache.put_chunk(2, scanned, 7, some_chunk(1000));
            assert!(cache.status().bytes <= 1 << 20);
        }
        assert!(cache.status().entries > 50);
        cache.forget(|file| file == 1);
        assert!(cache.chunk(1, 0, 7).is_none());
        cache.clear();
        assert_eq!(cache.status().bytes, 0);
    }
}
