//! FLOAT, DOUBLE: IEEE 754, little-endian.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::direct::DirectValues;
use super::{mismatch, push_valid};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::column::Seen;
use crate::writer::stream::{ByteStream, Context};

pub(super) struct FloatValues;

impl DirectValues for FloatValues {
    type Streams = ByteStream;
    const KINDS: &'static [StreamKind] = &[StreamKind::Data];
    const ENCODING: EncodingKind = EncodingKind::Direct;

    fn new_streams() -> ByteStream {
        ByteStream::default()
    }

    fn write(
        &mut self,
        data: &mut ByteStream,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        match array.data_type() {
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values();
                push(data, values, nulls, seen, cx, f64::from, f32::to_le_bytes)
            }
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>().values();
                push(data, values, nulls, seen, cx, |value| value, f64::to_le_bytes)
            }
            _ => Err(mismatch(array, "a float or double")),
        }
    }
}

/// Adds valid values, `BYTES` bytes each.
fn push<T: Copy, const BYTES: usize>(
    data: &mut ByteStream,
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
    let open = data.open();
    let from = open.len();
    open.resize(from + values.len() * BYTES, 0);
    for (target, value) in open[from..].chunks_exact_mut(BYTES).zip(values) {
        target.copy_from_slice(&bytes(*value));
    }
    data.cut(cx)
}
