//! What a reader asks of a table: [`ScanSpec`].
//!
//! A spec speaks of ids and bytes, not of names; `session` makes it from a SELECT. A store answers
//! it by handing its sorted cells to a [`CellReader`](crate::CellReader), which does everything the
//! spec says. What a store may leave out beforehand is named by [`Pushdown`].
//!
//! Not here: which versions are seen (`read`).

mod algebra;
mod key_range;

use std::collections::BTreeSet;

pub(crate) use key_range::RowPlace;
pub use key_range::{CellKey, KeyRange};

use crate::cell::{FamilyId, WHOLE_ROW};
use crate::pattern::Pattern;
use crate::schema::TableSchema;

/// Which cells of a table are wanted, in which shape.
///
/// The default is all values of all versions that the schema keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanSpec {
    /// Rows or cells between two keys, ascending, apart from each other; none is the whole table.
    pub ranges: Vec<KeyRange>,
    /// Columns to return; none is all.
    pub columns: Vec<ColumnSelector>,
    /// When the cells were written.
    pub time: TimeRange,
    /// Rows must match this.
    pub row_pattern: Option<Pattern>,
    /// Values must match this; applied after `max_versions`.
    pub value_pattern: Option<Pattern>,
    /// Conditions on columns, which need not be among those returned.
    pub predicates: Vec<ColumnPredicate>,
    /// How the conditions go together.
    pub combine: Combine,
    /// Return the cells that meet a condition, rather than the rows that hold such cells.
    pub matching_cells_only: bool,
    /// Versions to return of each cell at most, within `time`.
    pub max_versions: Option<u32>,
    /// Rows to pass over.
    pub row_offset: u64,
    /// Rows to return at most.
    pub row_limit: Option<u64>,
    /// Cells to pass over.
    pub cell_offset: u64,
    /// Cells to return at most.
    pub cell_limit: Option<u64>,
    /// Cells to return of each family of each row at most; counts before `cell_offset`.
    pub cell_limit_per_family: Option<u64>,
    /// Leave the values empty.
    pub keys_only: bool,
    /// Return the markers that hide cells, too.
    pub return_deletes: bool,
}

/// A family, and which of its qualifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSelector {
    /// The family.
    pub family: FamilyId,
    /// Which qualifiers.
    pub qualifier: QualifierFilter,
}

/// Which qualifiers of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QualifierFilter {
    /// All.
    Any,
    /// This one, which may be empty.
    Exact(Vec<u8>),
    /// Those that start with this.
    Prefix(Vec<u8>),
    /// Those in which this matches.
    Matches(Pattern),
}

impl QualifierFilter {
    /// Whether `qualifier` is one of them.
    pub fn accepts(&self, qualifier: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => qualifier == exact,
            Self::Prefix(prefix) => qualifier.starts_with(prefix),
            Self::Matches(pattern) => pattern.is_match(qualifier),
        }
    }
}

/// A condition that a cell meets or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnPredicate {
    /// The columns it speaks of.
    pub column: ColumnSelector,
    /// What it asks of the value.
    pub value: ValueFilter,
}

/// What a condition asks of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueFilter {
    /// That the cell exists.
    Exists,
    /// That it is this.
    Equals(Vec<u8>),
    /// That it starts with this.
    Prefix(Vec<u8>),
    /// That this matches in it.
    Matches(Pattern),
}

impl ValueFilter {
    /// Whether `value` meets it.
    pub fn accepts(&self, value: &[u8]) -> bool {
        match self {
            Self::Exists => true,
            Self::Equals(equal) => value == equal,
            Self::Prefix(prefix) => value.starts_with(prefix),
            Self::Matches(pattern) => pattern.is_match(value),
        }
    }
}

/// How conditions on columns go together. Each may be met by another cell of the row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// A row must meet all of them.
    #[default]
    All,
    /// A row must meet one of them.
    Any,
}

/// An interval of timestamps, nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The first that is in it.
    pub start: i64,
    /// The first after it; none if it has no end.
    pub end: Option<i64>,
}

impl Default for TimeRange {
    fn default() -> Self {
        Self { start: i64::MIN, end: None }
    }
}

impl TimeRange {
    /// Whether `timestamp` is in it.
    pub fn contains(&self, timestamp: i64) -> bool {
        self.start <= timestamp && self.end.is_none_or(|end| timestamp < end)
    }

    /// Whether every timestamp is.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// What a store may leave out before merging without changing the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushdown {
    /// Cells of rows outside of all of these; none means that every row counts. Ranges of cells
    /// are widened to whole rows, because markers for a row stand at its beginning.
    pub rows: Vec<KeyRange>,
    /// Cells of all other families; none means that every family counts.
    pub families: Option<BTreeSet<FamilyId>>,
    /// Cells and markers that are older than this.
    pub oldest: i64,
    /// Values, but not markers, that are not older than this.
    pub values_before: Option<i64>,
}

impl ScanSpec {
    /// What a store may leave out; `schema` is that of the table.
    pub fn pushdown(&self, schema: &TableSchema) -> Pushdown {
        let families = self.families();
        let read = |id: FamilyId| families.as_ref().is_none_or(|set| set.contains(&id));
        // Where the schema keeps a number of versions, all of them must be counted.
        let counts = schema
            .living()
            .any(|family| read(family.id) && family.options.version_limit().is_some());
        let time = if counts { TimeRange::default() } else { self.time };
        Pushdown {
            rows: self.ranges.iter().map(KeyRange::to_rows).collect(),
            families,
            oldest: time.start,
            values_before: time.end,
        }
    }

    /// The families whose cells decide the answer, with the one of markers for rows; none if it is
    /// all of them.
    pub fn families(&self) -> Option<BTreeSet<FamilyId>> {
        if self.columns.is_empty() {
            return None;
        }
        let conditions = self.predicates.iter().map(|predicate| &predicate.column);
        let families = self.columns.iter().chain(conditions).map(|column| column.family);
        Some(families.chain([WHOLE_ROW]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FamilyDefinition, FamilyOptions, TableDefinitions, TableOptions};

    #[test]
    fn times_are_pushed_down_unless_versions_are_counted() {
        let table = |max_versions| {
            let options = FamilyOptions { max_versions, ..FamilyOptions::default() };
            let families = vec![FamilyDefinition { name: "a".into(), options }];
            let definitions = TableDefinitions { families, ..TableDefinitions::default() };
            TableSchema::create(&definitions, TableOptions::default()).unwrap()
        };
        let spec = ScanSpec {
            time: TimeRange { start: 5, end: Some(9) },
            columns: vec![ColumnSelector { family: 1, qualifier: QualifierFilter::Any }],
            ..ScanSpec::default()
        };
        let plain = spec.pushdown(&table(None));
        assert_eq!((plain.oldest, plain.values_before), (5, Some(9)));
        assert_eq!(plain.families, Some(BTreeSet::from([0, 1])));
        let counted = spec.pushdown(&table(Some(2)));
        assert_eq!((counted.oldest, counted.values_before), (i64::MIN, None));
    }
}
