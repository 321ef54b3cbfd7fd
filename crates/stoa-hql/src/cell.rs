//! One cell: row, family, qualifier, timestamp, value and kind; and the order of cells.
//!
//! **Order:** row bytes, family id, qualifier bytes, timestamp from newest to oldest, kind by its
//! code. Markers that delete thus stand before everything they hide: a row's marker carries family
//! 0 and a family's an empty qualifier, and of equal timestamps the marker comes first.
//!
//! Hypertable keeps its kind before the timestamp (reference §2, key bytes); here the timestamp is
//! first, so that the order of columns in a table file is the order of the sort.
//!
//! Not here: columnar batches (`batch`), which cells a reader sees (`read`).

use std::cmp::Ordering;

/// Number of a column family within its table, 1–255; 0 stands for the whole row.
pub type FamilyId = u8;

/// The family id of markers that delete a row.
pub const WHOLE_ROW: FamilyId = 0;

/// What a cell does: it holds a value, or it hides other cells.
///
/// The codes are Hypertable's key flags (reference §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CellKind {
    /// Hides all cells of the row that are not newer.
    DeleteRow,
    /// Hides all cells of the row's family that are not newer.
    DeleteFamily,
    /// Hides all versions of one cell that are not newer.
    DeleteCell,
    /// Hides the version of one cell with exactly this timestamp.
    DeleteVersion,
    /// Holds a value.
    Insert,
}

impl CellKind {
    /// The code of [`CellKind::Insert`].
    pub const INSERT_CODE: i32 = 255;

    /// The number stored in the column `kind`.
    pub fn code(self) -> i32 {
        match self {
            Self::DeleteRow => 0,
            Self::DeleteFamily => 1,
            Self::DeleteCell => 2,
            Self::DeleteVersion => 3,
            Self::Insert => Self::INSERT_CODE,
        }
    }

    /// The kind with this code, if there is one.
    pub fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Self::DeleteRow),
            1 => Some(Self::DeleteFamily),
            2 => Some(Self::DeleteCell),
            3 => Some(Self::DeleteVersion),
            Self::INSERT_CODE => Some(Self::Insert),
            _ => None,
        }
    }

    /// Whether it hides other cells.
    pub fn is_delete(self) -> bool {
        self != Self::Insert
    }

    /// What `RETURN_DELETES` prints behind a marker; empty for a value.
    pub fn label(self) -> &'static str {
        match self {
            Self::DeleteRow => "DELETE ROW",
            Self::DeleteFamily => "DELETE COLUMN FAMILY",
            Self::DeleteCell => "DELETE CELL",
            Self::DeleteVersion => "DELETE CELL VERSION",
            Self::Insert => "",
        }
    }
}

/// A cell that borrows its bytes, usually from a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// The row key; never empty, never with a NUL byte.
    pub row: &'a [u8],
    /// The column family; 0 in markers that delete a row.
    pub family: FamilyId,
    /// The column qualifier; may be empty, never with a NUL byte.
    pub qualifier: &'a [u8],
    /// Nanoseconds since 1970-01-01 00:00:00 UTC.
    pub timestamp: i64,
    /// The value; empty in markers.
    pub value: &'a [u8],
    /// What the cell does.
    pub kind: CellKind,
    /// When it was written, as timestamps count: of cells that are equal in everything but the
    /// value, the one with the highest revision is seen. That of a cell whose timestamp was not
    /// given by hand is its timestamp.
    pub revision: i64,
}

impl<'a> CellRef<'a> {
    /// A cell that holds a value; its revision is its timestamp.
    pub fn insert(
        row: &'a [u8],
        family: FamilyId,
        qualifier: &'a [u8],
        timestamp: i64,
        value: &'a [u8],
    ) -> Self {
        let kind = CellKind::Insert;
        Self { row, family, qualifier, timestamp, value, kind, revision: timestamp }
    }

    /// Row, family and qualifier: what all versions of a cell share.
    pub fn column(&self) -> (&'a [u8], FamilyId, &'a [u8]) {
        (self.row, self.family, self.qualifier)
    }

    /// The order of cells (see the module's doc); values do not count.
    pub fn order(&self, other: &CellRef<'_>) -> Ordering {
        self.row
            .cmp(other.row)
            .then_with(|| self.family.cmp(&other.family))
            .then_with(|| self.qualifier.cmp(other.qualifier))
            .then_with(|| other.timestamp.cmp(&self.timestamp))
            .then_with(|| self.kind.cmp(&other.kind))
    }

    /// A copy that owns its bytes.
    pub fn to_cell(&self) -> Cell {
        Cell {
            row: self.row.to_vec(),
            family: self.family,
            qualifier: self.qualifier.to_vec(),
            timestamp: self.timestamp,
            value: self.value.to_vec(),
            kind: self.kind,
        }
    }
}

/// A cell that owns its bytes, without its revision: for small numbers of cells and for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The row key.
    pub row: Vec<u8>,
    /// The column family.
    pub family: FamilyId,
    /// The column qualifier.
    pub qualifier: Vec<u8>,
    /// Nanoseconds since 1970-01-01 00:00:00 UTC.
    pub timestamp: i64,
    /// The value.
    pub value: Vec<u8>,
    /// What the cell does.
    pub kind: CellKind,
}

impl Cell {
    /// The same cell, borrowed.
    pub fn as_cell_ref(&self) -> CellRef<'_> {
        CellRef {
            row: &self.row,
            family: self.family,
            qualifier: &self.qualifier,
            timestamp: self.timestamp,
            value: &self.value,
            kind: self.kind,
            revision: self.timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_stand_before_what_they_hide() {
        let value = CellRef::insert(b"r", 2, b"", 7, b"v");
        let same = |family, kind| CellRef { family, kind, value: b"", ..value };
        assert_eq!(same(WHOLE_ROW, CellKind::DeleteRow).order(&value), Ordering::Less);
        assert_eq!(same(2, CellKind::DeleteFamily).order(&value), Ordering::Less);
        assert_eq!(same(2, CellKind::DeleteVersion).order(&value), Ordering::Less);
        assert_eq!(CellRef { timestamp: 8, ..value }.order(&value), Ordering::Less);
    }

    #[test]
    fn codes_are_read_back() {
        for kind in [
            CellKind::DeleteRow,
            CellKind::DeleteFamily,
            CellKind::DeleteCell,
            CellKind::DeleteVersion,
            CellKind::Insert,
        ] {
            assert_eq!(CellKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(CellKind::from_code(4), None);
    }
}
