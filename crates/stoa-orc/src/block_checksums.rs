//! Checksums of a file's bytes, by blocks of a fixed size.
//!
//! ORC has none: a bit that turns over in storage becomes a wrong number. The checksums are kept in
//! the file itself, where other readers pass over them.
//!
//! ```text
//! file = content: block 0 · block 1 · … · last block, which may be shorter · tail
//!
//! user metadata "stoa.checksums" = version u8 = 1 · log2 of a block's bytes u8 · CRC-32C u32 LE of each block
//! end of the postscript          = field 7001: CRC-32C u32 LE of the tail · field 8000: "ORC"
//! ```
//! In: content in the order of the file, or bytes read again. Out: the value of the key, or whether
//! the bytes are those written.
//! **Invariants:** every byte of the content is in exactly one block; every byte of the tail but
//! those of its checksum is under the checksum; a file is `Sealed` as long as at most one bit of its
//! tail is another (see [`check_tail`]).
//! Not here: reading in whole blocks (`checked_segments`).

use std::ops::Range;

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

use crate::error::{Result, corrupt};

/// Key of the user metadata.
pub(crate) const CHECKSUMS_KEY: &str = "stoa.checksums";

const VERSION: u8 = 1;
/// Version and log2 of the bytes of a block.
const HEADER_BYTES: usize = 2;
/// 16 KiB: one part in 4096 more bytes in the file; a row group of a column is about as large.
const BLOCK_BYTES_LOG2: u8 = 14;
/// What a file may say.
const BLOCK_BYTES_LOG2_RANGE: std::ops::RangeInclusive<u8> = 9..=26;
const CHECKSUM_BYTES: usize = size_of::<u32>();

/// The checksums of a file's content.
///
/// ```
/// # fn check(file: &[u8], metadata: &stoa_orc::FileMetadata) -> stoa_error::Result<()> {
/// if let Some(checksums) = metadata.checksums() {
///     let content = &file[..checksums.content_bytes() as usize];
///     checksums.check(0, content)?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockChecksums {
    /// One after the other.
    checksums: Bytes,
    block_bytes: u64,
    content_bytes: u64,
}

impl BlockChecksums {
    /// From the value of the key, in a file whose tail starts at `content_bytes`.
    pub(crate) fn parse(mut value: Bytes, content_bytes: u64) -> Result<Self> {
        let [VERSION, log2, ..] = *value else {
            return Err(corrupt("checksums of an unknown version"));
        };
        if !BLOCK_BYTES_LOG2_RANGE.contains(&log2) {
            return Err(corrupt(format!("checksums of blocks of 2^{log2} bytes")));
        }
        let block_bytes = 1 << log2;
        let checksums = value.split_off(HEADER_BYTES);
        let blocks = content_bytes.div_ceil(block_bytes);
        if checksums.len() as u64 != blocks * CHECKSUM_BYTES as u64 {
            let have = checksums.len() / CHECKSUM_BYTES;
            return Err(corrupt(format!("{have} checksums of {blocks} blocks")));
        }
        Ok(Self { checksums, block_bytes, content_bytes })
    }

    /// Bytes of a block; the last one may have fewer.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Bytes of the file in front of its tail.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.checksums.len()
    }

    /// The whole blocks that hold `range`.
    pub(crate) fn widen(&self, range: &Range<u64>) -> Range<u64> {
        if range.is_empty() {
            return range.clone();
        }
        let start = range.start - range.start % self.block_bytes;
        let end = range.end.div_ceil(self.block_bytes).saturating_mul(self.block_bytes);
        start..end.min(self.content_bytes).max(range.end)
    }

    /// Compares whole blocks of the file, which start at `offset`, with their checksums.
    ///
    /// # Errors
    /// `Corrupt` if a block is not as it was written, with its place in the file.
    pub fn check(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut at = offset;
        for block in bytes.chunks(self.block_bytes as usize) {
            self.check_block(at, block)?;
            at += block.len() as u64;
        }
        Ok(())
    }

    fn check_block(&self, at: u64, block: &[u8]) -> Result<()> {
        let end = at + block.len() as u64;
        let is_whole = at.is_multiple_of(self.block_bytes)
            && (block.len() as u64 == self.block_bytes || end == self.content_bytes);
        let index = (at / self.block_bytes) as usize * CHECKSUM_BYTES;
        let written = self.checksums.get(index..index + CHECKSUM_BYTES).filter(|_| is_whole);
        let Some(written) = written else {
            return Err(corrupt(format!("bytes {at} to {end} of the file have no checksum")));
        };
        if crc32_iscsi(block).to_le_bytes() != *written {
            return Err(damaged(at, end));
        }
        Ok(())
    }
}

/// Works out the checksums of a file while it is written.
pub(crate) struct BlockChecksumBuilder {
    value: Vec<u8>,
    /// Of the block at hand.
    checksum: Digest,
    block_bytes: usize,
}

impl BlockChecksumBuilder {
    pub(crate) fn new() -> Self {
        let value = vec![VERSION, BLOCK_BYTES_LOG2];
        Self { value, checksum: Digest::new(CrcAlgorithm::Crc32Iscsi), block_bytes: 0 }
    }

    /// Adds the next bytes of the file.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = (1 << BLOCK_BYTES_LOG2) - self.block_bytes;
            let (block, rest) = bytes.split_at(room.min(bytes.len()));
            self.checksum.update(block);
            self.block_bytes += block.len();
            bytes = rest;
            if self.block_bytes == 1 << BLOCK_BYTES_LOG2 {
                self.end_block();
            }
        }
    }

    /// The value of the key, once all content is there.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        if self.block_bytes > 0 {
            self.end_block();
        }
        std::mem::take(&mut self.value)
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.value.capacity()
    }

    fn end_block(&mut self) {
        let checksum = self.checksum.finalize_reset() as u32;
        self.value.extend_from_slice(&checksum.to_le_bytes());
        self.block_bytes = 0;
    }
}

/// What ends a tail with a checksum: its field's key, the checksum, the magic as a field, and the
/// length of the postscript.
const CHECKSUM_KEY: [u8; 3] = [0xcd, 0xb5, 0x03];
const MAGIC_FIELD: &[u8] = &[0x82, 0xf4, 0x03, 3, b'O', b'R', b'C'];
const BEHIND_CHECKSUM_BYTES: usize = MAGIC_FIELD.len() + 1;

/// Whether a tail has a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// It has one, which is right.
    Sealed,
    /// It has none.
    Missing,
}

/// Compares a tail, statistics to the last byte of the file, with the checksum in its postscript.
///
/// Where one bit of the field's key or of the magic is another, the checksum is not found: of a
/// file whose footer then tells of checksums, the caller says that it is damaged.
pub(crate) fn check_tail(tail: &[u8]) -> Result<Seal> {
    let Some(at) = checksum_at(tail) else { return Ok(Seal::Missing) };
    let (before, rest) = tail.split_at(at);
    let (written, behind) = rest.split_at(CHECKSUM_BYTES);
    if tail_checksum(before, behind).to_le_bytes() != *written {
        return Err(corrupt("its bytes are not those written: the checksum differs"));
    }
    Ok(Seal::Sealed)
}

/// Writes the checksum of a finished tail to its place in the postscript.
pub(crate) fn seal_tail(tail: &mut [u8]) -> Result<()> {
    let at = checksum_at(tail)
        .ok_or_else(|| stoa_error::Error::internal("the postscript has no room for a checksum"))?;
    let checksum = tail_checksum(&tail[..at], &tail[at + CHECKSUM_BYTES..]);
    tail[at..at + CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// Where the checksum is in a tail, if there is one.
fn checksum_at(tail: &[u8]) -> Option<usize> {
    let at = tail.len().checked_sub(CHECKSUM_BYTES + BEHIND_CHECKSUM_BYTES)?;
    let magic = &tail[tail.len() - BEHIND_CHECKSUM_BYTES..tail.len() - 1];
    (tail[..at].ends_with(&CHECKSUM_KEY) && magic == MAGIC_FIELD).then_some(at)
}

fn tail_checksum(before: &[u8], behind: &[u8]) -> u32 {
    let mut checksum = Digest::new(CrcAlgorithm::Crc32Iscsi);
    checksum.update(before);
    checksum.update(behind);
    checksum.finalize() as u32
}

#[cold]
fn damaged(from: u64, to: u64) -> crate::error::Error {
    corrupt(format!("bytes {from} to {to} of the file are not those written: the checksum differs"))
        .with_hint("the file is damaged in storage: restore it from a copy")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksums(content: &[u8], parts: usize) -> BlockChecksums {
        let mut builder = BlockChecksumBuilder::new();
        content.chunks(parts).for_each(|part| builder.push(part));
        BlockChecksums::parse(builder.finish().into(), content.len() as u64).unwrap()
    }

    #[test]
    fn blocks_do_not_depend_on_how_content_comes() {
        for length in [0, 1, 16 << 10, (16 << 10) + 1, 100_000] {
            let content: Vec<u8> = (0..length).map(|at: u32| (at * 7) as u8).collect();
            let known = checksums(&content, 1000);
            assert_eq!(known, checksums(&content, 70_000));
            known.check(0, &content).unwrap();
            for at in (0..content.len()).step_by(997) {
                let mut flipped = content.clone();
                flipped[at] ^= 4;
                known.check(0, &flipped).unwrap_err();
            }
        }
    }

    #[test]
    fn an_error_names_the_first_block_that_is_another() {
        let content: Vec<u8> = (0..100_000).map(|at: u32| (at / 3) as u8).collect();
        let known = checksums(&content, 1000);
        // Two blocks that changed places are right each, but not where they are.
        let mut swapped = content.clone();
        let (left, right) = swapped.split_at_mut(32_768);
        left[..16_384].swap_with_slice(&mut right[..16_384]);
        let error = known.check(0, &swapped).unwrap_err();
        assert!(error.message().contains("bytes 0 to 16384"), "{error}");
        let mut flipped = content;
        flipped[70_000] ^= 1;
        flipped[90_000] ^= 1;
        let error = known.check(16_384, &flipped[16_384..]).unwrap_err();
        assert!(error.message().contains("bytes 65536 to 81920"), "{error}");
        known.check(81_920, &flipped[81_920..]).unwrap_err();
    }

    #[test]
    fn checksums_are_crc_32c() {
        // Of RFC 3720, B.4: 32 bytes of zeros, and 0 to 31.
        let of = |content: &[u8]| checksums(content, 7).checksums;
        assert_eq!(&*of(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(
            &*of(&std::array::from_fn::<u8, 32, _>(|at| at as u8)),
            [0x4e, 0x79, 0xdd, 0x46]
        );
    }

    #[test]
    fn ranges_are_widened_to_whole_blocks() {
        let known = checksums(&[7; 40_000], 500);
        let check = |range: Range<u64>, wide: Range<u64>| {
            assert_eq!(known.widen(&range), wide);
            let bytes = vec![7; (wide.end - wide.start) as usize];
            known.check(wide.start, &bytes).unwrap();
        };
        check(0..1, 0..16_384);
        check(16_383..16_385, 0..32_768);
        check(39_999..40_000, 32_768..40_000);
        check(17_000..17_000, 17_000..17_000);
        // What is not a whole block cannot be compared.
        known.check(0, &[7; 100]).unwrap_err();
        known.check(1, &[7; 16_384]).unwrap_err();
        known.check(49_152, &[7; 10]).unwrap_err();
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let check = |value: &[u8], content_bytes, expected: &str| {
            let value = Bytes::copy_from_slice(value);
            let error = BlockChecksums::parse(value, content_bytes).unwrap_err();
            assert!(error.message().contains(expected), "{error}");
        };
        check(&[], 0, "unknown version");
        check(&[2, 14], 0, "unknown version");
        check(&[1, 63], 0, "2^63");
        check(&[1, 14, 0, 0, 0], 10, "0 checksums of 1 blocks");
        check(&[1, 14, 0, 0, 0, 0], 20_000, "1 checksums of 2 blocks");
    }
}
