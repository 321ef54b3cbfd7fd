//! Footers and indexes of data files, so that each is read and parsed once per process.
//!
//! **Invariant:** a data file is never overwritten, so its location says what it holds. Bounded by
//! [`BYTES_MAX`], by estimate; the oldest go first. Not a cache of `quick_cache`: an entry grows with
//! each stripe that is asked for, and all its stripes are wanted at once and go at once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_orc::{FileMetadata, StripeMetadata};

/// Bytes that are kept.
const BYTES_MAX: usize = 64 << 20;

/// What is known of data files by their locations.
#[derive(Default)]
pub(crate) struct Footers(Mutex<CachedFooters>);

#[derive(Default)]
struct CachedFooters {
    files: HashMap<String, CachedFooter>,
    order: VecDeque<String>,
    bytes: usize,
}

/// A file: its footer, and footers and indexes of stripes that were asked for.
struct CachedFooter {
    footer: Arc<FileMetadata>,
    stripes: HashMap<usize, Arc<StripeMetadata>>,
    bytes: usize,
}

impl Footers {
    /// The footer of a file.
    pub(super) fn get(&self, location: &str) -> Option<Arc<FileMetadata>> {
        self.0.lock().files.get(location).map(|known| Arc::clone(&known.footer))
    }

    /// The stripes of a file of which more is known.
    pub(super) fn stripes(&self, location: &str) -> Vec<(usize, Arc<StripeMetadata>)> {
        let kept = self.0.lock();
        let stripes = kept.files.get(location).into_iter().flat_map(|known| &known.stripes);
        stripes.map(|(stripe, metadata)| (*stripe, Arc::clone(metadata))).collect()
    }

    pub(super) fn put(&self, location: &str, footer: &Arc<FileMetadata>) {
        let mut kept = self.0.lock();
        if kept.files.contains_key(location) {
            return;
        }
        let bytes = footer.memory_bytes();
        let known = CachedFooter { footer: Arc::clone(footer), stripes: HashMap::new(), bytes };
        kept.files.insert(location.to_owned(), known);
        kept.order.push_back(location.to_owned());
        kept.grow(bytes);
    }

    /// Keeps what is known of a stripe, which takes `bytes` beside its file's footer, if that is kept.
    pub(super) fn put_stripe(
        &self,
        location: &str,
        stripe: usize,
        metadata: Arc<StripeMetadata>,
        bytes: usize,
    ) {
        if bytes == 0 {
            return;
        }
        let mut kept = self.0.lock();
        let Some(known) = kept.files.get_mut(location) else { return };
        if known.stripes.contains_key(&stripe) || bytes > BYTES_MAX / 16 {
            return;
        }
        known.stripes.insert(stripe, metadata);
        known.bytes += bytes;
        kept.grow(bytes);
    }
}

impl CachedFooters {
    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            let gone = self.files.remove(&oldest);
            self.bytes -= gone.map_or(0, |known| known.bytes);
        }
    }
}
