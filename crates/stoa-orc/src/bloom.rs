//! Bloom filters: hashing and membership.
//!
//! In: values, and the filters of a column. Out: whether a value may be in a row group.
//! **Invariant:** hashes are those of ORC Java (`BloomFilter`, `BloomFilterUtf8`): Murmur3 for
//! bytes, Thomas Wang's mix for numbers. Not here: which filters may be trusted (`prune`),
//! collecting values (`writer`).

use bytes::Bytes;

use crate::message::Budget;
use crate::proto;
use crate::statistics::format_decimal;

/// Murmur3 seed of ORC Java.
const SEED: u64 = 104_729;

/// Hash of a string or binary value.
pub(crate) fn hash_bytes(value: &[u8]) -> u64 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mut hash = SEED;
    let (words, tail) = value.as_chunks::<8>();
    for word in words {
        let k = u64::from_le_bytes(*word).wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        hash = (hash ^ k).rotate_left(27).wrapping_mul(5).wrapping_add(0x52dc_e729);
    }
    if !tail.is_empty() {
        let mut last = [0u8; 8];
        last[..tail.len()].copy_from_slice(tail);
        hash ^= u64::from_le_bytes(last).wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    }
    hash ^= value.len() as u64;
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Hash of an integer, date (days) or timestamp (milliseconds).
pub(crate) fn hash_long(value: i64) -> u64 {
    // Java's `>>` on a long is arithmetic.
    let mut key = value;
    key = (!key).wrapping_add(key << 21);
    key ^= key >> 24;
    key = key.wrapping_add(key << 3).wrapping_add(key << 8);
    key ^= key >> 14;
    key = key.wrapping_add(key << 2).wrapping_add(key << 4);
    key ^= key >> 28;
    key = key.wrapping_add(key << 31);
    key as u64
}

/// Hash of a FLOAT or DOUBLE.
pub(crate) fn hash_double(value: f64) -> u64 {
    // Java's doubleToLongBits has one NaN.
    let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
    hash_long(bits as i64)
}

/// Hash of a DECIMAL: of its text without zeros at the end of the fraction.
pub(crate) fn hash_decimal(mut value: i128, mut scale: u32) -> u64 {
    while scale > 0 && value % 10 == 0 {
        value /= 10;
        scale -= 1;
    }
    hash_bytes(format_decimal(value, i8::try_from(scale).unwrap_or(i8::MAX)).as_bytes())
}

/// The bits a hash sets, each below `bits`.
pub(crate) fn bit_positions(hash: u64, functions: u32, bits: u64) -> impl Iterator<Item = u64> {
    let (low, high) = (hash as i32, (hash >> 32) as i32);
    // At most i32::MAX bits in Java; the remainder is of a non-negative int.
    (1..=functions as i32).map(move |i| {
        let combined = low.wrapping_add(i.wrapping_mul(high));
        let combined = if combined < 0 { !combined } else { combined };
        (combined as u64) % bits.max(1)
    })
}

/// The bloom filters of a column, one per row group.
#[derive(Clone, Debug, Default)]
pub(crate) struct BloomIndex {
    filters: Vec<Filter>,
}

#[derive(Clone, Debug)]
struct Filter {
    functions: u32,
    words: Vec<u64>,
}

impl BloomIndex {
    /// Parses an inflated BLOOM_FILTER or BLOOM_FILTER_UTF8 stream. One that is damaged, or in
    /// the layout of the first Hive releases that had them, is empty: it keeps everything.
    pub(crate) fn parse(bytes: Bytes, budget: &mut Budget) -> Self {
        let message: proto::BloomFilterIndex = budget.decode(bytes).unwrap_or_default();
        let filters = message.bloom_filter.into_iter().map(|filter| Filter {
            functions: filter.num_hash_functions.unwrap_or(0),
            words: match filter.utf8bitset {
                Some(bytes) => {
                    let (words, _) = bytes.as_chunks::<8>();
                    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
                }
                None => filter.bitset,
            },
        });
        Self { filters: filters.collect() }
    }

    /// Whether a value with this hash may be in a row group; true if there is no filter for it.
    pub(crate) fn may_contain(&self, group: usize, hash: u64) -> bool {
        let Some(filter) = self.filters.get(group) else { return true };
        let bits = filter.words.len() as u64 * 64;
        // A number of functions no writer uses means damage: do not trust, do not loop.
        if bits == 0 || !(1..=64).contains(&filter.functions) {
            return true;
        }
        bit_positions(hash, filter.functions, bits)
            .all(|bit| filter.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
    }

    /// Number of row groups.
    pub(crate) fn len(&self) -> usize {
        self.filters.len()
    }

    /// Memory this takes, about, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.filters.iter().map(|f| f.words.len() * 8 + size_of::<Filter>()).sum()
    }
}
