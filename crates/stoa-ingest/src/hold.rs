//! Flushing by command, and keeping flushes away from statements that rewrite a table.

use std::sync::Arc;

use stoa_error::Result;
use stoa_table::Table;
use tokio::sync::OwnedMutexGuard;

use crate::error::dropped;
use crate::ingest::{Ingest, Inner};

/// Keeps a table's rows from being flushed, for a statement that rewrites its files. The flush of
/// everything that was acknowledged before is done. Ends when dropped.
pub struct FlushHold {
    table: Table,
    inner: Arc<Inner>,
    /// `None` only while it is dropped.
    holding: Option<OwnedMutexGuard<()>>,
}

impl Ingest {
    /// Flushes all rows of `table` that are acknowledged now. Gives back the table with them.
    ///
    /// # Errors
    /// `NotFound` (42P01) for a dropped table; those of writing to it, after which the rows are
    /// still fresh.
    pub async fn flush_now(&self, table: &Table) -> Result<Table> {
        Ok(self.hold_flush(table).await?.table.clone())
    }

    /// Flushes all rows of `table` that are acknowledged now, and flushes none until the hold is
    /// dropped. Rows that come in meanwhile wait in memory, so this is not for long; and whoever
    /// holds must not wait for an append, which may itself wait for a flush.
    ///
    /// # Errors
    /// As [`Self::flush_now`].
    pub async fn hold_flush(&self, table: &Table) -> Result<FlushHold> {
        let inner = &self.inner;
        let state = inner.state(table)?;
        let holding = state.flushing.clone().lock_owned().await;
        let flushed = inner.flush(&state).await?.ok_or_else(|| dropped(table.ident()))?;
        Ok(FlushHold { table: flushed, inner: inner.clone(), holding: Some(holding) })
    }

    /// Forgets the fresh rows of a table that was just dropped. (The next flush would do it too.)
    pub async fn forget(&self, table: &Table) {
        if let Some(state) = self.inner.tables.get(table.uuid()) {
            self.inner.forget(&state).await;
        }
    }
}

impl FlushHold {
    /// The table with all rows in its files that were acknowledged before the hold.
    pub fn table(&self) -> &Table {
        &self.table
    }
}

impl Drop for FlushHold {
    fn drop(&mut self) {
        self.holding = None;
        self.inner.wake.notify_one();
    }
}
