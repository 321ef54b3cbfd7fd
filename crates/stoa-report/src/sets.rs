//! Lists of values, made ready to be looked up row by row.
//!
//! In: the conditions of a report. Out: for each list of some length what says of nearly all other values that they
//! are not in it, without a search: bits of all numbers between its ends where these are near each other, else bits
//! of hashes (Bloom, *Space/Time Trade-offs in Hash Coding with Allowable Errors*, 1970, with one hash).
//!
//! **Invariant:** whether a value is in the list says the list; a filter only spares the search.

use crate::report::{Condition, Test};

/// Shorter lists are searched.
const VALUES_MIN: usize = 8;

/// Numbers between the ends of a list whose numbers each have a bit.
const SPAN_MAX: u64 = 1 << 20;

/// Bits of hashes for each value.
const BITS_PER_VALUE: usize = 16;

/// What is looked up for the conditions of a report, by their order.
#[derive(Debug, Default)]
pub(crate) struct ValueSets(Vec<Option<ValueSet>>);

/// A list of values.
#[derive(Debug)]
pub(crate) enum ValueSet {
    /// Numbers from the first on, each with a bit.
    Span { least: i64, bits: Bits },
    /// Hashes of values.
    Hashes(Bits),
}

#[derive(Debug)]
pub(crate) struct Bits(Box<[u64]>);

impl Bits {
    fn new(count: u64) -> Self {
        Self(vec![0; count.div_ceil(64) as usize].into())
    }

    fn set(&mut self, bit: u64) {
        if let Some(word) = self.0.get_mut((bit / 64) as usize) {
            *word |= 1 << (bit % 64);
        }
    }

    fn has(&self, bit: u64) -> bool {
        self.0.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// The bit of a hash; there is a power of two of them.
    fn of_hash(&self, hash: u64) -> u64 {
        hash >> (64 - (64 * self.0.len() as u64).trailing_zeros())
    }
}

impl ValueSets {
    pub(crate) fn of(conditions: &[Condition]) -> Self {
        Self(conditions.iter().map(|condition| ValueSet::of(&condition.test)).collect())
    }

    /// That of a condition.
    pub(crate) fn get(&self, condition: usize) -> Option<&ValueSet> {
        self.0.get(condition)?.as_ref()
    }
}

impl ValueSet {
    fn of(test: &Test) -> Option<Self> {
        match test {
            Test::OneOf(numbers) | Test::NoneOf(numbers) if numbers.len() >= VALUES_MIN => {
                Some(Self::of_numbers(numbers))
            }
            Test::TextOneOf(texts) | Test::TextNoneOf(texts) if texts.len() >= VALUES_MIN => {
                let hashes = texts.iter().map(|text| hash_of_text(text.as_bytes()));
                Some(Self::of_hashes(texts.len(), hashes))
            }
            _ => None,
        }
    }

    fn of_numbers(numbers: &[i128]) -> Self {
        let ends = numbers.first().zip(numbers.last());
        let ends = ends.and_then(|(a, b)| Some((i64::try_from(*a).ok()?, i64::try_from(*b).ok()?)));
        match ends {
            Some((least, greatest)) if greatest.abs_diff(least) < SPAN_MAX => {
                let mut bits = Bits::new(greatest.abs_diff(least) + 1);
                for number in numbers {
                    bits.set((number - i128::from(least)) as u64);
                }
                Self::Span { least, bits }
            }
            _ => Self::of_hashes(numbers.len(), numbers.iter().copied().map(hash_of_number)),
        }
    }

    fn of_hashes(count: usize, hashes: impl Iterator<Item = u64>) -> Self {
        let mut bits = Bits::new((BITS_PER_VALUE * count).next_power_of_two() as u64);
        for hash in hashes {
            bits.set(bits.of_hash(hash));
        }
        Self::Hashes(bits)
    }

    /// Whether a number may be in the list.
    pub(crate) fn may_have_number(&self, number: i128) -> bool {
        match self {
            Self::Span { least, bits } => {
                let bit = number.checked_sub(i128::from(*least)).map(u64::try_from);
                bit.is_some_and(|bit| bit.is_ok_and(|bit| bits.has(bit)))
            }
            Self::Hashes(bits) => bits.has(bits.of_hash(hash_of_number(number))),
        }
    }

    /// Whether a number of 64 bits may be in the list.
    pub(crate) fn may_have_int(&self, number: i64) -> bool {
        match self {
            // What is less wraps around, to more than there are bits.
            Self::Span { least, bits } => bits.has(number.wrapping_sub(*least) as u64),
            Self::Hashes(bits) => bits.has(bits.of_hash(hash_of_number(i128::from(number)))),
        }
    }

    /// Whether a text may be in the list.
    pub(crate) fn may_have_text(&self, text: &str) -> bool {
        match self {
            Self::Span { .. } => true,
            Self::Hashes(bits) => bits.has(bits.of_hash(hash_of_text(text.as_bytes()))),
        }
    }

    /// Whether that a value may be in the list says that it is.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, Self::Span { .. })
    }
}

/// 2⁶⁴ divided by the golden ratio (Knuth, TAOCP 3, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn hash_of_number(number: i128) -> u64 {
    (number as u64 ^ (number >> 64) as u64).wrapping_mul(GOLDEN)
}

/// Of the length, and of the first and the last eight bytes.
fn hash_of_text(text: &[u8]) -> u64 {
    let word = |part: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(bytes)
    };
    let first = word(&text[..text.len().min(8)]);
    let last = word(&text[text.len().saturating_sub(8)..]);
    let both = first.wrapping_mul(GOLDEN).rotate_left(29) ^ last ^ text.len() as u64;
    (both ^ both >> 32).wrapping_mul(GOLDEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_in_a_list_may_be_in_it(
            numbers in prop::collection::btree_set(prop_oneof![
                -100_i128..100, any::<i64>().prop_map(i128::from), any::<i128>()], 8..40),
            near in prop::collection::btree_set(-100_i64..100, 8..40),
            texts in prop::collection::btree_set("[a-c]{0,20}", 8..40),
        ) {
            let test = Test::OneOf(numbers.iter().copied().collect());
            let set = ValueSet::of(&test).unwrap();
            prop_assert!(numbers.iter().all(|number| set.may_have_number(*number)));
            let test = Test::NoneOf(near.iter().copied().map(i128::from).collect());
            let set = ValueSet::of(&test).unwrap();
            prop_assert!(set.is_exact());
            for number in (-300..300).chain([i64::MIN, i64::MAX]) {
                prop_assert_eq!(set.may_have_int(number), near.contains(&number));
                prop_assert_eq!(set.may_have_number(number.into()), near.contains(&number));
            }
            let list = texts.iter().map(|text| text.as_str().into()).collect();
            let set = ValueSet::of(&Test::TextOneOf(list)).unwrap();
            prop_assert!(texts.iter().all(|text| set.may_have_text(text)));
        }
    }
}
