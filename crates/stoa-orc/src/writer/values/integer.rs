//! SMALLINT, INT, BIGINT, DATE: one signed integer stream.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::{FinishedValues, ValueWriter, encoding, mismatch, push_valid};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::column::Seen;
use crate::writer::stream::{Context, IntStream};

pub(super) struct IntegerWriter {
    data: IntStream,
    marks: Vec<u64>,
}

impl IntegerWriter {
    pub(super) fn new() -> Self {
        Self { data: IntStream::signed(), marks: Vec::new() }
    }
}

impl ValueWriter for IntegerWriter {
    fn write(
        &mut self,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        let pending = self.data.pending();
        let from = pending.len();
        match array.data_type() {
            DataType::Int16 => push::<Int16Type>(array, nulls, pending),
            DataType::Int32 => push::<Int32Type>(array, nulls, pending),
            DataType::Int64 => push::<Int64Type>(array, nulls, pending),
            DataType::Date32 => push::<Date32Type>(array, nulls, pending),
            DataType::Time64(TimeUnit::Microsecond) => {
                push::<Time64MicrosecondType>(array, nulls, pending);
            }
            _ => return Err(mismatch(array, "an integer or date")),
        }
        seen.collector.add_integers(&pending[from..]);
        if let Some(bloom) = &mut seen.bloom {
            pending[from..].iter().for_each(|value| bloom.add_long(*value));
        }
        self.data.cut(cx)
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
            encoding: encoding(EncodingKind::DirectV2),
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

fn push<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    out: &mut Vec<i64>,
) {
    push_valid(array.as_primitive::<T>().values(), nulls, out, Into::into);
}
