//! Columns whose values go to the same streams in every stripe: all but strings, which may take a
//! dictionary, and structs, which have no values.
//!
//! A type says how its values get into its streams ([`DirectValues`]); ending row groups, positions
//! and stripes is the same for all ([`DirectWriter`]).

use arrow_array::Array;
use arrow_buffer::NullBuffer;

use super::{FinishedValues, ValueWriter, encoding};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::column::Seen;
use crate::writer::stream::{Context, EncodedStream};

/// How the values of a type are written.
pub(super) trait DirectValues: Send {
    /// What they are written to.
    type Streams: EncodedStream;

    /// What the streams are, in the order in which they are written.
    const KINDS: &'static [StreamKind];

    const ENCODING: EncodingKind;

    /// Streams without values.
    fn new_streams() -> Self::Streams;

    /// See [`ValueWriter::write`].
    fn write(
        &mut self,
        streams: &mut Self::Streams,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()>;

    /// Writes what is known only at the end of a row group.
    fn complete_row_group(
        &mut self,
        _streams: &mut Self::Streams,
        _cx: &mut Context,
    ) -> Result<()> {
        Ok(())
    }

    /// Bytes held beside the streams.
    fn scratch_bytes(&self) -> usize {
        0
    }
}

/// Writes the values of a column to streams that stay the same.
pub(super) struct DirectWriter<V: DirectValues> {
    values: V,
    streams: V::Streams,
    marks: Vec<u64>,
}

impl<V: DirectValues> DirectWriter<V> {
    pub(super) fn new(values: V) -> Self {
        Self { values, streams: V::new_streams(), marks: Vec::new() }
    }
}

impl<V: DirectValues> ValueWriter for DirectWriter<V> {
    fn write(
        &mut self,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        self.values.write(&mut self.streams, array, nulls, seen, cx)
    }

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.values.complete_row_group(&mut self.streams, cx)?;
        self.streams.end_row_group(cx)
    }

    fn mark(&mut self, cx: &Context) {
        self.streams.mark(cx, &mut self.marks);
    }

    fn finish_stripe(&mut self, cx: &mut Context) -> Result<FinishedValues> {
        let streams = self.streams.take(cx)?;
        Ok(FinishedValues {
            streams: V::KINDS.iter().copied().zip(streams).collect(),
            encoding: encoding(V::ENCODING),
            marks: std::mem::take(&mut self.marks),
        })
    }

    fn len(&self) -> usize {
        self.streams.len()
    }

    fn memory_bytes(&self) -> usize {
        self.streams.memory_bytes() + self.values.scratch_bytes()
    }
}
