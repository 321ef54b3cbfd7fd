//! TINYINT: one byte RLE stream.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_buffer::NullBuffer;

use super::direct::DirectValues;
use super::{mismatch, push_valid};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::column::Seen;
use crate::writer::stream::{ByteRleStream, Context};

#[derive(Default)]
pub(super) struct ByteValues {
    /// Of the batch at hand.
    scratch: Vec<i64>,
}

impl DirectValues for ByteValues {
    type Streams = ByteRleStream;
    const KINDS: &'static [StreamKind] = &[StreamKind::Data];
    const ENCODING: EncodingKind = EncodingKind::Direct;

    fn new_streams() -> ByteRleStream {
        ByteRleStream::default()
    }

    fn write(
        &mut self,
        data: &mut ByteRleStream,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        _cx: &mut Context,
    ) -> Result<()> {
        let Some(array) = array.as_primitive_opt::<Int8Type>() else {
            return Err(mismatch(array, "a tinyint"));
        };
        self.scratch.clear();
        push_valid(array.values(), nulls, &mut self.scratch, i64::from);
        data.pending().extend(self.scratch.iter().map(|value| *value as u8));
        seen.collector.add_integers(&self.scratch);
        if let Some(bloom) = &mut seen.bloom {
            self.scratch.iter().for_each(|value| bloom.add_long(*value));
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch.capacity() * 8
    }
}
