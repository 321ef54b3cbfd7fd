//! Bloom filters of one row group each, as BLOOM_FILTER_UTF8 streams hold them.
//!
//! Timestamps are added as UTC milliseconds, dates as days, decimals as text.
//! Not here: the hashes (`crate::bloom`).

use crate::bloom::{bit_positions, hash_bytes, hash_decimal, hash_double, hash_long};
use crate::proto;

/// A filter being filled. One for as many values as a row group has rows is kept, and the hashes of
/// those that came: where few of them differ, as in a column that is sorted, the filter that is written
/// is as much smaller.
pub(crate) struct BloomBuilder {
    entries: usize,
    fpp: f64,
    words: Vec<u64>,
    functions: u32,
    /// Of all values since the start; not twice in a row.
    hashes: Vec<u64>,
    /// Values that differ from those before, but for a few that the filter cannot tell from them.
    distinct: usize,
}

impl BloomBuilder {
    /// A filter for up to `entries` distinct values with about `fpp` (0 < fpp < 1) false positives.
    pub(crate) fn new(entries: usize, fpp: f64) -> Self {
        let words = word_count(entries, fpp);
        let functions = (words * 64) as f64 / entries.max(1) as f64 * 2f64.ln();
        Self {
            entries: entries.max(1),
            fpp,
            words: vec![0; words],
            functions: functions.round().max(1.0) as u32,
            hashes: Vec::new(),
            distinct: 0,
        }
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        (self.words.len() + self.hashes.capacity()) * 8
    }

    pub(crate) fn add_bytes(&mut self, value: &[u8]) {
        self.add_hash(hash_bytes(value));
    }

    pub(crate) fn add_long(&mut self, value: i64) {
        self.add_hash(hash_long(value));
    }

    pub(crate) fn add_decimal(&mut self, value: i128, scale: u32) {
        self.add_hash(hash_decimal(value, scale));
    }

    pub(crate) fn add_double(&mut self, value: f64) {
        self.add_hash(hash_double(value));
    }

    fn add_hash(&mut self, hash: u64) {
        if self.hashes.last() == Some(&hash) {
            return;
        }
        self.distinct += usize::from(set_bits(hash, self.functions, &mut self.words));
        if self.hashes.len() < self.entries {
            self.hashes.push(hash);
        } else {
            // More than a row group has rows: elements of lists. Without their hashes, the filter stays as it is.
            self.distinct = self.entries;
        }
    }

    /// The message of what was added; starts over.
    pub(crate) fn take(&mut self) -> proto::BloomFilter {
        // Room for those that could not be told apart.
        let words = word_count(self.distinct + self.distinct / 32 + DISTINCT_MIN, self.fpp);
        if words < word_count(self.entries, self.fpp) {
            self.words.clear();
            self.words.resize(words, 0);
            self.hashes.iter().for_each(|hash| {
                set_bits(*hash, self.functions, &mut self.words);
            });
        }
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.words.clear();
        self.words.resize(word_count(self.entries, self.fpp), 0);
        self.hashes.clear();
        self.distinct = 0;
        proto::BloomFilter {
            num_hash_functions: Some(self.functions),
            bitset: Vec::new(),
            utf8bitset: Some(bytes),
        }
    }
}

/// Distinct values that there is always room for.
const DISTINCT_MIN: usize = 6;

/// Words of a filter for so many distinct values.
fn word_count(entries: usize, fpp: f64) -> usize {
    let bits = -(entries.max(1) as f64) * fpp.ln() / (2f64.ln() * 2f64.ln());
    bits as usize / 64 + 1
}

/// Whether one of the bits was not set before.
fn set_bits(hash: u64, functions: u32, words: &mut [u64]) -> bool {
    let mut is_new = false;
    for bit in bit_positions(hash, functions, words.len() as u64 * 64) {
        let (word, bit) = (&mut words[(bit / 64) as usize], 1 << (bit % 64));
        is_new |= *word & bit == 0;
        *word |= bit;
    }
    is_new
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::bloom::BloomIndex;
    use crate::message::Budget;

    /// Values of Java's and C++'s own tests.
    #[test]
    fn hashes_agree_with_other_writers() {
        let text = "It was the best of times, it was the worst of times,\
             \x20it was the age of wisdom, it was the age of foolishness,\
             \x20it was the epoch of belief, it was the epoch of incredulity,\
             \x20it was the season of Light, it was the season of Darkness,\
             \x20it was the spring of hope, it was the winter of despair,\
             \x20we had everything before us, we had nothing before us,\
             \x20we were all going direct to Heaven,\
             \x20we were all going direct the other way.";
        assert_eq!(hash_bytes(text.as_bytes()), 305_830_725_663_368_540);
        for (key, hash) in [
            (0, 0),
            (-1, 6_614_246_905_173_314_819),
            (-2, -5_218_250_166_726_157_773),
            (i64::MIN + 3, 3_691_278_333_958_578_070),
            (i64::MIN + 1, -9_102_499_068_535_824_902),
            (790_302_203, -2_450_623_810_987_162_260),
            (18_000_000_000, -1_097_054_448_615_658_549),
        ] {
            assert_eq!(hash_long(key) as i64, hash, "{key}");
        }
    }

    #[test]
    fn size_follows_the_false_positive_rate() {
        let filter = BloomBuilder::new(10_000, 0.01);
        assert_eq!((filter.words.len() * 64, filter.functions), (95_872, 7));
    }

    /// All values are found, and as few others as was asked for, however many of them differ.
    #[test]
    fn size_follows_the_distinct_values() {
        let mut builder = BloomBuilder::new(10_000, 0.01);
        for distinct in [1, 30, 1_000, 9_000, 10_000] {
            let value = |row: i64| row * distinct / 10_000;
            (0..10_000).for_each(|row| builder.add_long(value(row)));
            let filter = builder.take();
            let (bits, functions) = (filter.utf8bitset().len() * 8, filter.num_hash_functions());
            let index = proto::BloomFilterIndex { bloom_filter: vec![filter] };
            let bytes = bytes::Bytes::from(index.encode_to_vec());
            let index = BloomIndex::parse(bytes, &mut Budget::new(1 << 20));
            let found = |values: std::ops::Range<i64>| {
                values.filter(|value| index.may_contain(0, hash_long(*value))).count()
            };
            assert_eq!(found(0..distinct), distinct as usize);
            let others = found(distinct..distinct + 100_000);
            assert!(others < 2_000, "{others} of 100,000 others beside {distinct} values");
            assert!(bits <= 95_872 && bits <= 10 * distinct as usize + 512, "{distinct}: {bits}");
            assert_eq!(functions, 7);
        }
    }
}
