//! The work on tables in the background.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// What is done to tables, and was.
#[derive(Clone, Debug, Default)]
pub struct Maintenance {
    /// The table that is worked on now.
    pub table: Option<String>,
    /// What is done to it.
    pub work: Option<String>,
    /// Since when, milliseconds since 1970-01-01 UTC.
    pub since_unix_ms: Option<i64>,
    /// Groups of files that became one run.
    pub compactions: u64,
    /// Rows that compactions wrote.
    pub compacted_rows: u64,
    /// Bytes that compactions read.
    pub compacted_bytes: u64,
    /// Snapshots forgotten.
    pub snapshots_expired: u64,
    /// Files deleted.
    pub files_deleted: u64,
    /// Work that failed.
    pub failures: u64,
    /// Why the last work on a table failed, with the table in front.
    pub errors: Vec<String>,
}

type This = Figure<Maintenance>;

const FIGURES: &[This] = &[
    This::flag("working", "Whether a table is being worked on.", |s| s.table.is_some())
        .metric("stoa_maintenance_working"),
    This::maybe_text("table", "The table that is worked on now.", |s| s.table.as_deref())
        .for_superusers(),
    This::maybe_text("work", "What is done to it.", |s| s.work.as_deref()).for_superusers(),
    This::maybe_time("since_unix_ms", "When that was begun.", |s| s.since_unix_ms).for_superusers(),
    This::counter(
        "compactions",
        Unit::Of("groups of files"),
        "Groups of files made one run.",
        |s| s.compactions,
    )
    .metric("stoa_maintenance_compactions_total"),
    This::counter("compacted_rows", Unit::Of("rows"), "Rows that compactions wrote.", |s| {
        s.compacted_rows
    }),
    This::counter("compacted_bytes", Unit::Bytes, "Bytes that compactions read.", |s| {
        s.compacted_bytes
    })
    .metric("stoa_maintenance_read_bytes_total"),
    This::counter("snapshots_expired", Unit::Of("snapshots"), "Snapshots forgotten.", |s| {
        s.snapshots_expired
    }),
    This::counter(
        "files_deleted",
        Unit::Of("files"),
        "Files deleted: of forgotten snapshots, and orphans.",
        |s| s.files_deleted,
    ),
    This::counter("failures", Unit::Of("times"), "Work on tables that failed.", |s| s.failures)
        .metric("stoa_maintenance_failures_total"),
    This::maybe_texts(
        "errors",
        "Why the last work on a table failed, by table; gone once some succeeds.",
        |s| Some(&s.errors),
    )
    .for_superusers(),
];

/// `system.maintenance`.
pub static MAINTENANCE: Group<Maintenance> = Group::new(
    "maintenance",
    "Maintenance",
    "What is done to tables in the background; nothing where that is off.",
    Shape::Maybe,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
