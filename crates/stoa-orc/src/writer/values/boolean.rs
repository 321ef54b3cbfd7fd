//! BOOLEAN: one boolean RLE stream.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;

use super::{FinishedValues, ValueWriter, encoding, mismatch};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::collector::Bounds;
use crate::writer::column::Seen;
use crate::writer::stream::{BooleanStream, Context};

#[derive(Default)]
pub(super) struct BooleanWriter {
    data: BooleanStream,
    marks: Vec<u64>,
}

impl ValueWriter for BooleanWriter {
    fn write(
        &mut self,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        _cx: &mut Context,
    ) -> Result<()> {
        let Some(array) = array.as_boolean_opt() else {
            return Err(mismatch(array, "a boolean"));
        };
        let bits = array.values();
        let mut more = 0;
        match nulls {
            None => {
                self.data.push_buffer(bits);
                more = bits.count_set_bits();
            }
            Some(nulls) => {
                for (from, to) in nulls.valid_slices() {
                    let part = bits.slice(from, to - from);
                    self.data.push_buffer(&part);
                    more += part.count_set_bits();
                }
            }
        }
        if let Bounds::Boolean { trues } = &mut seen.collector.bounds {
            *trues += more as u64;
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
        self.data.memory_bytes()
    }
}
