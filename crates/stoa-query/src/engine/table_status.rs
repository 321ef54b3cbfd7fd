//! What a table comes to, by its metadata alone.
//!
//! In: one version of a table. Out: sums that its snapshot's writer noted, and fresh rows. No file but
//! the metadata is read.

use stoa_table::Table;

use crate::engine::Engine;

/// One table, as `system.tables` and the console list it.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStatus {
    /// `rows`, or `cells` for a table of cells.
    pub kind: &'static str,
    /// Version of Iceberg's format.
    pub format_version: u8,
    /// The current snapshot; `None` where nothing was committed yet.
    pub snapshot_id: Option<i64>,
    /// When that was committed, milliseconds since 1970-01-01 UTC.
    pub committed_unix_ms: Option<i64>,
    /// Snapshots that are kept.
    pub snapshots: u64,
    /// Data files; `None` where their writer left the sum out, here and below.
    pub files: Option<u64>,
    /// Rows in files and fresh ones.
    pub rows: Option<u64>,
    /// Rows in the commit log and in no file yet.
    pub fresh_rows: u64,
    /// Bytes of data files.
    pub bytes: Option<u64>,
    /// Files that mark rows of others as deleted, as other engines write them.
    pub delete_files: Option<u64>,
    /// Columns or terms like `month(day)`.
    pub partitioned_by: Vec<String>,
    /// Columns, with `DESC` where that is so.
    pub sorted_by: Vec<String>,
    /// Its comment.
    pub comment: Option<String>,
}

impl Engine {
    /// What `table` comes to.
    pub fn table_status(&self, table: &Table) -> TableStatus {
        let fresh = self.ingest().and_then(|ingest| ingest.fresh_for(table).ok().flatten());
        let fresh_rows = fresh.map_or(0, |fresh| fresh.rows());
        let current = table.current_snapshot();
        let total = |key: &str| match &current {
            None => Some(0),
            Some(snapshot) => snapshot.summary.get(key).and_then(|text| text.parse::<u64>().ok()),
        };
        let is_cells = table.property(stoa_cells::KIND_PROPERTY) == Some(stoa_cells::KIND_CELLS);
        TableStatus {
            kind: if is_cells { "cells" } else { "rows" },
            format_version: table.format_version(),
            snapshot_id: current.as_ref().map(|snapshot| snapshot.id),
            committed_unix_ms: current.as_ref().map(|snapshot| snapshot.timestamp_ms),
            snapshots: table.snapshots().len() as u64,
            files: total("total-data-files"),
            rows: table.row_count().map(|rows| rows + fresh_rows),
            fresh_rows,
            bytes: total("total-files-size"),
            delete_files: total("total-delete-files"),
            partitioned_by: table.partition_terms().iter().map(ToString::to_string).collect(),
            sorted_by: table.sort_terms().iter().map(ToString::to_string).collect(),
            comment: table.comment().map(str::to_owned),
        }
    }
}
