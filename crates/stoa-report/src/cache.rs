//! Chunks, zones and tails of files, and small tables, in memory, under one bound.
//!
//! Chunks that scans have read are kept apart, in the room that reports do not use: they give way
//! when reports need it, and never the other way round.
//!
//! **Invariants:** the sum of what entries say they take stays within the bound; an entry never
//! changes. What was asked for once goes before what was asked for often.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
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
    /// Chunks that scans have read, in what `entries` leave of the bound.
    scanned: Cache<Key, Entry, Bytes>,
    /// Held while something is added, as the two share one bound.
    adding: Mutex<()>,
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
            scanned: Cache::with_weighter(entries, bytes_max, Bytes),
            adding: Mutex::new(()),
            chunk_hits: AtomicU64::new(0),
            chunk_misses: AtomicU64::new(0),
        }
    }

    /// How full it is and how well it does.
    pub(crate) fn status(&self) -> CacheStatus {
        CacheStatus {
            bytes: self.entries.weight() + self.scanned.weight(),
            bytes_max: self.entries.capacity(),
            entries: (self.entries.len() + self.scanned.len()) as u64,
            chunk_hits: self.chunk_hits.load(Ordering::Relaxed),
            chunk_misses: self.chunk_misses.load(Ordering::Relaxed),
            ..CacheStatus::default()
        }
    }

    /// Bytes that may be filled with what nobody has asked for yet: nine tenths.
    pub(crate) fn warm_bytes_max(&self) -> u64 {
        self.entries.capacity() / 10 * 9
    }

    /// Bytes that reports may have in use.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.entries.capacity()
    }

    /// Bytes in use by reports.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.weight()
    }

    /// Bytes that scans may use: nine tenths of the bound, without what reports use.
    pub(crate) fn scan_bytes_max(&self) -> u64 {
        self.warm_bytes_max().saturating_sub(self.entries.weight())
    }

    /// Drops everything.
    pub(crate) fn clear(&self) {
        self.entries.clear();
        self.scanned.clear();
    }

    /// Adds what a report has read. What scans have read makes room for it.
    fn put(&self, key: Key, entry: Entry) {
        let _adding = self.adding.lock();
        self.scanned.remove(&key);
        let bytes = self.entries.weight() + Bytes.weight(&key, &entry);
        let left = self.entries.capacity().saturating_sub(bytes);
        if self.scanned.weight() > left {
            // More than needed, so that not every chunk has to ask for room.
            self.scanned.set_capacity(left.saturating_sub(self.entries.capacity() / 32));
        }
        self.entries.insert(key, entry);
    }

    /// A chunk for a scan, whoever has read it.
    pub(crate) fn scanned_chunk(&self, key: Key) -> Option<Arc<Chunk>> {
        match self.scanned.get(&key).or_else(|| self.entries.peek(&key)) {
            Some(Entry::Chunk(chunk, _)) => Some(chunk),
            _ => None,
        }
    }

    /// Adds a chunk that a scan has read, if there is room beside what reports keep.
    pub(crate) fn put_scanned(&self, key: Key, chunk: Arc<Chunk>) {
        let bytes = chunk.memory_bytes();
        let _adding = self.adding.lock();
        let room = self.scan_bytes_max();
        // Setting it takes all locks of the cache, whose parts round it up by a byte each.
        if !(room - room / 16..=room).contains(&self.scanned.capacity()) {
            self.scanned.set_capacity(room.saturating_sub(self.scanned.num_shards() as u64));
        }
        if room > 0 {
            self.scanned.insert(key, Entry::Chunk(chunk, bytes));
        }
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
            _ => self.adopted(key),
        }
    }

    /// A chunk that a scan has read, for reports from now on.
    fn adopted(&self, key: Key) -> Option<Arc<Chunk>> {
        let Some((_, Entry::Chunk(chunk, _))) = self.scanned.remove(&key) else { return None };
        chunk.uses().add();
        self.put_chunk(key, chunk.clone());
        Some(chunk)
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
        self.put(key, Entry::Small(small, bytes));
    }

    pub(crate) fn put_tail(&self, file: u32, tail: Arc<FileTail>) {
        let bytes = tail.memory_bytes();
        self.put(Key::Tail { file }, Entry::Tail(tail, bytes));
    }

    pub(crate) fn put_zones(&self, key: Key, zones: Arc<Zones>) {
        let bytes = zones.memory_bytes();
        self.put(key, Entry::Zones(zones, bytes));
    }

    pub(crate) fn put_chunk(&self, key: Key, chunk: Arc<Chunk>) {
        let bytes = chunk.memory_bytes();
        self.put(key, Entry::Chunk(chunk, bytes));
    }

    pub(crate) fn remove(&self, key: Key) {
        self.entries.remove(&key);
    }

    /// Drops all that is kept of files for which `is_gone`.
    pub(crate) fn forget(&self, is_gone: impl Fn(u32) -> bool) {
        self.entries.retain(|key, _| !key.file().is_some_and(&is_gone));
        self.scanned.retain(|key, _| !key.file().is_some_and(&is_gone));
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
    fn scans_use_what_reports_leave() {
        let max = 1 << 20;
        let cache = ChunkCache::new(max);
        let within = |cache: &ChunkCache| cache.status().bytes <= max;
        for group in 0..1_000 {
            cache.put_scanned(key(1, group), some_chunk(1000));
            assert!(within(&cache), "{group}");
        }
        let alone = cache.status().bytes;
        assert!(alone > max / 2 && cache.scanned.weight() == alone);
        // A report takes over what it finds.
        let found = (0..1_000).find(|group| cache.scanned_chunk(key(1, *group)).is_some()).unwrap();
        assert!(cache.chunk(key(1, found)).is_some());
        assert!(cache.scanned.peek(&key(1, found)).is_none());
        for group in 0..1_000 {
            cache.put_chunk(key(2, group), some_chunk(1000));
            assert!(within(&cache), "{group}");
        }
        assert!(cache.entries.weight() > max / 2, "reports have what they need");
        // Whatever is scanned now, reports keep theirs.
        let kept: Vec<u32> =
            (0..1_000).filter(|group| cache.entries.peek(&key(2, *group)).is_some()).collect();
        for group in 0..1_000 {
            cache.put_scanned(key(3, group), some_chunk(1000));
            assert!(within(&cache), "{group}");
        }
        assert!(kept.iter().all(|group| cache.entries.peek(&key(2, *group)).is_some()));
        cache.forget(|file| file == 3);
        assert!((0..1_000).all(|group| cache.scanned_chunk(key(3, group)).is_none()));
        cache.clear();
        assert_eq!(cache.status().bytes, 0);
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
