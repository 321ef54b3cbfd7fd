//! Durable data files on their way into a table.

use std::sync::Arc;

use futures::future::BoxFuture;
use iceberg::spec::DataFile;
use stoa_error::{Error, Result};

use crate::Table;
use crate::commit::Ended;
use crate::snapshot::{self, CommitOptions, Delta, NewFiles, Removal, Stop};
use crate::writers::AtWork;

/// What a commit did.
#[derive(Clone, Debug)]
pub struct CommitOutcome {
    /// The table with the rows in it; unchanged if there were none.
    pub table: Table,
    /// Rows added.
    pub rows: u64,
    /// Data files added.
    pub files: u64,
    /// Bytes of those files.
    pub bytes: u64,
    /// Rows in the files that were removed.
    pub removed_rows: u64,
    /// Data files removed.
    pub removed_files: u64,
    /// Bytes of those files.
    pub removed_bytes: u64,
    /// The rows were in the table before: an earlier commit of the same files, or one that had
    /// brought the same stretch of the log. Nothing was added or removed now.
    pub already_committed: bool,
}

/// Files that are whole and durable, but in no snapshot yet: what [`crate::TableWriter::finish`]
/// gives. They can be committed again and again until it is certain that they are in the table;
/// they get there once. Dropped, they stay behind as orphans.
#[derive(Clone, Debug)]
pub struct WrittenFiles {
    table: Table,
    files: NewFiles,
    /// The same for every attempt, by which a commit that was made is recognised.
    snapshot_id: i64,
    /// Their writers, which have not ended before the files are in the table.
    at_work: Vec<Arc<AtWork>>,
}

impl WrittenFiles {
    pub(crate) fn new(table: Table, files: NewFiles, at_work: Vec<Arc<AtWork>>) -> Self {
        let snapshot_id = table.new_snapshot_id();
        Self { table, files, snapshot_id, at_work }
    }

    /// Rows in the files.
    pub fn rows(&self) -> u64 {
        self.files.files.iter().map(DataFile::record_count).sum()
    }

    /// How many files.
    pub fn files(&self) -> u64 {
        self.files.files.len() as u64
    }

    /// Bytes of the files.
    pub fn bytes(&self) -> u64 {
        self.files.files.iter().map(DataFile::file_size_in_bytes).sum()
    }

    /// The literal locations of the files.
    pub fn locations(&self) -> impl Iterator<Item = &str> {
        self.files.files.iter().map(DataFile::file_path)
    }

    /// Adds the files of another writer of the same table, to be committed together with these.
    ///
    /// # Errors
    /// `Internal` where the writers knew different schemas or partitionings of the table.
    pub fn join(&mut self, other: Self) -> Result<()> {
        let alike = self.table.uuid() == other.table.uuid()
            && self.files.schema == other.files.schema
            && self.files.spec == other.files.spec;
        if !alike {
            return Err(Error::internal(format!(
                "table {}: files of different versions cannot be committed together",
                self.table.ident()
            )));
        }
        self.files.files.extend(other.files.files);
        self.at_work.extend(other.at_work);
        Ok(())
    }

    /// Adds the files to the table as one snapshot. A staged table appears in the catalog now.
    /// Without files an existing table gets no snapshot, but log positions move all the same.
    ///
    /// After an error whose outcome is not known (`Unavailable`), call it again: if the files are
    /// in the table by then, it says so.
    ///
    /// # Errors
    /// `Conflict` where other writers won too often, the table was replaced, or it is at another
    /// log position than was expected; `NotFound` where it was dropped; `AlreadyExists` where a
    /// staged table's name was taken; `Invalid` for log positions that go backwards.
    pub fn commit<'a>(
        &'a self,
        options: &'a CommitOptions,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        Box::pin(async move {
            let delta = Delta {
                snapshot_id: self.snapshot_id,
                added: &self.files,
                removal: Removal::Nothing,
                same_rows: false,
                once: true,
                seen: &self.table,
                reads: None,
                options,
            };
            match snapshot::commit(&self.table, delta).await? {
                Ended::Committed(table) => Ok(self.outcome(table)),
                Ended::Stopped(Stop::AlreadyIn(table)) => Ok(CommitOutcome::already(table)),
                Ended::Stopped(Stop::Nothing(table)) => Ok(CommitOutcome::nothing(table)),
                // An append depends on nothing that could be out of date.
                Ended::Stopped(Stop::Outdated { why, .. }) => Err(why),
            }
        })
    }

    /// Deletes the files. Only for files that are certain not to be in the table.
    ///
    /// # Errors
    /// `Unavailable` where the store fails; files may stay behind as orphans then.
    pub fn discard(self) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let locations: Vec<String> = self.locations().map(str::to_owned).collect();
            self.table.warehouse().files().delete(&locations).await?;
            Ok(())
        })
    }

    /// Whether the files surely are, or were, in `table`.
    pub(crate) fn is_in(&self, table: &Table) -> bool {
        table.metadata().snapshot_by_id(self.snapshot_id).is_some()
    }

    /// Deletes the files unless they are in `table`. What cannot be deleted is an orphan.
    pub(crate) async fn discard_unless_in(self, table: &Table) {
        if self.is_in(table) {
            return;
        }
        if let Err(error) = self.discard().await {
            tracing::debug!(table = %table.ident(), %error, "files stay behind");
        }
    }

    pub(crate) fn new_files(&self) -> &NewFiles {
        &self.files
    }

    pub(crate) fn snapshot_id(&self) -> i64 {
        self.snapshot_id
    }

    /// What a commit that made `table` did.
    pub(crate) fn outcome(&self, table: Table) -> CommitOutcome {
        let snapshot = table.metadata().snapshot_by_id(self.snapshot_id);
        let said = |key: &str| {
            let summary = &snapshot?.summary().additional_properties;
            summary.get(key)?.parse().ok()
        };
        CommitOutcome {
            rows: self.rows(),
            files: self.files(),
            bytes: self.bytes(),
            removed_rows: said("deleted-records").unwrap_or(0),
            removed_files: said("deleted-data-files").unwrap_or(0),
            removed_bytes: said("removed-files-size").unwrap_or(0),
            ..CommitOutcome::nothing(table)
        }
    }
}

impl CommitOutcome {
    pub(crate) fn nothing(table: Table) -> Self {
        Self {
            table,
            rows: 0,
            files: 0,
            bytes: 0,
            removed_rows: 0,
            removed_files: 0,
            removed_bytes: 0,
            already_committed: false,
        }
    }

    pub(crate) fn already(table: Table) -> Self {
        Self { already_committed: true, ..Self::nothing(table) }
    }
}
