//! Numbers for data files, and noticing that one was overwritten.
//!
//! A file is known by location, length and what its store calls its content (ETag, or time of
//! change): its [`Pin`], set by the first read. A file whose content is found to be another one
//! gets a new number, so nothing that is kept of the old one is used with the new.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_rangeio::Pin;
use stoa_table::ScanFile;

use crate::view::ViewFile;

/// Numbers of files. No number is given out twice.
#[derive(Default)]
pub(crate) struct Numbers {
    known: Mutex<NumberedFiles>,
}

#[derive(Default)]
struct NumberedFiles {
    by_file: HashMap<(String, u64), (u32, Arc<Pin>)>,
    next: u32,
}

impl Numbers {
    /// The file with its number: the one it had, if it is known.
    pub(crate) fn number(&self, file: Arc<ScanFile>) -> ViewFile {
        let mut known = self.known.lock();
        let next = known.next;
        let key = (file.location.clone(), file.file_bytes);
        let (number, pin) = known.by_file.entry(key).or_insert((next, Arc::default())).clone();
        known.next = next.max(number + 1);
        let is_remote = is_remote(&file.location);
        ViewFile { number, file, pin, is_remote }
    }

    /// Gives up the numbers of `files`.
    pub(crate) fn forget<'a>(&self, files: impl Iterator<Item = &'a ViewFile>) {
        let mut known = self.known.lock();
        for file in files {
            let key = (file.file.location.clone(), file.file.file_bytes);
            // The number may be a later one by now.
            if known.by_file.get(&key).is_some_and(|(number, _)| *number == file.number) {
                known.by_file.remove(&key);
            }
        }
    }
}

pub(crate) fn is_remote(location: &str) -> bool {
    location.contains("://") && !location.starts_with("file:")
}
