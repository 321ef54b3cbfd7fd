//! Streams being written: encoded bytes cut into chunks, and positions in them.
//!
//! A row group ends a chunk once the chunk holds enough to compress well, so that the bytes of a
//! row group can be asked for exactly; small streams share a chunk among row groups.
//! **Invariant:** a mark is taken after the runs before it were ended, so "values consumed in the
//! run" is 0 in every position; only a boolean stream may point inside a byte.

mod bytes;
mod runs;

use super::compressor::Compressor;
use crate::encode::int_rle::IntEncoder;
use crate::error::Result;

pub(crate) use bytes::ByteStream;
pub(crate) use runs::{BooleanStream, ByteRleStream, IntStream};

/// What all columns of a writer share: the codec's state and scratch space.
pub(crate) struct Context {
    pub(crate) compressor: Compressor,
    pub(crate) integers: IntEncoder,
}

/// A stream being written, or two side by side.
pub(crate) trait EncodedStream: Send {
    /// The bytes of each stream.
    type Bytes: IntoIterator<Item = Vec<u8>>;

    /// Ends the runs, and the chunk if it holds enough to stand alone. Call at the end of a row
    /// group.
    fn end_row_group(&mut self, cx: &mut Context) -> Result<()>;

    /// Appends the position of the next value.
    fn mark(&self, cx: &Context, positions: &mut Vec<u64>);

    /// The bytes; starts over.
    fn take(&mut self, cx: &mut Context) -> Result<Self::Bytes>;

    /// Bytes it will take at most, so far.
    fn len(&self) -> usize;

    /// Bytes held.
    fn memory_bytes(&self) -> usize;
}

impl<A, B> EncodedStream for (A, B)
where
    A: EncodedStream<Bytes = [Vec<u8>; 1]>,
    B: EncodedStream<Bytes = [Vec<u8>; 1]>,
{
    type Bytes = [Vec<u8>; 2];

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.0.end_row_group(cx)?;
        self.1.end_row_group(cx)
    }

    fn mark(&self, cx: &Context, positions: &mut Vec<u64>) {
        self.0.mark(cx, positions);
        self.1.mark(cx, positions);
    }

    fn take(&mut self, cx: &mut Context) -> Result<[Vec<u8>; 2]> {
        let ([first], [second]) = (self.0.take(cx)?, self.1.take(cx)?);
        Ok([first, second])
    }

    fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes() + self.1.memory_bytes()
    }
}
