//! Columns of bytes: strings and binary, direct or by dictionary.
//!
//! Out: `Utf8`, `LargeUtf8`, `Utf8View`, `Dictionary(Int32, Utf8)`, `Binary` or
//! `FixedSizeBinary`. **Invariant:** strings are UTF-8: direct ones are checked per batch,
//! dictionaries once per stripe.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, DictionaryArray, FixedSizeBinaryArray, Int32Array,
    LargeStringArray, StringArray, StringViewArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::column::{Column, Opening};
use super::context::Context;
use super::dictionary::{Dictionary, PADDED_BYTES, not_utf8};
use super::int_rle::IntRle;
use super::source::Source;
use super::validity::{Present, spread, valid_count};
use crate::error::{Result, corrupt, exhausted, unsupported};
use crate::proto::StreamKind;
use crate::stripe::Encoding;

/// A column whose values are in its DATA stream.
pub(crate) struct BinaryColumn {
    present: Present,
    lengths: IntRle,
    data: Source,
    to: DataType,
    scratch: Vec<i64>,
}

impl BinaryColumn {
    pub(crate) fn open(
        opening: &Opening,
        column: u32,
        encoding: Encoding,
        to: &DataType,
        cx: &mut Context,
    ) -> Result<Self> {
        let lengths = opening.stream(column, StreamKind::Length);
        Ok(Self {
            present: Present::open(opening.present(column), cx)?,
            lengths: IntRle::open(&lengths, encoding.is_v2(), false, cx)?,
            data: Source::open(&opening.stream(column, StreamKind::Data), cx)?,
            to: to.clone(),
            scratch: Vec::new(),
        })
    }

    /// Decodes the lengths of `valid` values and returns their sum.
    fn read_lengths(&mut self, cx: &mut Context, valid: usize) -> Result<usize> {
        cx.take::<i64>(valid)?;
        self.scratch.clear();
        self.scratch.resize(valid, 0);
        self.lengths.decode(cx, &mut self.scratch)?;
        let mut total = 0usize;
        for length in &self.scratch {
            let length = usize::try_from(*length)
                .map_err(|_| corrupt(format!("a value of {length} bytes")))?;
            total = total.saturating_add(length);
        }
        Ok(total)
    }
}

impl Column for BinaryColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let nulls = self.present.decode(cx, rows, parent)?;
        let valid = valid_count(rows, nulls.as_ref());
        let total = self.read_lengths(cx, valid)?;
        if let DataType::FixedSizeBinary(width) = self.to {
            return self.fixed(cx, rows, width, nulls);
        }
        cx.take::<u8>(total)?;
        let mut bytes = Vec::with_capacity(total.min(PREALLOCATED_MAX));
        self.data.append_to(cx, &mut bytes, total)?;
        if i32::try_from(total).is_err() {
            return Err(exhausted(format!("a batch holds {total} bytes of one column"))
                .with_hint("read fewer rows per batch"));
        }
        cx.take::<i32>(rows + 1)?;
        let mut offsets = vec![0i32; rows + 1];
        for (offset, length) in offsets[1..].iter_mut().zip(&self.scratch) {
            *offset = *length as i32;
        }
        if let Some(nulls) = &nulls {
            spread(&mut offsets[1..], nulls);
        }
        let mut end = 0i32;
        for offset in &mut offsets {
            end += *offset;
            *offset = end;
        }
        output(&self.to, offsets, bytes, nulls)
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        let total = self.read_lengths(cx, valid)?;
        self.data.skip(cx, total as u64)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.lengths.recycle(cx);
        self.data.recycle(cx);
    }
}

/// How much is allocated on the word of lengths alone; more grows as bytes come.
const PREALLOCATED_MAX: usize = 16 << 20;

impl BinaryColumn {
    /// Values of `width` bytes each.
    fn fixed(
        &mut self,
        cx: &mut Context,
        rows: usize,
        width: i32,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let size = usize::try_from(width).map_err(|_| corrupt("negative width"))?;
        if let Some(length) = self.scratch.iter().find(|length| **length != i64::from(width)) {
            return Err(corrupt(format!("a value of {length} bytes in a column of {width}")));
        }
        let total = rows.saturating_mul(size);
        cx.take::<u8>(total)?;
        let mut bytes = vec![0u8; total];
        match &nulls {
            None => self.data.read_exact(cx, &mut bytes)?,
            Some(nulls) => {
                for row in nulls.inner().set_indices() {
                    self.data.read_exact(cx, &mut bytes[row * size..(row + 1) * size])?;
                }
            }
        }
        let array = FixedSizeBinaryArray::try_new(width, Buffer::from_vec(bytes), nulls);
        Ok(Arc::new(array.map_err(|e| corrupt(e.to_string()))?))
    }
}

/// An array of the bytes between offsets.
fn output(
    to: &DataType,
    offsets: Vec<i32>,
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let rows = offsets.len() - 1;
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let bytes = Buffer::from_vec(bytes);
    if *to == DataType::Binary {
        return Ok(Arc::new(BinaryArray::new(offsets, bytes, nulls)));
    }
    let array = StringArray::try_new(offsets, bytes, nulls).map_err(|e| not_utf8(&e))?;
    Ok(match to {
        DataType::Utf8 => Arc::new(array),
        DataType::LargeUtf8 => {
            let (offsets, bytes, nulls) = array.into_parts();
            let offsets: Vec<i64> = offsets.iter().map(|offset| i64::from(*offset)).collect();
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            let array = LargeStringArray::try_new(offsets, bytes, nulls);
            Arc::new(array.map_err(|e| not_utf8(&e))?)
        }
        DataType::Utf8View => Arc::new(StringViewArray::from(&array)),
        DataType::Dictionary(..) => {
            let (offsets, bytes, nulls) = array.into_parts();
            let values = StringArray::try_new(offsets, bytes, None).map_err(|e| not_utf8(&e))?;
            let keys = (0..rows as i32).collect::<Vec<_>>();
            let keys = Int32Array::new(ScalarBuffer::from(keys), nulls);
            dictionary_array(keys, Arc::new(values))?
        }
        other => return Err(unsupported(format!("bytes as {other}"))),
    })
}

/// A column whose DATA stream holds indexes into a dictionary.
pub(crate) struct DictionaryColumn {
    present: Present,
    data: IntRle,
    dictionary: Arc<Dictionary>,
    to: DataType,
}

impl DictionaryColumn {
    pub(crate) fn open(
        opening: &mut Opening,
        column: u32,
        encoding: Encoding,
        to: &DataType,
        cx: &mut Context,
    ) -> Result<Self> {
        let dictionary = match opening.dictionaries.get(&column) {
            Some(dictionary) => dictionary.clone(),
            None => {
                let data = opening.stream(column, StreamKind::DictionaryData);
                let lengths = opening.stream(column, StreamKind::Length);
                let dictionary = Dictionary::read(encoding, &data, &lengths, to, cx)?;
                let dictionary = Arc::new(dictionary);
                opening.dictionaries.insert(column, dictionary.clone());
                dictionary
            }
        };
        let data = opening.stream(column, StreamKind::Data);
        Ok(Self {
            present: Present::open(opening.present(column), cx)?,
            data: IntRle::open(&data, encoding.is_v2(), false, cx)?,
            dictionary,
            to: to.clone(),
        })
    }
}

impl Column for DictionaryColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let (mut keys, valid, nulls) = self.keys(cx, rows, parent)?;
        match &self.to {
            DataType::Dictionary(..) | DataType::Utf8View => {
                let coded = self.coded(keys, nulls)?;
                self.finished(cx, coded)
            }
            _ => {
                keys.truncate(valid);
                self.copy_out(cx, rows, &keys, nulls)
            }
        }
    }

    fn decode_to_filter(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let (keys, _, nulls) = self.keys(cx, rows, parent)?;
        self.coded(keys, nulls)
    }

    fn finished(&self, cx: &mut Context, kept: ArrayRef) -> Result<ArrayRef> {
        let Some(coded) = kept.as_dictionary_opt::<Int32Type>() else { return Ok(kept) };
        match &self.to {
            DataType::Dictionary(..) => Ok(kept),
            DataType::Utf8View => {
                let taken = arrow_select::take::take(coded.values(), coded.keys(), None);
                taken.map_err(|e| corrupt(e.to_string()))
            }
            _ => {
                let (rows, nulls) = (coded.len(), coded.nulls().cloned());
                cx.take::<i32>(rows)?;
                let keys: Vec<i32> = coded.keys().iter().flatten().collect();
                self.copy_out(cx, rows, &keys, nulls)
            }
        }
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        self.data.skip(cx, valid as u64)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.data.recycle(cx);
    }
}

impl DictionaryColumn {
    /// Keys of the next rows, those that are there in front; how many these are; and which rows they are.
    fn keys(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<(Vec<i32>, usize, Option<NullBuffer>)> {
        let nulls = self.present.decode(cx, rows, parent)?;
        cx.take::<i32>(rows)?;
        let mut keys = vec![0i32; rows];
        let valid = valid_count(rows, nulls.as_ref());
        self.data.decode(cx, &mut keys[..valid])?;
        let entries = self.dictionary.len();
        let largest = keys[..valid].iter().map(|key| *key as u32).max();
        if let Some(key) = largest.filter(|key| *key as usize >= entries) {
            return Err(corrupt(format!("index {key} into a dictionary of {entries} entries")));
        }
        Ok((keys, valid, nulls))
    }

    /// Keys, those that are there in front, with the entries.
    fn coded(&self, mut keys: Vec<i32>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        if let Some(nulls) = &nulls {
            spread(&mut keys, nulls);
        }
        let keys = Int32Array::new(ScalarBuffer::from(keys), nulls);
        dictionary_array(keys, self.dictionary.array.clone())
    }

    /// Copies the entries of `keys` (all below the number of entries) one after the other.
    fn copy_out(
        &self,
        cx: &mut Context,
        rows: usize,
        keys: &[i32],
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        cx.take::<i32>(rows + 1)?;
        let dictionary = self.dictionary.as_ref();
        let mut offsets = vec![0i32; rows + 1];
        let mut total = 0usize;
        for (offset, key) in offsets[1..].iter_mut().zip(keys) {
            let length = dictionary.lengths[*key as usize];
            *offset = length;
            total += length as usize;
        }
        if i32::try_from(total).is_err() {
            return Err(exhausted(format!("a batch holds {total} bytes of one column"))
                .with_hint("read fewer rows per batch"));
        }
        cx.take::<u8>(total + PADDED_BYTES)?;
        let mut bytes = vec![0u8; total + PADDED_BYTES];
        let mut at = 0usize;
        if let Some(padded) = &dictionary.padded {
            for (key, length) in keys.iter().zip(&offsets[1..]) {
                // What is too much is overwritten by the next entry.
                bytes[at..at + PADDED_BYTES].copy_from_slice(&padded[*key as usize]);
                at += *length as usize;
            }
        } else {
            for (key, length) in keys.iter().zip(&offsets[1..]) {
                let (start, length) =
                    (dictionary.offsets[*key as usize] as usize, *length as usize);
                let entry = &dictionary.bytes[start..start + length];
                bytes[at..at + length].copy_from_slice(entry);
                at += length;
            }
        }
        bytes.truncate(total);
        if let Some(nulls) = &nulls {
            spread(&mut offsets[1..], nulls);
        }
        let mut end = 0i32;
        for offset in &mut offsets {
            end += *offset;
            *offset = end;
        }
        if self.to == DataType::Utf8 && self.dictionary.is_utf8 {
            return Ok(string_array_of_entries(offsets, bytes, nulls));
        }
        output(&self.to, offsets, bytes, nulls)
    }
}

/// Whole entries of a dictionary that was checked to be UTF-8, one after the other.
#[allow(unsafe_code)]
fn string_array_of_entries(
    offsets: Vec<i32>,
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    // SAFETY: each value is a copy of a dictionary entry, which `StringArray::try_new` found to
    // be UTF-8; offsets ascend (sums of lengths) and end with `bytes`. Benchmark `decode`, column
    // `device`: checking again doubles the time.
    Arc::new(unsafe { StringArray::new_unchecked(offsets, Buffer::from_vec(bytes), nulls) })
}

fn dictionary_array(keys: Int32Array, values: ArrayRef) -> Result<ArrayRef> {
    let array = DictionaryArray::<Int32Type>::try_new(keys, values);
    Ok(Arc::new(array.map_err(|e| corrupt(e.to_string()))?))
}
