//! TINYINT: one byte RLE stream.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_buffer::NullBuffer;

use super::{FinishedValues, ValueWriter, encoding, mismatch, push_valid};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::column::Seen;
use crate::writer::stream::{ByteRleStream, Context};

#[derive(Default)]
pub(super) struct ByteWriter {
    data: ByteRleStream,
    marks: Vec<u64>,
    /// Of the batch at hand.
    scratch: Vec<i64>,
}

impl ValueWriter for ByteWriter {
    fn write(
        &mut self,
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
        self.data.pending().extend(self.scratch.iter().map(|value| *value as u8));
        seen.collector.add_integers(&self.scratch);
        if let Some(bloom) = &mut seen.bloom {
            self.scratch.iter().for_each(|value| bloom.add_long(*value));
        }
        Ok(())
    }

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.data.end_row_group(cx)
    }

    fn mark(&mut self, cx: &Context) {
        self.data.mark(cx, &mut self.marks);
    }

    fn finish_stripe(&mut self, cx: &mut Context) -> Result<FinishedValues> {
        Ok(FinishedValues {
            streams: vec![(StreamKind::Data, self.data.take(cx)?)],
            encoding: encoding(EncodingKind::Direct),
            marks: std::mem::take(&mut self.marks),
        })
    }

    fn len(&self) -> usize {
        self.data.len()
    }

    fn memory_bytes(&self) -> usize {
        self.data.memory_bytes() + self.scratch.capacity() * 8
    }
}
