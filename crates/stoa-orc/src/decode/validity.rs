//! Which rows have a value: PRESENT streams and the masks of parents.
//!
//! In: a PRESENT stream (or none) and the parent's mask. Out: the column's mask over all rows.
//! ORC stores nothing for rows whose parent is NULL; **invariant:** a mask made here covers all
//! rows, starts at bit 0 of its buffer, and is `None` if no row is NULL.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use super::byte_rle::BoolRle;
use super::context::Context;
use super::source::StreamStart;
use crate::error::Result;

/// A PRESENT stream, or its absence: every value present.
pub(crate) struct Present(Option<BoolRle>);

impl Present {
    /// Opens the stream, if there is one.
    pub(crate) fn open(start: Option<&StreamStart>, cx: &mut Context) -> Result<Self> {
        start.map(|start| BoolRle::open(start, cx)).transpose().map(Self)
    }

    /// The mask of the next `rows` rows, of which the parent has those in `parent`.
    pub(crate) fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<Option<NullBuffer>> {
        let Some(rle) = &mut self.0 else { return Ok(parent.cloned()) };
        let count = rows - parent.map_or(0, NullBuffer::null_count);
        cx.take::<u8>(count / 8)?;
        let (bits, set) = rle.decode(cx, count)?;
        if set == count {
            return Ok(parent.cloned());
        }
        let bits = match parent {
            Some(parent) => scatter(&bits, parent),
            None => bits,
        };
        Ok(Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, rows))))
    }

    /// Skips rows, of which the parent has `count`, and returns how many have a value.
    pub(crate) fn skip(&mut self, cx: &mut Context, count: usize) -> Result<usize> {
        match &mut self.0 {
            Some(rle) => {
                cx.take::<u8>(count / 8)?;
                Ok(rle.decode(cx, count)?.1)
            }
            None => Ok(count),
        }
    }

    /// Gives memory back.
    pub(crate) fn recycle(&mut self, cx: &mut Context) {
        if let Some(rle) = &mut self.0 {
            rle.recycle(cx);
        }
    }
}

/// Number of rows with a value.
pub(crate) fn valid_count(rows: usize, nulls: Option<&NullBuffer>) -> usize {
    rows - nulls.map_or(0, NullBuffer::null_count)
}

/// Puts the bits of `dense` at the set positions of `mask`.
fn scatter(dense: &[u8], mask: &NullBuffer) -> Vec<u8> {
    let mut out = vec![0u8; mask.len().div_ceil(8)];
    let set = mask.inner().set_indices();
    for (from, to) in set.enumerate() {
        let bit = dense.get(from / 8).map_or(0, |byte| byte >> (from % 8) & 1);
        out[to / 8] |= bit << (to % 8);
    }
    out
}

/// Moves the first values of `values` (as many as `nulls` has set) to the set positions, and puts
/// the default everywhere else. `values` has one element per row.
pub(crate) fn spread<T: Copy + Default>(values: &mut [T], nulls: &NullBuffer) {
    let mask = nulls.inner();
    let mut source = valid_count(values.len(), Some(nulls));
    let mut end = values.len();
    while end > 0 {
        // Everything before is in place once as many values as rows are left.
        if source == end {
            return;
        }
        let start = (end - 1) / 64 * 64;
        let word = word_at(mask, start, end - start);
        let full = if end - start == 64 { u64::MAX } else { (1u64 << (end - start)) - 1 };
        if word == 0 {
            values[start..end].fill(T::default());
        } else if word == full {
            source -= end - start;
            values.copy_within(source..source + (end - start), start);
        } else {
            for row in (start..end).rev() {
                let is_set = word >> (row - start) & 1;
                source -= is_set as usize;
                let value = values[source.min(row)];
                values[row] = if is_set == 1 { value } else { T::default() };
            }
        }
        end = start;
    }
}

/// Up to 64 bits of a mask from `start` on.
fn word_at(mask: &BooleanBuffer, start: usize, count: usize) -> u64 {
    if mask.offset() == 0 {
        let bytes = &mask.values()[start / 8..];
        let mut word = [0u8; 8];
        let n = bytes.len().min(8);
        word[..n].copy_from_slice(&bytes[..n]);
        let word = u64::from_le_bytes(word);
        return if count < 64 { word & ((1u64 << count) - 1) } else { word };
    }
    (0..count).fold(0, |word, i| word | u64::from(mask.value(start + i)) << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_move_to_the_rows_that_have_one() {
        for rows in [1usize, 7, 63, 64, 65, 200, 1000] {
            for pattern in 0..6u64 {
                let valid: Vec<bool> = (0..rows as u64)
                    .map(|i| match pattern {
                        0 => true,
                        1 => false,
                        2 => i % 2 == 0,
                        3 => i > 70,
                        4 => i < 66,
                        _ => i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 != 0,
                    })
                    .collect();
                let mut next = 0;
                let expected: Vec<i32> = valid
                    .iter()
                    .map(|v| {
                        next += i32::from(*v);
                        if *v { next } else { 0 }
                    })
                    .collect();
                let mut values = vec![-1i32; rows];
                (0..next as usize).for_each(|i| values[i] = i as i32 + 1);
                spread(&mut values, &NullBuffer::from(valid));
                assert_eq!(values, expected, "rows {rows}, pattern {pattern}");
            }
        }
    }
}
