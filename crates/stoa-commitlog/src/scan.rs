//! Reads the frames of one segment.
//!
//! In: a segment's bytes from behind its header, the sequence that is due. Out: frames in order,
//! then the end or the first bytes that are no frame. That a segment ends here is what its bytes
//! say; whether the log may end here is for `walk` to judge, and not by a file's length.
//!
//! [`evidence_after`] looks behind bad bytes for frames that prove them damaged.
//!
//! Not here: what follows from a bad frame (`walk`).

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use stoa_error::Result;

use crate::frame::{self, Header, Magic};
use crate::storage::SegmentBytes;

const READ_BYTES: usize = 1 << 20;

/// A frame as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Of its first byte, in the segment.
    pub(crate) offset: u64,
    pub(crate) sequence: u64,
    /// The last sequence that was known to be durable when it was written.
    pub(crate) durable_before: u64,
    pub(crate) crc: u32,
    pub(crate) payload: Bytes,
}

impl Frame {
    /// Where the next item stands.
    pub(crate) fn end(&self) -> u64 {
        self.offset + (frame::HEADER_BYTES + self.payload.len()) as u64
    }
}

/// What stands next in a segment.
#[derive(Debug)]
pub(crate) enum Item {
    Frame(Frame),
    /// Everything before it was durable when it was written.
    Mark,
    /// The bytes end where a frame ends, or a blank stands there.
    End,
    /// No frame stands here; says what is wrong.
    Bad(String),
}

/// Reads a segment's frames one after the other.
pub(crate) struct SegmentScan {
    bytes: Box<dyn SegmentBytes>,
    magic: Magic,
    due: u64,
    offset: u64,
    ahead: BytesMut,
}

impl SegmentScan {
    /// Starts at `offset`, where the frame of sequence `due` should stand.
    pub(crate) fn new(bytes: Box<dyn SegmentBytes>, magic: Magic, offset: u64, due: u64) -> Self {
        Self { bytes, magic, due, offset, ahead: BytesMut::new() }
    }

    /// Where the next item stands.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The sequence that the next frame should have.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// The segment's bytes, for a closer look.
    pub(crate) fn bytes(&self) -> &dyn SegmentBytes {
        self.bytes.as_ref()
    }

    /// Bytes from the next item on.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes.len().saturating_sub(self.offset)
    }

    /// The next item. After [`Item::End`] and [`Item::Bad`] it is the same again.
    pub(crate) fn next(&mut self) -> Result<Item> {
        self.look_ahead(frame::HEADER_BYTES)?;
        let Some(bytes) = self.ahead.first_chunk::<{ frame::HEADER_BYTES }>().copied() else {
            return Ok(match self.ahead.len() {
                0 => Item::End,
                left => Item::Bad(format!("{left} bytes where a frame header of 24 is due")),
            });
        };
        if bytes == frame::BLANK {
            return Ok(Item::End);
        }
        let header = Header::from_bytes(&bytes);
        if header.magic != self.magic {
            return Ok(Item::Bad("no frame begins here".to_owned()));
        }
        let Some(payload_bytes) = header.payload_bytes() else {
            let length = header.raw_length();
            return Ok(Item::Bad(format!("a frame of {length} bytes, more than any may have")));
        };
        let whole = frame::HEADER_BYTES + payload_bytes;
        self.look_ahead(whole)?;
        let Some(payload) = self.ahead.get(frame::HEADER_BYTES..whole) else {
            let there = self.ahead.len() - frame::HEADER_BYTES;
            return Ok(Item::Bad(format!("a frame of {payload_bytes} bytes ends after {there}")));
        };
        if !header.fits(&bytes, payload) {
            return Ok(Item::Bad("CRC-32C does not match".to_owned()));
        }
        Ok(self.accept(header, whole))
    }

    /// Takes a frame that is whole, if it is the one due.
    fn accept(&mut self, header: Header, whole: usize) -> Item {
        let due = if header.is_mark() { self.due.saturating_sub(1) } else { self.due };
        if header.sequence != due {
            return Item::Bad(format!("sequence {} where {due} is due", header.sequence));
        }
        let mut bytes = self.ahead.split_to(whole);
        let offset = self.offset;
        self.offset += whole as u64;
        if header.is_mark() {
            return Item::Mark;
        }
        self.due = self.due.saturating_add(1);
        Item::Frame(Frame {
            offset,
            sequence: header.sequence,
            durable_before: header.durable_before(),
            crc: header.crc,
            payload: bytes.split_off(frame::HEADER_BYTES).freeze(),
        })
    }

    /// Reads until `wanted` bytes are ahead, or all there are.
    fn look_ahead(&mut self, wanted: usize) -> Result<()> {
        let have = self.ahead.len();
        if have >= wanted {
            return Ok(());
        }
        let from = self.offset + have as u64;
        let left = usize::try_from(self.bytes.len().saturating_sub(from)).unwrap_or(usize::MAX);
        let more = left.min((wanted - have).max(READ_BYTES));
        self.ahead.resize(have + more, 0);
        let place = self.ahead.get_mut(have..).unwrap_or_default();
        let count = self.bytes.read_at(from, place)?;
        self.ahead.truncate(have + count);
        Ok(())
    }
}

/// What valid frames behind bad bytes say about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Offset and sequence of a frame or mark written when the bad frame was durable already.
    pub(crate) proof: Option<(u64, u64)>,
    /// Whole frames behind the bad bytes.
    pub(crate) frames: u64,
    /// The highest sequence that a frame or mark among them names.
    pub(crate) highest: Option<u64>,
}

/// Looks behind the bad bytes at `offset`, where sequence `due` should stand, for whole frames of
/// this segment.
pub(crate) fn evidence_after(
    bytes: &dyn SegmentBytes,
    magic: Magic,
    offset: u64,
    due: u64,
) -> Result<Evidence> {
    let mut evidence = Evidence::default();
    for found in frames_behind(bytes, magic, offset, due)? {
        evidence.frames += u64::from(found.payload.is_some());
        evidence.highest = evidence.highest.max(Some(found.sequence));
        if found.durable_before >= due {
            evidence.proof = evidence.proof.or(Some((found.offset, found.sequence)));
        }
    }
    Ok(evidence)
}

/// A frame, or a mark, found behind bad bytes.
#[derive(Clone, Debug)]
pub(crate) struct FrameBehind {
    pub(crate) offset: u64,
    pub(crate) sequence: u64,
    pub(crate) crc: u32,
    /// Nothing for a mark.
    pub(crate) payload: Option<Bytes>,
    durable_before: u64,
}

/// The whole frames and marks of sequence `due` or later in the bytes from `offset` on, in the
/// order of offsets. Reads the rest of the segment into memory.
pub(crate) fn frames_behind(
    bytes: &dyn SegmentBytes,
    magic: Magic,
    offset: u64,
    due: u64,
) -> Result<impl Iterator<Item = FrameBehind>> {
    let left = usize::try_from(bytes.len().saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut rest = vec![0; left];
    let count = bytes.read_at(offset, &mut rest)?;
    rest.truncate(count);
    let rest = Bytes::from(rest);
    let finder = memmem::Finder::new(&magic).into_owned();
    let mut at = 0;
    Ok(std::iter::from_fn(move || {
        while let Some(begin) = finder.find(rest.get(at..)?).map(|found| at + found) {
            let Some(mut found) = whole_frame(rest.slice(begin..), due) else {
                at = begin + 1;
                continue;
            };
            at = begin + frame::HEADER_BYTES + found.payload.as_ref().map_or(0, Bytes::len);
            found.offset = offset + begin as u64;
            return Some(found);
        }
        None
    }))
}

/// The frame at the beginning of `bytes`, if it is whole and can come behind sequence `due`.
fn whole_frame(bytes: Bytes, due: u64) -> Option<FrameBehind> {
    let (head, rest) = bytes.split_first_chunk::<{ frame::HEADER_BYTES }>()?;
    let header = Header::from_bytes(head);
    let payload_bytes = header.payload_bytes()?;
    if header.sequence < due || !header.fits(head, rest.get(..payload_bytes)?) {
        return None;
    }
    let payload = frame::HEADER_BYTES..frame::HEADER_BYTES + payload_bytes;
    Some(FrameBehind {
        offset: 0,
        sequence: header.sequence,
        crc: header.crc,
        payload: (!header.is_mark()).then(|| bytes.slice(payload)),
        durable_before: header.durable_before(),
    })
}
