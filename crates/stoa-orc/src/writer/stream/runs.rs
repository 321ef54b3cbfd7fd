//! Streams of runs: integers, small integers and booleans, encoded into a stream of bytes.

use arrow_buffer::BooleanBuffer;

use super::{ByteStream, Context, EncodedStream};
use crate::encode::boolean::BooleanEncoder;
use crate::encode::byte_rle;
use crate::error::Result;

/// Integers collected before they are encoded, where a row group has more.
const PENDING_VALUES_MAX: usize = 16 << 10;

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

    fn flush(&mut self, cx: &mut Context) -> Result<()> {
        cx.integers.encode(&self.pending, self.signed, self.bytes.open());
        self.pending.clear();
        self.bytes.cut(cx)
    }
}

impl EncodedStream for IntStream {
    type Bytes = [Vec<u8>; 1];

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.flush(cx)?;
        self.bytes.end_row_group(cx)
    }

    fn mark(&self, cx: &Context, positions: &mut Vec<u64>) {
        self.bytes.mark(cx, positions);
        positions.push(0);
    }

    fn take(&mut self, cx: &mut Context) -> Result<[Vec<u8>; 1]> {
        self.flush(cx)?;
        self.bytes.take(cx)
    }

    /// Pending values count as two bytes.
    fn len(&self) -> usize {
        self.bytes.len() + self.pending.len() * 2
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + self.pending.capacity() * 8
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

    fn flush(&mut self, cx: &mut Context) -> Result<()> {
        byte_rle::encode(&self.pending, self.bytes.open());
        self.pending.clear();
        self.bytes.cut(cx)
    }
}

impl EncodedStream for ByteRleStream {
    type Bytes = [Vec<u8>; 1];

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.flush(cx)?;
        self.bytes.end_row_group(cx)
    }

    fn mark(&self, cx: &Context, positions: &mut Vec<u64>) {
        self.bytes.mark(cx, positions);
        positions.push(0);
    }

    fn take(&mut self, cx: &mut Context) -> Result<[Vec<u8>; 1]> {
        self.flush(cx)?;
        self.bytes.take(cx)
    }

    fn len(&self) -> usize {
        self.bytes.len() + self.pending.len()
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + self.pending.capacity()
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
}

impl EncodedStream for BooleanStream {
    type Bytes = [Vec<u8>; 1];

    /// Where the row group ends inside a byte, the chunk goes on: that byte is of two row groups.
    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.encoder.flush(self.bytes.open());
        self.bytes.cut(cx)?;
        if self.encoder.pending_bits() == 0 { self.bytes.end_row_group(cx) } else { Ok(()) }
    }

    fn mark(&self, cx: &Context, positions: &mut Vec<u64>) {
        self.bytes.mark(cx, positions);
        positions.extend([0, self.encoder.pending_bits() as u64]);
    }

    fn take(&mut self, cx: &mut Context) -> Result<[Vec<u8>; 1]> {
        self.encoder.finish(self.bytes.open());
        self.bytes.cut(cx)?;
        self.bytes.take(cx)
    }

    fn len(&self) -> usize {
        self.bytes.len() + self.encoder.buffered_bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + self.encoder.buffered_bytes()
    }
}
