//! DECIMAL: unscaled values as varints, and the scale of each value.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::direct::DirectValues;
use super::{mismatch, push_valid};
use crate::encode::varint::{write_signed, write_signed_128};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::column::Seen;
use crate::writer::stream::{ByteStream, Context, IntStream};

/// Unscaled values, and their scales.
type Streams = (ByteStream, IntStream);

pub(super) struct DecimalValues {
    scale: u32,
    /// How many values of the row group have no scale written yet.
    unscaled: usize,
    /// Of the batch at hand.
    scratch: Vec<i128>,
}

impl DecimalValues {
    pub(super) fn new(scale: u32) -> Self {
        Self { scale, unscaled: 0, scratch: Vec::new() }
    }
}

impl DirectValues for DecimalValues {
    type Streams = Streams;
    const KINDS: &'static [StreamKind] = &[StreamKind::Data, StreamKind::Secondary];
    const ENCODING: EncodingKind = EncodingKind::DirectV2;

    fn new_streams() -> Streams {
        (ByteStream::default(), IntStream::signed())
    }

    fn write(
        &mut self,
        (data, _): &mut Streams,
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
        let open = data.open();
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
        data.cut(cx)
    }

    fn complete_row_group(&mut self, (_, scales): &mut Streams, cx: &mut Context) -> Result<()> {
        scales.push_repeated(i64::from(self.scale), std::mem::take(&mut self.unscaled), cx)
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch.capacity() * 16
    }
}

fn push<T: ArrowPrimitiveType<Native: Into<i128>>>(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    out: &mut Vec<i128>,
) {
    push_valid(array.as_primitive::<T>().values(), nulls, out, Into::into);
}
