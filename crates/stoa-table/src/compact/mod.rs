//! Compaction: many small or overlapping files become few in the order of the table.
//!
//! ```text
//! plan:  live files by partition ─► runs ─► tiers by size ─► groups          select, plan
//! run:   runs of a group ─► k-way merge ─► (hook) ─► writer ─► counts ─► one `replace` commit
//! ```
//! In: a table, what is worth the work, and memory, I/O share and cancellation to work under. Out:
//! the table with fewer files and the same rows.
//!
//! **Invariants:** rows in are rows out, counted before each commit (a hook says how many it
//! dropped); who deletes rows at the same time wins, and the group is left for next time; files
//! that were replaced stay until their snapshot expires, so scans that run are not disturbed.
//! Not here: when to compact (`stoa-query` schedules it), deleting replaced files (`expire`).

mod chain;
mod merge;
mod plan;
mod read;
mod run;
mod select;
mod sort;
mod work;

use std::collections::HashSet;

use futures::future::BoxFuture;
use stoa_error::Result;

use crate::Table;
pub use plan::{CompactionGroup, CompactionOptions, CompactionPlan};
use run::{Compacted, run};
pub use work::{CancelToken, CompactionProgress, CompactionWork, MergeHook, MergeHooks, Throttle};

/// Rounds after which compaction ends even if there is more to do: each round merges runs of one
/// tier into runs of the next.
const ROUNDS_MAX: usize = 20;

/// What a compaction did.
#[derive(Clone, Debug)]
pub struct CompactionOutcome {
    /// The table afterwards.
    pub table: Table,
    /// Groups that became one run.
    pub groups: u64,
    /// Groups left alone because somebody else removed files of them first.
    pub overtaken: u64,
    /// Files replaced.
    pub files_removed: u64,
    /// Files that hold their rows now.
    pub files_added: u64,
    /// Rows in the files that were added.
    pub rows: u64,
    /// Bytes of the files that were replaced.
    pub bytes_removed: u64,
    /// Bytes of the files that were added.
    pub bytes_added: u64,
}

impl Table {
    /// What [`Self::compact`] would begin with.
    ///
    /// # Errors
    /// `Invalid` for a property that makes no sense.
    pub fn plan_compaction<'a>(
        &'a self,
        options: &'a CompactionOptions,
    ) -> BoxFuture<'a, Result<CompactionPlan>> {
        Box::pin(async move { plan::plan(self, options, &HashSet::new()).await })
    }

    /// Compacts until nothing is worth it any more, group by group.
    ///
    /// # Errors
    /// As [`Self::plan_compaction`]; `Cancelled`; `Corrupt` where files cannot be read; `Internal`
    /// where rows do not add up. Groups committed before stay committed.
    pub fn compact<'a>(
        &'a self,
        options: &'a CompactionOptions,
        work: &'a CompactionWork,
    ) -> BoxFuture<'a, Result<CompactionOutcome>> {
        Box::pin(async move {
            let mut disordered = HashSet::new();
            let mut outcome = CompactionOutcome::none(self.reload().await?);
            for _ in 0..ROUNDS_MAX {
                let plan = plan::plan(&outcome.table, options, &disordered).await?;
                work.progress.add_groups_planned(plan.groups.len() as u64);
                let mut progress = false;
                for group in &plan.groups {
                    let compacted =
                        run(&plan.table, group, options.target_file_bytes, work).await?;
                    work.progress.add_groups_done(1);
                    progress |= outcome.add(self, compacted, &mut disordered);
                }
                outcome.table = self.reload().await?;
                if !progress {
                    break;
                }
            }
            Ok(outcome)
        })
    }

    /// Compacts one group of a plan that was made on this version.
    ///
    /// # Errors
    /// As [`Self::compact`].
    pub fn compact_group<'a>(
        &'a self,
        group: &'a CompactionGroup,
        options: &'a CompactionOptions,
        work: &'a CompactionWork,
    ) -> BoxFuture<'a, Result<CompactionOutcome>> {
        Box::pin(async move {
            let compacted = run(self, group, options.target_file_bytes, work).await?;
            work.progress.add_groups_done(1);
            let mut outcome = CompactionOutcome::none(self.clone());
            outcome.add(self, compacted, &mut HashSet::new());
            outcome.table = self.reload().await?;
            Ok(outcome)
        })
    }
}

impl CompactionOutcome {
    fn none(table: Table) -> Self {
        Self {
            table,
            groups: 0,
            overtaken: 0,
            files_removed: 0,
            files_added: 0,
            rows: 0,
            bytes_removed: 0,
            bytes_added: 0,
        }
    }

    /// Adds what became of a group; gives back whether another round may do more.
    fn add(&mut self, of: &Table, group: Compacted, disordered: &mut HashSet<String>) -> bool {
        match group {
            Compacted::Done(done) => {
                self.groups += 1;
                self.files_removed += done.removed_files;
                self.files_added += done.files;
                self.rows += done.rows;
                self.bytes_removed += done.removed_bytes;
                self.bytes_added += done.bytes;
                true
            }
            Compacted::Overtaken(why) => {
                tracing::debug!(table = %of.ident(), %why, "compaction was overtaken");
                self.overtaken += 1;
                false
            }
            Compacted::Disordered(file) => {
                tracing::warn!(table = %of.ident(), file, "data file is not in the order it claims");
                disordered.insert(file)
            }
        }
    }
}
