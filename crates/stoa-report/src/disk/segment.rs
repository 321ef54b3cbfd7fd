//! Entries: a key, a chunk, a checksum.
//!
//! ```text
//! magic u32 │ CRC-32C of what follows u32 │ key bytes u32 │ chunk bytes u32 │ key │ chunk
//! ```
//! Little endian. The key is the file's location, its length, what the store calls its content, row
//! group and field id.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::FileExt;

use crate::chunk::Chunk;

/// Changes with the layout of entries and chunks.
const MAGIC: u32 = u32::from_le_bytes(*b"SCH1");

/// Before the key.
pub(super) const HEAD_BYTES: usize = 16;

/// Longer keys are damage.
const KEY_BYTES_MAX: usize = 16 << 10;

/// What a chunk is known by on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskKey(Box<[u8]>);

impl DiskKey {
    /// `tag` is what the store calls the file's content.
    pub(crate) fn new(location: &str, file_bytes: u64, tag: &str, group: u32, field: i32) -> Self {
        let mut key = Vec::with_capacity(location.len() + tag.len() + 24);
        for text in [location, tag] {
            key.extend_from_slice(&(text.len() as u32).to_le_bytes());
            key.extend_from_slice(text.as_bytes());
        }
        key.extend_from_slice(&file_bytes.to_le_bytes());
        key.extend_from_slice(&group.to_le_bytes());
        key.extend_from_slice(&field.to_le_bytes());
        Self(key.into())
    }

    /// Under what the index has it.
    pub(super) fn hash(&self) -> u64 {
        hash_of(&self.0)
    }

    /// Fills `entry`.
    pub(super) fn push_entry(&self, chunk: &Chunk, entry: &mut Vec<u8>) {
        entry.clear();
        entry.resize(HEAD_BYTES, 0);
        entry.extend_from_slice(&self.0);
        chunk.push_bytes(entry);
        let value_bytes = entry.len() - HEAD_BYTES - self.0.len();
        entry[8..12].copy_from_slice(&(self.0.len() as u32).to_le_bytes());
        entry[12..16].copy_from_slice(&(value_bytes as u32).to_le_bytes());
        let checksum = crc_fast::crc32_iscsi(&entry[8..]);
        entry[..4].copy_from_slice(&MAGIC.to_le_bytes());
        entry[4..8].copy_from_slice(&checksum.to_le_bytes());
    }

    /// The chunk of an entry, if it is undamaged and this key's.
    pub(super) fn chunk_of(&self, entry: &[u8]) -> Option<Chunk> {
        let head = Head::of(entry)?;
        let checksum = u32::from_le_bytes(entry.get(4..8)?.try_into().ok()?);
        if head.bytes() != entry.len() as u64 || crc_fast::crc32_iscsi(entry.get(8..)?) != checksum
        {
            return None;
        }
        let (key, chunk) = entry.get(HEAD_BYTES..)?.split_at_checked(head.key_bytes)?;
        if *key != *self.0 {
            return None;
        }
        Chunk::from_bytes(chunk)
    }
}

fn hash_of(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    hasher.finish()
}

/// The lengths of an entry.
struct Head {
    key_bytes: usize,
    value_bytes: u32,
}

impl Head {
    fn of(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 4)?;
            bytes.try_into().ok().map(u32::from_le_bytes)
        };
        if number(0)? != MAGIC {
            return None;
        }
        let key_bytes = usize::try_from(number(8)?).ok().filter(|n| *n <= KEY_BYTES_MAX)?;
        Some(Self { key_bytes, value_bytes: number(12)? })
    }

    fn bytes(&self) -> u64 {
        HEAD_BYTES as u64 + self.key_bytes as u64 + u64::from(self.value_bytes)
    }
}

/// The entries of a segment as (hash of the key, offset, bytes), up to the first that is none.
pub(super) fn entries_of(file: &File, file_bytes: u64) -> Vec<(u64, u64, u64)> {
    // Holds head and key of most entries.
    let mut bytes = vec![0; 512];
    let mut entries = Vec::new();
    let mut at = 0;
    while at < file_bytes {
        let Some((hash, length)) = entry_at(file, at, file_bytes, &mut bytes) else { break };
        entries.push((hash, at, length));
        at += length;
    }
    entries
}

fn entry_at(file: &File, at: u64, file_bytes: u64, bytes: &mut Vec<u8>) -> Option<(u64, u64)> {
    let left = usize::try_from(file_bytes - at).unwrap_or(usize::MAX);
    let first = bytes.len().min(left);
    file.read_exact_at(&mut bytes[..first], at).ok()?;
    let head = Head::of(&bytes[..first])?;
    let end = HEAD_BYTES + head.key_bytes;
    if end > first {
        if end > left {
            return None;
        }
        bytes.resize(end.max(bytes.len()), 0);
        file.read_exact_at(&mut bytes[..end], at).ok()?;
    }
    let length = head.bytes();
    (length <= file_bytes - at).then(|| (hash_of(&bytes[HEAD_BYTES..end]), length))
}
