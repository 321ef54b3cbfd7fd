//! Bloom filters of one row group each, as BLOOM_FILTER_UTF8 streams hold them.
//!
//! Timestamps are added as UTC milliseconds, dates as days, decimals as text.
//! Not here: the hashes (`crate::bloom`).

use crate::bloom::{bit_positions, hash_bytes, hash_decimal, hash_double, hash_long};
use crate::proto;

/// A filter being filled.
pub(crate) struct BloomBuilder {
    words: Vec<u64>,
    hashes: u32,
}

impl BloomBuilder {
    /// A filter for `entries` distinct values with about `fpp` (0 < fpp < 1) false positives.
    pub(crate) fn new(entries: usize, fpp: f64) -> Self {
        let entries = entries.max(1) as f64;
        let bits = (-entries * fpp.ln() / (2f64.ln() * 2f64.ln())) as usize;
        let words = bits / 64 + 1;
        let hashes = ((words * 64) as f64 / entries * 2f64.ln()).round().max(1.0) as u32;
        Self { words: vec![0; words], hashes }
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.len() * 8
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

    /// The message of what was added; starts over.
    pub(crate) fn take(&mut self) -> proto::BloomFilter {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.words.fill(0);
        proto::BloomFilter {
            num_hash_functions: Some(self.hashes),
            bitset: Vec::new(),
            utf8bitset: Some(bytes),
        }
    }

    fn add_hash(&mut self, hash: u64) {
        let bits = self.words.len() as u64 * 64;
        for bit in bit_positions(hash, self.hashes, bits) {
            self.words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((filter.words.len() * 64, filter.hashes), (95_872, 7));
    }
}
