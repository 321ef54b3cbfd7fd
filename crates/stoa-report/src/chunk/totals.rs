//! Sums of a chunk's first rows, at every so many of them: the sum of a range then takes two of these
//! and what is left at its ends, however long it is.

use std::ops::Range;

/// Rows between two totals: a quarter of a byte per row for most columns, and at most so many additions at each end.
/// A report of a large table waits for memory more than for anything else: a step of values is one or two
/// lines of a processor's cache.
const STEP: usize = 32;

/// At `n`, the sum of the first `n * STEP` values of a chunk.
#[derive(Clone, Debug)]
pub(crate) enum Totals {
    /// Of values of at most 32 bits: fewer than 2³² of them add up to less than 2⁶⁴.
    Small(Box<[u64]>),
    Large(Box<[i128]>),
}

/// Values that are added up many at a time. Chunks have less than 2³² rows.
pub(super) trait Addend: Copy {
    /// Whether the sum of the values of any chunk fits 64 bits without a sign.
    const IS_SMALL: bool;
    /// The sum of all of them.
    fn sum(values: &[Self]) -> i128;
    /// The same for values that are not neighbours.
    fn sum_each(values: impl Iterator<Item = Self>) -> i128;
}

macro_rules! small_addend {
    ($($small:ty),*) => {$(
        impl Addend for $small {
            const IS_SMALL: bool = true;

            fn sum(values: &[Self]) -> i128 {
                Self::sum_each(values.iter().copied())
            }

            fn sum_each(values: impl Iterator<Item = Self>) -> i128 {
                i128::from(values.map(u64::from).sum::<u64>())
            }
        }
    )*};
}
small_addend!(u8, u16, u32);

impl Addend for i64 {
    const IS_SMALL: bool = false;

    fn sum(values: &[Self]) -> i128 {
        // Halves by themselves fit 64 bits, of which processors add several at once.
        let low: u64 = values.iter().map(|value| u64::from(*value as u32)).sum();
        let high: i64 = values.iter().map(|value| value >> 32).sum();
        (i128::from(high) << 32) + i128::from(low)
    }

    fn sum_each(values: impl Iterator<Item = Self>) -> i128 {
        values.map(i128::from).sum()
    }
}

impl Totals {
    pub(super) fn of<T: Addend>(values: &[T]) -> Self {
        let mut total = 0_i128;
        let steps = values.chunks_exact(STEP).map(|step| {
            total += T::sum(step);
            total
        });
        let totals = std::iter::once(0).chain(steps);
        match T::IS_SMALL {
            true => Self::Small(totals.map(|total| total as u64).collect()),
            false => Self::Large(totals.collect()),
        }
    }

    /// The sum of `values`, those that this was made of, in a range.
    pub(super) fn sum<T: Addend>(&self, values: &[T], range: Range<usize>) -> i128 {
        let (first, last) = (range.start.div_ceil(STEP), range.end / STEP);
        if first >= last {
            return T::sum(&values[range]);
        }
        let ends = [range.start..first * STEP, last * STEP..range.end];
        let ends = ends.map(|end| T::sum(&values[end]));
        let between = match self {
            Self::Small(totals) => i128::from(totals[last] - totals[first]),
            Self::Large(totals) => totals[last] - totals[first],
        };
        between + ends[0] + ends[1]
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Small(totals) => size_of_val::<[u64]>(totals),
            Self::Large(totals) => size_of_val::<[i128]>(totals),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<T: Addend + Into<i128>>(
        values: &[T],
        range: Range<usize>,
    ) -> Result<(), TestCaseError> {
        let sum: i128 = values[range.clone()].iter().map(|value| (*value).into()).sum();
        prop_assert_eq!(Totals::of(values).sum(values, range), sum);
        Ok(())
    }

    proptest! {
        #[test]
        fn sums_of_ranges_are_those_of_their_rows(
            large in prop::collection::vec(prop_oneof![any::<i64>(), Just(i64::MIN), Just(-1)], 0..700),
            small in prop::collection::vec(any::<u32>(), 700),
            ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        ) {
            let (a, b) = (ends.0.index(large.len() + 1), ends.1.index(large.len() + 1));
            let range = a.min(b)..a.max(b);
            check(&large, range.clone())?;
            check(&small, range)?;
        }
    }
}
