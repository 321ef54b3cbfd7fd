//! Bytes of the file that were pushed, handed out once their checksums were compared.
//!
//! In: chunks in any order. Out: the bytes of a range. **Invariant:** if the file has checksums, no
//! byte is handed out before the block it is in was compared; so ranges are asked for in whole
//! blocks ([`CheckedSegments::widen`]), and what is there only in part is not there.
//! Not here: the checksums (`block_checksums`).

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;

use crate::block_checksums::BlockChecksums;
use crate::error::Result;
use crate::segments::Segments;

/// Chunks of a file in memory.
pub(crate) struct CheckedSegments {
    segments: Segments,
    checksums: Option<BlockChecksums>,
    /// Starts of blocks that are as they were written.
    checked: BTreeSet<u64>,
}

impl CheckedSegments {
    /// No bytes yet of a file with these checksums.
    pub(crate) fn new(checksums: Option<BlockChecksums>) -> Self {
        Self { segments: Segments::default(), checksums, checked: BTreeSet::new() }
    }

    /// What to ask for to get the bytes of `range`.
    pub(crate) fn widen(&self, range: Range<u64>) -> Range<u64> {
        self.checksums.as_ref().map_or(range.clone(), |checksums| checksums.widen(&range))
    }

    /// Adds a chunk.
    pub(crate) fn push(&mut self, offset: u64, bytes: Bytes) {
        if !self.checked.is_empty() {
            // The same block may have come otherwise this time.
            let range = self.widen(offset..offset.saturating_add(bytes.len() as u64));
            let again: Vec<u64> = self.checked.range(range).copied().collect();
            for block in again {
                self.checked.remove(&block);
            }
        }
        self.segments.push(offset, bytes);
    }

    /// Whether [`Self::get`] has the bytes of `range`.
    pub(crate) fn covers(&self, range: &Range<u64>) -> bool {
        self.segments.covers(&self.widen(range.clone()))
    }

    /// The bytes of `range`, if they are here.
    ///
    /// # Errors
    /// `Corrupt` if they are not those written.
    pub(crate) fn get(&mut self, range: &Range<u64>) -> Result<Option<Bytes>> {
        let Some(checksums) = self.checksums.as_ref().filter(|_| !range.is_empty()) else {
            return Ok(self.segments.get(range));
        };
        let blocks = checksums.widen(range);
        let Some(bytes) = self.segments.get(&blocks) else { return Ok(None) };
        let mut at = blocks.start;
        for block in bytes.chunks(checksums.block_bytes() as usize) {
            if !self.checked.contains(&at) {
                checksums.check(at, block)?;
                self.checked.insert(at);
            }
            at += block.len() as u64;
        }
        let from = (range.start - blocks.start) as usize;
        Ok(Some(bytes.slice(from..from + (range.end - range.start) as usize)))
    }

    /// Forgets chunks that end at or before `offset`.
    pub(crate) fn release_before(&mut self, offset: u64) {
        self.segments.release_before(offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_checksums::BlockChecksumBuilder;

    #[test]
    fn only_whole_blocks_that_are_right_are_handed_out() {
        let content: Vec<u8> = (0..40_000u32).map(|at| (at / 3) as u8).collect();
        let mut builder = BlockChecksumBuilder::new();
        builder.push(&content);
        let checksums = BlockChecksums::parse(builder.finish().into(), 40_000).unwrap();
        let file = Bytes::from(content);
        let mut segments = CheckedSegments::new(Some(checksums));
        let range = 17_000..17_100;
        segments.push(17_000, file.slice(17_000..17_100));
        assert_eq!(segments.get(&range).unwrap(), None);
        assert!(!segments.covers(&range));
        segments.push(16_384, file.slice(16_384..32_768));
        assert!(segments.covers(&range));
        // The longer chunk is not the nearest one, so the shorter one is looked at, too.
        assert_eq!(segments.get(&range).unwrap().unwrap(), file.slice(17_000..17_100));

        let mut damaged = file.to_vec();
        damaged[20_000] ^= 1;
        segments.push(16_384, Bytes::from(damaged).slice(16_384..40_000));
        let error = segments.get(&range).unwrap_err();
        assert!(error.message().contains("bytes 16384 to 32768 of the file"), "{error}");
        assert!(segments.get(&(33_000..40_000)).unwrap().is_some());
    }
}
