//! The bytes of a stream, inflated chunk by chunk into one reused buffer.
//!
//! In: the raw bytes of a stream from some chunk on. Out: windows onto its content.
//! **Invariant:** a window of `n` bytes is contiguous even where it spans chunks: what is left of
//! a chunk moves to the front of the buffer and the next chunk is inflated behind it. Content that
//! is not compressed is not copied.

use bytes::Bytes;
use stoa_error::StreamPart;

use super::context::Context;
use crate::compression::{CHUNK_HEADER_BYTES, CompressionKind, check_chunk, split_chunk};
use crate::error::{Result, corrupt, stream_place};
use crate::proto::StreamKind;

/// Where and how a stream starts for a run of row groups.
#[derive(Clone, Debug)]
pub(crate) struct StreamStart {
    pub(crate) kind: StreamKind,
    /// Raw bytes; the first one starts a chunk (or any byte, if not framed).
    pub(crate) data: Bytes,
    /// Offset of the first byte in the stream.
    pub(crate) origin: u64,
    /// Offset of the first byte in the file.
    pub(crate) file_offset: u64,
    /// Content bytes to skip at first.
    pub(crate) skip_bytes: u64,
    /// Values (of boolean RLE: bytes) to skip behind that.
    pub(crate) skip_values: u64,
    /// Bits to skip behind that, of boolean RLE.
    pub(crate) skip_bits: u64,
}

impl StreamStart {
    /// A stream from its first byte on.
    pub(crate) fn whole(kind: StreamKind, data: Bytes) -> Self {
        Self { kind, data, origin: 0, file_offset: 0, skip_bytes: 0, skip_values: 0, skip_bits: 0 }
    }
}

/// A stream being read.
pub(crate) struct Source {
    kind: StreamKind,
    framed: bool,
    data: Bytes,
    origin: u64,
    file_offset: u64,
    /// Next chunk header in `data`.
    next: usize,
    /// Whether the window is in `data` (else in `buffer`).
    in_data: bool,
    start: usize,
    end: usize,
    buffer: Vec<u8>,
}

impl Source {
    /// Opens a stream and skips to where its first byte RLE, integer RLE or raw value starts.
    pub(crate) fn open(start: &StreamStart, cx: &mut Context) -> Result<Self> {
        let framed = cx.decompressor.kind() != CompressionKind::None;
        let mut source = Self {
            kind: start.kind,
            framed,
            data: start.data.clone(),
            origin: start.origin,
            file_offset: start.file_offset,
            next: if framed { 0 } else { start.data.len() },
            in_data: true,
            start: 0,
            end: if framed { 0 } else { start.data.len() },
            buffer: Vec::new(),
        };
        source.skip(cx, start.skip_bytes)?;
        Ok(source)
    }

    /// At least `want` bytes, or all that are left.
    #[inline]
    pub(crate) fn window(&mut self, cx: &mut Context, want: usize) -> Result<&[u8]> {
        if self.end - self.start < want && self.next < self.data.len() {
            self.fill(cx, want)?;
        }
        Ok(self.available())
    }

    /// Marks bytes of the last window as read.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// Reads exactly `out.len()` bytes.
    pub(crate) fn read_exact(&mut self, cx: &mut Context, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let window = self.window(cx, 1)?;
            let n = window.len().min(out.len() - done);
            if n == 0 {
                return Err(self.ended());
            }
            out[done..done + n].copy_from_slice(&window[..n]);
            self.advance(n);
            done += n;
        }
        Ok(())
    }

    /// Appends exactly `count` bytes to `out`, growing it as bytes come.
    pub(crate) fn append_to(
        &mut self,
        cx: &mut Context,
        out: &mut Vec<u8>,
        count: usize,
    ) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let window = self.window(cx, 1)?;
            let n = window.len().min(left);
            if n == 0 {
                return Err(self.ended());
            }
            out.extend_from_slice(&window[..n]);
            self.advance(n);
            left -= n;
        }
        Ok(())
    }

    /// Skips bytes.
    pub(crate) fn skip(&mut self, cx: &mut Context, count: u64) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let n = (self.window(cx, 1)?.len() as u64).min(left);
            if n == 0 {
                return Err(self.ended());
            }
            self.advance(n as usize);
            left -= n;
        }
        Ok(())
    }

    /// The error of a stream that has fewer bytes than its values need.
    #[cold]
    pub(crate) fn ended(&self) -> crate::error::Error {
        self.locate(corrupt("ends before its values do"))
    }

    /// The error of bytes that make no sense at the start of the window.
    #[cold]
    pub(crate) fn bad(&self, error: crate::error::Error) -> crate::error::Error {
        self.locate(error)
    }

    /// Gives the buffer back.
    pub(crate) fn recycle(&mut self, cx: &mut Context) {
        cx.recycle(std::mem::take(&mut self.buffer));
        (self.start, self.end, self.next, self.in_data) = (0, 0, self.data.len(), true);
    }

    #[inline]
    fn available(&self) -> &[u8] {
        if self.in_data {
            &self.data[self.start..self.end]
        } else {
            &self.buffer[self.start..self.end]
        }
    }

    #[cold]
    fn locate(&self, error: crate::error::Error) -> crate::error::Error {
        let read = if self.framed { self.next } else { self.start } as u64;
        let part = match self.data.is_empty() {
            true => StreamPart::Empty,
            false => StreamPart::Before {
                offset: self.origin + read,
                file_offset: self.file_offset + read,
            },
        };
        error.at(stream_place(self.kind, part))
    }

    /// Inflates chunks until `want` bytes are there or the stream ends.
    fn fill(&mut self, cx: &mut Context, want: usize) -> Result<()> {
        while self.end - self.start < want && self.next < self.data.len() {
            self.next_chunk(cx).map_err(|e| self.locate(e))?;
        }
        Ok(())
    }

    fn next_chunk(&mut self, cx: &mut Context) -> Result<()> {
        let Ok((is_original, chunk, _)) = split_chunk(&self.data[self.next..]) else {
            // The bytes of a run may end inside a chunk that its values do not need. If they do
            // need it, the stream ends before they do.
            self.next = self.data.len();
            return Ok(());
        };
        check_chunk(chunk, cx.block_bytes)?;
        let from = self.next + CHUNK_HEADER_BYTES;
        let until = from + chunk.len();
        if is_original && self.start == self.end {
            (self.in_data, self.start, self.end, self.next) = (true, from, until, until);
            return Ok(());
        }
        let room = if is_original { chunk.len() } else { cx.block_bytes };
        let left = self.end - self.start;
        if self.buffer.is_empty() {
            self.buffer = cx.spare_buffer();
        }
        cx.grow_buffer(&mut self.buffer, left + room)?;
        if self.in_data {
            self.buffer[..left].copy_from_slice(&self.data[self.start..self.end]);
        } else {
            self.buffer.copy_within(self.start..self.end, 0);
        }
        let target = &mut self.buffer[left..left + room];
        let length = if is_original {
            target.copy_from_slice(chunk);
            room
        } else {
            cx.decompressor.decompress(chunk, target)?
        };
        (self.in_data, self.start, self.end, self.next) = (false, 0, left + length, until);
        Ok(())
    }
}
