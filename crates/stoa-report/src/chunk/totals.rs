//! Sums of a chunk's first rows, at every so many of them: the sum of a range then takes two of these
//! and what is left at its ends, however long it is.

use std::ops::Range;

/// Rows between two totals: an eighth of a byte per row, and at most so many additions at each end.
const STEP: usize = 64;

/// At `n`, the sum of the first `n * STEP` distances of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct Totals(Box<[u64]>);

impl Totals {
    /// Chunks have less than 2³² rows, of less than 2³² each.
    pub(super) fn of<T: Copy + Into<u64>>(distances: &[T]) -> Self {
        let mut total = 0_u64;
        let steps = distances.chunks_exact(STEP).map(|step| {
            total += plain(step);
            total
        });
        Self(std::iter::once(0).chain(steps).collect())
    }

    /// The sum of `distances`, those that this was made of, in a range.
    pub(super) fn sum<T: Copy + Into<u64>>(&self, distances: &[T], range: Range<usize>) -> u64 {
        let (first, last) = (range.start.div_ceil(STEP), range.end / STEP);
        if first >= last {
            return plain(&distances[range]);
        }
        let ends = [range.start..first * STEP, last * STEP..range.end];
        let ends = ends.map(|end| plain(&distances[end]));
        self.0[last] - self.0[first] + ends[0] + ends[1]
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val::<[u64]>(&self.0)
    }
}

fn plain<T: Copy + Into<u64>>(distances: &[T]) -> u64 {
    distances.iter().map(|distance| (*distance).into()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_of_ranges_are_those_of_their_rows(
            distances in prop::collection::vec(any::<u32>(), 0..400),
            ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        ) {
            let (a, b) = (ends.0.index(distances.len() + 1), ends.1.index(distances.len() + 1));
            let range = a.min(b)..a.max(b);
            let totals = Totals::of(&distances);
            prop_assert_eq!(totals.sum(&distances, range.clone()), plain(&distances[range]));
        }
    }
}
