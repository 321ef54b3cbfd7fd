//! Bytes of the file that were pushed, by offset.
//!
//! In: chunks in any order, overlapping or not. Out: the bytes of a range, without a copy where
//! one chunk holds it. Not here: which ranges are needed (`decoder`).

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// Chunks of a file in memory.
#[derive(Default)]
pub(crate) struct Segments {
    /// By start; a chunk that starts where another one does is kept if it is longer.
    chunks: BTreeMap<u64, Bytes>,
}

impl Segments {
    /// Adds a chunk; false if it was not kept.
    pub(crate) fn push(&mut self, offset: u64, bytes: Bytes) -> bool {
        if bytes.is_empty() || offset.checked_add(bytes.len() as u64).is_none() {
            return false;
        }
        let known = self.chunks.get(&offset).map_or(0, Bytes::len);
        let is_longer = bytes.len() > known;
        if is_longer {
            self.chunks.insert(offset, bytes);
        }
        is_longer
    }

    /// Whether all bytes of `range` are here.
    pub(crate) fn covers(&self, range: &Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            match self.chunk_at(at) {
                Some((start, chunk)) => at = start + chunk.len() as u64,
                None => return false,
            }
        }
        true
    }

    /// The bytes of `range`, if all are here.
    pub(crate) fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        if range.is_empty() {
            return Some(Bytes::new());
        }
        if let Some((start, chunk)) = self.chunk_of(range) {
            return Some(chunk.slice((range.start - start) as usize..(range.end - start) as usize));
        }
        if !self.covers(range) {
            return None;
        }
        let length = usize::try_from(range.end - range.start).ok()?;
        let mut joined = BytesMut::with_capacity(length);
        while joined.len() < length {
            let at = range.start + joined.len() as u64;
            let (start, chunk) = self.chunk_at(at)?;
            let part = &chunk[(at - start) as usize..];
            joined.extend_from_slice(&part[..part.len().min(length - joined.len())]);
        }
        Some(joined.freeze())
    }

    /// Forgets chunks that end at or before `offset`.
    pub(crate) fn release_before(&mut self, offset: u64) {
        self.chunks.retain(|start, chunk| start + chunk.len() as u64 > offset);
    }

    /// One chunk that holds all of `range`, and its start. A shorter one that starts behind it, such as
    /// that of a footer, is no reason to join chunks.
    pub(crate) fn chunk_of(&self, range: &Range<u64>) -> Option<(u64, &Bytes)> {
        // Chunks are few: those asked for in one round. The nearest start is nearly always it.
        let holds = |(start, chunk): &(&u64, &Bytes)| *start + chunk.len() as u64 >= range.end;
        self.chunks.range(..=range.start).rev().find(holds).map(|(start, chunk)| (*start, chunk))
    }

    /// A chunk that holds the byte at `at`, and its start.
    fn chunk_at(&self, at: u64) -> Option<(u64, &Bytes)> {
        self.chunk_of(&(at..at.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_across_chunks_are_joined() {
        let mut segments = Segments::default();
        segments.push(10, Bytes::from_static(b"abcdef"));
        segments.push(16, Bytes::from_static(b"ghi"));
        segments.push(12, Bytes::from_static(b"c"));
        assert_eq!(segments.get(&(12..15)).unwrap(), "cde");
        assert_eq!(segments.get(&(12..18)).unwrap(), "cdefgh");
        assert!(segments.covers(&(10..19)));
        assert!(!segments.covers(&(10..20)));
        assert_eq!(segments.get(&(9..11)), None);
        assert_eq!(segments.get(&(5..5)).unwrap(), "");
        segments.release_before(16);
        assert!(!segments.covers(&(10..11)));
        assert!(segments.covers(&(16..19)));
    }
}
