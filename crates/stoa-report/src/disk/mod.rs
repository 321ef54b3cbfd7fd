//! Chunks on a local disk: what came from a remote store and does not fit into memory, or was there
//! before a restart.
//!
//! ```text
//! folder/lock                one process at a time
//! folder/chunks-00000017.seg entry, entry, …                 (`segment`: layout of an entry)
//! folder/chunks-00000018.seg entry, entry, …  ◄── appended to by one thread
//! ```
//! An index in memory (about 40 bytes per chunk) says where the newest entry of a key is; it is made
//! from the segments at a start. When the bound is reached the oldest segment goes as a whole; an
//! entry that is read while its segment is among the older half is appended again.
//!
//! **Invariants:** the files' lengths never sum up to more than the bound; an entry is given out only
//! if its whole key and its checksum are right, so torn, damaged and foreign bytes are misses; no
//! caller waits for a write, and nothing here fails a report. A segment that was there at the start is
//! not appended to. Not here: which chunks to keep (`missing`), their bytes (`chunk`).

mod index;
mod segment;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::chunk::Chunk;
use index::Index;
pub(crate) use segment::DiskKey;

/// Chunks that wait to be written, and their bytes; what comes beyond either is not kept.
const QUEUE_MAX: usize = 8192;
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Where chunks of remote files are kept beside memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// A folder of its own, which is made if it is not there. Its files may be deleted at any time
    /// that no process uses it.
    pub folder: PathBuf,
    /// Bytes that its files may take.
    pub bytes_max: u64,
}

/// How much is on disk and how well that does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskStatus {
    pub(crate) bytes: u64,
    pub(crate) bytes_max: u64,
    pub(crate) entries: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) written: u64,
    pub(crate) dropped: u64,
    pub(crate) damaged: u64,
    pub(crate) is_writing: bool,
}

/// The tier. Dropped, it writes what waits and lets go of the folder.
pub(crate) struct DiskTier {
    shared: Arc<Shared>,
    queue: Option<SyncSender<Job>>,
    opened: watch::Receiver<bool>,
    writer: Option<JoinHandle<()>>,
}

struct Job {
    key: DiskKey,
    chunk: Arc<Chunk>,
}

#[derive(Default)]
struct Shared {
    bytes_max: u64,
    index: Mutex<Index>,
    /// Bytes of chunks that wait.
    queued_bytes: AtomicUsize,
    hits: AtomicU64,
    misses: AtomicU64,
    written: AtomicU64,
    dropped: AtomicU64,
    damaged: AtomicU64,
    is_writing: AtomicBool,
}

impl DiskTier {
    /// Opens the folder in the background. Where that is not possible there is a warning, and
    /// nothing is kept.
    pub(crate) fn open(options: DiskOptions) -> Self {
        let shared = Shared { bytes_max: options.bytes_max, ..Shared::default() };
        let shared = Arc::new(shared);
        let (queue, jobs) = sync_channel(QUEUE_MAX);
        let (opening, opened) = watch::channel(false);
        let of_writer = shared.clone();
        let writer = stoa_env::task::spawn_thread("disk-cache", move || {
            of_writer.work(&options, jobs, opening);
        });
        let writer =
            writer.inspect_err(|error| tracing::warn!(%error, "no thread for chunks on disk")).ok();
        Self { shared, queue: Some(queue), opened, writer }
    }

    /// Waits until what was there before is known, or cannot be.
    pub(crate) async fn opened(&self) {
        // An error means that the writer is gone, and so is whatever it would have found.
        let _ = self.opened.clone().wait_for(|opened| *opened).await;
    }

    /// Keeps a chunk, some time soon; not if too many wait.
    pub(crate) fn put(&self, key: DiskKey, chunk: Arc<Chunk>) {
        let Some(queue) = &self.queue else { return };
        let (shared, bytes) = (&self.shared, chunk.memory_bytes());
        let queued = shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if queued > QUEUE_BYTES_MAX || queue.try_send(Job { key, chunk }).is_err() {
            shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The chunks of `keys` that are there, each in its place.
    pub(crate) async fn get(&self, keys: Vec<DiskKey>) -> Vec<Option<Arc<Chunk>>> {
        let count = keys.len();
        let places: Vec<_> = {
            let index = self.shared.index.lock();
            keys.into_iter().map(|key| index.find(&key).map(|found| (key, found))).collect()
        };
        if places.iter().all(Option::is_none) {
            self.shared.misses.fetch_add(count as u64, Ordering::Relaxed);
            return vec![None; count];
        }
        let shared = self.shared.clone();
        let read = stoa_env::task::spawn_blocking(move || {
            let read = |(key, found): (DiskKey, index::IndexedEntry)| {
                let chunk = shared.read(&key, &found)?;
                Some((key, chunk, found.is_old))
            };
            places.into_iter().map(|place| place.and_then(read)).collect::<Vec<_>>()
        });
        let read = read.await.unwrap_or_default();
        let mut chunks = Vec::with_capacity(count);
        for one in read {
            chunks.push(one.map(|(key, chunk, is_old)| {
                if is_old {
                    self.put(key, chunk.clone());
                }
                chunk
            }));
        }
        chunks.resize(count, None);
        let hits = chunks.iter().flatten().count();
        self.shared.hits.fetch_add(hits as u64, Ordering::Relaxed);
        self.shared.misses.fetch_add((count - hits) as u64, Ordering::Relaxed);
        chunks
    }

    /// Deletes all that is kept.
    pub(crate) fn clear(&self) {
        if let Err(error) = self.shared.index.lock().clear() {
            tracing::warn!(%error, "chunks on disk cannot be deleted");
        }
    }

    pub(crate) fn status(&self) -> DiskStatus {
        let shared = &self.shared;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (bytes, entries) = {
            let index = shared.index.lock();
            (index.bytes(), index.entries())
        };
        DiskStatus {
            bytes,
            bytes_max: shared.bytes_max,
            entries,
            hits: get(&shared.hits),
            misses: get(&shared.misses),
            written: get(&shared.written),
            dropped: get(&shared.dropped),
            damaged: get(&shared.damaged),
            is_writing: shared.is_writing.load(Ordering::Relaxed),
        }
    }
}

impl Drop for DiskTier {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the thread that writes chunks to disk panicked");
        }
    }
}

impl Shared {
    /// What the tier's thread does, until nobody is left to send.
    fn work(&self, options: &DiskOptions, jobs: Receiver<Job>, opening: watch::Sender<bool>) {
        let folder = options.folder.display();
        let opened = Index::lock_folder(&options.folder).and_then(|lock| {
            Index::load(&self.index, &options.folder, options.bytes_max).map(|()| lock)
        });
        self.is_writing.store(opened.is_ok(), Ordering::Relaxed);
        opening.send_replace(true);
        let _lock = match opened {
            Ok(lock) => lock,
            Err(error) => {
                tracing::warn!(%folder, %error, "chunks are not kept on disk");
                return;
            }
        };
        let mut entry = Vec::new();
        for Job { key, chunk } in jobs {
            self.queued_bytes.fetch_sub(chunk.memory_bytes(), Ordering::Relaxed);
            if !self.is_writing.load(Ordering::Relaxed) {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if self.index.lock().find(&key).is_some_and(|found| !found.is_old) {
                continue;
            }
            key.push_entry(&chunk, &mut entry);
            match Index::append(&self.index, &key, &entry) {
                Ok(true) => drop(self.written.fetch_add(1, Ordering::Relaxed)),
                Ok(false) => drop(self.dropped.fetch_add(1, Ordering::Relaxed)),
                Err(error) => {
                    self.is_writing.store(false, Ordering::Relaxed);
                    tracing::warn!(%folder, %error, "no more chunks are kept on disk until the next start");
                }
            }
        }
    }

    /// The chunk at a place; forgets the place if it is not there.
    fn read(&self, key: &DiskKey, found: &index::IndexedEntry) -> Option<Arc<Chunk>> {
        let chunk = found.read().and_then(|entry| key.chunk_of(&entry));
        if chunk.is_none() {
            self.damaged.fetch_add(1, Ordering::Relaxed);
            self.index.lock().forget(key, found);
        }
        chunk.map(Arc::new)
    }
}

#[cfg(test)]
mod tests;
