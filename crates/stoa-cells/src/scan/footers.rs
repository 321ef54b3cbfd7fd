//! Parsed footers of data files, so that each is read once per process.
//!
//! **Invariant:** a data file is never overwritten, so its location says what it holds. Bounded by
//! [`BYTES_MAX`], by estimate; the oldest go first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_orc::FileMetadata;

/// Bytes of footers that are kept.
const BYTES_MAX: usize = 32 << 20;

/// Footers by location.
#[derive(Default)]
pub(crate) struct Footers(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_location: HashMap<String, Arc<FileMetadata>>,
    order: VecDeque<String>,
    bytes: usize,
}

impl Footers {
    pub(super) fn get(&self, location: &str) -> Option<Arc<FileMetadata>> {
        self.0.lock().by_location.get(location).cloned()
    }

    pub(super) fn put(&self, location: &str, footer: &Arc<FileMetadata>) {
        let mut kept = self.0.lock();
        if kept.by_location.insert(location.to_owned(), Arc::clone(footer)).is_some() {
            return;
        }
        kept.bytes += footer.memory_bytes();
        kept.order.push_back(location.to_owned());
        while kept.bytes > BYTES_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            let gone = kept.by_location.remove(&oldest);
            kept.bytes -= gone.map_or(0, |footer| footer.memory_bytes());
        }
    }
}
