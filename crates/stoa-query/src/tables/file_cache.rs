//! Parsed tails of data files, so that a file's footer is read once per process.
//!
//! **Invariant:** a data file is never overwritten (`stoa-table` writes new names only), so its
//! location and length identify its content. Bounded by [`FILES_MAX`]; the oldest entry goes first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_orc::FileMetadata;

/// Tails that are kept.
const FILES_MAX: usize = 4096;

/// Parsed tails by location and length.
#[derive(Default)]
pub(crate) struct FileCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_key: HashMap<Key, Arc<FileMetadata>>,
    order: VecDeque<Key>,
}

type Key = (String, u64);

impl std::fmt::Debug for FileCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileCache").field("files", &self.0.lock().order.len()).finish()
    }
}

impl FileCache {
    pub(crate) fn get(&self, location: &str, file_bytes: u64) -> Option<Arc<FileMetadata>> {
        self.0.lock().by_key.get(&(location.to_owned(), file_bytes)).cloned()
    }

    pub(crate) fn insert(&self, location: &str, file_bytes: u64, metadata: Arc<FileMetadata>) {
        let key = (location.to_owned(), file_bytes);
        let mut entries = self.0.lock();
        if entries.by_key.insert(key.clone(), metadata).is_some() {
            return;
        }
        entries.order.push_back(key);
        if entries.order.len() > FILES_MAX
            && let Some(oldest) = entries.order.pop_front()
        {
            entries.by_key.remove(&oldest);
        }
    }
}
