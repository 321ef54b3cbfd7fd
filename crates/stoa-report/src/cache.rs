//! Chunks, zones and tails of files, and small tables, in memory, under one bound.
//!
//! **Invariants:** the sum of what entries say they take stays within the bound; an entry never
//! changes. What was asked for once goes before what was asked for often, so a scan does not drive
//! out the chunks that reports live on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::chunk::Chunk;
use crate::disk::DiskStatus;
use crate::files::FileTail;
use crate::small::SmallTable;
use crate::zones::Zones;

/// Memory of an entry beside its content: key, hash table, counters, about.
const ENTRY_BYTES: usize = 96;

/// What is kept, by file (a number given out by `identity`) or batch of fresh rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// The tail of a file.
    Tail { file: u32 },
    /// Bounds of a column (by field id) in the row groups of a file.
    Zones { file: u32, field: i32 },
    /// A column of a row group, counted through the file.
    Chunk { file: u32, group: u32, field: i32 },
    /// Bounds of a column in the blocks of a batch of fresh rows.
    FreshZones { batch: u64, field: i32 },
    /// A column of a block of fresh rows.
    FreshChunk { batch: u64, block: u32, field: i32 },
    /// All rows of some columns (a hash of their field ids) of a table.
    Small { table: Uuid, columns: u64 },
}

impl Key {
    fn file(self) -> Option<u32> {
        match self {
            Self::Tail { file } | Self::Zones { file, .. } | Self::Chunk { file, .. } => Some(file),
            Self::FreshZones { .. } | Self::FreshChunk { .. } | Self::Small { .. } => None,
        }
    }
}

#[derive(Clone)]
enum Entry {
    Tail(Arc<FileTail>, usize),
    Zones(Arc<Zones>, usize),
    Chunk(Arc<Chunk>, usize),
    Small(Arc<SmallTable>, usize),
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Entry> for Bytes {
    fn weight(&self, _key: &Key, entry: &Entry) -> u64 {
        let (Entry::Tail(_, bytes)
        | Entry::Zones(_, bytes)
        | Entry::Chunk(_, bytes)
        | Entry::Small(_, bytes)) = entry;
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
    /// Chunks, zones, tails and small tables.
    pub entries: u64,
    /// Chunks that were there when they were asked for, since the start.
    pub chunk_hits: u64,
    /// Chunks that were not.
    pub chunk_misses: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// The bound on them; 0 where nothing is kept on disk.
    pub disk_bytes_max: u64,
    /// Chunks on disk.
    pub disk_entries: u64,
    /// Chunks that were on disk when memory did not have them, since the start.
    pub disk_hits: u64,
    /// Chunks of remote files that were not.
    pub disk_misses: u64,
    /// Chunks written to disk.
    pub disk_written: u64,
    /// Chunks not written: too many waited, or the disk was full.
    pub disk_dropped: u64,
    /// Entries that were damaged.
    pub disk_damaged: u64,
    /// Whether chunks are written: false while the folder is being opened, and for good when the
    /// folder is not to be used or the disk is full.
    pub disk_is_writing: bool,
}

impl CacheStatus {
    pub(crate) fn with_disk(self, disk: DiskStatus) -> Self {
        Self {
            disk_bytes: disk.bytes,
            disk_bytes_max: disk.bytes_max,
            disk_entries: disk.entries,
            disk_hits: disk.hits,
            disk_misses: disk.misses,
            disk_written: disk.written,
            disk_dropped: disk.dropped,
            disk_damaged: disk.damaged,
            disk_is_writing: disk.is_writing,
            ..self
        }
    }
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
            ..CacheStatus::default()
        }
    }

    /// Bytes that may be filled with what nobody has asked for yet: nine tenths.
    pub(crate) fn warm_bytes_max(&self) -> u64 {
        self.entries.capacity() / 10 * 9
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.weight()
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

    pub(crate) fn zones(&self, key: Key) -> Option<Arc<Zones>> {
        match self.entries.get(&key) {
            Some(Entry::Zones(zones, _)) => Some(zones),
            _ => None,
        }
    }

    pub(crate) fn chunk(&self, key: Key) -> Option<Arc<Chunk>> {
        match self.entries.get(&key) {
            Some(Entry::Chunk(chunk, _)) => {
                chunk.uses().add();
                Some(chunk)
            }
            _ => None,
        }
    }

    /// Chunks of files as (file, row group, field id, how often they were looked at lately). Each
    /// call makes what was before count half.
    pub(crate) fn heat(&self) -> Vec<(u32, u32, i32, u32)> {
        let heat = |(key, entry)| match (key, entry) {
            (Key::Chunk { file, group, field }, Entry::Chunk(chunk, _)) => {
                Some((file, group, field, chunk.uses().fade()))
            }
            _ => None,
        };
        self.entries.iter().filter_map(heat).collect()
    }

    pub(crate) fn small(&self, key: Key) -> Option<Arc<SmallTable>> {
        match self.entries.get(&key) {
            Some(Entry::Small(small, _)) => Some(small),
            _ => None,
        }
    }

    pub(crate) fn put_small(&self, key: Key, small: Arc<SmallTable>) {
        let bytes = small.memory_bytes();
        self.entries.insert(key, Entry::Small(small, bytes));
    }

    pub(crate) fn put_tail(&self, file: u32, tail: Arc<FileTail>) {
        let bytes = tail.memory_bytes();
        self.entries.insert(Key::Tail { file }, Entry::Tail(tail, bytes));
    }

    pub(crate) fn put_zones(&self, key: Key, zones: Arc<Zones>) {
        let bytes = zones.memory_bytes();
        self.entries.insert(key, Entry::Zones(zones, bytes));
    }

    pub(crate) fn put_chunk(&self, key: Key, chunk: Arc<Chunk>) {
        let bytes = chunk.memory_bytes();
        self.entries.insert(key, Entry::Chunk(chunk, bytes));
    }

    pub(crate) fn remove(&self, key: Key) {
        self.entries.remove(&key);
    }

    /// Drops all that is kept of files for which `is_gone`.
    pub(crate) fn forget(&self, is_gone: impl Fn(u32) -> bool) {
        self.entries.retain(|key, _| !key.file().is_some_and(&is_gone));
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

    fn key(file: u32, group: u32) -> Key {
        Key::Chunk { file, group, field: 7 }
    }

    #[test]
    fn the_bound_holds_and_what_is_used_often_stays() {
        let cache = ChunkCache::new(1 << 20);
        let hot = some_chunk(1000);
        for group in 0..4 {
            cache.put_chunk(key(1, group), hot.clone());
        }
        for scanned in 0..10_000 {
            assert!((0..4).all(|group| cache.chunk(key(1, group)).is_some()), "{scanned}");
            cache.put_chunk(key(2, scanned), some_chunk(1000));
            assert!(cache.status().bytes <= 1 << 20);
        }
        assert!(cache.status().entries > 50);
        cache.forget(|file| file == 1);
        assert!(cache.chunk(key(1, 0)).is_none());
        cache.clear();
        assert_eq!(cache.status().bytes, 0);
    }
}
