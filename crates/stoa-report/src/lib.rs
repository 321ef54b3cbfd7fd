//! Reports on a short path: *equality and ranges on a few columns, GROUP BY, sums*.
//!
//! In: a [`Report`] whose names are resolved and whose values are bound, a version of a table and
//! its fresh rows. Out: one batch, or word that this is too much for one thread.
//!
//! ```text
//! TableView   files of a version, bounds per column in arrays ─► files that may match
//! Zones       bounds of a file's row groups, in arrays        ─► row groups that may match
//! Chunk       one column of one row group, decoded            ─► rows that match ─► groups, sums
//! ```
//! All three live in memory between reports: a warm report does no I/O, and allocates little more
//! than its answer. The cache holds chunks, zones and tails of files under one bound; what is
//! asked for once does not drive out what is asked for often.
//!
//! What a report takes beside the cache is bounded, too: rows that it looks at, groups and rows of its
//! answer ([`ReportOptions`]), and bytes, which it asks a [`Memory`] for. Beyond a bound, the
//! planner must answer. On its way it lets others on its thread have their turn every few
//! milliseconds, and can be dropped there.
//!
//! **Invariants:** an answer is that of the table version and the fresh rows given, whatever is in
//! the cache; a file's identity is its location, length and ETag (`identity`), so that an answer never
//! mixes a file with what was written over it.
//!
//! Large scans take the columns that they read again and again from the same chunks ([`ChunkScan`]), and large
//! groupings add them up there ([`Fold`]); what is above them is the engine's.
//!
//! Not here: SQL text and names (`stoa-query` recognises reports), which version to read
//! (`stoa-ingest`).

mod aggregate;
mod cache;
mod chunk;
mod condition;
mod decimal;
mod disk;
mod files;
mod fold;
mod fresh;
mod fresh_index;
mod hot;
mod identity;
mod locks;
mod memory;
mod missing;
mod order;
mod outcome;
mod output;
mod parts;
mod portion;
mod position;
mod report;
mod reports;
mod rows;
mod run;
mod scan;
mod seen;
mod select;
mod sets;
mod small;
mod small_answers;
mod view;
mod warm;
mod whole;
mod wire;
mod work;
mod zones;

#[cfg(test)]
mod tests;

pub use cache::CacheStatus;
pub use decimal::{Decimal, NUMERIC_SCALE, quotient, quotient_scale};
pub use disk::DiskOptions;
pub use fold::{Fold, Folder, Measure, Number, NumberOp, Operand, RowExpression};
pub use hot::{HotFile, HotList, HotPart, RewarmOptions, Rewarmed};
pub use memory::{Memory, Uncounted};
pub use outcome::{Answer, Missing, Outcome};
pub use position::{PARTS, PartSet, Parts};
pub use report::{
    Aggregate, Column, Condition, Function, Item, Order, Report, Test, ValueKind, kind_of,
};
pub use reports::{ReportOptions, Reports};
pub use scan::{ChunkScan, FileScan, Members, RowJudge, ScanFilter};
pub use warm::Warmed;
pub use work::ReportWork;
