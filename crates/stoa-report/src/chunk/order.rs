//! Where the values of a chunk stop ascending: between two such places, rows are found by bisection.
//!
//! In a table sorted by account and day, days begin anew with each account; within an account they
//! ascend, and it is one account that is asked for.

use std::ops::Range;

use arrow_buffer::BooleanBuffer;

/// So many of them are kept as a list, more as bits.
const LIST_MAX: usize = 64;

/// Where values ascend for fewer rows on average, what lies between is sooner looked through.
const RUN_ROWS_MIN: usize = 4;

/// Rows whose value is less than that of the row before.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// These, ascending.
    Few(Box<[u32]>),
    /// Those whose bit is set.
    Many(BooleanBuffer),
}

impl Order {
    /// `None` where there are too many of them.
    pub(super) fn of(rows: usize, descends: impl Fn(usize) -> bool) -> Option<Self> {
        let breaks = BooleanBuffer::collect_bool(rows, |row| row > 0 && descends(row));
        match breaks.count_set_bits() {
            few if few <= LIST_MAX => {
                Some(Self::Few(breaks.set_indices().map(|row| row as u32).collect()))
            }
            many if many <= rows / RUN_ROWS_MIN => Some(Self::Many(breaks)),
            _ => None,
        }
    }

    /// Whether values ascend in a range.
    pub(super) fn ascends_in(&self, range: &Range<usize>) -> bool {
        match self {
            Self::Few(breaks) => {
                let first = breaks.partition_point(|row| *row as usize <= range.start);
                breaks.get(first).is_none_or(|row| *row as usize >= range.end)
            }
            Self::Many(breaks) => {
                let within = range.len().saturating_sub(1);
                within == 0 || breaks.slice(range.start + 1, within).count_set_bits() == 0
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Few(breaks) => size_of_val::<[u32]>(breaks),
            Self::Many(breaks) => breaks.len().div_ceil(8),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_ascend_where_their_values_do(
            run in prop_oneof![Just(1_usize), 5_usize..30],
            seeds in prop::collection::vec(0_u32..40, 0..600),
            ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        ) {
            // Runs that ascend, and none where each is of one row.
            let value = |(row, seed): (usize, &u32)| (row % run) as u32 * 40 + seed % 40;
            let values: Vec<u32> = seeds.iter().enumerate().map(value).collect();
            let (a, b) = (ends.0.index(values.len() + 1), ends.1.index(values.len() + 1));
            let range = a.min(b)..a.max(b);
            let order = Order::of(values.len(), |row| values[row] < values[row - 1]);
            prop_assert!(run == 1 || order.is_some());
            if let Some(order) = order {
                prop_assert_eq!(order.ascends_in(&range), values[range].is_sorted());
            }
        }
    }

    #[test]
    fn disorder_is_not_kept() {
        assert!(Order::of(10_000, |row| row % 2 == 0).is_none());
        assert!(Order::of(0, |_| true).is_some());
    }
}
