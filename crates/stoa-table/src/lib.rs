//! Iceberg v2 tables whose data files are ORC.
//!
//! In: table specifications, Arrow record batches, predicates. Out: committed snapshots, the files
//! that a scan must read, and reports on a table's health.
//!
//! **Invariants:** a commit is one compare-and-swap of the catalog's pointer, and everything that
//! the new pointer reaches is durable before it moves; a file is never changed once written;
//! planning never leaves out a file that holds a matching row.
//! Not here: decoding data files (`stoa-query` with `stoa-orc`), SQL, the catalog database itself
//! (`stoa-catalog`).

mod abandoned;
mod cache;
mod check;
mod commit;
mod compact;
mod error;
mod evolve;
mod expire;
mod failpoint;
mod files;
mod metrics;
mod order;
mod positions;
mod retention;
mod rewrite;
mod scan;
mod schema;
mod snapshot;
mod spec;
mod table;
mod transform;
mod value;
mod warehouse;
mod write;

pub use check::{CheckReport, Orphan, Problem, RemovedOrphans};
pub use compact::{
    CancelToken, CompactionGroup, CompactionOptions, CompactionOutcome, CompactionPlan,
    CompactionProgress, CompactionWork, MergeHook, MergeHooks, Throttle,
};
pub use expire::{ExpireOptions, ExpireOutcome};
pub use positions::LogAdvance;
pub use retention::Retention;
pub use rewrite::{Isolation, Outdated, RewriteOptions, RewriteOutcome, TableRewrite};
pub use scan::{PartitionValue, ScanFile, ScanPlan};
pub use schema::FIELD_ID_KEY;
pub use snapshot::CommitOptions;
pub use spec::{ColumnPosition, PartitionTerm, SortTerm, TableChange, TableSpec, Transform};
pub use stoa_catalog::TableIdent;
pub use table::{SnapshotInfo, Table};
pub use transform::transform_array;
pub use warehouse::Warehouse;
pub use write::{CommitOutcome, TableWriter, WriteOptions, WrittenFiles};
