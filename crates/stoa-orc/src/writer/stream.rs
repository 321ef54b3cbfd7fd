//! Streams being written: encoded bytes cut into chunks, and positions in them.
//!
//! A row group ends a chunk once the chunk holds enough to compress well, so that the bytes of a
//! row group can be asked for exactly; small streams share a chunk among row groups.
//! **Invariant:** a mark is taken after the runs before it were ended, so "values consumed in the
//! run" is 0 in every position; only a boolean stream may point inside a byte.

use arrow_buffer::BooleanBuffer;

use super::compressor::Compressor;
use crate::encode::boolean::BooleanEncoder;
use crate::encode::byte_rle;
use crate::encode::int_rle::IntEncoder;
use crate::error::Result;

/// A chunk with less content than this goes on across row groups.
const ROW_GROUP_CHUNK_MIN_BYTES: usize = 32 << 10;

/// Integers collected before they are encoded, where a row group has more.
const PENDING_VALUES_MAX: usize = 16 << 10;

/// What all columns of a writer share: the codec's state and scratch space.
pub(crate) struct Context {
    pub(crate) compressor: Compressor,
    pub(crate) integers: IntEncoder,
}

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

    /// Ends the chunk if it holds enough to stand alone. Call at the end of a row group.
    pub(crate) fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        if cx.compressor.is_framed() && self.open.len() >= ROW_GROUP_CHUNK_MIN_BYTES {
            self.end_chunk(cx)?;
        }
        Ok(())
    }

    /// Appends the position of the next byte.
    pub(crate) fn mark(&self, cx: &Context, positions: &mut Vec<u64>) {
        if cx.compressor.is_framed() {
            positions.push(self.chunks.len() as u64);
        }
        positions.push(self.open.len() as u64);
    }

    /// The bytes of the stream; starts over.
    pub(crate) fn take(&mut self, cx: &mut Context) -> Result<Vec<u8>> {
        if !cx.compressor.is_framed() {
            return Ok(std::mem::take(&mut self.open));
        }
        if !self.open.is_empty() {
            self.end_chunk(cx)?;
        }
        Ok(std::mem::take(&mut self.chunks))
    }

    /// Bytes the stream will take at most, so far.
    pub(crate) fn len(&self) -> usize {
        self.chunks.len() + self.open.len()
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.capacity() + self.open.capacity()
    }

    fn end_chunk(&mut self, cx: &mut Context) -> Result<()> {
        cx.compressor.write_chunk(&self.open, &mut self.chunks)?;
        self.open.clear();
        Ok(())
    }
}

/// A stream of integers in RLEv2.
pub(crate) struct IntStream {
    signed: bool,
    /// Not yet encoded.
    pending: Vec<i64>,
    bytes: ByteStream,
}

impl IntStream {
    pub(crate) fn signed() -> Self {
        Self { signed: true, pending: Vec::new(), bytes: ByteStream::default() }
    }

    pub(crate) fn unsigned() -> Self {
        Self { signed: false, pending: Vec::new(), bytes: ByteStream::default() }
    }

    /// Where values are added; call [`Self::cut`] afterwards.
    pub(crate) fn pending(&mut self) -> &mut Vec<i64> {
        &mut self.pending
    }

    /// Adds `count` times `value`.
    pub(crate) fn push_repeated(
        &mut self,
        value: i64,
        count: usize,
        cx: &mut Context,
    ) -> Result<()> {
        self.flush(cx)?;
        cx.integers.encode_repeated(value, count, self.signed, self.bytes.open());
        self.bytes.cut(cx)
    }

    /// Encodes if many values are pending.
    pub(crate) fn cut(&mut self, cx: &mut Context) -> Result<()> {
        if self.pending.len() >= PENDING_VALUES_MAX { self.flush(cx) } else { Ok(()) }
    }

    /// See [`ByteStream::end_row_group`].
    pub(crate) fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.flush(cx)?;
        self.bytes.end_row_group(cx)
    }

    /// See [`ByteStream::mark`].
    pub(crate) fn mark(&self, cx: &Context, positions: &mut Vec<u64>) {
        self.bytes.mark(cx, positions);
        positions.push(0);
    }

    /// See [`ByteStream::take`].
    pub(crate) fn take(&mut self, cx: &mut Context) -> Result<Vec<u8>> {
        self.flush(cx)?;
        self.bytes.take(cx)
    }

    /// See [`ByteStream::len`]; pending values count as two bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.pending.len() * 2
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + self.pending.capacity() * 8
    }

    fn flush(&mut self, cx: &mut Context) -> Result<()> {
        cx.integers.encode(&self.pending, self.signed, self.bytes.open());
        self.pending.clear();
        self.bytes.cut(cx)
    }
}

/// A stream of small integers in byte RLE.
#[derive(Default)]
pub(crate) struct ByteRleStream {
    pending: Vec<u8>,
    bytes: ByteStream,
}

impl ByteRleStream {
    /// Where values are added; they are encoded at the end of the row group.
    pub(crate) fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// See [`ByteStream::end_row_group`].
    pub(crate) fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.flush(cx)?;
        self.bytes.end_row_group(cx)
    }

    /// See [`ByteStream::mark`].
    pub(crate) fn mark(&self, cx: &Context, positions: &mut Vec<u64>) {
        self.bytes.mark(cx, positions);
        positions.push(0);
    }

    /// See [`ByteStream::take`].
    pub(crate) fn take(&mut self, cx: &mut Context) -> Result<Vec<u8>> {
        self.flush(cx)?;
        self.bytes.take(cx)
    }

    /// See [`ByteStream::len`].
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.pending.len()
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + self.pending.capacity()
    }

    fn flush(&mut self, cx: &mut Context) -> Result<()> {
        byte_rle::encode(&self.pending, self.bytes.open());
        self.pending.clear();
        self.bytes.cut(cx)
    }
}

/// A stream of booleans.
#[derive(Default)]
pub(crate) struct BooleanStream {
    encoder: BooleanEncoder,
    bytes: ByteStream,
}

impl BooleanStream {
    /// Adds `count` times `value`.
    pub(crate) fn push_repeated(&mut self, value: bool, count: usize) {
        self.encoder.push_repeated(value, count);
    }

    /// Adds the bits of a buffer.
    pub(crate) fn push_buffer(&mut self, bits: &BooleanBuffer) {
        self.encoder.push_buffer(bits);
    }

    /// See [`ByteStream::end_row_group`]. Where the row group ends inside a byte, the chunk goes
    /// on: that byte is of two row groups.
    pub(crate) fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.encoder.flush(self.bytes.open());
        self.bytes.cut(cx)?;
        if self.encoder.pending_bits() == 0 { self.bytes.end_row_group(cx) } else { Ok(()) }
    }

    /// See [`ByteStream::mark`].
    pub(crate) fn mark(&self, cx: &Context, positions: &mut Vec<u64>) {
        self.bytes.mark(cx, positions);
        positions.extend([0, self.encoder.pending_bits() as u64]);
    }

    /// See [`ByteStream::take`].
    pub(crate) fn take(&mut self, cx: &mut Context) -> Result<Vec<u8>> {
        self.encoder.finish(self.bytes.open());
        self.bytes.cut(cx)?;
        self.bytes.take(cx)
    }

    /// See [`ByteStream::len`].
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.encoder.buffered_bytes()
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + self.encoder.buffered_bytes()
    }
}
