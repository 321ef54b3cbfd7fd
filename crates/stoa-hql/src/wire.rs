//! Statements and answers as bytes: what a shell and a server send each other.
//!
//! A message is a sequence of frames: a byte that says what it is, the length of the content (four
//! bytes, little-endian), the content. A shell sends one statement, then the files that it reads, in
//! order, each behind its length if that is known. The server answers with what the statement prints
//! and with the bytes of the file that it writes, and ends with [`FrameKind::Done`] or
//! [`FrameKind::Error`]. An answer without one of these has broken off.
//!
//! **Invariant:** a decoder never holds more than a frame, whose content is limited to
//! [`CONTENT_BYTES_MAX`]. Not here: how the bytes travel.

use bytes::{Buf, Bytes, BytesMut};
use stoa_error::{Error, Result};

/// Media type of such messages.
pub const MEDIA_TYPE: &str = "application/vnd.stoa.hql";

/// Most bytes of a frame's content.
pub const CONTENT_BYTES_MAX: usize = 16 << 20;

/// Bytes of files and results that are sent in one frame.
pub const CHUNK_BYTES: usize = 256 << 10;

const HEAD_BYTES: usize = 5;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The text of a statement.
    Statement,
    /// How many bytes the file has that begins next, if that is known; a number in digits.
    FileLength,
    /// A file begins; its name. What comes before the next one is in it.
    File,
    /// Bytes of a file.
    FileBytes,
    /// The file is complete.
    FileEnd,
    /// A part of the result.
    Result,
    /// A notice, UTF-8.
    Notice,
    /// A part of the display of progress, UTF-8.
    Progress,
    /// The statement is done; the namespace that the session is in by now.
    Done,
    /// The statement failed; JSON, as in answers over HTTP.
    Error,
}

const KINDS: [(FrameKind, u8); 10] = [
    (FrameKind::Statement, b's'),
    (FrameKind::FileLength, b'l'),
    (FrameKind::File, b'f'),
    (FrameKind::FileBytes, b'b'),
    (FrameKind::FileEnd, b'x'),
    (FrameKind::Result, b'r'),
    (FrameKind::Notice, b'n'),
    (FrameKind::Progress, b'p'),
    (FrameKind::Done, b'd'),
    (FrameKind::Error, b'e'),
];

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it holds.
    pub kind: FrameKind,
    /// The content.
    pub content: Bytes,
}

impl Frame {
    /// A frame.
    pub fn new(kind: FrameKind, content: impl Into<Bytes>) -> Self {
        Self { kind, content: content.into() }
    }

    /// The frame before a file of so many bytes.
    pub fn file_length(bytes: u64) -> Self {
        Self::new(FrameKind::FileLength, bytes.to_string())
    }

    /// The number that is the content.
    ///
    /// # Errors
    /// `Corrupt` if it is none.
    pub fn number(&self) -> Result<u64> {
        let number = self.text()?.parse();
        number.map_err(|e| Error::corrupt("a frame holds no number").with_source(e))
    }

    /// Its bytes.
    ///
    /// # Errors
    /// `Invalid` (54000) for content over [`CONTENT_BYTES_MAX`].
    pub fn encode(&self) -> Result<Bytes> {
        let length = self.content.len();
        if length > CONTENT_BYTES_MAX {
            return Err(too_long(length));
        }
        let mut bytes = Vec::with_capacity(HEAD_BYTES + length);
        bytes.push(
            KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or(b'e', |(_, code)| *code),
        );
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
        bytes.extend_from_slice(&self.content);
        Ok(bytes.into())
    }

    /// The content as text.
    ///
    /// # Errors
    /// `Corrupt` if it is not UTF-8.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.content)
            .map_err(|e| Error::corrupt("a frame is not UTF-8 text").with_source(e))
    }
}

/// Puts frames together from bytes as they come.
#[derive(Debug, Default)]
pub struct FrameDecoder(BytesMut);

impl FrameDecoder {
    /// Takes more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next frame, if it is complete.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are no frames; `Invalid` (54000) for a frame that is too long.
    pub fn next_frame(&mut self) -> Result<Option<Frame>> {
        let [code, a, b, c, d, ..] = *self.0 else { return Ok(None) };
        let kind = KINDS.iter().find(|(_, known)| *known == code).map(|(kind, _)| *kind);
        let kind = kind.ok_or_else(|| Error::corrupt(format!("{code:#04x} begins no frame")))?;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > CONTENT_BYTES_MAX {
            return Err(too_long(length));
        }
        if self.0.len() < HEAD_BYTES + length {
            return Ok(None);
        }
        self.0.advance(HEAD_BYTES);
        Ok(Some(Frame { kind, content: self.0.split_to(length).freeze() }))
    }

    /// Whether no part of a frame is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn too_long(length: usize) -> Error {
    Error::invalid(format!("a frame of {length} bytes is longer than {CONTENT_BYTES_MAX}"))
        .with_sqlstate("54000")
        .with_hint("load many cells with LOAD DATA INFILE")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_survive_any_cuts(
            frames in prop::collection::vec((0usize..KINDS.len(), prop::collection::vec(any::<u8>(), 0..300)), 0..20),
            cut in 1usize..50,
        ) {
            let frames: Vec<Frame> =
                frames.into_iter().map(|(kind, content)| Frame::new(KINDS[kind].0, content)).collect();
            let bytes: Vec<u8> =
                frames.iter().flat_map(|frame| frame.encode().unwrap().to_vec()).collect();
            let mut decoder = FrameDecoder::default();
            let mut found = Vec::new();
            for part in bytes.chunks(cut) {
                decoder.push(part);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    found.push(frame);
                }
            }
            prop_assert_eq!(found, frames);
            prop_assert!(decoder.is_empty());
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut decoder = FrameDecoder::default();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.next_frame() {}
        }
    }

    #[test]
    fn a_length_is_a_number() {
        assert_eq!(Frame::file_length(u64::MAX).number().unwrap(), u64::MAX);
        assert!(Frame::new(FrameKind::FileLength, "many").number().is_err());
    }

    #[test]
    fn lengths_are_limited() {
        let mut decoder = FrameDecoder::default();
        decoder.push(&[b'r', 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.next_frame().unwrap_err().sqlstate(), "54000");
    }
}
