//! Intervals of rows and of cells.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::cell::{CellRef, FamilyId};

/// A place in the order of rows, or of the cells within them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellKey {
    /// The row.
    pub row: Vec<u8>,
    /// Family and qualifier; none stands for all cells of the row.
    pub column: Option<(FamilyId, Vec<u8>)>,
}

impl CellKey {
    /// All cells of a row.
    pub fn row(row: impl Into<Vec<u8>>) -> Self {
        Self { row: row.into(), column: None }
    }

    /// All versions of one cell.
    pub fn cell(row: impl Into<Vec<u8>>, family: FamilyId, qualifier: impl Into<Vec<u8>>) -> Self {
        Self { row: row.into(), column: Some((family, qualifier.into())) }
    }

    /// Where a cell stands towards this place.
    fn order_of(&self, cell: &CellRef<'_>) -> Ordering {
        let by_column = || match &self.column {
            None => Ordering::Equal,
            Some((family, qualifier)) => {
                (cell.family, cell.qualifier).cmp(&(*family, qualifier.as_slice()))
            }
        };
        cell.row.cmp(&self.row).then_with(by_column)
    }

    /// Where this place stands towards another; none if one is a row and the other a cell of it.
    fn order(&self, other: &CellKey) -> Option<Ordering> {
        match self.row.cmp(&other.row) {
            Ordering::Equal if self.column.is_some() != other.column.is_some() => None,
            Ordering::Equal => Some(self.column.cmp(&other.column)),
            decided => Some(decided),
        }
    }
}

/// The cells between two places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Where it starts.
    pub start: Bound<CellKey>,
    /// Where it ends.
    pub end: Bound<CellKey>,
}

/// How a row lies towards a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowPlace {
    /// All of its cells come before the range.
    Before,
    /// All of its cells are in the range.
    Inside,
    /// Its cells must be looked at one by one.
    Partly,
    /// All of its cells come after the range.
    After,
}

impl KeyRange {
    /// All cells.
    pub fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// The cells of one place.
    pub fn at(key: CellKey) -> Self {
        Self { start: Bound::Included(key.clone()), end: Bound::Included(key) }
    }

    /// The rows, or the cells of one family of a row, whose last part starts with that of `key`.
    pub fn prefix(key: CellKey) -> Self {
        let end = match &key.column {
            None => match successor(&key.row) {
                Some(row) => Bound::Excluded(CellKey::row(row)),
                None => Bound::Unbounded,
            },
            Some((family, qualifier)) => match (successor(qualifier), family.checked_add(1)) {
                (Some(next), _) => Bound::Excluded(CellKey::cell(key.row.clone(), *family, next)),
                (None, Some(next)) => Bound::Excluded(CellKey::cell(key.row.clone(), next, "")),
                (None, None) => Bound::Included(CellKey::row(key.row.clone())),
            },
        };
        Self { start: Bound::Included(key), end }
    }

    /// The rows that it touches, whole.
    #[must_use]
    pub fn to_rows(&self) -> Self {
        let whole = |bound: &Bound<CellKey>| match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Excluded(key) if key.column.is_none() => Bound::Excluded(key.clone()),
            Bound::Excluded(key) | Bound::Included(key) => {
                Bound::Included(CellKey::row(key.row.clone()))
            }
        };
        Self { start: whole(&self.start), end: whole(&self.end) }
    }

    /// The first and the last row it may hold, as bounds of bytes.
    pub fn row_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        fn bytes(bound: &Bound<CellKey>) -> Bound<&[u8]> {
            match bound {
                Bound::Unbounded => Bound::Unbounded,
                Bound::Excluded(key) if key.column.is_none() => Bound::Excluded(&key.row),
                Bound::Excluded(key) | Bound::Included(key) => Bound::Included(&key.row),
            }
        }
        (bytes(&self.start), bytes(&self.end))
    }

    /// Whether a cell is in it.
    pub fn contains(&self, cell: &CellRef<'_>) -> bool {
        let starts = match &self.start {
            Bound::Unbounded => true,
            Bound::Included(key) => key.order_of(cell) != Ordering::Less,
            Bound::Excluded(key) => key.order_of(cell) == Ordering::Greater,
        };
        starts
            && match &self.end {
                Bound::Unbounded => true,
                Bound::Included(key) => key.order_of(cell) != Ordering::Greater,
                Bound::Excluded(key) => key.order_of(cell) == Ordering::Less,
            }
    }

    /// Whether its start lies behind its end, so that it was hardly meant.
    pub fn is_inverted(&self) -> bool {
        match (self.start_key(), self.end_key()) {
            (Some(start), Some(end)) => start.order(end) == Some(Ordering::Greater),
            _ => false,
        }
    }

    /// The place it starts at.
    pub fn start_key(&self) -> Option<&CellKey> {
        key_of(&self.start)
    }

    /// The place it ends at.
    pub fn end_key(&self) -> Option<&CellKey> {
        key_of(&self.end)
    }

    /// Where a row lies.
    pub(crate) fn place_of(&self, row: &[u8]) -> RowPlace {
        let (start, end) = (self.start_key(), self.end_key());
        if start.is_some_and(|key| row < key.row.as_slice()) {
            return RowPlace::Before;
        }
        if end.is_some_and(|key| row > key.row.as_slice()) {
            return RowPlace::After;
        }
        let start = start.filter(|key| key.row == row);
        let end = end.filter(|key| key.row == row);
        if start.or(end).is_none() {
            return RowPlace::Inside;
        }
        if start.is_some_and(|key| key.column.is_some()) || end.is_some_and(|k| k.column.is_some())
        {
            return RowPlace::Partly;
        }
        match (&self.start, &self.end) {
            (Bound::Excluded(_), _) if start.is_some() => RowPlace::Before,
            (_, Bound::Excluded(_)) if end.is_some() => RowPlace::After,
            _ => RowPlace::Inside,
        }
    }
}

fn key_of(bound: &Bound<CellKey>) -> Option<&CellKey> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
    }
}

/// The least byte string that is greater than all that start with `prefix`.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = CellKey> {
        ("[ab]{1,2}", prop::option::of((1_u8..3, "[xy]{0,1}"))).prop_map(|(row, column)| CellKey {
            row: row.into_bytes(),
            column: column.map(|(family, qualifier)| (family, qualifier.into_bytes())),
        })
    }

    fn any_bound() -> impl Strategy<Value = Bound<CellKey>> {
        prop_oneof![
            Just(Bound::Unbounded),
            any_key().prop_map(Bound::Included),
            any_key().prop_map(Bound::Excluded)
        ]
    }

    pub(crate) fn any_range() -> impl Strategy<Value = KeyRange> {
        (any_bound(), any_bound()).prop_map(|(start, end)| KeyRange { start, end })
    }

    proptest! {
        #[test]
        fn the_place_of_a_row_agrees_with_its_cells(
            start in any_bound(), end in any_bound(), row in "[ab]{1,2}",
            family in 1_u8..3, qualifier in "[xy]{0,1}",
        ) {
            let range = KeyRange { start, end };
            let cell = CellRef::insert(row.as_bytes(), family, qualifier.as_bytes(), 0, b"");
            match range.place_of(row.as_bytes()) {
                RowPlace::Inside => prop_assert!(range.contains(&cell)),
                RowPlace::Before | RowPlace::After => prop_assert!(!range.contains(&cell)),
                RowPlace::Partly => {}
            }
            prop_assert!(!range.contains(&cell) || range.to_rows().contains(&cell));
        }

        #[test]
        fn a_prefix_holds_what_starts_with_it(
            prefix in "[ab]{0,2}", row in "[ab]{1,3}", qualifier in prop::collection::vec(254_u8.., 0..3),
            start in prop::collection::vec(254_u8.., 0..3),
        ) {
            let cell = CellRef::insert(row.as_bytes(), 255, &qualifier, 0, b"");
            let rows = KeyRange::prefix(CellKey::row(prefix.clone()));
            prop_assert_eq!(rows.contains(&cell), row.starts_with(&prefix));
            let cells = KeyRange::prefix(CellKey::cell(row.clone(), 255, start.clone()));
            prop_assert_eq!(cells.contains(&cell), qualifier.starts_with(&start));
        }
    }

    #[test]
    fn a_range_that_ends_before_it_starts_is_told() {
        let range = |start: &str, end: &str| KeyRange {
            start: Bound::Excluded(CellKey::row(start)),
            end: Bound::Excluded(CellKey::row(end)),
        };
        assert!(range("z", "a").is_inverted());
        assert!(!range("a", "a").is_inverted());
        assert!(!KeyRange::all().is_inverted());
    }
}
