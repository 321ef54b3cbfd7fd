//! What a finished file is like: for a table's manifest.

use crate::predicate::Literal;

/// A finished file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSummary {
    /// Number of rows.
    pub rows: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Bytes from the end of the file that hold all metadata (statistics, footer, postscript).
    pub tail_bytes: u64,
    /// Where each stripe starts in the file.
    pub stripe_offsets: Vec<u64>,
    /// All columns by column id, the root first.
    pub columns: Vec<ColumnMetrics>,
}

/// A column of a finished file.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMetrics {
    /// Column id: pre-order position in the type tree.
    pub column: u32,
    /// Iceberg field id.
    pub field_id: Option<i32>,
    /// Number of values, NULLs included: the rows of the file, those with a NULL parent as well.
    /// Below a list, map or union that is the number of elements.
    pub values: u64,
    /// Number of NULLs, of `values`.
    pub nulls: u64,
    /// Bytes of the column's streams in the file, children and indexes not included.
    pub bytes: u64,
    /// No value is smaller (NaN aside). Strings over 1024 bytes and nanoseconds are rounded down.
    pub min: Option<Literal>,
    /// No value is larger (NaN aside). Strings over 1024 bytes and nanoseconds are rounded up.
    pub max: Option<Literal>,
    /// How many values are NaN; `None` if the type has none.
    pub nan_count: Option<u64>,
}
