//! Bloom filters of the row groups of a stripe, as BLOOM_FILTER_UTF8 streams hold them.
//!
//! Timestamps are added as UTC milliseconds, dates as days, decimals as text.
//! Not here: the hashes (`crate::bloom`).

use std::cmp::Reverse;

use crate::bloom::{bit_positions, hash_bytes, hash_decimal, hash_double, hash_long};
use crate::proto;

/// The filters of a stripe being filled. While values come, a filter has room for as many of them as a
/// row group has rows. When the stripe ends, all its filters are folded to the size that the one with
/// most distinct values needs. They have one size because `orc-tools meta` refuses to merge others.
pub(crate) struct BloomBuilder {
    entries: usize,
    fpp: f64,
    functions: u32,
    /// The filter of the row group that is being written.
    words: Vec<u64>,
    /// Its values that differ from those before, but for a few that the filter cannot tell from them.
    distinct: usize,
    last: Option<u64>,
    /// The filters of the row groups that ended.
    groups: Vec<Vec<u64>>,
    /// The most distinct values that one of them has.
    distinct_most: usize,
}

impl BloomBuilder {
    /// Filters for up to `entries` distinct values with about `fpp` (0 < fpp < 1) false positives.
    pub(crate) fn new(entries: usize, fpp: f64) -> Self {
        let words = word_count(entries, fpp);
        let functions = (words * 64) as f64 / entries.max(1) as f64 * 2f64.ln();
        Self {
            entries: entries.max(1),
            fpp,
            functions: functions.round().max(1.0) as u32,
            words: vec![0; foldable(words)],
            distinct: 0,
            last: None,
            groups: Vec::new(),
            distinct_most: 0,
        }
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        (1 + self.groups.len()) * self.words.len() * 8
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
        if self.last.replace(hash) != Some(hash) {
            self.distinct += usize::from(set_bits(hash, self.functions, &mut self.words));
        }
    }

    /// Files the filter of a row group; starts over.
    pub(crate) fn end_row_group(&mut self) {
        let empty = vec![0; self.words.len()];
        self.groups.push(std::mem::replace(&mut self.words, empty));
        self.distinct_most = self.distinct_most.max(std::mem::take(&mut self.distinct));
        self.last = None;
    }

    /// The message of the row groups since the last stripe; starts over.
    pub(crate) fn end_stripe(&mut self) -> proto::BloomFilterIndex {
        let distinct = std::mem::take(&mut self.distinct_most);
        // Room for those that could not be told apart.
        let wanted = (distinct + distinct / 32 + DISTINCT_MIN).min(self.entries);
        let wanted = word_count(wanted, self.fpp);
        let full = self.words.len();
        let size = (wanted..full).find(|size| full.is_multiple_of(*size)).unwrap_or(full);
        let bloom_filter = self.groups.drain(..).map(|words| proto::BloomFilter {
            num_hash_functions: Some(self.functions),
            bitset: Vec::new(),
            utf8bitset: Some(folded(&words, size)),
        });
        proto::BloomFilterIndex { bloom_filter: bloom_filter.collect() }
    }
}

/// Distinct values that there is always room for.
const DISTINCT_MIN: usize = 6;

/// Words of a filter for so many distinct values.
fn word_count(entries: usize, fpp: f64) -> usize {
    let bits = -(entries.max(1) as f64) * fpp.ln() / (2f64.ln() * 2f64.ln());
    bits as usize / 64 + 1
}

/// Words that are added at most to find a number that can be folded.
const FOLDABLE_MAX: usize = 128;

/// So many words, or up to a sixteenth more: the number that can be folded in the most ways.
fn foldable(words: usize) -> usize {
    let ways = |size: usize| (1..=32).filter(|parts| size.is_multiple_of(*parts)).count();
    (words..=words + (words / 16).min(FOLDABLE_MAX))
        .min_by_key(|size| Reverse(ways(*size)))
        .unwrap_or(words)
}

/// A filter of `size` words, a divisor of how many there are: a hash sets the bit of its remainder by
/// the number of bits, and so what the bits of the larger filter leave.
fn folded(words: &[u64], size: usize) -> Vec<u8> {
    let mut filter = words[..size].to_vec();
    for part in words[size..].chunks_exact(size) {
        filter.iter_mut().zip(part).for_each(|(word, other)| *word |= other);
    }
    filter.iter().flat_map(|word| word.to_le_bytes()).collect()
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
        assert_eq!(word_count(10_000, 0.01) * 64, 95_872);
        let filter = BloomBuilder::new(10_000, 0.01);
        assert_eq!((filter.words.len(), filter.functions), (1_512, 7));
        for words in 1..5_000 {
            let full = foldable(words);
            assert!((words..=words + words / 16).contains(&full), "{words}: {full}");
        }
    }

    /// The filters of a stripe with so many distinct values in each of its row groups of 10,000.
    fn stripe(builder: &mut BloomBuilder, distinct: &[i64]) -> (Vec<usize>, BloomIndex) {
        for distinct in distinct {
            (0..10_000).for_each(|row| builder.add_long(row * distinct / 10_000));
            builder.end_row_group();
        }
        let index = builder.end_stripe();
        assert!(index.bloom_filter.iter().all(|filter| filter.num_hash_functions() == 7));
        let bits = index.bloom_filter.iter().map(|filter| filter.utf8bitset().len() * 8).collect();
        let bytes = bytes::Bytes::from(index.encode_to_vec());
        (bits, BloomIndex::parse(bytes, &mut Budget::new(1 << 20)))
    }

    fn found(index: &BloomIndex, group: usize, values: std::ops::Range<i64>) -> usize {
        values.filter(|value| index.may_contain(group, hash_long(*value))).count()
    }

    /// All values are found, and as few others as was asked for, however many of them differ.
    #[test]
    fn size_follows_the_distinct_values() {
        let mut builder = BloomBuilder::new(10_000, 0.01);
        for distinct in [1, 30, 1_000, 3_000, 9_000, 10_000] {
            let (bits, index) = stripe(&mut builder, &[distinct]);
            assert_eq!(found(&index, 0, 0..distinct), distinct as usize);
            let others = found(&index, 0, distinct..distinct + 100_000);
            assert!(others < 2_000, "{others} of 100,000 others beside {distinct} values");
            assert!(
                bits[0] <= 96_768 && bits[0] <= 15 * distinct as usize + 512,
                "{distinct}: {bits:?}"
            );
        }
    }

    /// Those of a stripe have the size of the largest, or `orc-tools meta` could not merge them.
    #[test]
    fn the_filters_of_a_stripe_have_one_size() {
        let mut builder = BloomBuilder::new(10_000, 0.01);
        let groups = [3, 2_000, 40];
        let (bits, index) = stripe(&mut builder, &groups);
        assert!(bits.windows(2).all(|pair| pair[0] == pair[1]), "{bits:?}");
        for (group, distinct) in groups.into_iter().enumerate() {
            assert_eq!(found(&index, group, 0..distinct), distinct as usize);
            assert!(found(&index, group, distinct..distinct + 100_000) < 2_000);
        }
        let (small, _) = stripe(&mut builder, &[3]);
        assert!(small[0] < bits[0], "{small:?}");
    }
}
