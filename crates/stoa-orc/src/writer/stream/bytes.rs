//! The bytes of a stream, cut into compression chunks.

use super::{Context, EncodedStream};
use crate::error::Result;

/// A chunk with less content than this goes on across row groups.
const ROW_GROUP_CHUNK_MIN_BYTES: usize = 32 << 10;

/// A stream of bytes.
#[derive(Default)]
pub(crate) struct ByteStream {
    /// Content of the chunk at hand (of the whole stream, if not framed).
    open: Vec<u8>,
    /// Finished chunks.
    chunks: Vec<u8>,
}

impl ByteStream {
    /// Where encoders append; call [`Self::cut`] afterwards.
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.open
    }

    /// Appends bytes that need no encoding.
    pub(crate) fn extend(&mut self, bytes: &[u8], cx: &mut Context) -> Result<()> {
        let block_bytes = cx.compressor.block_bytes();
        if !cx.compressor.is_framed() {
            self.open.extend_from_slice(bytes);
            return Ok(());
        }
        let mut rest = bytes;
        while self.open.len() + rest.len() >= block_bytes {
            let (now, later) = rest.split_at(block_bytes - self.open.len());
            if self.open.is_empty() {
                cx.compressor.write_chunk(now, &mut self.chunks)?;
            } else {
                self.open.extend_from_slice(now);
                self.end_chunk(cx)?;
            }
            rest = later;
        }
        self.open.extend_from_slice(rest);
        Ok(())
    }

    /// Compresses what fills whole blocks.
    pub(crate) fn cut(&mut self, cx: &mut Context) -> Result<()> {
        let block_bytes = cx.compressor.block_bytes();
        if !cx.compressor.is_framed() || self.open.len() < block_bytes {
            return Ok(());
        }
        let blocks = self.open.chunks_exact(block_bytes);
        let rest = blocks.remainder().len();
        for block in blocks {
            cx.compressor.write_chunk(block, &mut self.chunks)?;
        }
        let whole = self.open.len() - rest;
        self.open.copy_within(whole.., 0);
        self.open.truncate(rest);
        Ok(())
    }

    fn end_chunk(&mut self, cx: &mut Context) -> Result<()> {
        cx.compressor.write_chunk(&self.open, &mut self.chunks)?;
        self.open.clear();
        Ok(())
    }
}

impl EncodedStream for ByteStream {
    type Bytes = [Vec<u8>; 1];

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        if cx.compressor.is_framed() && self.open.len() >= ROW_GROUP_CHUNK_MIN_BYTES {
            self.end_chunk(cx)?;
        }
        Ok(())
    }

    fn mark(&self, cx: &Context, positions: &mut Vec<u64>) {
        if cx.compressor.is_framed() {
            positions.push(self.chunks.len() as u64);
        }
        positions.push(self.open.len() as u64);
    }

    fn take(&mut self, cx: &mut Context) -> Result<[Vec<u8>; 1]> {
        if !cx.compressor.is_framed() {
            return Ok([std::mem::take(&mut self.open)]);
        }
        if !self.open.is_empty() {
            self.end_chunk(cx)?;
        }
        Ok([std::mem::take(&mut self.chunks)])
    }

    fn len(&self) -> usize {
        self.chunks.len() + self.open.len()
    }

    fn memory_bytes(&self) -> usize {
        self.chunks.capacity() + self.open.capacity()
    }
}
