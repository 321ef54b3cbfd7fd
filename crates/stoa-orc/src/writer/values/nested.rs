//! The own streams of nested types: lengths of LIST and MAP, tags of UNION, nothing of STRUCT.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use stoa_error::Error;

use super::direct::DirectValues;
use super::{FinishedValues, ValueWriter, encoding, mismatch};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::collector::Bounds;
use crate::writer::column::Seen;
use crate::writer::stream::{ByteRleStream, Context, IntStream};

/// LIST, MAP.
pub(super) struct LengthValues;

impl DirectValues for LengthValues {
    type Streams = IntStream;
    const KINDS: &'static [StreamKind] = &[StreamKind::Length];
    const ENCODING: EncodingKind = EncodingKind::DirectV2;

    fn new_streams() -> IntStream {
        IntStream::unsigned()
    }

    fn write(
        &mut self,
        lengths: &mut IntStream,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        let pending = lengths.pending();
        let from = pending.len();
        match array.data_type() {
            DataType::List(_) => {
                push_valid(pending, steps(array.as_list::<i32>().value_offsets()), nulls);
            }
            DataType::LargeList(_) => {
                push_valid(pending, steps(array.as_list::<i64>().value_offsets()), nulls);
            }
            DataType::ListView(_) => {
                let sizes = array.as_list_view::<i32>().sizes();
                push_valid(pending, sizes.iter().map(|length| (*length).into()), nulls);
            }
            DataType::LargeListView(_) => {
                push_valid(pending, array.as_list_view::<i64>().sizes().iter().copied(), nulls);
            }
            DataType::FixedSizeList(_, length) => {
                push_valid(pending, std::iter::repeat_n((*length).into(), array.len()), nulls);
            }
            DataType::Map(..) => push_valid(pending, steps(array.as_map().value_offsets()), nulls),
            _ => return Err(mismatch(array, "a list or map")),
        }
        if let Bounds::Collection { min, max, total } = &mut seen.collector.bounds {
            for length in pending[from..].iter().map(|length| *length as u64) {
                (*min, *max, *total) = (length.min(*min), length.max(*max), *total + length);
            }
        }
        lengths.cut(cx)
    }
}

/// Appends the lengths of valid rows.
fn push_valid(
    pending: &mut Vec<i64>,
    lengths: impl Iterator<Item = i64>,
    nulls: Option<&NullBuffer>,
) {
    match nulls {
        None => pending.extend(lengths),
        Some(nulls) => {
            pending.extend(lengths.zip(nulls).filter(|(_, valid)| *valid).map(|(length, _)| length))
        }
    }
}

fn steps<O: Copy + Into<i64>>(offsets: &[O]) -> impl Iterator<Item = i64> {
    offsets.windows(2).map(|pair| pair[1].into() - pair[0].into())
}

/// UNION.
pub(super) struct TagValues;

impl DirectValues for TagValues {
    type Streams = ByteRleStream;
    const KINDS: &'static [StreamKind] = &[StreamKind::Data];
    const ENCODING: EncodingKind = EncodingKind::Direct;

    fn new_streams() -> ByteRleStream {
        ByteRleStream::default()
    }

    fn write(
        &mut self,
        tags: &mut ByteRleStream,
        array: &dyn Array,
        _nulls: Option<&NullBuffer>,
        _seen: &mut Seen,
        _cx: &mut Context,
    ) -> Result<()> {
        let DataType::Union(fields, _) = array.data_type() else {
            return Err(mismatch(array, "a union"));
        };
        // Arrow's type ids are any numbers; ORC's tags count the children.
        let mut tag_of = [None; 128];
        for (tag, (id, _)) in fields.iter().enumerate() {
            if let Some(slot) = tag_of.get_mut(id as usize) {
                *slot = Some(tag as u8);
            }
        }
        for id in array.as_union().type_ids() {
            let Some(tag) = usize::try_from(*id).ok().and_then(|id| tag_of[id]) else {
                return Err(Error::invalid(format!("union has no variant with type id {id}")));
            };
            tags.pending().push(tag);
        }
        Ok(())
    }
}

/// STRUCT.
pub(super) struct NoValues;

impl ValueWriter for NoValues {
    fn write(
        &mut self,
        array: &dyn Array,
        _nulls: Option<&NullBuffer>,
        _seen: &mut Seen,
        _cx: &mut Context,
    ) -> Result<()> {
        match array.data_type() {
            DataType::Struct(_) => Ok(()),
            _ => Err(mismatch(array, "a struct")),
        }
    }

    fn end_row_group(&mut self, _cx: &mut Context) -> Result<()> {
        Ok(())
    }

    fn mark(&mut self, _cx: &Context) {}

    fn finish_stripe(&mut self, _cx: &mut Context) -> Result<FinishedValues> {
        Ok(FinishedValues {
            streams: Vec::new(),
            encoding: encoding(EncodingKind::Direct),
            marks: Vec::new(),
        })
    }

    fn len(&self) -> usize {
        0
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}
