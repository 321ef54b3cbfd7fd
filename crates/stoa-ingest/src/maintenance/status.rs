//! What maintenance does and has done, as numbers.

use std::collections::BTreeMap;

use stoa_error::Error;
use stoa_table::TableIdent;

/// Tables whose last errors are kept.
const ERRORS_MAX: usize = 100;

/// Maintenance at one moment. Numbers count from its start.
#[derive(Clone, Debug, Default)]
pub struct MaintenanceStatus {
    /// Rounds over all tables.
    pub rounds: u64,
    /// What is being done now.
    pub now: Option<MaintenanceWork>,
    /// Groups of files that became one run.
    pub compactions: u64,
    /// Groups left alone because somebody else removed files of them first.
    pub compactions_overtaken: u64,
    /// Files that compactions read to their end.
    pub compacted_files_read: u64,
    /// Files that they committed.
    pub compacted_files_written: u64,
    /// Rows that they wrote.
    pub compacted_rows: u64,
    /// Bytes that they read.
    pub compacted_bytes_read: u64,
    /// Bytes of files that they committed.
    pub compacted_bytes_written: u64,
    /// Snapshots forgotten.
    pub snapshots_expired: u64,
    /// Files deleted: of forgotten snapshots, and orphans.
    pub files_deleted: u64,
    /// Work that failed.
    pub failures: u64,
    /// Why the last work on a table failed, by table as text; gone once some succeeds. The empty
    /// name stands for listing the tables.
    pub errors: BTreeMap<String, String>,
}

/// One piece of work under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceWork {
    /// On which table.
    pub table: TableIdent,
    /// What.
    pub kind: MaintenanceKind,
    /// Since when, in milliseconds since 1970-01-01 UTC.
    pub since_unix_ms: i64,
}

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceKind {
    /// Partitions that are too old are removed.
    Retention,
    /// Files are merged.
    Compaction,
    /// Old snapshots are forgotten.
    Expiry,
    /// Files that nobody names are looked for and deleted.
    Orphans,
}

impl MaintenanceKind {
    /// The name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retention => "retention",
            Self::Compaction => "compaction",
            Self::Expiry => "expiry",
            Self::Orphans => "orphans",
        }
    }
}

impl MaintenanceStatus {
    pub(super) fn succeeded(&mut self, table: &TableIdent) {
        self.errors.remove(&table.to_string());
    }

    pub(super) fn failed(&mut self, table: Option<&TableIdent>, error: &Error) {
        self.failures += 1;
        let name = table.map(ToString::to_string).unwrap_or_default();
        if self.errors.len() < ERRORS_MAX || self.errors.contains_key(&name) {
            self.errors.insert(name, error.message_with_sources());
        }
    }
}
