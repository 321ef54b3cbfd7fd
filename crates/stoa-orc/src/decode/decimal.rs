//! DECIMAL columns.
//!
//! In: zigzag varints of up to 127 bits and a scale per value, or (format 1.9999) plain integers.
//! Out: `Decimal128` of the target's scale; digits that it does not have are cut off.

use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::column::{Column, Opening};
use super::context::Context;
use super::int_rle::{IntRle, unzigzag};
use super::source::Source;
use super::validity::{Present, spread, valid_count};
use crate::error::{Result, corrupt, unsupported};
use crate::proto::StreamKind;
use crate::stripe::Encoding;

/// Most bytes of a varint: 128 bits, seven per byte.
const VARINT_MAX: usize = 19;

/// A DECIMAL column.
pub(crate) struct DecimalColumn {
    present: Present,
    values: Values,
    to_precision: u8,
    to_scale: i8,
    scratch: Vec<i64>,
}

enum Values {
    Varints { data: Source, scales: IntRle },
    Integers { data: IntRle, scale: u32 },
}

impl DecimalColumn {
    pub(crate) fn open(
        opening: &Opening,
        column: u32,
        encoding: Encoding,
        is_64: bool,
        scale: u32,
        to: &DataType,
        cx: &mut Context,
    ) -> Result<Self> {
        let DataType::Decimal128(to_precision, to_scale) = *to else {
            return Err(unsupported(format!("decimal as {to}")));
        };
        let data = opening.stream(column, StreamKind::Data);
        let values = if is_64 {
            Values::Integers { data: IntRle::open(&data, true, true, cx)?, scale }
        } else {
            let scales = opening.stream(column, StreamKind::Secondary);
            Values::Varints {
                data: Source::open(&data, cx)?,
                scales: IntRle::open(&scales, encoding.is_v2(), true, cx)?,
            }
        };
        let present = Present::open(opening.present(column), cx)?;
        Ok(Self { present, values, to_precision, to_scale, scratch: Vec::new() })
    }
}

impl Column for DecimalColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let nulls = self.present.decode(cx, rows, parent)?;
        cx.take::<i128>(rows)?;
        let mut values = Vec::with_capacity(rows);
        let valid = valid_count(rows, nulls.as_ref());
        match &mut self.values {
            Values::Integers { data, scale } => {
                values.resize(valid, 0);
                data.decode(cx, &mut values)?;
                let by = i64::from(self.to_scale) - i64::from(*scale);
                values.iter_mut().try_for_each(|value| rescale(value, by))?;
            }
            Values::Varints { data, scales } => {
                read_varints(data, cx, valid, |few| match few {
                    Few::Short(few) => values.extend(few.iter().map(|value| i128::from(*value))),
                    Few::Wide(value) => values.push(value),
                })?;
                if self.scratch.len() < valid {
                    self.scratch.resize(valid, 0);
                }
                let found = &mut self.scratch[..valid];
                scales.decode(cx, found)?;
                let wanted = i64::from(self.to_scale);
                if found.iter().any(|scale| *scale != wanted) {
                    for (value, scale) in values.iter_mut().zip(found) {
                        rescale(value, wanted.saturating_sub(*scale))?;
                    }
                }
            }
        }
        if let Some(nulls) = &nulls {
            values.resize(rows, 0);
            spread(&mut values, nulls);
        }
        let array = Decimal128Array::new(ScalarBuffer::from(values), nulls)
            .with_precision_and_scale(self.to_precision, self.to_scale)
            .map_err(|e| unsupported(e.to_string()))?;
        Ok(Arc::new(array))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        match &mut self.values {
            Values::Integers { data, .. } => data.skip(cx, valid as u64),
            Values::Varints { data, scales } => {
                read_varints(data, cx, valid, |_| ())?;
                scales.skip(cx, valid as u64)
            }
        }
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        match &mut self.values {
            Values::Integers { data, .. } => data.recycle(cx),
            Values::Varints { data, scales } => {
                data.recycle(cx);
                scales.recycle(cx);
            }
        }
    }
}

/// Multiplies by 10^`by`, or cuts −`by` digits off.
#[inline]
fn rescale(value: &mut i128, by: i64) -> Result<()> {
    let factor = u32::try_from(by.unsigned_abs()).ok().and_then(|by| 10i128.checked_pow(by));
    let scaled = match (by, factor) {
        (0, _) => Some(*value),
        (1.., Some(factor)) => value.checked_mul(factor),
        (1.., None) => (*value == 0).then_some(0),
        (_, Some(factor)) => Some(*value / factor),
        (_, None) => Some(0),
    };
    match scaled {
        Some(scaled) => {
            *value = scaled;
            Ok(())
        }
        None => Err(corrupt(format!("decimal {value} × 10^{by} has more than 38 digits"))),
    }
}

/// The next values of varints.
enum Few<'a> {
    /// Of at most eight bytes each.
    Short(&'a [i64]),
    /// One of any length.
    Wide(i128),
}

/// Bytes whose ends of varints are found together.
const BLOCK_BYTES: usize = 64;

/// Ends of a block of varints of one byte, and of two.
const ONE_BYTE_EACH: u64 = u64::MAX;
const TWO_BYTES_EACH: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// A bit for each byte that ends a varint.
#[inline]
fn ends_in(block: &[u8; BLOCK_BYTES]) -> u64 {
    let mut ends = 0;
    for (number, word) in block.as_chunks::<8>().0.iter().enumerate() {
        let of_word = !u64::from_le_bytes(*word) & HIGH_BITS;
        // Brings the high bit of each byte into one byte.
        let bits = (of_word >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        ends |= bits << (8 * number);
    }
    ends
}

/// Decodes the varints at the beginning of `window` that end within a block, up to the first one of more than eight bytes.
/// Gives their number and their bytes: none where the window is too short. Where one ends is known without its value, so the
/// processor decodes many at a time.
#[inline]
fn short_varints(window: &[u8], out: &mut [i64; BLOCK_BYTES]) -> (usize, usize) {
    // What is read with the last byte is there, too.
    let Some(block) = window.first_chunk().filter(|_| window.len() >= BLOCK_BYTES + 8) else {
        return (0, 0);
    };
    let mut ends = ends_in(block);
    // Columns of small numbers have blocks of nothing but such: one loop without branches.
    match ends {
        ONE_BYTE_EACH => {
            for (out, byte) in out.iter_mut().zip(block) {
                *out = unzigzag(u64::from(*byte));
            }
            return (BLOCK_BYTES, BLOCK_BYTES);
        }
        TWO_BYTES_EACH => {
            for (out, pair) in out.iter_mut().zip(block.as_chunks::<2>().0) {
                let [low, high] = pair.map(u64::from);
                *out = unzigzag(low & 0x7f | high << 7);
            }
            return (BLOCK_BYTES / 2, BLOCK_BYTES);
        }
        _ => {}
    }
    let (mut count, mut begin) = (0, 0);
    while ends != 0 {
        let end = ends.trailing_zeros() as usize + 1;
        let word = window[begin..].first_chunk().filter(|_| end - begin <= 8);
        let Some(word) = word else { break };
        out[count] = varint_of(u64::from_le_bytes(*word), end - begin);
        count += 1;
        begin = end;
        ends &= ends - 1;
    }
    (count, begin)
}

/// Reads `count` zigzag varints.
fn read_varints(
    source: &mut Source,
    cx: &mut Context,
    count: usize,
    mut out: impl FnMut(Few<'_>),
) -> Result<()> {
    let mut left = count;
    let mut short = [0i64; BLOCK_BYTES];
    while left > 0 {
        let window = source.window(cx, VARINT_MAX)?;
        // Behind this point a varint may go on in the next chunk; unless there is none.
        let safe = if window.len() > VARINT_MAX { window.len() - VARINT_MAX } else { 1 };
        let mut at = 0;
        let mut bad = false;
        while left > 0 && at < safe {
            if left >= BLOCK_BYTES
                && let (found @ 1.., bytes) = short_varints(&window[at..], &mut short)
            {
                out(Few::Short(&short[..found]));
                left -= found;
                at += bytes;
                continue;
            }
            match window[at..].first_chunk().and_then(|word| short_varint(*word)) {
                Some((value, length)) => {
                    at += length;
                    out(Few::Short(&[value]));
                }
                None => match wide_varint(window, &mut at) {
                    Some(value) => out(Few::Wide(value)),
                    None => {
                        bad = true;
                        break;
                    }
                },
            }
            left -= 1;
        }
        if bad {
            return Err(source.bad(corrupt("decimal is cut off or longer than 128 bits")));
        }
        source.advance(at);
    }
    Ok(())
}

/// The high bit of each byte: all but the last byte of a varint have it.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// A zigzag varint that ends within these bytes, and its length. Varints of all lengths take the same steps: where their
/// lengths cannot be guessed, a loop over their bytes takes several times as long.
#[inline]
fn short_varint(bytes: [u8; 8]) -> Option<(i64, usize)> {
    let word = u64::from_le_bytes(bytes);
    // The last byte of a varint is the first one without its high bit.
    let ends = !word & HIGH_BITS;
    if ends == 0 {
        return None;
    }
    let length = (ends.trailing_zeros() / 8 + 1) as usize;
    Some((varint_of(word, length), length))
}

/// The zigzag varint in the first `length` bytes, 1 to 8.
#[inline(always)]
fn varint_of(word: u64, length: usize) -> i64 {
    // Seven bits of each byte move together: in pairs of bytes, of pairs, of fours.
    let sevens = word & !HIGH_BITS & (u64::MAX >> (64 - 8 * length));
    let pairs = (sevens & 0x007f_007f_007f_007f) | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let bits = (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4;
    unzigzag(bits)
}

/// Reads a zigzag varint of at most 128 bits.
#[inline]
fn wide_varint(bytes: &[u8], at: &mut usize) -> Option<i128> {
    let mut low = 0u64;
    let mut shift = 0;
    // Eight bytes hold 56 bits: most values end here.
    while shift < 56 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        low |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(i128::from((low >> 1) as i64 ^ -((low & 1) as i64)));
        }
        shift += 7;
    }
    let mut value = u128::from(low);
    while shift < 128 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u128::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i128 ^ -((value & 1) as i128));
        }
        shift += 7;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn put_varint(bytes: &mut Vec<u8>, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }

    proptest! {
        /// A block gives the values at its beginning, up to one of more than eight bytes.
        #[test]
        fn varints_of_a_block_are_those_read_byte_by_byte(
            values in prop_oneof![
                proptest::collection::vec(any::<i64>(), 1..80),
                proptest::collection::vec((any::<i64>(), 0u32..64).prop_map(|(v, n)| v >> n), 1..80),
                proptest::collection::vec((any::<i64>(), 8u32..64).prop_map(|(v, n)| v >> n), 1..80),
                proptest::collection::vec(-64i64..64, 60..80),
                proptest::collection::vec(prop_oneof![64i64..8192, -8192i64..-64], 30..80),
            ],
        ) {
            let mut bytes = Vec::new();
            values.iter().for_each(|value| put_varint(&mut bytes, *value));
            let length = bytes.len();
            let mut out = [0; BLOCK_BYTES];
            let (count, end) = short_varints(&bytes, &mut out);
            let mut at = 0;
            for value in &out[..count] {
                prop_assert_eq!(wide_varint(&bytes, &mut at), Some(i128::from(*value)));
            }
            prop_assert_eq!(at, end);
            // It stops where the block ends, or at a long one.
            let mut next = at;
            if length >= BLOCK_BYTES + 8 && wide_varint(&bytes, &mut next).is_some() {
                prop_assert!(next > BLOCK_BYTES || next - at > 8);
            }
        }

        /// Varints of up to eight bytes are those that are read byte by byte; longer ones are left to that.
        #[test]
        fn short_varints_are_those_read_byte_by_byte(
            value in any::<i64>(),
            unused in 0u32..64,
            behind in any::<[u8; 8]>(),
        ) {
            let value = value >> unused;
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let length = bytes.len();
            bytes.extend(behind);
            let mut at = 0;
            prop_assert_eq!(wide_varint(&bytes, &mut at), Some(i128::from(value)));
            prop_assert_eq!(at, length);
            let read = bytes.first_chunk().and_then(|word| short_varint(*word));
            prop_assert_eq!(read, (length <= 8).then_some((value, length)));
        }
    }
}
