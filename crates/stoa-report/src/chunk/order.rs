//! Where the values of a chunk stop ascending: between two such places, rows are found by bisection.
//!
//! In a table sorted by account and day, days begin anew with each account; within an account they
//! ascend, and it is one account that is asked for.

use std::ops::Range;

/// With more of them, what lies between is short enough to be looked through.
const BREAKS_MAX: usize = 256;

/// Rows whose value is less than that of the row before, ascending.
#[derive(Clone, Debug)]
pub(crate) struct Order(Box<[u32]>);

impl Order {
    /// `None` where there are too many of them.
    pub(super) fn of(rows: usize, descends: impl Fn(usize) -> bool) -> Option<Self> {
        let mut breaks = (1..rows).filter(|row| descends(*row)).map(|row| row as u32);
        let kept: Box<[u32]> = breaks.by_ref().take(BREAKS_MAX).collect();
        breaks.next().is_none().then_some(Self(kept))
    }

    /// Whether values ascend in a range.
    pub(super) fn ascends_in(&self, range: &Range<usize>) -> bool {
        let first = self.0.partition_point(|row| *row as usize <= range.start);
        self.0.get(first).is_none_or(|row| *row as usize >= range.end)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val::<[u32]>(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_ascend_where_their_values_do(
            values in prop::collection::vec(0_u8..40, 0..40),
            ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        ) {
            let (a, b) = (ends.0.index(values.len() + 1), ends.1.index(values.len() + 1));
            let range = a.min(b)..a.max(b);
            let order = Order::of(values.len(), |row| values[row] < values[row - 1]).unwrap();
            prop_assert_eq!(order.ascends_in(&range), values[range].is_sorted());
        }
    }

    #[test]
    fn disorder_is_not_kept() {
        assert!(Order::of(10_000, |row| row % 2 == 0).is_none());
        assert!(Order::of(0, |_| true).is_some());
    }
}
