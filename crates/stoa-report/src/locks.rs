//! Locks of files that are being read.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Locks that are kept at least, used or not.
const LOCKS_MIN: usize = 1024;

/// One lock per file, by number.
#[derive(Default)]
pub(crate) struct Locks(Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>);

impl Locks {
    pub(crate) fn of(&self, file: u32) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock();
        // Locks that nobody holds are not needed any more.
        if locks.len() > LOCKS_MIN {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        locks.entry(file).or_default().clone()
    }
}
