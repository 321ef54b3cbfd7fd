//! Compaction: cells that no reader can see any more are left out while files are merged.
//!
//! A merge of all files of a table keeps what a reader would see ([`Compaction::Full`]): markers go
//! with what they hide, versions beyond the limit go, counters become one value. A merge of some
//! files leaves out only what another cell of the same files hides or has written over, and what is
//! too old ([`Compaction::Partial`]).
//!
//! Cells that are in the log only take no part. A marker that a full compaction drops no longer hides
//! a cell that comes in later with an older timestamp; that is HQL's rule (docs/hql.md, Writing). It is a rule for
//! timestamps that somebody has set: **what was acknowledged before a marker stays hidden.** Of one log it is in files
//! before the marker is. Of the logs of others it may not be, so beside others a marker goes only where COMPACT has made
//! all of them bring their cells into files first, only with the files that there were then, and only if it was written
//! before the first of them did so: the flush of the last one also has what was written while the others were done, and
//! a marker in it may hide cells that are in no file yet. Counts are added up by the same rule. Merges in the background
//! leave alone what was written within the last hour ([`CellMergeHooks::in_background`]).
//!
//! Not here: which files are merged in the background (`stoa-table`), when (`stoa-ingest`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use stoa_error::{Error, Result};
use stoa_hql::lang::ast::CompactKind;
use stoa_hql::{CellReader, CompactScope, Compaction, ReadStep, TimestampSource};
use stoa_orc::Predicate;
use stoa_table::{
    CompactionGroup, CompactionOptions, CompactionWork, MergeHook, MergeHooks, Table,
};

use crate::catalog::cell_tables;
use crate::layout::{Layout, to_cells};
use crate::state::Inner;
use crate::table::CellTable;

/// How often files are merged anew that others have replaced meanwhile.
const TRIES: usize = 5;

/// Decides about cells while files of their table are merged; leaves tables of other kinds alone. Hand
/// it to [`stoa_ingest::MaintenanceOptions::hooks`] and [`CompactionWork::hooks`].
#[derive(Clone)]
pub struct CellMergeHooks {
    timestamps: Arc<TimestampSource>,
    of_all: OfAll,
}

/// What a merge of all files of a table is.
#[derive(Clone, Copy)]
enum OfAll {
    Kind(Compaction),
    /// A full one of what was written until [`LATE_MAX`] ago.
    Aged,
}

/// No write takes so long from its timestamp to the log, and from there into a file: longer than it waits for memory, and
/// for a log whose store is away. A merge in the background does not know what is under way, or in the log only.
const LATE_MAX: Duration = Duration::from_secs(3600);

impl CellMergeHooks {
    /// Hooks that ask this source how late it is.
    pub fn new(timestamps: Arc<TimestampSource>) -> Self {
        Self { timestamps, of_all: OfAll::Kind(Compaction::Full) }
    }

    /// Whether others may have cells of the tables in logs of their own: then no merge is a full one.
    #[must_use]
    pub fn beside_others(self, beside_others: bool) -> Self {
        let of_all = if beside_others { Compaction::Partial } else { Compaction::Full };
        Self { of_all: OfAll::Kind(of_all), ..self }
    }

    /// For merges while rows are written, of which nothing more is known: markers and counts of the last hour stay, as a
    /// cell that is older than a marker may still come into a file.
    #[must_use]
    pub fn in_background(self) -> Self {
        match self.of_all {
            OfAll::Kind(Compaction::Full) => Self { of_all: OfAll::Aged, ..self },
            _ => self,
        }
    }

    /// All that was written until then is in the files that are merged, and nothing is known of what came later.
    #[must_use]
    pub(crate) fn settled(self, until: Option<i64>) -> Self {
        let of_all = until.map_or(Compaction::Partial, Compaction::FullUntil);
        Self { of_all: OfAll::Kind(of_all), ..self }
    }
}

impl fmt::Debug for CellMergeHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CellMergeHooks")
    }
}

impl MergeHooks for CellMergeHooks {
    fn hook(&self, table: &Table, group: &CompactionGroup) -> Result<Option<Box<dyn MergeHook>>> {
        let Some(schema) = crate::layout::schema_of(table)? else { return Ok(None) };
        let late_max = i64::try_from(LATE_MAX.as_nanos()).unwrap_or(i64::MAX);
        let kind = match self.of_all {
            _ if !group.whole_partition => Compaction::Partial,
            OfAll::Kind(kind) => kind,
            OfAll::Aged => Compaction::FullUntil(self.timestamps.now_ns().saturating_sub(late_max)),
        };
        let reader = CellReader::compaction(&schema, kind, self.timestamps.now_ns(), 1);
        Ok(Some(Box::new(Hook { layout: Layout::of(table)?, reader, rows_in: 0, rows_out: 0 })))
    }
}

/// One merge. The rows come in the order of cells, so that one input is enough.
struct Hook {
    layout: Layout,
    reader: CellReader,
    rows_in: u64,
    rows_out: u64,
}

impl MergeHook for Hook {
    fn merge(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        self.rows_in += batch.num_rows() as u64;
        if batch.num_rows() == 0 {
            return Ok(batch);
        }
        let mut next = Some(to_cells(&batch)?);
        self.read(|| next.take().map(Some))
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        let rest = self.read(|| Some(None))?;
        Ok((rest.num_rows() > 0).then_some(rest))
    }

    fn dropped(&self) -> u64 {
        self.rows_in - self.rows_out
    }
}

impl Hook {
    /// What the reader has to say until it wants more than `input` gives.
    fn read(
        &mut self,
        mut input: impl FnMut() -> Option<Option<stoa_hql::CellBatch>>,
    ) -> Result<RecordBatch> {
        let mut out = Vec::new();
        loop {
            match self.reader.step()? {
                ReadStep::NeedsInput(nth) => match input() {
                    Some(batch) => self.reader.push(nth, batch),
                    None => break,
                },
                ReadStep::Batch(cells) => out.push(self.layout.to_rows(&cells)?),
                ReadStep::Finished => break,
            }
        }
        let joined = concat_batches(self.layout.schema(), &out)
            .map_err(|source| Error::internal("merged cells do not fit").with_source(source))?;
        self.rows_out += joined.num_rows() as u64;
        Ok(joined)
    }
}

/// Does what COMPACT asks for.
pub(crate) async fn compact(
    inner: &Inner,
    scope: &CompactScope,
    kind: Option<CompactKind>,
) -> Result<()> {
    let CompactScope::Table { table, .. } = scope else {
        for namespace in inner.warehouse.namespaces().await? {
            for table in cell_tables(&inner.warehouse, &namespace).await? {
                compact_table(inner, table, kind).await?;
            }
        }
        return Ok(());
    };
    let opened = CellTable::open(&inner.warehouse, table).await?;
    compact_table(inner, opened.table, kind).await
}

async fn compact_table(inner: &Inner, table: Table, kind: Option<CompactKind>) -> Result<()> {
    match kind {
        Some(CompactKind::Minor) => flushed(inner, &table).await.map(|_| ()),
        Some(CompactKind::Merging) => {
            let (table, work) = (flushed(inner, &table).await?.0, work(inner, None));
            table.compact(&CompactionOptions::default(), &work).await.map(|_| ())
        }
        Some(CompactKind::Major | CompactKind::Gc) | None => merge_all(inner, &table).await,
    }
}

/// The version of a table that has the cells in its files which anybody has acknowledged, and until when all that
/// was written is in them. Another process than a daemon cannot ask the daemons.
async fn flushed(inner: &Inner, table: &Table) -> Result<(Table, Option<i64>)> {
    let is_alone = inner.warehouse.catalog().cluster().is_none();
    match &inner.ingest {
        Some(ingest) if is_alone || ingest.has_others() => ingest.flush_settled(table).await,
        Some(ingest) => Ok((ingest.flush_now(table).await?, None)),
        None => {
            let settled = inner.options.timestamps.settled_with(|| inner.revisions.last());
            Ok((table.reload().await?, is_alone.then_some(settled)))
        }
    }
}

/// `settled`: until when all cells are in the files, if that is known; otherwise markers stay.
fn work(inner: &Inner, settled: Option<i64>) -> CompactionWork {
    let hooks = CellMergeHooks::new(Arc::clone(&inner.options.timestamps)).settled(settled);
    CompactionWork {
        memory_max_bytes: inner.options.compaction_memory_bytes,
        hooks: Some(Arc::new(hooks)),
        ..CompactionWork::default()
    }
}

/// Merges all files of a table into one run. Somebody else may be merging some of them: then again.
async fn merge_all(inner: &Inner, table: &Table) -> Result<()> {
    for _ in 0..TRIES {
        let (version, settled) = flushed(inner, table).await?;
        if merge_all_once(inner, version, settled).await? {
            return Ok(());
        }
    }
    Err(Error::conflict(format!("table {}: its files changed all the while", table.ident()))
        .with_hint("compact it again later"))
}

/// Merges the files of this version, and no later ones: cells that are in none of them may be older than a marker in
/// those. Says no where files were replaced meanwhile.
async fn merge_all_once(inner: &Inner, table: Table, settled: Option<i64>) -> Result<bool> {
    let options = CompactionOptions { full: true, ..CompactionOptions::default() };
    if table.plan_compaction(&options).await?.groups.iter().any(|group| group.sorts) {
        // Files that another engine wrote are not in order.
        table.compact(&options, &work(inner, None)).await?;
        return Ok(false);
    }
    let plan = table.plan_scan(&Predicate::always()).await?;
    if plan.files.is_empty() {
        return Ok(true);
    }
    let group = CompactionGroup {
        partition_text: String::new(),
        runs: plan.files.into_iter().map(|file| vec![file]).collect(),
        sorts: false,
        whole_partition: true,
    };
    let work = work(inner, settled);
    Ok(table.compact_group(&group, &options, &work).await?.overtaken == 0)
}
