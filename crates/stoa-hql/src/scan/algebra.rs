//! Ranges cut with each other and put together.

use std::cmp::Ordering;
use std::ops::Bound;

use super::key_range::{CellKey, KeyRange};
use crate::cell::FamilyId;

/// A gap between two cells: where a range starts or ends.
///
/// Before all cells of a row, before or behind one of its cells, behind all of them: in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge<'a> {
    First,
    At(&'a [u8], Side<'a>),
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side<'a> {
    BeforeRow,
    /// Family, qualifier, and whether behind that cell.
    OfCell(FamilyId, &'a [u8], bool),
    BehindRow,
}

fn edge(key: &CellKey, behind: bool) -> Edge<'_> {
    let side = match (&key.column, behind) {
        (Some((family, qualifier)), behind) => Side::OfCell(*family, qualifier, behind),
        (None, false) => Side::BeforeRow,
        (None, true) => Side::BehindRow,
    };
    Edge::At(&key.row, side)
}

fn start_edge(range: &KeyRange) -> Edge<'_> {
    match &range.start {
        Bound::Unbounded => Edge::First,
        Bound::Included(key) => edge(key, false),
        Bound::Excluded(key) => edge(key, true),
    }
}

fn end_edge(range: &KeyRange) -> Edge<'_> {
    match &range.end {
        Bound::Unbounded => Edge::Last,
        Bound::Included(key) => edge(key, true),
        Bound::Excluded(key) => edge(key, false),
    }
}

impl KeyRange {
    /// Whether no cell can be in it.
    pub fn is_empty(&self) -> bool {
        start_edge(self) >= end_edge(self)
    }

    /// What is in both; may be empty.
    #[must_use]
    pub fn intersect(&self, other: &KeyRange) -> KeyRange {
        let start = if start_edge(self) >= start_edge(other) { self } else { other };
        let end = if end_edge(self) <= end_edge(other) { self } else { other };
        KeyRange { start: start.start.clone(), end: end.end.clone() }
    }

    /// The same cells in ranges that are ascending and apart from each other.
    pub fn union(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by(|a, b| start_edge(a).cmp(&start_edge(b)));
        let mut apart: Vec<KeyRange> = Vec::new();
        for range in ranges {
            match apart.last_mut() {
                Some(last) if start_edge(&range) <= end_edge(last) => {
                    if end_edge(&range).cmp(&end_edge(last)) == Ordering::Greater {
                        last.end = range.end;
                    }
                }
                _ => apart.push(range),
            }
        }
        apart
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::key_range::tests::any_range;
    use super::*;
    use crate::cell::CellRef;

    proptest! {
        #[test]
        fn sets_of_cells_are_cut_and_joined(
            a in any_range(), b in any_range(), c in any_range(), row in "[ab]{1,2}",
            family in 1_u8..3, qualifier in "[xy]{0,1}",
        ) {
            let cell = CellRef::insert(row.as_bytes(), family, qualifier.as_bytes(), 0, b"");
            prop_assert!(!(a.is_empty() && a.contains(&cell)));
            let both = a.intersect(&b);
            prop_assert_eq!(both.contains(&cell), a.contains(&cell) && b.contains(&cell));

            let joined = KeyRange::union(vec![a.clone(), b.clone(), c.clone()]);
            let hits = joined.iter().filter(|range| range.contains(&cell)).count();
            let expected = [a, b, c].iter().any(|range| range.contains(&cell));
            prop_assert_eq!(hits, usize::from(expected));
            prop_assert!(joined.windows(2).all(|pair| end_edge(&pair[0]) < start_edge(&pair[1])));
        }
    }
}
