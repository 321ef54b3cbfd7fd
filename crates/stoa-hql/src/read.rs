//! Which cells a reader sees: merging of sorted cells, versions, markers, ages, counters, limits.
//!
//! ```text
//! sorted batches ─┐
//! sorted batches ─┼─► Merge ─ runs ─► Visibility ─ cells ─► Selection ─ cells ─► Limits ─► batches
//! sorted batches ─┘   one order       markers, versions,    conditions on      offsets,
//!                                     ages, counters        rows and values    limits
//! ```
//!
//! In: batches of several inputs, each sorted in the order of cells; a later input is newer, so of
//! cells that are equal in row, column and timestamp its own stays. Out: the cells that a
//! [`ScanSpec`](crate::scan::ScanSpec) asks for, in the order of cells (oldest version first where the family says so).
//!
//! The rules are Hypertable's (reference §2), with one difference: a family's MAX_VERSIONS counts
//! all versions, the query's those in its interval of time.
//!
//! **Invariants:** no I/O, no clock: the caller gives batches and says what time it is. Memory is
//! bounded by a batch per input and one for the output; with conditions on columns also by the
//! cells of one row, with TIME_ORDER DESC by the versions of one cell, both up to
//! [`BUFFER_BYTES_MAX`].
//!
//! Not here: storing; which files to open ([`ScanSpec::pushdown`](crate::scan::ScanSpec::pushdown)).

mod counter;
mod limits;
mod merge;
mod reader;
mod rules;
mod selection;
mod stream;
mod visibility;

pub use counter::is_counter_value;
pub use reader::{CellReader, Compaction, ReadStep};
pub use stream::{CellStream, read_stream};

/// Bytes that may be held for one row with conditions, or one cell with TIME_ORDER DESC.
pub const BUFFER_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests;
