//! Bringing fresh rows into data files.
//!
//! ```text
//! seal ─► write sorted files ─► commit: rows + position ─► drop the rows ─► release the log
//!   1             2                        3                     4               5
//! ```
//! A process that dies before 3 has left files that no snapshot names; its rows are in the log. One
//! that dies after 3 replays from the position that 3 recorded. The commit is conditional on the
//! position that the rows begin at, so no step can be done twice.
//!
//! A commit whose outcome is unknown needs nothing special: the next flush reads the position of
//! the table, and begins there.

use arrow_array::RecordBatch;
use stoa_env::failpoint;
use stoa_error::{Error, Result};
use stoa_table::{LogAdvance, Table, TableWriter, WriteOptions};

use crate::error::injected;
use crate::fresh::FlushSet;
use crate::inner::Inner;
use crate::locate::locate;
use crate::project::project;
use crate::sorted::{SortedRows, sorted};
use crate::tables::TableState;

impl Inner {
    /// Flushes all rows that are there now. Whoever calls holds `state.flushing`. Gives back the
    /// table with the rows in it; `None` where it does not exist any more, whose rows are forgotten
    /// then.
    ///
    /// # Errors
    /// Those of the table's writer and of the log. Rows that are not flushed stay fresh.
    pub(crate) async fn flush(&self, state: &TableState) -> Result<Option<Table>> {
        // How far to go is decided before the table is read: so the version that is read knows the
        // schemas of all the rows, whose writers had read it before.
        let end = state.fresh.mark();
        // What is flushed must be durable in the log: else the log could end, after a crash, before
        // a position that a table is at, and give that position out again.
        let synced = self.log.sync(end).await;
        // A log that has stopped is no reason to keep the rows from their table that it has.
        let flushed = self.flush_until(state, end.min(self.log.durable_end())).await;
        let result = flushed.and_then(|table| synced.map(|()| table));
        if let Err(error) = &result {
            tracing::warn!(table = %state.ident(), %error, "flush failed; its rows stay fresh");
            state.failed(error, self.options.retry_wait_max);
        }
        result
    }

    async fn flush_until(&self, state: &TableState, until: u64) -> Result<Option<Table>> {
        let mut table = None;
        loop {
            let current = match table {
                Some(table) => table,
                None => match locate(&self.warehouse, state.uuid(), &state.ident()).await? {
                    Some(found) => found,
                    None => {
                        self.forget(state).await;
                        return Ok(None);
                    }
                },
            };
            state.seen(&current, self.options.flush);
            let recorded = self.position(&current)?;
            self.committed(state, recorded);
            check_whole(state, recorded)?;
            let Some(set) = state.fresh.seal(recorded, state.limits().bytes, || until) else {
                return Ok(Some(current));
            };
            table = Some(self.flush_set(state, current, recorded, set).await?);
        }
    }

    /// Flushes one set of rows, which begins at the table's position `from`.
    pub(crate) async fn flush_set(
        &self,
        state: &TableState,
        table: Table,
        from: u64,
        set: FlushSet,
    ) -> Result<Table> {
        failpoint::at("flush.sealed").await.map_err(injected)?;
        let FlushSet { chunks, to } = set;
        let schema = table.schema();
        let batches = chunks.iter().map(|chunk| match chunk.schema_id() == table.schema_id() {
            true => Ok(chunk.batch().clone()),
            false => project(chunk.batch(), &schema),
        });
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let advance = LogAdvance { log: self.log.id().to_owned(), from: Some(from), to };
        let table = self.write(table, batches, advance).await?;
        self.committed(state, to);
        state.flushed(rows);
        failpoint::at("flush.dropped").await.map_err(injected)?;
        self.release().await;
        failpoint::at("flush.released").await.map_err(injected)?;
        Ok(table)
    }

    /// Writes `batches` sorted, in one commit.
    async fn write(
        &self,
        table: Table,
        batches: Vec<RecordBatch>,
        advance: LogAdvance,
    ) -> Result<Table> {
        let options = WriteOptions {
            memory_max_bytes: self.options.flush_memory_bytes,
            log: vec![advance],
            within_limits: true,
            sorted: !table.sort_terms().is_empty(),
            ..WriteOptions::default()
        };
        let mut writer = table.writer(options)?;
        let order = self.options.order.clone();
        let sort = move || sorted(&table, batches, order.as_deref());
        let sorted = self.env().spawn_blocking(sort).await;
        if let Err(error) = write_all(&mut writer, sorted.map_err(panicked)??).await {
            // The rows stay fresh; files that nobody will name need not stay.
            let _ = writer.abort().await;
            return Err(error);
        }
        let committed = writer.commit().await?;
        failpoint::at("flush.after_commit").await.map_err(injected)?;
        Ok(committed.table)
    }

    /// Drops rows that are in a committed snapshot.
    pub(crate) fn committed(&self, state: &TableState, position: u64) {
        let freed = state.fresh.committed(position);
        if freed > 0 {
            self.budget.give_back(freed);
        }
    }

    /// Forgets the rows of a table that does not exist any more.
    pub(crate) async fn forget(&self, state: &TableState) {
        let (freed, rows) = state.fresh.close();
        self.budget.give_back(freed);
        self.tables.remove(state.uuid());
        if rows > 0 {
            tracing::info!(table = %state.ident(), rows, "fresh rows of a dropped table are gone");
        }
        self.release().await;
    }

    /// Lets the log go of what no table needs for a replay.
    pub(crate) async fn release(&self) {
        // Read before the tables are looked at: a row before it is in its table's store by now
        // (rows get their positions under the store's lock), or it is in a data file.
        let mut needed = self.log.durable_end().min(self.unresolved_from);
        for state in self.tables.all() {
            needed = needed.min(state.fresh.first_position().unwrap_or(u64::MAX));
        }
        if let Some(outbox) = &self.outbox {
            outbox.drop_before(needed);
        }
        if let Err(error) = self.log.release(needed).await {
            tracing::warn!(%error, "the log keeps what it could let go of");
        }
    }

    /// The position of `table` in this engine's log.
    pub(crate) fn position(&self, table: &Table) -> Result<u64> {
        Ok(table.log_positions()?.get(self.log.id()).copied().unwrap_or(0))
    }
}

/// Refuses to flush from `position` on where rows behind it would be left out.
///
/// # Errors
/// `Corrupt`. The rows stay fresh, and in the log.
pub(crate) fn check_whole(state: &TableState, position: u64) -> Result<()> {
    let Some(first) = state.fresh.torn(position) else { return Ok(()) };
    let table = state.ident();
    Err(Error::corrupt(format!(
        "table {table} is at position {position} of the commit log, inside of the rows from {first} on, which are one batch here"
    ))
    .with_detail("nothing is lost: these rows are in the log, and are not flushed")
    .with_hint("restart the server, which reads the log again from that position"))
}

async fn write_all(writer: &mut TableWriter, sorted: SortedRows) -> Result<()> {
    for batch in sorted {
        writer.write(batch?).await?;
        // Encoding is work for the processor: others get their turn between batches.
        tokio::task::yield_now().await;
    }
    failpoint::at("flush.before_commit").await.map_err(injected)
}

fn panicked(source: tokio::task::JoinError) -> Error {
    Error::internal("sorting the rows of a flush failed").with_source(source)
}
