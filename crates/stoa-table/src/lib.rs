//! Iceberg tables, read in versions 1 to 3 and in any format, written in version 2 as ORC; and views.
//!
//! In: table specifications, Arrow record batches, predicates. Out: committed snapshots, the files
//! that a scan must read, and reports on a table's health. Views are text and columns (`view`).
//!
//! Table properties that mean something here; the names are Iceberg's where it has one:
//!
//! | property | default | meaning |
//! |---|---|---|
//! | `write.target-file-size-bytes` | 256 MiB | a data file ends at about this size |
//! | `write.orc.*`, `stoa.orc.*` | | how data files are encoded |
//! | `write.delete.isolation-level` (`update`, `merge`) | `serializable` | or `snapshot`: rows added meanwhile do not matter |
//! | `write.metadata.delete-after-commit.enabled` | `true` | old metadata files go |
//! | `write.metadata.previous-versions-max` | 100, but about 8 MiB | how many stay |
//! | `commit.retry.num-retries` | 30 | tries against other writers |
//! | `commit.manifest.min-count-to-merge` | 100 | manifests that are merged into few |
//! | `history.expire.max-snapshot-age-ms` | 5 days | snapshots that were current within stay |
//! | `history.expire.min-snapshots-to-keep` | 1 | so many stay in any case |
//! | `stoa.history.snapshots-max` | 200 | beyond so many, those older than 5 minutes go; 0: none |
//! | `gc.enabled` | `true` | files may be deleted |
//! | `stoa.compaction.min-input-files` | 4 | runs of one size that are merged |
//! | `stoa.retention` | | such as `13 months`: older table partitions go |
//! | `stoa.log.<log>` | | set by commits only: how far the log is in the table |
//!
//! **Invariants:** a commit is one compare-and-swap of the catalog's pointer, and everything that
//! the new pointer reaches is durable before it moves; a file is never changed once written;
//! planning never leaves out a file that holds a matching row.
//! Not here: decoding plain ORC files (`stoa-query` with `stoa-orc`; all others are read by `data`), SQL,
//! the catalog database itself (`stoa-catalog`).

mod abandoned;
mod cache;
mod check;
mod commit;
mod compact;
mod data;
mod declared;
mod defaults;
mod deletes;
mod error;
mod evolve;
mod expire;
mod failpoint;
mod files;
mod lineage;
mod metrics;
mod name;
mod order;
mod pins;
mod positions;
mod property;
mod reach;
mod recover;
mod retention;
mod rewrite;
mod roll_back;
mod scan;
mod schema;
mod snapshot;
mod spec;
mod table;
mod transform;
mod travel;
mod value;
mod view;
mod warehouse;
mod write;
mod writers;

pub use check::{CheckReport, CheckedData, Orphan, Problem, RemovedOrphans};
pub use compact::{
    CancelToken, CompactionGroup, CompactionOptions, CompactionOutcome, CompactionPlan,
    CompactionProgress, CompactionWork, MergeHook, MergeHooks, Throttle,
};
pub use data::{RowOptions, RowReader};
pub use declared::{DECLARED_TYPE_KEY, DeclaredType, Limits};
pub use defaults::DEFAULT_KEY;
pub use deletes::{DeleteFile, DeleteKind};
pub use expire::{ExpireOptions, ExpireOutcome};
pub use positions::LogAdvance;
pub use property::STOA_PROPERTIES;
pub use reach::TableFiles;
pub use retention::Retention;
pub use rewrite::{Isolation, Outdated, RewriteOptions, RewriteOutcome, TableRewrite};
pub use scan::{FileFormat, PartitionResult, PartitionValue, ScanFile, ScanPlan};
pub use schema::FIELD_ID_KEY;
pub use snapshot::CommitOptions;
pub use spec::{ColumnPosition, PartitionTerm, SortTerm, TableChange, TableSpec, Transform};
pub use stoa_catalog::{CatalogPlace, Listing, Relation, RelationKind, TableIdent};
pub use table::{SnapshotInfo, Table};
pub use transform::transform_array;
pub use travel::{NamedSnapshot, TableVersion};
pub use view::{
    VIEW_COMMENT, VIEW_DIALECTS, VIEW_SECURITY_INVOKER, View, ViewChange, ViewSpec, ViewSql,
};
pub use warehouse::{CATALOG_NAME, Warehouse, WarehouseOptions};
pub use write::{CommitOutcome, TableWriter, WriteOptions, WrittenFiles};
