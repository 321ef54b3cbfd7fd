//! FLOAT, DOUBLE: IEEE 754, little-endian.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::{FinishedValues, ValueWriter, encoding, mismatch, push_valid};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::column::Seen;
use crate::writer::stream::{ByteStream, Context};

#[derive(Default)]
pub(super) struct FloatWriter {
    data: ByteStream,
    marks: Vec<u64>,
}

impl FloatWriter {
    /// Adds valid values, `BYTES` bytes each.
    fn push<T: Copy, const BYTES: usize>(
        &mut self,
        values: &[T],
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
        widen: impl Fn(T) -> f64 + Copy,
        bytes: impl Fn(T) -> [u8; BYTES],
    ) -> Result<()> {
        let mut valid = Vec::new();
        let values = match nulls {
            None => values,
            Some(_) => {
                push_valid(values, nulls, &mut valid, |value| value);
                valid.as_slice()
            }
        };
        seen.collector.add_floats(values.iter().map(|value| widen(*value)));
        if let Some(bloom) = &mut seen.bloom {
            values.iter().for_each(|value| bloom.add_double(widen(*value)));
        }
        let open = self.data.open();
        let from = open.len();
        open.resize(from + values.len() * BYTES, 0);
        for (target, value) in open[from..].chunks_exact_mut(BYTES).zip(values) {
            target.copy_from_slice(&bytes(*value));
        }
        self.data.cut(cx)
    }
}

impl ValueWriter for FloatWriter {
    fn write(
        &mut self,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        match array.data_type() {
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values();
                self.push(values, nulls, seen, cx, f64::from, f32::to_le_bytes)
            }
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>().values();
                self.push(values, nulls, seen, cx, |value| value, f64::to_le_bytes)
            }
            _ => Err(mismatch(array, "a float or double")),
        }
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
