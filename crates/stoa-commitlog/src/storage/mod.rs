//! What a log is kept in: a numbered row of segments.
//!
//! Two kinds. *Appendable* storage (a disk) takes bytes as they come and makes them durable when
//! asked; a crash may leave any part of what was not synced. *Put-if-absent* storage (an object
//! store) takes a segment whole or not at all, and refuses a number that exists: that refusal is
//! what fences an old writer off.
//!
//! All calls block. They are made by the log's own thread, by threads for blocking work, and by
//! tools; never on a thread that drives async tasks.
//!
//! Not here: what the bytes mean (`segment`, `frame`), when to sync (`writer`).

use std::any::Any;
use std::fmt;

use stoa_error::Result;

pub(crate) mod disk;
pub(crate) mod error;
pub(crate) mod local;
pub(crate) mod object;
pub(crate) mod url;

/// How bytes reach the storage, and what a crash may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// Bytes arrive as they are appended; a crash may tear the newest segment's end. One process
    /// at a time, by a lock.
    Appendable,
    /// A segment arrives whole when it is synced, under a number that did not exist. Writers are
    /// told apart by who put the next number.
    PutIfAbsent,
}

/// Storage of one log. See the module's documentation for the two kinds.
///
/// Errors are [`stoa_error::Error`]s that name the place. `Conflict` has one meaning: another
/// writer has taken the number.
pub trait LogStorage: fmt::Debug + Send + Sync {
    /// The place as messages name it: a directory or a URL.
    fn place(&self) -> String;

    /// Which kind of storage this is.
    fn kind(&self) -> StorageKind;

    /// Takes the storage for this process until the guard is dropped, and clears away what an
    /// earlier process left unfinished.
    ///
    /// # Errors
    /// `Unavailable` (55006) where another process has it.
    fn lock(&self) -> Result<StorageLock>;

    /// The numbers of the segments there are, ascending. Other files are ignored.
    ///
    /// # Errors
    /// The storage's.
    fn segments(&self) -> Result<Vec<u64>>;

    /// The name of a segment as messages show it.
    fn segment_name(&self, number: u64) -> String;

    /// Opens a segment for reading.
    ///
    /// # Errors
    /// `NotFound` where there is none; else the storage's.
    fn open(&self, number: u64) -> Result<Box<dyn SegmentBytes>>;

    /// Begins segment `number`, which does not exist, with `header`.
    ///
    /// Appendable storage makes header and name durable before it returns; put-if-absent storage
    /// does nothing until the first [`SegmentWriter::sync`].
    ///
    /// # Errors
    /// `Conflict` where the number exists; else the storage's.
    fn create(&self, number: u64, header: &[u8]) -> Result<Box<dyn SegmentWriter>>;

    /// Cuts a segment to its first `bytes` bytes, writes those from `unproven` on again, and makes
    /// all of it durable.
    ///
    /// Writing again is not idle: what an earlier process failed to sync may be in the system's
    /// cache, counted as clean, and on no disk.
    ///
    /// # Errors
    /// `Unsupported` on put-if-absent storage, whose segments are never torn; else the storage's.
    fn settle(&self, number: u64, bytes: u64, unproven: u64) -> Result<()>;

    /// Keeps a copy of a segment under another name, which is returned, and leaves the first
    /// `keep` bytes in its place; nothing where `keep` is 0. Durable when it returns.
    ///
    /// # Errors
    /// The storage's.
    fn set_aside(&self, number: u64, keep: u64) -> Result<String>;

    /// Removes a segment, durably. One that does not exist counts as removed. Its space may be
    /// used again for a later one; whoever still reads it reads anything then.
    ///
    /// # Errors
    /// The storage's.
    fn remove(&self, number: u64) -> Result<()>;
}

/// A segment being read.
pub trait SegmentBytes: Send {
    /// Bytes that can be read. Says nothing about where the log ends.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads at `offset` into `buffer` and returns how many bytes; fewer than asked only at the end.
    ///
    /// # Errors
    /// The storage's.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;
}

/// A segment being written. After an error it is not used again.
pub trait SegmentWriter: Send {
    /// Appends whole frames, in one write. The last `blank` of the bytes are zeroes that end the
    /// log so far: the next append goes over them.
    ///
    /// # Errors
    /// The storage's; what of `bytes` has arrived is unknown then.
    fn append(&mut self, bytes: &[u8], blank: usize) -> Result<()>;

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// The storage's; it is unknown then what is durable. `Conflict` where another writer has
    /// taken the segment's number.
    fn sync(&mut self) -> Result<()>;

    /// Whether more can be appended: not to an object that has been put.
    fn takes_more(&self) -> bool;
}

/// Holds a log's storage for this process until it is dropped.
pub struct StorageLock {
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

impl StorageLock {
    /// A lock that is let go by dropping `guard`.
    pub fn held_by(guard: impl Any + Send + Sync) -> Self {
        Self { _guard: Some(Box::new(guard)) }
    }

    /// For storage that tells writers apart by other means.
    pub fn none() -> Self {
        Self { _guard: None }
    }
}

impl fmt::Debug for StorageLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageLock").finish_non_exhaustive()
    }
}

/// The file name of a segment.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:020}.log")
}

/// The number in a segment's file name; nothing where it is another file's.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    let canonical = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for number in [0, 1, u64::MAX] {
            assert_eq!(number_of(&file_name(number)), Some(number));
        }
        for name in ["LOCK", "1.log", "00000000000000000001.log.tmp", "+0000000000000000001.log"] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
