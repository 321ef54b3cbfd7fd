//! A load that goes through the log, in large records.
//!
//! In: batches in any order. Out: records of up to [`FRAME_BYTES`], several on their way at a time; what
//! a large value makes too large for a record becomes a file, in a commit of its own.
//! The cells of a record become visible when it is durable, all at once: so a load of one record is
//! visible as a whole or not at all, and of a larger one that breaks off the records stay that were
//! durable by then. A load that must be all or nothing however large it is writes files.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_hql::store::errors;
use stoa_hql::{BulkLoad, CellBatch};
use stoa_ingest::Ingest;
use tokio::task::JoinHandle;

use crate::state::Inner;
use crate::table::CellTable;
use crate::write::{RECORD_BYTES_MAX, append, with_revisions, write_file};

/// Bytes of memory of the cells of one record.
const FRAME_BYTES: usize = 8 << 20;

/// Records on their way at a time.
const FRAMES_MAX: usize = 3;

/// Writes the cells of a load to the log.
pub(crate) struct LogLoad {
    inner: Arc<Inner>,
    ingest: Ingest,
    table: CellTable,
    held: Vec<CellBatch>,
    held_bytes: usize,
    /// Each says how many cells it has when they are durable.
    frames: VecDeque<JoinHandle<Result<u64>>>,
    durable_cells: u64,
}

impl LogLoad {
    pub(crate) fn new(inner: Arc<Inner>, ingest: Ingest, table: CellTable) -> Self {
        let (held, frames) = (Vec::new(), VecDeque::new());
        Self { inner, ingest, table, held, held_bytes: 0, frames, durable_cells: 0 }
    }

    async fn write_frame(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        while self.frames.len() >= FRAMES_MAX {
            self.wait_for_oldest().await?;
        }
        self.inner.check_writable()?;
        self.held_bytes = 0;
        let batches = std::mem::take(&mut self.held);
        let (ingest, table) = (self.ingest.clone(), self.table.clone());
        self.frames.push_back(task::spawn(write(ingest, table, batches)));
        Ok(())
    }

    /// Waits for the record that is longest on its way. It stays in the queue meanwhile, so that it is
    /// given up if the load is.
    async fn wait_for_oldest(&mut self) -> Result<()> {
        let Some(frame) = self.frames.front_mut() else { return Ok(()) };
        let broke = |source| Error::internal("writing to the log broke off").with_source(source);
        let written = frame.await;
        self.frames.pop_front();
        self.durable_cells += written.map_err(broke)??;
        Ok(())
    }

    async fn write_all(&mut self) -> Result<()> {
        self.write_frame().await?;
        while !self.frames.is_empty() {
            self.wait_for_oldest().await?;
        }
        Ok(())
    }
}

/// Writes the cells of a record; how many they are. A value may be larger than a record of the log can
/// be: its cells become a file.
async fn write(ingest: Ingest, table: CellTable, batches: Vec<CellBatch>) -> Result<u64> {
    let cells = batches.iter().map(CellBatch::len).sum::<usize>() as u64;
    let bytes = batches.iter().map(CellBatch::data_bytes).sum::<usize>();
    match bytes <= RECORD_BYTES_MAX {
        true => append(&ingest, &table, batches).await?,
        false => write_file(&table, batches).await?,
    }
    Ok(cells)
}

impl Drop for LogLoad {
    fn drop(&mut self) {
        self.frames.iter().for_each(JoinHandle::abort);
    }
}

#[async_trait]
impl BulkLoad for LogLoad {
    async fn write(&mut self, cells: CellBatch) -> Result<()> {
        if cells.is_empty() {
            return Ok(());
        }
        // Not after it is full: whether another batch comes decides whether all is one record.
        if self.held_bytes >= FRAME_BYTES {
            self.write_frame().await?;
        }
        self.held_bytes += cells.memory_bytes();
        self.held.push(with_revisions(&self.inner, cells));
        Ok(())
    }

    async fn abandon(&mut self) -> u64 {
        self.held.clear();
        // Those on their way may arrive, so they are waited for.
        while !self.frames.is_empty() {
            let _ = self.wait_for_oldest().await;
        }
        self.durable_cells
    }

    async fn finish(mut self: Box<Self>) -> Result<()> {
        match self.write_all().await {
            Ok(()) => Ok(()),
            Err(error) => Err(errors::load_broke_off(error, self.abandon().await)),
        }
    }
}
