//! A load that writes files.
//!
//! ```text
//! batches ─► collected to a run ─► sorted ─► ORC file ─┐
//!                                  sorted ─► ORC file ─┴─► one commit
//! ```
//! In: batches in any order. Out: sorted files that appear in the table together, or not at all.
//! Memory: one run that is collected, and [`RUNS_MAX`] that are sorted and written.
//!
//! Files of one load overlap; readers merge them, compaction makes them one.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_hql::batch::SortedRun;
use stoa_hql::{BulkLoad, CellBatch};
use stoa_table::{CommitOptions, WriteOptions, WrittenFiles};
use tokio::task::JoinHandle;

use crate::order::FileRows;
use crate::state::Inner;
use crate::table::CellTable;
use crate::write::with_revisions;

/// Runs that are sorted and written at a time.
const RUNS_MAX: usize = 2;

/// The part of a load's memory that one run may take: it is there once while it is collected and
/// [`RUNS_MAX`] times while it is sorted and written, each time with as much again at most.
const RUN_SHARE: usize = 6;

/// Writes the cells of a load as sorted files.
pub(crate) struct FileLoad {
    inner: Arc<Inner>,
    table: CellTable,
    held: Vec<CellBatch>,
    held_bytes: usize,
    runs: Runs,
}

/// Runs on their way into files, and those that arrived. Dropped, it deletes what it can.
#[derive(Default)]
struct Runs {
    writing: VecDeque<JoinHandle<Result<WrittenFiles>>>,
    written: Option<WrittenFiles>,
}

impl FileLoad {
    pub(crate) fn new(inner: Arc<Inner>, table: CellTable) -> Self {
        Self { inner, table, held: Vec::new(), held_bytes: 0, runs: Runs::default() }
    }

    async fn write_run(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        while self.runs.writing.len() >= RUNS_MAX {
            self.runs.wait_for_oldest().await?;
        }
        self.held_bytes = 0;
        let batches = std::mem::take(&mut self.held);
        let table = self.table.clone();
        let memory_max_bytes = self.inner.options.load_memory_bytes / RUN_SHARE;
        let run = write_run(table, batches, memory_max_bytes);
        self.runs.writing.push_back(task::spawn(run));
        Ok(())
    }
}

#[async_trait]
impl BulkLoad for FileLoad {
    async fn write(&mut self, cells: CellBatch) -> Result<()> {
        if cells.is_empty() {
            return Ok(());
        }
        self.held_bytes += cells.memory_bytes();
        self.held.push(with_revisions(&self.inner, cells));
        match self.held_bytes >= self.inner.options.load_memory_bytes / RUN_SHARE {
            true => self.write_run().await,
            false => Ok(()),
        }
    }

    async fn abandon(&mut self) -> u64 {
        self.held.clear();
        self.runs = Runs::default();
        0
    }

    async fn finish(mut self: Box<Self>) -> Result<()> {
        self.write_run().await?;
        while !self.runs.writing.is_empty() {
            self.runs.wait_for_oldest().await?;
        }
        self.inner.check_writable()?;
        let Some(written) = &self.runs.written else { return Ok(()) };
        written.commit(&CommitOptions::default()).await?;
        self.runs.written = None;
        Ok(())
    }
}

async fn write_run(
    table: CellTable,
    batches: Vec<CellBatch>,
    memory_max_bytes: usize,
) -> Result<WrittenFiles> {
    let options = WriteOptions { memory_max_bytes, sorted: true, ..WriteOptions::default() };
    let mut writer = table.table.writer(options)?;
    let sorted = task::spawn_blocking(move || SortedRun::new(batches)).await;
    for rows in FileRows::new(sorted.map_err(broke)?, table.layout) {
        writer.write(rows?).await?;
        // Encoding is work for the processor: others get their turn between batches.
        tokio::task::yield_now().await;
    }
    writer.finish().await
}

impl Runs {
    async fn wait_for_oldest(&mut self) -> Result<()> {
        let Some(run) = self.writing.pop_front() else { return Ok(()) };
        let files = run.await.map_err(broke)??;
        match &mut self.written {
            Some(written) => written.join(files),
            None => {
                self.written = Some(files);
                Ok(())
            }
        }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.writing.iter().for_each(JoinHandle::abort);
        let Some(written) = self.written.take() else { return };
        // Without a runtime, or without success, they are orphans, which maintenance finds.
        if tokio::runtime::Handle::try_current().is_ok() {
            task::spawn(async move {
                let _ = written.discard().await;
            });
        }
    }
}

fn broke(source: tokio::task::JoinError) -> Error {
    Error::internal("writing the cells of a load broke off").with_source(source)
}
