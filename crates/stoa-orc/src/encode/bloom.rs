//! Bloom filters of one row group each, as BLOOM_FILTER_UTF8 streams hold them.
//!
//! Bytes hash with Murmur3 (64 bits), numbers with Thomas Wang's mix; doubles by their bits,
//! timestamps as UTC milliseconds, dates as days (apache/orc `BloomFilter.java`, `Murmur3.java`).

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
        self.add_hash(murmur3_64(value));
    }

    pub(crate) fn add_long(&mut self, value: i64) {
        self.add_hash(wang_mix(value));
    }

    pub(crate) fn add_double(&mut self, value: f64) {
        // As Java's doubleToLongBits: one NaN.
        let value = if value.is_nan() { f64::NAN } else { value };
        self.add_long(value.to_bits() as i64);
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
        let (first, second) = (hash as u32 as i32, (hash >> 32) as u32 as i32);
        let bits = self.words.len() * 64;
        for round in 1..=self.hashes as i32 {
            let mut combined = first.wrapping_add(round.wrapping_mul(second));
            if combined < 0 {
                combined = !combined;
            }
            let bit = combined as usize % bits;
            self.words[bit / 64] |= 1 << (bit % 64);
        }
    }
}

fn wang_mix(key: i64) -> u64 {
    let mut key = (!key).wrapping_add(key << 21);
    key ^= key >> 24;
    key = key.wrapping_add(key << 3).wrapping_add(key << 8);
    key ^= key >> 14;
    key = key.wrapping_add(key << 2).wrapping_add(key << 4);
    key ^= key >> 28;
    key.wrapping_add(key << 31) as u64
}

fn murmur3_64(bytes: &[u8]) -> u64 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    const SEED: u64 = 104_729;
    let mix = |word: u64| word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mut hash = SEED;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash ^= mix(u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(5).wrapping_add(0x52dc_e729);
    }
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash ^= mix(word);
    }
    hash ^= bytes.len() as u64;
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
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
        assert_eq!(murmur3_64(text.as_bytes()), 305_830_725_663_368_540);
        for (key, hash) in [
            (0, 0),
            (-1, 6_614_246_905_173_314_819),
            (-2, -5_218_250_166_726_157_773),
            (i64::MIN + 3, 3_691_278_333_958_578_070),
            (i64::MIN + 1, -9_102_499_068_535_824_902),
            (790_302_203, -2_450_623_810_987_162_260),
            (18_000_000_000, -1_097_054_448_615_658_549),
        ] {
            assert_eq!(wang_mix(key) as i64, hash, "{key}");
        }
    }

    #[test]
    fn size_follows_the_false_positive_rate() {
        let filter = BloomBuilder::new(10_000, 0.01);
        assert_eq!((filter.words.len() * 64, filter.hashes), (95_872, 7));
    }
}
