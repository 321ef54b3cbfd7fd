//! SMALLINT, INT, BIGINT, DATE: one signed integer stream.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::direct::DirectValues;
use super::{mismatch, push_valid};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::column::Seen;
use crate::writer::stream::{Context, IntStream};

pub(super) struct IntegerValues;

impl DirectValues for IntegerValues {
    type Streams = IntStream;
    const KINDS: &'static [StreamKind] = &[StreamKind::Data];
    const ENCODING: EncodingKind = EncodingKind::DirectV2;

    fn new_streams() -> IntStream {
        IntStream::signed()
    }

    fn write(
        &mut self,
        data: &mut IntStream,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        let pending = data.pending();
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
        data.cut(cx)
    }
}

fn push<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    out: &mut Vec<i64>,
) {
    push_valid(array.as_primitive::<T>().values(), nulls, out, Into::into);
}
