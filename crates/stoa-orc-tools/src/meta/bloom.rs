//! How full bloom filters are.

use stoa_orc::proto::{BloomFilter, BloomFilterIndex};

/// The bits of a filter.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    pub(crate) functions: u32,
    words: Vec<u64>,
}

impl Bits {
    fn of(filter: &BloomFilter) -> Self {
        let words = match &filter.utf8bitset {
            Some(bytes) => {
                let (words, _) = bytes.as_chunks::<8>();
                words.iter().map(|word| u64::from_le_bytes(*word)).collect()
            }
            None => filter.bitset.clone(),
        };
        Self { functions: filter.num_hash_functions.unwrap_or(0), words }
    }

    /// The filters of all row groups.
    pub(super) fn of_index(index: &BloomFilterIndex) -> Vec<Self> {
        index.bloom_filter.iter().map(Self::of).collect()
    }

    /// What a filter of all of them would be; `None` if there are none, or they have not one size.
    pub(super) fn merged(filters: &[Self]) -> Option<Self> {
        let (first, rest) = filters.split_first()?;
        let is_like =
            |other: &Self| (other.functions, other.bits()) == (first.functions, first.bits());
        if !rest.iter().all(is_like) {
            return None;
        }
        let mut merged = first.clone();
        for filter in rest {
            for (word, other) in merged.words.iter_mut().zip(&filter.words) {
                *word |= other;
            }
        }
        Some(merged)
    }

    /// Number of bits.
    pub(super) fn bits(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    /// Number of bits that are set.
    pub(super) fn set_bits(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Share of the bits that are set.
    pub(super) fn load(&self) -> f32 {
        self.set_bits() as f32 / self.bits().max(1) as f32
    }

    /// Share of values which are not there that the filter lets pass.
    pub(super) fn false_positives(&self) -> f32 {
        f64::from(self.load()).powf(f64::from(self.functions)) as f32
    }
}
