//! Byte strings of any Arrow layout, and BINARY: the bytes and their lengths.

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::DataType;

use super::direct::DirectValues;
use super::mismatch;
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

/// The streams of byte strings without a dictionary: their bytes, and their lengths.
pub(super) type DirectStreams = (ByteStream, IntStream);

/// [`DirectStreams`] without values.
pub(super) fn direct_streams() -> DirectStreams {
    (ByteStream::default(), IntStream::unsigned())
}

/// Adds the valid values of `strings`; returns their number of bytes.
pub(super) fn push_direct(
    (data, lengths): &mut DirectStreams,
    strings: &impl ByteStrings,
    rows: usize,
    nulls: Option<&NullBuffer>,
    cx: &mut Context,
) -> Result<usize> {
    let mut bytes = 0;
    let pending = lengths.pending();
    for_each_valid(rows, nulls, |row| {
        let length = strings.get(row).len();
        bytes += length;
        pending.push(length as i64);
    });
    lengths.cut(cx)?;
    match strings.contiguous().filter(|all| all.len() == bytes) {
        Some(all) => data.extend(all, cx)?,
        None => {
            let open = data.open();
            for_each_valid(rows, nulls, |row| open.extend_from_slice(strings.get(row)));
            data.cut(cx)?;
        }
    }
    Ok(bytes)
}

/// BINARY.
pub(super) struct BinaryValues;

impl DirectValues for BinaryValues {
    type Streams = DirectStreams;
    const KINDS: &'static [StreamKind] = &[StreamKind::Data, StreamKind::Length];
    const ENCODING: EncodingKind = EncodingKind::DirectV2;

    fn new_streams() -> DirectStreams {
        direct_streams()
    }

    fn write(
        &mut self,
        streams: &mut DirectStreams,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()> {
        let mut bytes = 0;
        visit(array, Push { streams, rows: array.len(), nulls, bytes: &mut bytes, cx })?;
        if let Bounds::Binary { bytes: total } = &mut seen.collector.bounds {
            *total += bytes as u64;
        }
        Ok(())
    }
}

/// A batch for [`push_direct`], and its result.
struct Push<'a> {
    streams: &'a mut DirectStreams,
    rows: usize,
    nulls: Option<&'a NullBuffer>,
    bytes: &'a mut usize,
    cx: &'a mut Context,
}

impl Visitor for Push<'_> {
    fn visit(self, strings: &impl ByteStrings) -> Result<()> {
        *self.bytes = push_direct(self.streams, strings, self.rows, self.nulls, self.cx)?;
        Ok(())
    }
}
