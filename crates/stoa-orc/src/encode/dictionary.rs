//! The distinct values of a string column in a stripe, numbered as they are first seen.

/// Ids of distinct byte strings: an open-addressing table over one contiguous byte store.
#[derive(Default)]
pub(crate) struct DictionaryBuilder {
    /// `hash << 32 | id + 1`; 0 = free. The length is a power of two, at most half is taken.
    slots: Vec<u64>,
    bytes: Vec<u8>,
    /// End of each value in `bytes`.
    ends: Vec<usize>,
}

impl DictionaryBuilder {
    /// Number of distinct values.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Total length of the distinct values in bytes.
    pub(crate) fn value_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * 8 + self.bytes.capacity() + self.ends.capacity() * 8
    }

    /// The value with an id handed out before.
    pub(crate) fn get(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let from = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[from..self.ends[id]]
    }

    /// The id of `value`, a new one if it was not seen before.
    pub(crate) fn id_of(&mut self, value: &[u8]) -> u32 {
        if self.ends.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = hash(value);
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 32) as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let id = (slot as u32) - 1;
            if slot >> 32 == hash >> 32 && is_same(self.get(id), value) {
                return id;
            }
            at = (at + 1) & mask;
        }
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        let id = self.ends.len() as u64;
        self.slots[at] = hash >> 32 << 32 | id;
        (id - 1) as u32
    }

    /// Forgets all values, keeps the space.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(0);
        self.bytes.clear();
        self.ends.clear();
    }

    /// Ids in the order of their values.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = (0..self.len() as u32).collect();
        ids.sort_unstable_by(|a, b| self.get(*a).cmp(self.get(*b)));
        ids
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(256);
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let mut at = (slot >> 32) as usize & (size - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = slot;
        }
    }
}

/// First and last bytes of a key of at most 16: together they are the key, given its length.
#[inline(always)]
fn ends(key: &[u8]) -> Option<(u64, u64)> {
    if let (Some(first), Some(last)) = (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        let is_whole = key.len() <= 16;
        return is_whole.then(|| (u64::from_le_bytes(*first), u64::from_le_bytes(*last)));
    }
    if let (Some(first), Some(last)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        return Some((u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()));
    }
    let byte = |at: usize| key.get(at).copied().map_or(0, u64::from);
    Some((byte(0) | byte(1) << 8 | byte(2) << 16, 0))
}

/// `==`, without a call for short keys, which nearly all are.
#[inline(always)]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    match (ends(a), ends(b)) {
        (Some(a_ends), Some(b_ends)) => a.len() == b.len() && a_ends == b_ends,
        _ => a == b,
    }
}

/// A fast hash for short keys: eight bytes at a time, folded products.
#[inline]
fn hash(key: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    const SEED: u64 = 0x2545_f491_4f6c_dd1d;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let hash = (key.len() as u64).wrapping_mul(MULTIPLIER) ^ SEED;
    if let Some((first, last)) = ends(key) {
        return fold(fold(hash ^ first, MULTIPLIER) ^ last, MULTIPLIER);
    }
    let (words, _) = key.as_chunks::<8>();
    let words = words.iter().chain(key.last_chunk::<8>());
    let hash = words.fold(hash, |hash, word| fold(hash ^ u64::from_le_bytes(*word), MULTIPLIER));
    fold(hash, MULTIPLIER)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn same_value_same_id(values in prop::collection::vec("[a-b]{0,20}", 0..900)) {
            let mut dictionary = DictionaryBuilder::default();
            for _ in 0..2 {
                let mut seen = HashMap::new();
                for value in &values {
                    let next = seen.len() as u32;
                    let expected = *seen.entry(value.clone()).or_insert(next);
                    prop_assert_eq!(dictionary.id_of(value.as_bytes()), expected);
                    prop_assert_eq!(dictionary.get(expected), value.as_bytes());
                }
                prop_assert_eq!(dictionary.len(), seen.len());
                let sorted = dictionary.sorted();
                prop_assert!(sorted.windows(2).all(|p| dictionary.get(p[0]) < dictionary.get(p[1])));
                dictionary.clear();
            }
        }
    }
}
