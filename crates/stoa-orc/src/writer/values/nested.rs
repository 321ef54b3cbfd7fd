//! The own streams of nested types: lengths of LIST and MAP, tags of UNION, nothing of STRUCT.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use stoa_error::Error;

use super::{FinishedValues, ValueWriter, encoding, mismatch};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::collector::Bounds;
use crate::writer::column::Seen;
use crate::writer::stream::{ByteRleStream, Context, IntStream};

/// LIST, MAP.
pub(super) struct LengthWriter {
    lengths: IntStream,
    marks: Vec<u64>,
}

impl LengthWriter {
    pub(super) fn new() -> Self {
        Self { lengths: IntStream::unsigned(), marks: Vec::new() }
    }

    fn push(&mut self, lengths: impl Iterator<Item = i64>, nulls: Option<&NullBuffer>) {
        let pending = self.lengths.pending();
        match nulls {
            None => pending.extend(lengths),
            Some(nulls) => pending
                .extend(lengths.zip(nulls).filter(|(_, valid)| *valid).map(|(length, _)| length)),
        }
    }
}

impl ValueWriter for LengthWriter {
    fn write(
        &mut self,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        let from = self.lengths.pending().len();
        match array.data_type() {
            DataType::List(_) => self.push(steps(array.as_list::<i32>().value_offsets()), nulls),
            DataType::LargeList(_) => {
                self.push(steps(array.as_list::<i64>().value_offsets()), nulls);
            }
            DataType::ListView(_) => {
                self.push(array.as_list_view::<i32>().sizes().iter().map(|n| (*n).into()), nulls);
            }
            DataType::LargeListView(_) => {
                self.push(array.as_list_view::<i64>().sizes().iter().copied(), nulls);
            }
            DataType::FixedSizeList(_, length) => {
                self.push(std::iter::repeat_n((*length).into(), array.len()), nulls);
            }
            DataType::Map(..) => self.push(steps(array.as_map().value_offsets()), nulls),
            _ => return Err(mismatch(array, "a list or map")),
        }
        if let Bounds::Collection { min, max, total } = &mut seen.collector.bounds {
            for length in self.lengths.pending()[from..].iter().map(|length| *length as u64) {
                (*min, *max, *total) = (length.min(*min), length.max(*max), *total + length);
            }
        }
        self.lengths.cut(cx)
    }

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.lengths.end_row_group(cx)
    }

    fn mark(&mut self, cx: &Context) {
        self.lengths.mark(cx, &mut self.marks);
    }

    fn finish_stripe(&mut self, cx: &mut Context) -> Result<FinishedValues> {
        Ok(FinishedValues {
            streams: vec![(StreamKind::Length, self.lengths.take(cx)?)],
            encoding: encoding(EncodingKind::DirectV2),
            marks: std::mem::take(&mut self.marks),
        })
    }

    fn len(&self) -> usize {
        self.lengths.len()
    }

    fn memory_bytes(&self) -> usize {
        self.lengths.memory_bytes()
    }
}

fn steps<O: Copy + Into<i64>>(offsets: &[O]) -> impl Iterator<Item = i64> {
    offsets.windows(2).map(|pair| pair[1].into() - pair[0].into())
}

/// UNION.
#[derive(Default)]
pub(super) struct TagWriter {
    tags: ByteRleStream,
    marks: Vec<u64>,
}

impl ValueWriter for TagWriter {
    fn write(
        &mut self,
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
            self.tags.pending().push(tag);
        }
        Ok(())
    }

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.tags.end_row_group(cx)
    }

    fn mark(&mut self, cx: &Context) {
        self.tags.mark(cx, &mut self.marks);
    }

    fn finish_stripe(&mut self, cx: &mut Context) -> Result<FinishedValues> {
        Ok(FinishedValues {
            streams: vec![(StreamKind::Data, self.tags.take(cx)?)],
            encoding: encoding(EncodingKind::Direct),
            marks: std::mem::take(&mut self.marks),
        })
    }

    fn len(&self) -> usize {
        self.tags.len()
    }

    fn memory_bytes(&self) -> usize {
        self.tags.memory_bytes()
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
