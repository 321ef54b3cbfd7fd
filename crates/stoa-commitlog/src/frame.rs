//! One frame: how an append stands in a segment.
//!
//! ```text
//!  0 magic     4  the segment header's, random per opening, so that no payload can imitate a frame
//!  4 length    4  payload bytes; 0xffff_ffff is a mark, which has none
//!  8 sequence  8  counts up by one; a mark repeats that of the frame before it
//! 16 unsynced  4  sequence - unsynced = last sequence known durable when this was written
//! 20 crc       4  CRC-32C over payload, then bytes 0..20
//! 24 payload
//! ```
//! Numbers are little-endian. `unsynced` is what tells a torn tail from damage: frames of one group
//! are written before any of them is synced, so a valid frame behind a bad one proves the bad one
//! damaged only if it was written after a sync that covered it.
//!
//! Not here: reading a stream of frames (`scan`), what a segment begins with (`segment`).

use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};
use stoa_env::Env;

/// Bytes before a frame's payload.
pub(crate) const HEADER_BYTES: usize = 24;

/// The most bytes a payload may ever have: 64 MiB. Readers take a larger length for damage.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// What stands where the next frame will: the log ends here so far.
pub(crate) const BLANK: [u8; HEADER_BYTES] = [0; HEADER_BYTES];

const MARK: u32 = u32::MAX;
const SEALED: std::ops::Range<usize> = 0..20;

/// What frames of one opening of a log begin with.
pub(crate) type Magic = [u8; 4];

/// A magic unlike zeroes and unlike the others.
pub(crate) fn random_magic(env: &Env) -> Magic {
    ((env.random_u64() as u32) | 0x0101_0101).to_le_bytes()
}

/// CRC-32C of a payload given in parts; the header's bytes are added by [`seal`].
pub(crate) fn payload_crc(parts: &[&[u8]]) -> u32 {
    parts.iter().fold(0, |crc, part| append(crc, part))
}

/// CRC-32C of some bytes, whose own is `crc`, with `bytes` behind them.
fn append(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

/// The header of a frame that is not yet sealed: `crc` holds the payload's alone.
pub(crate) fn open_header(
    magic: Magic,
    payload_bytes: u32,
    sequence: u64,
    payload_crc: u32,
) -> [u8; HEADER_BYTES] {
    Header { magic, length: payload_bytes, sequence, unsynced: 0, crc: payload_crc }.to_bytes()
}

/// Completes the frames in `frames`, which is whole frames, just before they are written, when
/// everything up to `durable` is known to be durable.
pub(crate) fn seal(mut frames: &mut [u8], durable: u64) {
    while let Some((bytes, rest)) = frames.split_first_chunk_mut::<HEADER_BYTES>() {
        let mut header = Header::from_bytes(bytes);
        // Too far away to say: zero durable frames are all that may be claimed then.
        header.unsynced =
            u32::try_from(header.sequence.saturating_sub(durable)).unwrap_or(u32::MAX);
        *bytes = header.to_bytes();
        header.crc = header.crc_after(bytes);
        *bytes = header.to_bytes();
        let payload = header.payload_bytes().unwrap_or(rest.len()).min(rest.len());
        frames = rest.split_at_mut(payload).1;
    }
}

/// A mark: everything up to `sequence` was durable when it was written.
pub(crate) fn mark(magic: Magic, sequence: u64) -> [u8; HEADER_BYTES] {
    let mut header = Header { magic, length: MARK, sequence, unsynced: 0, crc: 0 };
    header.crc = header.crc_after(&header.to_bytes());
    header.to_bytes()
}

/// A frame's header as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) magic: Magic,
    length: u32,
    pub(crate) sequence: u64,
    unsynced: u32,
    pub(crate) crc: u32,
}

impl Header {
    pub(crate) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [m0, m1, m2, m3, l0, l1, l2, l3, s0, s1, s2, s3, s4, s5, s6, s7, rest @ ..] = *bytes;
        let [u0, u1, u2, u3, c0, c1, c2, c3] = rest;
        Self {
            magic: [m0, m1, m2, m3],
            length: u32::from_le_bytes([l0, l1, l2, l3]),
            sequence: u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
            unsynced: u32::from_le_bytes([u0, u1, u2, u3]),
            crc: u32::from_le_bytes([c0, c1, c2, c3]),
        }
    }

    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.magic);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.unsynced.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    /// Continues the payload's CRC, which `self.crc` holds, over the header's bytes.
    fn crc_after(&self, bytes: &[u8; HEADER_BYTES]) -> u32 {
        append(self.crc, &bytes[SEALED])
    }

    /// Whether this is a mark, which has no payload and no sequence of its own.
    pub(crate) fn is_mark(&self) -> bool {
        self.length == MARK
    }

    /// Payload bytes; nothing where the length is more than any frame may have.
    pub(crate) fn payload_bytes(&self) -> Option<usize> {
        match usize::try_from(self.length) {
            _ if self.is_mark() => Some(0),
            Ok(length) if length <= PAYLOAD_BYTES_MAX => Some(length),
            _ => None,
        }
    }

    /// The length field as it stands, for messages.
    pub(crate) fn raw_length(&self) -> u32 {
        self.length
    }

    /// The last sequence that was known to be durable when this was written.
    pub(crate) fn durable_before(&self) -> u64 {
        match self.unsynced {
            u32::MAX => 0,
            unsynced => self.sequence.saturating_sub(u64::from(unsynced)),
        }
    }

    /// Whether the CRC fits header and payload.
    pub(crate) fn fits(&self, bytes: &[u8; HEADER_BYTES], payload: &[u8]) -> bool {
        append(crc32_iscsi(payload), &bytes[SEALED]) == self.crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: Magic = [1, 2, 3, 4];

    fn sealed(sequence: u64, payload: &[u8], durable: u64) -> Vec<u8> {
        let crc = payload_crc(&[payload]);
        let mut frame = open_header(MAGIC, payload.len() as u32, sequence, crc).to_vec();
        frame.extend_from_slice(payload);
        seal(&mut frame, durable);
        frame
    }

    fn parse(frame: &[u8]) -> (Header, bool) {
        let (bytes, payload) = frame.split_first_chunk().unwrap();
        let header = Header::from_bytes(bytes);
        (header, header.fits(bytes, payload))
    }

    #[test]
    fn sealed_frames_fit_and_say_what_was_durable() {
        let frame = sealed(9, b"payload", 4);
        let (header, fits) = parse(&frame);
        assert!(fits);
        assert_eq!((header.sequence, header.durable_before()), (9, 4));
        assert_eq!(header.payload_bytes(), Some(7));
        assert!(!header.is_mark());
    }

    #[test]
    fn frames_of_a_group_are_all_sealed() {
        let mut group = Vec::new();
        for (sequence, payload) in [(5, &b""[..]), (6, b"six"), (7, b"seven")] {
            let crc = payload_crc(&[payload]);
            group.extend(open_header(MAGIC, payload.len() as u32, sequence, crc));
            group.extend_from_slice(payload);
        }
        seal(&mut group, 4);
        let expected = [sealed(5, b"", 4), sealed(6, b"six", 4), sealed(7, b"seven", 4)].concat();
        assert_eq!(group, expected);
    }

    #[test]
    fn any_changed_bit_is_noticed() {
        let frame = sealed(9, b"payload", 4);
        for bit in 0..frame.len() * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let (header, fits) = parse(&damaged);
            assert!(!fits || header.magic != MAGIC, "bit {bit}");
        }
    }

    #[test]
    fn a_distance_too_large_to_write_claims_nothing() {
        let (header, _) = parse(&sealed(1 << 40, b"", 5));
        assert_eq!(header.durable_before(), 0);
    }

    #[test]
    fn marks_claim_their_own_sequence() {
        let (header, fits) = parse(&mark(MAGIC, 12));
        assert!(fits && header.is_mark());
        assert_eq!((header.durable_before(), header.payload_bytes()), (12, Some(0)));
    }

    #[test]
    fn the_checksum_is_crc_32c() {
        // The check value of CRC-32C (RFC 3720, B.4; Castagnoli).
        assert_eq!(payload_crc(&[b"1234", b"56789"]), 0xe306_9283);
    }
}
