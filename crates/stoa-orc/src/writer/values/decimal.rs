//! DECIMAL: unscaled values as varints, and the scale of each value.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::{FinishedValues, ValueWriter, encoding, mismatch, push_valid};
use crate::encode::varint::{write_signed, write_signed_128};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::column::Seen;
use crate::writer::stream::{ByteStream, Context, IntStream};

pub(super) struct DecimalWriter {
    scale: u32,
    data: ByteStream,
    /// How many values of the row group have no scale written yet.
    unscaled: usize,
    scales: IntStream,
    marks: Vec<u64>,
    /// Of the batch at hand.
    scratch: Vec<i128>,
}

impl DecimalWriter {
    pub(super) fn new(scale: u32) -> Self {
        Self {
            scale,
            data: ByteStream::default(),
            unscaled: 0,
            scales: IntStream::signed(),
            marks: Vec::new(),
            scratch: Vec::new(),
        }
    }
}

impl ValueWriter for DecimalWriter {
    fn write(
        &mut self,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        self.scratch.clear();
        match array.data_type() {
            DataType::Decimal32(..) => push::<Decimal32Type>(array, nulls, &mut self.scratch),
            DataType::Decimal64(..) => push::<Decimal64Type>(array, nulls, &mut self.scratch),
            DataType::Decimal128(..) => push::<Decimal128Type>(array, nulls, &mut self.scratch),
            _ => return Err(mismatch(array, "a decimal")),
        }
        let open = self.data.open();
        for value in &self.scratch {
            match i64::try_from(*value) {
                Ok(value) => write_signed(value, open),
                Err(_) => write_signed_128(*value, open),
            }
        }
        seen.collector.add_decimals(&self.scratch);
        if let Some(bloom) = &mut seen.bloom {
            for value in &self.scratch {
                bloom.add_decimal(*value, self.scale);
            }
        }
        self.unscaled += self.scratch.len();
        self.data.cut(cx)
    }

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.scales.push_repeated(i64::from(self.scale), self.unscaled, cx)?;
        self.unscaled = 0;
        self.scales.end_row_group(cx)?;
        self.data.end_row_group(cx)
    }

    fn mark(&mut self, cx: &Context) {
        self.data.mark(cx, &mut self.marks);
        self.scales.mark(cx, &mut self.marks);
    }

    fn finish_stripe(&mut self, cx: &mut Context) -> Result<FinishedValues> {
        Ok(FinishedValues {
            streams: vec![
                (StreamKind::Data, self.data.take(cx)?),
                (StreamKind::Secondary, self.scales.take(cx)?),
            ],
            encoding: encoding(EncodingKind::DirectV2),
            marks: std::mem::take(&mut self.marks),
        })
    }

    fn len(&self) -> usize {
        self.data.len() + self.scales.len()
    }

    fn memory_bytes(&self) -> usize {
        self.data.memory_bytes() + self.scales.memory_bytes() + self.scratch.capacity() * 16
    }
}

fn push<T: ArrowPrimitiveType<Native: Into<i128>>>(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    out: &mut Vec<i128>,
) {
    push_valid(array.as_primitive::<T>().values(), nulls, out, Into::into);
}
