//! Commits that take files away: DELETE and UPDATE by rewriting, TRUNCATE, INSERT OVERWRITE.
//!
//! ```text
//! plan_scan ─► files that may match ─► read ─► rows that stay ──► write ─┐
//!                     └──────────────► remove ───────────────────────────┴─► commit
//! ```
//! In: files of one version of the table to be removed, and rows to be written in their place. Out:
//! one snapshot that shows all of it, or none of it and the reason.
//!
//! **Invariants:** a file is removed only if it is still there; rows that others added stay, and
//! under [`Isolation::Serializable`] there are none that the change should have seen.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use futures::future::BoxFuture;
use iceberg::spec::DataFile;
use stoa_error::{Error, Result};
use stoa_orc::Predicate;

use crate::Table;
use crate::commit::{Ended, is_refusal};
use crate::scan::{Coverage, ScanFile};
use crate::snapshot::{self, CommitOptions, Delta, Removal, Stop};
use crate::write::{CommitOutcome, TableWriter, WriteOptions, WrittenFiles};

/// Which concurrent commits a change can live with.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Isolation {
    /// Rows added since the table was read stay unchanged, even if the change would have been about
    /// them.
    #[default]
    Snapshot,
    /// No file was added since the table was read that may hold rows matching this predicate (that
    /// of the DELETE or UPDATE). Files of a compaction hold no new rows and do not count.
    Serializable(Predicate),
}

/// How files are replaced.
#[derive(Clone, Debug, Default)]
pub struct RewriteOptions {
    /// How rows are written, and what the commit carries.
    pub write: WriteOptions,
    /// Which concurrent commits are tolerated.
    pub isolation: Isolation,
    /// Versions of other tables that the change was decided on; see [`CommitOptions::reads`].
    pub reads: Vec<Table>,
}

/// How a rewrite ended without an error.
#[derive(Debug)]
#[must_use]
pub enum RewriteOutcome {
    /// It is in the table.
    Committed(CommitOutcome),
    /// Somebody else changed what it was decided on. Nothing was committed and what was written is
    /// deleted: read the table again and decide anew.
    Outdated(Outdated),
}

/// Why a rewrite has to be decided anew.
#[derive(Debug)]
pub struct Outdated {
    /// The table as it is now.
    pub table: Table,
    /// A `Conflict` (40001) that says who did what.
    pub why: Error,
}

impl RewriteOutcome {
    /// What was committed; being outdated as its `Conflict` error.
    ///
    /// # Errors
    /// [`Outdated::why`].
    pub fn committed(self) -> Result<CommitOutcome> {
        match self {
            Self::Committed(outcome) => Ok(outcome),
            Self::Outdated(outdated) => Err(outdated.why),
        }
    }
}

/// Files being replaced; see the module's invariants. Dropped before [`Self::commit`], it has
/// changed nothing.
pub struct TableRewrite {
    table: Table,
    writer: TableWriter,
    commit: CommitOptions,
    isolation: Isolation,
    scope: Scope,
    same_rows: bool,
}

/// What is removed.
enum Scope {
    Files(HashSet<String>),
    Everything,
    /// Partitions that rows were written to.
    Written,
    Matching(Predicate),
    WholePartitions(Predicate),
}

impl Table {
    /// Begins to replace files of this version of the table.
    ///
    /// # Errors
    /// As [`Table::writer`].
    pub fn rewrite(&self, options: RewriteOptions) -> Result<TableRewrite> {
        let RewriteOptions { mut write, isolation, reads } = options;
        let commit = CommitOptions {
            summary: std::mem::take(&mut write.summary),
            log: std::mem::take(&mut write.log),
            reads,
        };
        Ok(TableRewrite {
            writer: self.writer(write)?,
            table: self.clone(),
            commit,
            isolation,
            scope: Scope::Files(HashSet::new()),
            same_rows: false,
        })
    }

    /// The isolation of `command` (`delete`, `update` or `merge`) on rows matching `predicate`, as
    /// the table property `write.<command>.isolation-level` says; serializable if it says nothing.
    ///
    /// # Errors
    /// `Invalid` for a level that does not exist.
    pub fn isolation(&self, command: &str, predicate: Predicate) -> Result<Isolation> {
        let key = format!("write.{command}.isolation-level");
        match self.property(&key).unwrap_or("serializable") {
            "serializable" => Ok(Isolation::Serializable(predicate)),
            "snapshot" => Ok(Isolation::Snapshot),
            other => Err(Error::invalid(format!(
                "table {}: property {key} = {other:?} cannot be used",
                self.ident()
            ))
            .with_hint("choose serializable or snapshot")),
        }
    }

    /// Those of `files` of which every row matches `predicate`, and the others: the former can be
    /// removed by a DELETE without being read.
    pub fn split_covered(
        &self,
        files: Vec<Arc<ScanFile>>,
        predicate: &Predicate,
    ) -> (Vec<Arc<ScanFile>>, Vec<Arc<ScanFile>>) {
        let coverage = Coverage::new(self, predicate.clone());
        files.into_iter().partition(|file| coverage.covers(file))
    }
}

impl TableRewrite {
    /// Removes these files, which a scan of the version that the rewrite was begun on has planned.
    ///
    /// # Errors
    /// `Internal` after [`Self::truncate`] or [`Self::replace_partitions`].
    pub fn remove<'a>(&mut self, files: impl IntoIterator<Item = &'a Arc<ScanFile>>) -> Result<()> {
        let Scope::Files(removed) = &mut self.scope else { return Err(self.scope_is_set()) };
        removed.extend(files.into_iter().map(|file| file.location.clone()));
        Ok(())
    }

    /// Removes all files of the version that the rewrite was begun on; those that others add until
    /// the commit stay.
    ///
    /// # Errors
    /// `Internal` after another kind of removal.
    pub fn truncate(&mut self) -> Result<()> {
        self.set_scope(Scope::Everything)
    }

    /// Removes all files of the partitions that rows are written to, in the version that the rewrite
    /// was begun on; others stay (INSERT OVERWRITE, dynamic).
    ///
    /// # Errors
    /// `Internal` after another kind of removal.
    pub fn replace_written_partitions(&mut self) -> Result<()> {
        // Without partitioning there is one partition, the table.
        match self.table.partition_spec().is_unpartitioned() {
            true => self.truncate(),
            false => self.set_scope(Scope::Written),
        }
    }

    /// Removes, at the commit, all files that `predicate` covers (INSERT OVERWRITE … PARTITION,
    /// static); rows written must match it. A file of which it matches some rows only fails the
    /// commit.
    ///
    /// # Errors
    /// `Internal` after another kind of removal.
    pub fn replace_partitions(&mut self, predicate: Predicate) -> Result<()> {
        self.set_scope(Scope::Matching(predicate))
    }

    /// Removes, at the commit, all files of partitions in which every row must match `predicate`.
    pub(crate) fn remove_whole_partitions(&mut self, predicate: Predicate) -> Result<()> {
        self.set_scope(Scope::WholePartitions(predicate))
    }

    /// Declares that the rows written are those of the files removed.
    pub(crate) fn keep_rows(&mut self) {
        self.same_rows = true;
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.writer.rows()
    }

    /// Bytes that unfinished files hold in memory now.
    pub fn memory_bytes(&self) -> usize {
        self.writer.memory_bytes()
    }

    /// Takes rows; see [`TableWriter::write`].
    ///
    /// # Errors
    /// As [`TableWriter::write`].
    pub fn write(&mut self, batch: RecordBatch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.writer.write(batch).await })
    }

    /// Ends all open files: rows that follow go to new ones.
    pub(crate) async fn roll(&mut self) -> Result<()> {
        self.writer.roll().await
    }

    /// Ends all files, so that nothing of them stays in memory: rows that follow go to new ones.
    ///
    /// # Errors
    /// As [`TableWriter::write`].
    pub fn end_files(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.writer.end_files().await })
    }

    /// Takes over the rows of another rewrite of the same table, which removes nothing and has ended its
    /// files.
    ///
    /// # Errors
    /// `Internal` where it is not one of those.
    pub fn take_over(&mut self, other: Self) -> Result<()> {
        if !matches!(&other.scope, Scope::Files(files) if files.is_empty()) {
            return Err(self.scope_is_set());
        }
        self.writer.take_over(other.writer)
    }

    /// Finishes the files and commits removal and rows as one snapshot. If there is nothing to
    /// remove and nothing to add, the table stays as it is.
    ///
    /// # Errors
    /// As [`WrittenFiles::commit`]; `Invalid` where the predicate of
    /// [`Self::replace_partitions`] does not fit files or rows; `Unsupported` where files that
    /// are to be removed have row-level deletes.
    pub fn commit(self) -> BoxFuture<'static, Result<RewriteOutcome>> {
        Box::pin(async move {
            let (finished, removal) = Finished::of(self).await?;
            let ended = snapshot::commit(&finished.table, finished.delta(removal)).await;
            let Finished { table, written, .. } = finished;
            match ended {
                Ok(Ended::Committed(table)) => {
                    Ok(RewriteOutcome::Committed(written.outcome(table)))
                }
                Ok(Ended::Stopped(Stop::Nothing(table))) => {
                    Ok(RewriteOutcome::Committed(CommitOutcome::nothing(table)))
                }
                Ok(Ended::Stopped(Stop::AlreadyIn(table))) => {
                    written.discard_unless_in(&table).await;
                    Ok(RewriteOutcome::Committed(CommitOutcome::already(table)))
                }
                Ok(Ended::Stopped(Stop::Outdated { table, why })) => {
                    written.discard_unless_in(&table).await;
                    Ok(RewriteOutcome::Outdated(Outdated { table, why }))
                }
                Err(error) => {
                    if is_refusal(&error) {
                        written.discard_unless_in(&table).await;
                    }
                    Err(error)
                }
            }
        })
    }

    /// As [`Self::commit`] for several tables of one warehouse, each once: in one transaction of the
    /// catalog, so that all of them change, or none.
    ///
    /// # Errors
    /// As [`Self::commit`], and `Conflict` (40001) where one of them is outdated. Nothing was committed
    /// then, unless the catalog cannot tell (08007).
    pub fn commit_all(rewrites: Vec<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let (mut finished, mut removals) = (Vec::new(), Vec::new());
            let mut rewrites = rewrites.into_iter();
            while let Some(rewrite) = rewrites.next() {
                match Finished::of(rewrite).await {
                    Ok((done, removal)) => {
                        finished.push(done);
                        removals.push(removal);
                    }
                    Err(error) => {
                        for rewrite in rewrites {
                            // What cannot be deleted is an orphan.
                            let _ = rewrite.abort().await;
                        }
                        discard(finished).await;
                        return Err(error);
                    }
                }
            }
            let deltas = finished
                .iter()
                .zip(removals)
                .map(|(done, removal)| (&done.table, done.delta(removal)))
                .collect();
            let ended = snapshot::commit_together(deltas).await;
            if ended.as_ref().is_err_and(is_refusal) {
                discard(finished).await;
            }
            ended
        })
    }

    /// Gives up: deletes what was written, as far as possible.
    ///
    /// # Errors
    /// `Unavailable` where the store fails; files may stay behind as orphans then.
    pub fn abort(self) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move { self.writer.abort().await })
    }

    fn set_scope(&mut self, scope: Scope) -> Result<()> {
        match &self.scope {
            Scope::Files(files) if files.is_empty() => self.scope = scope,
            _ => return Err(self.scope_is_set()),
        }
        Ok(())
    }

    fn scope_is_set(&self) -> Error {
        Error::internal(format!(
            "table {}: one commit removes files in two different ways",
            self.table.ident()
        ))
    }
}

impl std::fmt::Debug for TableRewrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableRewrite({}, {} rows)", self.table.ident(), self.rows())
    }
}

/// A rewrite whose files are whole.
struct Finished {
    table: Table,
    written: WrittenFiles,
    commit: CommitOptions,
    /// Rows that must not have been added since.
    reads: Option<Coverage>,
    same_rows: bool,
}

impl Finished {
    /// Ends the files; what the commit removes depends on where rows were written.
    async fn of(rewrite: TableRewrite) -> Result<(Self, Removal)> {
        let TableRewrite { table, writer, commit, isolation, scope, same_rows } = rewrite;
        let written = writer.finish().await?;
        let reads = match isolation {
            Isolation::Snapshot => None,
            Isolation::Serializable(predicate) => Some(Coverage::new(&table, predicate)),
        };
        let removal = removal(&table, scope, &written);
        Ok((Self { table, written, commit, reads, same_rows }, removal))
    }

    fn delta(&self, removal: Removal) -> Delta<'_> {
        Delta {
            snapshot_id: self.written.snapshot_id(),
            added: self.written.new_files(),
            removal,
            same_rows: self.same_rows,
            once: false,
            seen: &self.table,
            reads: self.reads.as_ref(),
            options: &self.commit,
        }
    }
}

/// Deletes the files of rewrites that are not in their tables.
async fn discard(finished: Vec<Finished>) {
    for Finished { table, written, .. } in finished {
        written.discard_unless_in(&table).await;
    }
}

fn removal(table: &Table, scope: Scope, written: &WrittenFiles) -> Removal {
    match scope {
        Scope::Files(files) if files.is_empty() => Removal::Nothing,
        Scope::Files(files) => Removal::Files(files),
        Scope::Everything => Removal::Everything,
        Scope::Written => Removal::Partitions {
            spec_id: table.partition_spec().spec_id(),
            values: written.new_files().files.iter().map(DataFile::partition).cloned().collect(),
        },
        Scope::Matching(predicate) => Removal::Matching(Coverage::new(table, predicate)),
        Scope::WholePartitions(predicate) => {
            Removal::WholePartitions(Coverage::new(table, predicate))
        }
    }
}
