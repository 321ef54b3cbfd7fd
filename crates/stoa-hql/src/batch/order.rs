//! The order of cells that lie in batches, without making a cell of each.

use std::cmp::Ordering;

use arrow_array::BinaryArray;

use super::CellBatch;

impl CellBatch {
    /// How cell `index` stands to cell `other_index` of another batch, or of this one.
    ///
    /// # Panics
    /// If an index is not below the length of its batch, as indexing a slice does.
    #[inline]
    pub fn order(&self, index: usize, other: &CellBatch, other_index: usize) -> Ordering {
        // Most cells differ in the first bytes of their rows.
        let (a, b) = (row_prefix(&self.rows, index), row_prefix(&other.rows, other_index));
        match a.cmp(&b) {
            Ordering::Equal => self.order_behind_prefix(index, other, other_index),
            decided => decided,
        }
    }

    fn order_behind_prefix(&self, index: usize, other: &CellBatch, other_index: usize) -> Ordering {
        let (length, other_length) =
            (self.rows.value_length(index), other.rows.value_length(other_index));
        let rows = match length == other_length && length <= 8 {
            true => Ordering::Equal,
            false => self.rows.value(index).cmp(other.rows.value(other_index)),
        };
        rows.then_with(|| self.families.value(index).cmp(&other.families.value(other_index)))
            .then_with(|| self.order_of_qualifiers(index, other, other_index))
            .then_with(|| other.timestamps.value(other_index).cmp(&self.timestamps.value(index)))
            .then_with(|| self.kinds.value(index).cmp(&other.kinds.value(other_index)))
    }

    fn order_of_qualifiers(&self, index: usize, other: &CellBatch, other_index: usize) -> Ordering {
        let (a, b) =
            (self.qualifiers.value_length(index), other.qualifiers.value_length(other_index));
        if a == 0 || b == 0 {
            return a.cmp(&b);
        }
        self.qualifiers.value(index).cmp(other.qualifiers.value(other_index))
    }
}

/// The first eight bytes of a row as a number that orders like them; shorter rows are filled with
/// zeros.
#[inline]
pub(super) fn row_prefix(rows: &BinaryArray, index: usize) -> u64 {
    let offsets = rows.value_offsets();
    let (start, end) = (offsets[index] as usize, offsets[index + 1] as usize);
    let length = end - start;
    let data = rows.value_data();
    match data.get(start..start + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()) {
        // What is read beyond the row is cut off.
        Some(bytes) if length > 0 => {
            u64::from_be_bytes(bytes) & (u64::MAX << (8 * (8 - length.min(8))))
        }
        Some(_) => 0,
        None => {
            let mut bytes = [0; 8];
            let length = length.min(8);
            bytes[..length].copy_from_slice(&data[start..start + length]);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Bytes 8 to 15 of a row in the same way.
#[inline]
pub(super) fn row_second(rows: &BinaryArray, index: usize) -> u64 {
    let row = rows.value(index).get(8..).unwrap_or_default();
    let mut bytes = [0; 8];
    let length = row.len().min(8);
    bytes[..length].copy_from_slice(&row[..length]);
    u64::from_be_bytes(bytes)
}
