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
    /// Blocks that are as they were written: where the chunk starts that was looked at, and the block.
    checked: BTreeSet<(u64, u64)>,
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
        if self.segments.push(offset, bytes) {
            // It takes the place of a chunk that starts there; what other chunks have is as it was.
            self.forget_checked(offset);
        }
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
        if self.segments.chunk_of(&blocks).is_none() {
            let Some(joined) = self.segments.get(&blocks) else { return Ok(None) };
            // Kept, as its neighbours may share its blocks.
            self.push(blocks.start, joined);
        }
        self.get_of_chunk(range, &blocks)
    }

    /// The bytes of `range`, if one chunk has its `blocks`.
    fn get_of_chunk(&mut self, range: &Range<u64>, blocks: &Range<u64>) -> Result<Option<Bytes>> {
        let (Some(checksums), Some((start, chunk))) =
            (&self.checksums, self.segments.chunk_of(blocks))
        else {
            return Ok(None);
        };
        let part =
            |range: &Range<u64>| (range.start - start) as usize..(range.end - start) as usize;
        // What neighbours share is compared once, and the rest in one go.
        let block_bytes = checksums.block_bytes();
        let mut runs: Vec<Range<u64>> = Vec::new();
        for at in blocks.clone().step_by(block_bytes as usize) {
            if self.checked.insert((start, at)) {
                let end = (at + block_bytes).min(blocks.end);
                match runs.last_mut() {
                    Some(run) if run.end == at => run.end = end,
                    _ => runs.push(at..end),
                }
            }
        }
        for run in runs {
            if let Err(error) = checksums.check(run.start, &chunk[part(&run)]) {
                self.forget_checked(start);
                return Err(error);
            }
        }
        Ok(Some(chunk.slice(part(range))))
    }

    fn forget_checked(&mut self, chunk: u64) {
        let of_chunk: Vec<_> =
            self.checked.range((chunk, 0)..=(chunk, u64::MAX)).copied().collect();
        for block in of_chunk {
            self.checked.remove(&block);
        }
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

    /// A file's content and its checksums.
    fn content() -> (Bytes, BlockChecksums) {
        let content: Vec<u8> = (0..60_000u32).map(|at| (at / 3) as u8).collect();
        let mut builder = BlockChecksumBuilder::new();
        builder.push(&content);
        let checksums = BlockChecksums::parse(builder.finish().into(), 60_000).unwrap();
        (content.into(), checksums)
    }

    #[test]
    fn a_block_is_right_only_in_the_chunk_that_was_looked_at() {
        let (file, checksums) = content();
        let mut damaged = file.to_vec();
        damaged[20_000] ^= 1;
        let damaged = Bytes::from(damaged);
        // The same block twice, of which one is damaged.
        let order = [0..60_000, 16_384..32_768];
        for order in [order.clone(), [order[1].clone(), order[0].clone()]] {
            let mut segments = CheckedSegments::new(Some(checksums.clone()));
            for range in order {
                let of = if range.start == 0 { &damaged } else { &file };
                segments.push(range.start as u64, of.slice(range));
            }
            assert_eq!(
                segments.get(&(19_000..21_000)).unwrap().unwrap(),
                file.slice(19_000..21_000)
            );
            segments.get(&(16_000..21_000)).unwrap_err();
        }
        // A chunk that is put in the place of another one.
        let mut segments = CheckedSegments::new(Some(checksums));
        segments.push(0, file.slice(0..49_152));
        segments.get(&(0..49_152)).unwrap().unwrap();
        segments.push(0, damaged);
        segments.get(&(0..10)).unwrap().unwrap();
        segments.get(&(20_500..20_510)).unwrap_err();
    }

    #[test]
    fn bytes_that_one_chunk_has_are_not_copied() {
        let (file, checksums) = content();
        for checksums in [None, Some(checksums)] {
            let mut segments = CheckedSegments::new(checksums);
            segments.push(0, file.clone());
            // As of a footer that came first: the data around it comes with its block again.
            segments.push(16_384, file.slice(16_384..32_768));
            for range in [10u64..20, 16_384..50_000, 20_000..40_000, 59_999..60_000] {
                let bytes = segments.get(&range).unwrap().unwrap();
                let from_file = file.slice(range.start as usize..range.end as usize);
                assert_eq!(bytes, from_file);
                assert_eq!(bytes.as_ptr(), from_file.as_ptr(), "{range:?}");
            }
        }
    }

    #[test]
    fn chunks_are_joined_once_for_the_ranges_of_a_block() {
        let (file, checksums) = content();
        let mut segments = CheckedSegments::new(Some(checksums));
        // The first cut is inside of a block, the second one between two.
        for part in [0..20_000, 20_000..32_768, 32_768..60_000] {
            segments.push(part.start as u64, file.slice(part));
        }
        let first = segments.get(&(17_000..21_000)).unwrap().unwrap();
        assert_eq!(first, file.slice(17_000..21_000));
        let next = segments.get(&(19_000..23_000)).unwrap().unwrap();
        assert_eq!(next, file.slice(19_000..23_000));
        assert_eq!(next.as_ptr(), first[2000..].as_ptr());
        assert_eq!(segments.get(&(0..60_000)).unwrap().unwrap(), file);
    }
}
