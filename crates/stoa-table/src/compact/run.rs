//! Compacting one group: read, merge or sort, write, count, commit.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use stoa_error::{Error, Result};

use super::chain::FileChain;
use super::merge::Merge;
use super::plan::CompactionGroup;
use super::read::ReadLimits;
use super::sort::sort;
use super::work::{CompactionWork, MergeHook, Meter};
use crate::Table;
use crate::failpoint;
use crate::order::TableOrder;
use crate::rewrite::{RewriteOptions, RewriteOutcome, TableRewrite};
use crate::write::{CommitOutcome, WriteOptions};

/// The least that is read of a run at a time.
const WINDOW_BYTES_MIN: u64 = 64 << 10;

/// Files open at a time. Rows of a group are of one partition, unless its files are of an earlier
/// partitioning.
const OPEN_FILES_MAX: usize = 4;

/// How compacting a group ended.
pub(super) enum Compacted {
    /// It is one run now.
    Done(CommitOutcome),
    /// Somebody else removed files of it first. Nothing was changed.
    Overtaken(Error),
    /// This file is not in the order that it claims. Nothing was changed.
    Disordered(String),
}

/// Compacts `group`, planned on `table`.
pub(super) async fn run(
    table: &Table,
    group: &CompactionGroup,
    target_file_bytes: Option<u64>,
    work: &CompactionWork,
) -> Result<Compacted> {
    let write = WriteOptions {
        open_files_max: OPEN_FILES_MAX,
        memory_max_bytes: work.memory_max_bytes / 2,
        stripe_bytes_max: Some(work.memory_max_bytes / 4),
        target_file_bytes,
        within_limits: true,
        ..WriteOptions::default()
    };
    let mut rewrite = table.rewrite(RewriteOptions { write, ..RewriteOptions::default() })?;
    rewrite.remove(group.files())?;
    let mut job = Job {
        table,
        group,
        work,
        order: TableOrder::of(table),
        rows_read: 0,
        deleted: 0,
        dropped: 0,
    };
    let written = match job.write_rows(&mut rewrite).await {
        Ok(None) => job.check_rows(&rewrite),
        Ok(Some(disordered)) => {
            rewrite.abort().await?;
            return Ok(Compacted::Disordered(disordered));
        }
        Err(error) => Err(error),
    };
    if let Err(error) = written {
        // What cannot be deleted is an orphan; the first error is the one that matters.
        let _ = rewrite.abort().await;
        return Err(error);
    }
    if job.dropped == 0 {
        rewrite.keep_rows();
    }
    failpoint::at("compaction.merged").await?;
    Ok(match rewrite.commit().await? {
        RewriteOutcome::Committed(outcome) => {
            work.progress.add_files_written(outcome.files);
            work.progress.add_bytes_written(outcome.bytes);
            Compacted::Done(outcome)
        }
        RewriteOutcome::Outdated(outdated) => Compacted::Overtaken(outdated.why),
    })
}

struct Job<'a> {
    table: &'a Table,
    group: &'a CompactionGroup,
    work: &'a CompactionWork,
    order: Option<TableOrder>,
    rows_read: u64,
    /// Rows of the files that are deleted.
    deleted: u64,
    /// Rows that a hook dropped.
    dropped: u64,
}

impl Job<'_> {
    /// Writes all rows of the group; gives back the file that is not in order, if one is not.
    async fn write_rows(&mut self, rewrite: &mut TableRewrite) -> Result<Option<String>> {
        match self.order.take() {
            Some(order) if self.group.sorts => self.sort_rows(&order, rewrite).await?,
            Some(order) => return self.merge_rows(&order, rewrite).await,
            None => self.append_rows(rewrite).await?,
        }
        Ok(None)
    }

    async fn merge_rows(
        &mut self,
        order: &TableOrder,
        rewrite: &mut TableRewrite,
    ) -> Result<Option<String>> {
        let mut hook = match &self.work.hooks {
            Some(hooks) => hooks.hook(self.table, self.group)?,
            None => None,
        };
        let meter = Meter { work: self.work, table: self.table };
        let limits = self.read_limits(self.group.runs.len());
        let mut merge = match Merge::start(order, &self.group.runs, &limits, &meter).await? {
            Ok(merge) => merge,
            Err(disordered) => return Ok(Some(disordered)),
        };
        loop {
            match merge.next(&meter).await {
                Ok(Some(batch)) => self.write_merged(batch, &mut hook, rewrite).await?,
                Ok(None) => break,
                Err(error) => {
                    return merge.disordered().map(|file| Some(file.to_owned())).ok_or(error);
                }
            }
        }
        self.deleted += merge.deleted_rows();
        if let Some(mut hook) = hook {
            if let Some(rest) = hook.finish()? {
                self.write(rest, rewrite).await?;
            }
            self.dropped = hook.dropped();
        }
        Ok(None)
    }

    async fn write_merged(
        &mut self,
        batch: RecordBatch,
        hook: &mut Option<Box<dyn MergeHook>>,
        rewrite: &mut TableRewrite,
    ) -> Result<()> {
        self.rows_read += batch.num_rows() as u64;
        let batch = match hook {
            Some(hook) => hook.merge(batch)?,
            None => batch,
        };
        self.write(batch, rewrite).await
    }

    /// Writes sorted stretches, each to a file of its own.
    async fn sort_rows(&mut self, order: &TableOrder, rewrite: &mut TableRewrite) -> Result<()> {
        // Keys and the sorted copy take about as much again as the rows.
        let stretch_bytes = self.work.memory_max_bytes / 6;
        let mut chain = self.chain();
        let meter = Meter { work: self.work, table: self.table };
        let (mut held, mut held_bytes) = (VecDeque::new(), 0);
        loop {
            let batch = chain.next(&meter).await?;
            let ended = batch.is_none();
            if let Some(batch) = batch {
                self.rows_read += batch.num_rows() as u64;
                held_bytes += batch.get_array_memory_size();
                held.push_back(batch);
            }
            if !held.is_empty() && (ended || held_bytes >= stretch_bytes) {
                let unsorted: Vec<RecordBatch> = held.drain(..).collect();
                for batch in sort(order, &unsorted)? {
                    self.write(batch, rewrite).await?;
                }
                rewrite.roll().await?;
                held_bytes = 0;
            }
            if ended {
                self.deleted += chain.deleted_rows();
                return Ok(());
            }
        }
    }

    /// Writes the rows as they come.
    async fn append_rows(&mut self, rewrite: &mut TableRewrite) -> Result<()> {
        let mut chain = self.chain();
        let meter = Meter { work: self.work, table: self.table };
        while let Some(batch) = chain.next(&meter).await? {
            self.rows_read += batch.num_rows() as u64;
            self.write(batch, rewrite).await?;
        }
        self.deleted += chain.deleted_rows();
        Ok(())
    }

    async fn write(&self, batch: RecordBatch, rewrite: &mut TableRewrite) -> Result<()> {
        self.work.progress.add_rows_written(batch.num_rows() as u64);
        rewrite.write(batch).await
    }

    fn chain(&self) -> FileChain {
        let files: Vec<_> = self.group.files().cloned().collect();
        FileChain::new(&files, self.read_limits(1))
    }

    fn read_limits(&self, runs: usize) -> ReadLimits {
        // A quarter for encoded bytes; what they decode to takes about as much again, or more.
        let share = self.work.memory_max_bytes / (4 * runs.max(1));
        let window_bytes = u64::try_from(share).unwrap_or(u64::MAX).max(WINDOW_BYTES_MIN);
        ReadLimits { schema: self.table.schema(), window_bytes }
    }

    /// Rows in must be rows out.
    fn check_rows(&self, rewrite: &TableRewrite) -> Result<()> {
        let read = self.rows_read;
        let (planned, written) = (self.group.rows(), rewrite.rows());
        if planned == read + self.deleted && read.checked_sub(self.dropped) == Some(written) {
            return Ok(());
        }
        Err(Error::internal(format!(
            "table {}, partition {:?}: compaction was given up because rows do not add up",
            self.table.ident(),
            self.group.partition_text
        ))
        .with_detail(format!(
            "{planned} rows in the files, {read} read, {} deleted, {} dropped on purpose, {written} \
             written",
            self.deleted, self.dropped
        ))
        .with_hint("nothing was changed; please report this"))
    }
}
