//! Lines of a file of text, or of a part of one.
//!
//! As Hadoop's `LineRecordReader`: a line ends with `\n`, `\r\n` or `\r`. A part of a file has the lines that begin in
//! it; the first one is found by reading on from the byte before it.
//!
//! **Invariant:** each line of a file is in exactly one of its parts.

use std::io::Write;
use std::ops::Range;

use bytes::{Buf, Bytes};
use object_store::path::Path;
use stoa_error::{Error, Result};

use super::FilePart;
use super::source::Source;

/// Bytes that are read at a time.
const CHUNK_BYTES: u64 = 2 << 20;

/// Bytes that are read at a time behind the end of a part, where its last line ends.
const TAIL_BYTES: u64 = 64 << 10;

/// Compressed bytes that are given to a decompressor at a time: they become up to a thousand times as many.
const COMPRESSED_BYTES: usize = 16 << 10;

/// Text from which a block is made, where there is more.
const BLOCK_BYTES: usize = 1 << 20;

/// Longest line.
const LINE_BYTES_MAX: usize = 256 << 20;

/// Some lines.
#[derive(Default)]
pub(super) struct Block {
    pub(super) text: Vec<u8>,
    /// Where they are in `text`, without their ends.
    pub(super) lines: Vec<Range<usize>>,
}

/// Reads lines.
pub(super) struct LineReader {
    source: Source,
    inflater: Inflater,
    /// The next byte of the file to fetch.
    next: u64,
    /// Lines that begin here or later are another part's.
    end: u64,
    /// Fetched, not yet decompressed.
    compressed: Bytes,
    /// Text that is in no block yet.
    text: Vec<u8>,
    /// Where it begins: in the file, or in what it becomes.
    begin: u64,
    /// Lines that are to be left out.
    skip: u64,
    is_at_end: bool,
}

/// Whether a file of this name is compressed, and so cannot be cut.
pub(super) fn is_compressed(path: &Path) -> bool {
    let ending = path.filename().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
    matches!(ending, Some("gz" | "deflate" | "zst" | "bz2" | "snappy" | "lz4" | "lzo"))
}

impl LineReader {
    /// Reads the lines of a part; `header` lines at the beginning of the file are left out.
    pub(super) fn new(source: Source, part: &FilePart, header: u64) -> Result<Self> {
        let inflater = Inflater::of(&source.path)?;
        let parts = part.parts.max(1) as u128;
        let at = |number: usize| {
            u64::try_from(u128::from(source.bytes) * number as u128 / parts).unwrap_or(u64::MAX)
        };
        let (start, end) = match inflater {
            Inflater::None => (at(part.part), at(part.part + 1)),
            _ => (0, u64::MAX),
        };
        let (next, skip) = match start {
            0 => (0, header),
            // Up to the end of the line that is another part's; the header is the first part's.
            start => (start - 1, 1),
        };
        Ok(Self {
            source,
            inflater,
            next,
            end,
            compressed: Bytes::new(),
            text: Vec::new(),
            begin: next,
            skip,
            is_at_end: false,
        })
    }

    /// The next lines, maybe none; `None` after the last.
    pub(super) async fn next_block(&mut self) -> Result<Option<Block>> {
        if self.begin >= self.end && self.skip == 0 || self.is_at_end && self.text.is_empty() {
            return Ok(None);
        }
        let complete = loop {
            let complete = self.complete();
            if self.is_at_end || complete.is_some() && self.text.len() >= self.block_bytes() {
                break complete.unwrap_or(self.text.len());
            }
            if self.text.len() > LINE_BYTES_MAX {
                return Err(Error::unsupported(format!(
                    "a line is longer than {LINE_BYTES_MAX} bytes"
                ))
                .with_hint("is it a file of text?"));
            }
            self.fill().await?;
        };
        let complete = if self.is_at_end { self.text.len() } else { complete };
        let rest = self.text.split_off(complete);
        let text = std::mem::replace(&mut self.text, rest);
        let lines = self.lines_in(&text);
        self.begin += text.len() as u64;
        Ok(Some(Block { text, lines }))
    }

    /// Behind the end of a part, any complete line is enough.
    fn block_bytes(&self) -> usize {
        let is_behind = self.begin + self.text.len() as u64 >= self.end;
        if is_behind { 1 } else { BLOCK_BYTES }
    }

    /// Where the last line ends that is complete.
    fn complete(&self) -> Option<usize> {
        let last = memchr::memrchr(b'\n', &self.text);
        // What follows a \r at the end is not known yet.
        let known = self.text.len().saturating_sub(1);
        last.or_else(|| memchr::memrchr(b'\r', &self.text[..known])).map(|at| at + 1)
    }

    fn lines_in(&mut self, text: &[u8]) -> Vec<Range<usize>> {
        let mut lines = Vec::new();
        let mut at = 0;
        while at < text.len() {
            // A line that is left out may begin where the part ends: it ends there, too.
            if self.skip == 0 && self.begin + at as u64 >= self.end {
                break;
            }
            let end =
                memchr::memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |length| at + length);
            let is_pair = text.get(end..end + 2) == Some(b"\r\n");
            match self.skip {
                0 => lines.push(at..end),
                _ => self.skip -= 1,
            }
            at = end + if is_pair { 2 } else { 1 };
        }
        lines
    }

    /// Fetches or decompresses more text.
    async fn fill(&mut self) -> Result<()> {
        if !self.compressed.is_empty() {
            let bytes = self.compressed.split_to(self.compressed.len().min(COMPRESSED_BYTES));
            return self.inflater.inflate(&bytes, &mut self.text);
        }
        if self.next >= self.source.bytes {
            self.is_at_end = true;
            return self.inflater.finish(&mut self.text);
        }
        let wanted = if self.next >= self.end { TAIL_BYTES } else { CHUNK_BYTES };
        let bytes = self.source.one(self.next..self.next + wanted).await?;
        if !bytes.has_remaining() {
            return Err(Error::corrupt("the file has become shorter"));
        }
        self.next += bytes.len() as u64;
        match &self.inflater {
            Inflater::None => self.text.extend_from_slice(&bytes),
            _ => self.compressed = bytes,
        }
        Ok(())
    }
}

/// What takes a compression away.
pub(super) enum Inflater {
    None,
    Gzip(flate2::write::MultiGzDecoder<Vec<u8>>),
    Zlib(flate2::write::ZlibDecoder<Vec<u8>>),
    Zstd(zstd::stream::write::Decoder<'static, Vec<u8>>),
}

impl Inflater {
    /// As the file's name says, which is how Hadoop tells.
    fn of(path: &Path) -> Result<Self> {
        let ending =
            path.filename().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
        Ok(match ending {
            Some("gz") => Self::Gzip(flate2::write::MultiGzDecoder::new(Vec::new())),
            Some("deflate") => Self::Zlib(flate2::write::ZlibDecoder::new(Vec::new())),
            Some("zst") => {
                Self::Zstd(zstd::stream::write::Decoder::new(Vec::new()).map_err(damaged)?)
            }
            Some(other @ ("bz2" | "snappy" | "lz4" | "lzo")) => {
                return Err(Error::unsupported(format!(
                    "text that is compressed as .{other} is not supported"
                ))
                .with_hint("compress it with gzip or zstd"));
            }
            _ => Self::None,
        })
    }

    fn inflate(&mut self, bytes: &[u8], text: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::None => text.extend_from_slice(bytes),
            Self::Gzip(decoder) => {
                decoder.write_all(bytes).map_err(damaged)?;
                text.append(decoder.get_mut());
            }
            Self::Zlib(decoder) => {
                decoder.write_all(bytes).map_err(damaged)?;
                text.append(decoder.get_mut());
            }
            Self::Zstd(decoder) => {
                decoder.write_all(bytes).map_err(damaged)?;
                text.append(decoder.get_mut());
            }
        }
        Ok(())
    }

    fn finish(&mut self, text: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::None => {}
            Self::Gzip(decoder) => {
                decoder.try_finish().map_err(damaged)?;
                text.append(decoder.get_mut());
            }
            Self::Zlib(decoder) => {
                decoder.try_finish().map_err(damaged)?;
                text.append(decoder.get_mut());
            }
            Self::Zstd(decoder) => {
                decoder.flush().map_err(damaged)?;
                text.append(decoder.get_mut());
            }
        }
        Ok(())
    }
}

fn damaged(error: std::io::Error) -> Error {
    Error::corrupt("the compressed text is damaged or cut off").with_source(error)
}
