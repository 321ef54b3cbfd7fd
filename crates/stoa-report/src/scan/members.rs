//! Many whole numbers, one of which a value is to be.
//!
//! In: the keys of a join's other side. Out: for a value, whether it is one of them. Lists of statements are in `sets`.

use std::collections::HashSet;

/// Numbers from the least to the greatest up to which each has a bit: 16 MiB.
const BITS_MAX: u64 = 1 << 27;

/// A set of whole numbers of 64 bits.
#[derive(Debug, PartialEq)]
pub struct Members {
    least: i64,
    greatest: i64,
    set: Set,
}

#[derive(Debug, PartialEq)]
enum Set {
    /// A bit for each number from the least on.
    Bits(Vec<u64>),
    Hashed(HashSet<i64, foldhash::fast::FixedState>),
}

impl Members {
    /// The set of some numbers.
    pub fn new(values: &[i64]) -> Self {
        let least = values.iter().min().copied().unwrap_or(0);
        let greatest = values.iter().max().copied().unwrap_or(-1);
        let span = greatest.wrapping_sub(least) as u64;
        let set = match span < BITS_MAX && !values.is_empty() {
            true => {
                let mut bits = vec![0_u64; (span / 64 + 1) as usize];
                for value in values {
                    let at = value.wrapping_sub(least) as u64;
                    bits[(at / 64) as usize] |= 1 << (at % 64);
                }
                Set::Bits(bits)
            }
            false => Set::Hashed(values.iter().copied().collect()),
        };
        Self { least, greatest, set }
    }

    /// Least and greatest; the first is above the second where there is none.
    pub(crate) fn ends(&self) -> (i64, i64) {
        (self.least, self.greatest)
    }

    /// Whether a number is one of these.
    #[inline(always)]
    pub(crate) fn has(&self, value: i64) -> bool {
        match &self.set {
            Set::Bits(bits) => {
                let at = value.wrapping_sub(self.least) as u64;
                bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
            }
            Set::Hashed(set) => set.contains(&value),
        }
    }
}
