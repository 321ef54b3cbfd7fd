//! Byte strings of any Arrow layout, and BINARY: the bytes and their lengths.

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::DataType;

use super::{FinishedValues, ValueWriter, encoding, mismatch};
use crate::error::Result;
use crate::proto::{EncodingKind, StreamKind};
use crate::writer::collector::Bounds;
use crate::writer::column::Seen;
use crate::writer::stream::{ByteStream, Context, IntStream};

/// Byte strings by row.
pub(super) trait ByteStrings {
    /// The value of a row that is not NULL.
    fn get(&self, row: usize) -> &[u8];

    /// All values one after the other, if they lie so.
    fn contiguous(&self) -> Option<&[u8]> {
        None
    }
}

impl<T: ByteArrayType> ByteStrings for GenericByteArray<T> {
    #[inline]
    fn get(&self, row: usize) -> &[u8] {
        let offsets = self.value_offsets();
        &self.value_data()[offsets[row].as_usize()..offsets[row + 1].as_usize()]
    }

    fn contiguous(&self) -> Option<&[u8]> {
        let offsets = self.value_offsets();
        let (first, last) = (offsets.first()?, offsets.last()?);
        Some(&self.value_data()[first.as_usize()..last.as_usize()])
    }
}

impl<T: ByteViewType> ByteStrings for GenericByteViewArray<T> {
    #[inline]
    fn get(&self, row: usize) -> &[u8] {
        let value: &T::Native = self.value(row);
        value.as_ref()
    }
}

impl ByteStrings for FixedSizeBinaryArray {
    #[inline]
    fn get(&self, row: usize) -> &[u8] {
        self.value(row)
    }
}

/// The values of a dictionary array.
pub(super) struct Keyed<'a, S> {
    keys: Vec<usize>,
    values: &'a S,
}

impl<S: ByteStrings> ByteStrings for Keyed<'_, S> {
    #[inline]
    fn get(&self, row: usize) -> &[u8] {
        self.values.get(self.keys[row])
    }
}

/// Something to do with byte strings, whatever their layout.
pub(super) trait Visitor {
    fn visit(self, strings: &impl ByteStrings) -> Result<()>;
}

/// Calls `visitor` with the strings of `array`.
pub(super) fn visit(array: &dyn Array, visitor: impl Visitor) -> Result<()> {
    match array.data_type() {
        DataType::Utf8 => visitor.visit(array.as_string::<i32>()),
        DataType::LargeUtf8 => visitor.visit(array.as_string::<i64>()),
        DataType::Utf8View => visitor.visit(array.as_string_view()),
        DataType::Binary => visitor.visit(array.as_binary::<i32>()),
        DataType::LargeBinary => visitor.visit(array.as_binary::<i64>()),
        DataType::BinaryView => visitor.visit(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => visitor.visit(array.as_fixed_size_binary()),
        DataType::Dictionary(..) => {
            let Some(dictionary) = array.as_any_dictionary_opt() else {
                return Err(mismatch(array, "strings"));
            };
            let values = dictionary.values();
            // Without values all keys are NULL, and are not looked up.
            let keys = if values.is_empty() { Vec::new() } else { dictionary.normalized_keys() };
            match values.data_type() {
                DataType::Utf8 => visitor.visit(&Keyed { keys, values: values.as_string::<i32>() }),
                DataType::LargeUtf8 => {
                    visitor.visit(&Keyed { keys, values: values.as_string::<i64>() })
                }
                DataType::Utf8View => {
                    visitor.visit(&Keyed { keys, values: values.as_string_view() })
                }
                _ => Err(mismatch(array, "strings")),
            }
        }
        _ => Err(mismatch(array, "strings")),
    }
}

/// Calls `each` with every row that is not NULL.
#[inline]
pub(super) fn for_each_valid(rows: usize, nulls: Option<&NullBuffer>, mut each: impl FnMut(usize)) {
    match nulls {
        None => (0..rows).for_each(each),
        Some(nulls) => nulls.valid_slices().for_each(|(from, to)| (from..to).for_each(&mut each)),
    }
}

/// The streams of byte strings without a dictionary.
pub(super) struct DirectStreams {
    pub(super) data: ByteStream,
    pub(super) lengths: IntStream,
}

impl DirectStreams {
    pub(super) fn new() -> Self {
        Self { data: ByteStream::default(), lengths: IntStream::unsigned() }
    }

    /// Adds the valid values of `strings`; returns their number of bytes.
    pub(super) fn push(
        &mut self,
        strings: &impl ByteStrings,
        rows: usize,
        nulls: Option<&NullBuffer>,
        cx: &mut Context,
    ) -> Result<usize> {
        let mut bytes = 0;
        let lengths = self.lengths.pending();
        for_each_valid(rows, nulls, |row| {
            let length = strings.get(row).len();
            bytes += length;
            lengths.push(length as i64);
        });
        self.lengths.cut(cx)?;
        match strings.contiguous().filter(|all| all.len() == bytes) {
            Some(all) => self.data.extend(all, cx)?,
            None => {
                let open = self.data.open();
                for_each_valid(rows, nulls, |row| open.extend_from_slice(strings.get(row)));
                self.data.cut(cx)?;
            }
        }
        Ok(bytes)
    }

    /// Adds one value.
    pub(super) fn push_one(&mut self, value: &[u8], cx: &mut Context) -> Result<()> {
        self.lengths.pending().push(value.len() as i64);
        self.lengths.cut(cx)?;
        self.data.extend(value, cx)
    }

    pub(super) fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.data.end_row_group(cx)?;
        self.lengths.end_row_group(cx)
    }

    pub(super) fn mark(&self, cx: &Context, marks: &mut Vec<u64>) {
        self.data.mark(cx, marks);
        self.lengths.mark(cx, marks);
    }

    pub(super) fn finish_stripe(
        &mut self,
        cx: &mut Context,
        marks: &mut Vec<u64>,
    ) -> Result<FinishedValues> {
        Ok(FinishedValues {
            streams: vec![
                (StreamKind::Data, self.data.take(cx)?),
                (StreamKind::Length, self.lengths.take(cx)?),
            ],
            encoding: encoding(EncodingKind::DirectV2),
            marks: std::mem::take(marks),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.data.len() + self.lengths.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.data.memory_bytes() + self.lengths.memory_bytes()
    }
}

/// BINARY.
pub(super) struct BinaryWriter {
    streams: DirectStreams,
    marks: Vec<u64>,
}

impl BinaryWriter {
    pub(super) fn new() -> Self {
        Self { streams: DirectStreams::new(), marks: Vec::new() }
    }
}

impl ValueWriter for BinaryWriter {
    fn write(
        &mut self,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        struct Push<'a>(
            &'a mut DirectStreams,
            usize,
            Option<&'a NullBuffer>,
            &'a mut usize,
            &'a mut Context,
        );
        impl Visitor for Push<'_> {
            fn visit(self, strings: &impl ByteStrings) -> Result<()> {
                *self.3 = self.0.push(strings, self.1, self.2, self.4)?;
                Ok(())
            }
        }
        let mut more = 0;
        visit(array, Push(&mut self.streams, array.len(), nulls, &mut more, cx))?;
        if let Bounds::Binary { bytes } = &mut seen.collector.bounds {
            *bytes += more as u64;
        }
        Ok(())
    }

    fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.streams.end_row_group(cx)
    }

    fn mark(&mut self, cx: &Context) {
        self.streams.mark(cx, &mut self.marks);
    }

    fn finish_stripe(&mut self, cx: &mut Context) -> Result<FinishedValues> {
        self.streams.finish_stripe(cx, &mut self.marks)
    }

    fn len(&self) -> usize {
        self.streams.len()
    }

    fn memory_bytes(&self) -> usize {
        self.streams.memory_bytes()
    }
}
