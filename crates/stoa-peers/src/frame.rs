//! Frames: what is sent once both sides know each other.
//!
//! ```text
//! length u32 | type u8 | 0 u8 | kind u16 | id u64 | length bytes
//! ```
//!
//! A frame of a type that is not known is from a later version, and skipped.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::traffic::Traffic;

/// Bytes in front of each body.
pub(crate) const HEADER_BYTES: usize = 16;

/// Room that a read has; TLS gives up to 16 KiB at once.
const READ_BYTES: usize = 32 << 10;
/// Bodies up to this size are copied from the buffer; larger ones are read into memory of their own.
const COPIED_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameType {
    Request,
    Answer,
    /// An answer that is an error.
    Failure,
    /// Asks for a sign of life.
    Ping,
    /// The sign of life.
    Pong,
    /// A later version's.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) frame: FrameType,
    /// What is asked; of requests only.
    pub(crate) kind: u16,
    /// The request's; unique on its connection.
    pub(crate) id: u64,
    /// Bytes of the body.
    pub(crate) length: usize,
}

impl FrameType {
    fn number(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Answer => 2,
            Self::Failure => 3,
            Self::Ping => 4,
            Self::Pong => 5,
            Self::Other => 0,
        }
    }

    fn of(number: u8) -> Self {
        match number {
            1 => Self::Request,
            2 => Self::Answer,
            3 => Self::Failure,
            4 => Self::Ping,
            5 => Self::Pong,
            _ => Self::Other,
        }
    }
}

impl Header {
    /// A frame without a body that belongs to no request.
    pub(crate) fn sign(frame: FrameType) -> Self {
        Self { frame, kind: 0, id: 0, length: 0 }
    }

    /// Appends the bytes of the header. No body is larger than a `u32` says.
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        bytes.put_u32(u32::try_from(self.length).unwrap_or(u32::MAX));
        bytes.put_u8(self.frame.number());
        bytes.put_u8(0);
        bytes.put_u16(self.kind);
        bytes.put_u64(self.id);
    }

    fn take(bytes: &mut impl Buf) -> Self {
        let length = usize::try_from(bytes.get_u32()).unwrap_or(usize::MAX);
        let frame = FrameType::of(bytes.get_u8());
        bytes.advance(1);
        Self { length, frame, kind: bytes.get_u16(), id: bytes.get_u64() }
    }
}

/// Reads frames, many with one read.
pub(crate) struct FrameReader<'a, R> {
    reader: R,
    buffer: BytesMut,
    frame_bytes_max: usize,
    traffic: &'a Traffic,
}

impl<'a, R: AsyncRead + Unpin> FrameReader<'a, R> {
    pub(crate) fn new(reader: R, frame_bytes_max: usize, traffic: &'a Traffic) -> Self {
        Self { reader, buffer: BytesMut::new(), frame_bytes_max, traffic }
    }

    /// The next header, whose body must be read or skipped before the next; `None` at the end of the stream.
    ///
    /// # Errors
    /// The connection broke, or ended in a header; or the body is larger than allowed.
    pub(crate) async fn header(&mut self) -> io::Result<Option<Header>> {
        while self.buffer.len() < HEADER_BYTES {
            if self.fill().await? == 0 {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
        let header = Header::take(&mut self.buffer);
        if header.length > self.frame_bytes_max {
            let (length, max) = (header.length, self.frame_bytes_max);
            let text = format!("a frame of {length} bytes, the limit is {max}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Some(header))
    }

    /// Whether more has been read already than the frames that were taken.
    pub(crate) fn has_more(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The body that follows the header. Memory is taken as its bytes come, not by what the header says.
    pub(crate) async fn body(&mut self, length: usize) -> io::Result<Bytes> {
        if length > COPIED_BYTES_MAX {
            return self.large_body(length).await;
        }
        while self.buffer.len() < length {
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let body = Bytes::copy_from_slice(&self.buffer[..length]);
        self.buffer.advance(length);
        Ok(body)
    }

    async fn large_body(&mut self, length: usize) -> io::Result<Bytes> {
        let mut body = self.buffer.split_to(length.min(self.buffer.len()));
        while body.len() < length {
            let missing = length - body.len();
            body.reserve(missing.min(body.len().max(READ_BYTES)));
            let mut reader = (&mut self.reader).take(missing as u64);
            match reader.read_buf(&mut body).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.traffic.has_read(read),
            }
        }
        Ok(body.freeze())
    }

    /// Passes over the body that follows the header.
    pub(crate) async fn skip(&mut self, mut length: usize) -> io::Result<()> {
        loop {
            let skipped = length.min(self.buffer.len());
            self.buffer.advance(skipped);
            length -= skipped;
            if length == 0 {
                return Ok(());
            }
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 2 {
            self.buffer.reserve(READ_BYTES);
        }
        let read = self.reader.read_buf(&mut self.buffer).await?;
        self.traffic.has_read(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use proptest::prelude::*;

    use super::*;

    const MAX: usize = 100_000;

    fn bytes_of(frames: &[(Header, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (header, body) in frames {
            header.put(&mut bytes);
            bytes.extend_from_slice(body);
        }
        bytes
    }

    /// All frames up to the end, or to damage.
    fn read(bytes: &[u8]) -> io::Result<Vec<(Header, Vec<u8>)>> {
        let traffic = Traffic::default();
        let mut reader = FrameReader::new(bytes, MAX, &traffic);
        let mut frames = Vec::new();
        block_on(async {
            while let Some(header) = reader.header().await? {
                match header.frame {
                    FrameType::Other => reader.skip(header.length).await?,
                    _ => frames.push((header, reader.body(header.length).await?.to_vec())),
                }
            }
            Ok(frames)
        })
    }

    fn frames() -> impl Strategy<Value = Vec<(Header, Vec<u8>)>> {
        let size = prop_oneof![0..300_usize, 10_000..MAX, 60_000..70_000_usize];
        let frame = (1..6_u8, any::<u16>(), any::<u64>(), size);
        let frame = frame.prop_map(|(number, kind, id, length)| {
            let header = Header { frame: FrameType::of(number), kind, id, length };
            (header, vec![number ^ id as u8; length])
        });
        proptest::collection::vec(frame, 0..8)
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written(frames in frames()) {
            prop_assert_eq!(read(&bytes_of(&frames)).unwrap(), frames);
        }

        #[test]
        fn a_stream_that_ends_early_is_an_error(frames in frames(), cut in any::<prop::sample::Index>()) {
            let bytes = bytes_of(&frames);
            prop_assume!(!bytes.is_empty());
            let cut = cut.index(bytes.len());
            let ends: Vec<_> = (0..=frames.len()).map(|n| bytes_of(&frames[..n]).len()).collect();
            prop_assert_eq!(read(&bytes[..cut]).is_ok(), ends.contains(&cut));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn unknown_frames_are_skipped() {
        let unknown = Header { length: 50_000, ..Header::sign(FrameType::Other) };
        let known = Header { length: 3, ..Header::sign(FrameType::Answer) };
        let bytes = bytes_of(&[(unknown, vec![1; 50_000]), (known, vec![2; 3])]);
        assert_eq!(read(&bytes).unwrap(), [(known, vec![2; 3])]);
    }

    #[test]
    fn frames_that_are_too_large_are_refused_by_their_header() {
        let mut bytes = Vec::new();
        Header { length: MAX + 1, ..Header::sign(FrameType::Request) }.put(&mut bytes);
        assert_eq!(read(&bytes).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
