//! The dictionary of a string column in a stripe.
//!
//! In: the DICTIONARY_DATA and LENGTH streams, always read whole. Out: [`Dictionary`], shared by
//! all batches of the stripe. **Invariant:** offsets ascend and end inside the bytes. The order of
//! entries means nothing: not every writer sorts them.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray, StringViewArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::context::Context;
use super::int_rle::IntRle;
use super::source::{Source, StreamStart};
use crate::error::{Result, corrupt};
use crate::stripe::Encoding;

/// Entries up to this many bytes are copied as this many: a copy of constant length is a move.
pub(super) const PADDED_BYTES: usize = 16;

/// How many lengths are decoded at a time: memory grows with what the stream really holds.
const STEP: usize = 4096;

/// Entries of a dictionary.
#[derive(Debug)]
pub(crate) struct Dictionary {
    /// Where entries start, and where the last one ends.
    pub(super) offsets: Vec<i32>,
    /// Entries one after the other.
    pub(super) bytes: Vec<u8>,
    /// Lengths of the entries.
    pub(super) lengths: Vec<i32>,
    /// The entries padded to [`PADDED_BYTES`], if none is longer.
    pub(super) padded: Option<Vec<[u8; PADDED_BYTES]>>,
    /// The entries as an array, for outputs that share it; `Utf8`, `Utf8View` or `Binary`.
    pub(super) array: ArrayRef,
    /// Whether the entries are known to be UTF-8.
    pub(super) is_utf8: bool,
}

impl Dictionary {
    /// Reads a dictionary for output as `to`.
    pub(crate) fn read(
        encoding: Encoding,
        data: &StreamStart,
        lengths: &StreamStart,
        to: &DataType,
        cx: &mut Context,
    ) -> Result<Self> {
        let size = encoding.dictionary_size as usize;
        let mut rle = IntRle::open(lengths, encoding.is_v2(), false, cx)?;
        let mut offsets = vec![0i32];
        let mut total = 0i64;
        let mut step = [0i64; STEP];
        while offsets.len() <= size {
            let n = STEP.min(size + 1 - offsets.len());
            cx.take::<i32>(n)?;
            rle.decode(cx, &mut step[..n])?;
            for length in &step[..n] {
                // Each length is checked: a negative one must not hide in the sum.
                total = total.checked_add(*length).filter(|_| *length >= 0).unwrap_or(i64::MAX);
                let Ok(end) = i32::try_from(total) else {
                    let entry = offsets.len() - 1;
                    return Err(corrupt(format!("dictionary entry {entry}: length {length}")));
                };
                offsets.push(end);
            }
        }
        rle.recycle(cx);
        let total = total as usize;
        cx.take::<u8>(total)?;
        let mut source = Source::open(data, cx)?;
        let mut bytes = Vec::new();
        source.append_to(cx, &mut bytes, total)?;
        source.recycle(cx);
        let array = Self::array(&offsets, &bytes, to)?;
        let lengths: Vec<i32> = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        cx.take::<i32>(lengths.len())?;
        let padded = if *to == DataType::Utf8 && lengths.iter().all(|n| *n <= PADDED_BYTES as i32) {
            cx.take::<[u8; PADDED_BYTES]>(lengths.len())?;
            Some(pad(&offsets, &bytes))
        } else {
            None
        };
        let is_utf8 = *to != DataType::Binary;
        Ok(Self { offsets, bytes, lengths, padded, array, is_utf8 })
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn array(offsets: &[i32], bytes: &[u8], to: &DataType) -> Result<ArrayRef> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets.to_vec()));
        let bytes = Buffer::from_slice_ref(bytes);
        if *to == DataType::Binary {
            return Ok(Arc::new(BinaryArray::new(offsets, bytes, None)));
        }
        let array = StringArray::try_new(offsets, bytes, None).map_err(|e| not_utf8(&e))?;
        Ok(match to {
            DataType::Utf8View => Arc::new(StringViewArray::from(&array)),
            _ => Arc::new(array),
        })
    }
}

/// The entries between offsets, each padded with zeros.
fn pad(offsets: &[i32], bytes: &[u8]) -> Vec<[u8; PADDED_BYTES]> {
    let padded = offsets.windows(2).map(|pair| {
        let entry = &bytes[pair[0] as usize..pair[1] as usize];
        let mut padded = [0u8; PADDED_BYTES];
        padded[..entry.len()].copy_from_slice(entry);
        padded
    });
    padded.collect()
}

/// The error of a text that is none.
#[cold]
pub(super) fn not_utf8(error: &arrow_schema::ArrowError) -> crate::error::Error {
    corrupt("a text is not UTF-8")
        .with_detail(error.to_string())
        .with_hint("read the column as binary")
}
