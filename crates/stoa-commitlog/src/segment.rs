//! What a segment begins with.
//!
//! ```text
//!  0 magic          8  "STOALOG1"
//!  8 log id         8
//! 16 epoch          8  counts openings of the log; a new writer's is higher than all before
//! 24 number         8  counts segments; also the segment's name
//! 32 after          8  last sequence before this segment
//! 40 first          8  sequence of the first frame; after + 1, unless a repair lost some
//! 48 frame magic    4
//! 52 reserved       8  zero
//! 60 crc            4  CRC-32C over bytes 0..60
//! 64 frames
//! ```
//! A segment gets its final name after its header is durable, so that a bad header is damage,
//! never a torn tail.

use stoa_error::Result;

use crate::LogId;
use crate::frame::Magic;

/// Bytes before a segment's first frame.
pub(crate) const HEADER_BYTES: usize = 64;

const MAGIC: [u8; 8] = *b"STOALOG1";
const SEALED: std::ops::Range<usize> = 0..60;

/// A segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) log: LogId,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    pub(crate) after: u64,
    pub(crate) first: u64,
    pub(crate) frame_magic: Magic,
}

impl SegmentHeader {
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        let numbers = [self.log.bits(), self.epoch, self.number, self.after, self.first];
        for (place, number) in bytes[8..48].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[48..52].copy_from_slice(&self.frame_magic);
        let crc = crc_fast::crc32_iscsi(&bytes[SEALED]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header; the error says what is wrong with it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(format!("{} bytes where a segment header of 64 is due", bytes.len()));
        };
        if bytes[0..8] != MAGIC {
            return Err("no segment header of this version".to_owned());
        }
        let mut crc = [0; 4];
        crc.copy_from_slice(&bytes[60..64]);
        if crc_fast::crc32_iscsi(&bytes[SEALED]) != u32::from_le_bytes(crc) {
            return Err("CRC-32C of the segment header does not match".to_owned());
        }
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(number)
        };
        let mut frame_magic = [0; 4];
        frame_magic.copy_from_slice(&bytes[48..52]);
        Ok(Self {
            log: LogId::from_bits(number(8)),
            epoch: number(16),
            number: number(24),
            after: number(32),
            first: number(40),
            frame_magic,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            log: LogId::from_bits(0x0102_0304_0506_0708),
            epoch: 3,
            number: 12,
            after: 99,
            first: 100,
            frame_magic: [9, 8, 7, 6],
        }
    }

    #[test]
    fn a_header_survives() {
        assert_eq!(SegmentHeader::from_bytes(&header().to_bytes()), Ok(header()));
    }

    #[test]
    fn any_changed_bit_and_any_cut_is_noticed() {
        let bytes = header().to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::from_bytes(&damaged).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(SegmentHeader::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        }
    }
}
