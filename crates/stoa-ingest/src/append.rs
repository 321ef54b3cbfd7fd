//! Adding rows: checked, logged, in memory, acknowledged.

use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;
use bytes::Bytes;
use stoa_commitlog::Appended;
use stoa_env::failpoint;
use stoa_error::Result;
use stoa_table::Table;

use crate::conform::conform;
use crate::error::{closed, dropped, injected};
use crate::fresh::{Fresh, NewRows, Totals, detach, memory_bytes, push_all};
use crate::ingest::Ingest;
use crate::inner::Inner;
use crate::options::Durability;
use crate::record::{RecordHead, encode, encode_group};
use crate::tables::TableState;

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Rows added.
    pub rows: u64,
    /// Their position in the log; 0 where there were no rows.
    pub position: u64,
}

impl Ingest {
    /// Adds the rows of `batch` (the table's columns in the table's order; types are cast where no
    /// value is lost) and returns when they are as durable as `durability` says. All of them become
    /// visible to [`Self::fresh_for`] at once, before this returns.
    ///
    /// A caller that goes away before it has an answer may have added the rows, or not.
    ///
    /// # Errors
    /// `Invalid` for rows that do not fit the table (23502, 22003, 42601) or are too many at once
    /// (54000); `NotFound` (42P01) for a table that was dropped meanwhile, by whatever process, and
    /// `Conflict` (40001) where another one has its name now: nothing is kept then; `Exhausted`
    /// (53200), to be retried, where memory for fresh rows did not come free in time; `Unavailable`
    /// while closing, or where the log or the catalog (08007) failed: then nothing is known of the
    /// rows.
    pub async fn append(
        &self,
        table: &Table,
        batch: RecordBatch,
        durability: Durability,
    ) -> Result<Ack> {
        self.inner.append(table, batch, durability, None).await
    }

    /// As [`Self::append`], with a tag that tools show beside the rows in the log.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub async fn append_tagged(
        &self,
        table: &Table,
        batch: RecordBatch,
        durability: Durability,
        tag: &str,
    ) -> Result<Ack> {
        self.inner.append(table, batch, durability, Some(tag)).await
    }
}

/// Rows for one table, of several that get rows together.
#[derive(Clone, Debug)]
pub struct TableRows {
    /// The table.
    pub table: Table,
    /// As for [`Ingest::append`].
    pub batch: RecordBatch,
}

impl Ingest {
    /// Adds rows to several different tables: all of them are durable and visible at once, or none.
    /// Returns when they are.
    ///
    /// The tables must be different ones.
    ///
    /// # Errors
    /// As [`Self::append`]. No row of any table is kept then, unless the outcome is not known.
    pub async fn append_all(&self, rows: Vec<TableRows>, durability: Durability) -> Result<u64> {
        self.inner.append_all(rows, durability).await
    }
}

impl Inner {
    async fn append_all(&self, mut rows: Vec<TableRows>, durability: Durability) -> Result<u64> {
        if !self.is_open() {
            return Err(closed());
        }
        // The order in which all who look at several stores lock them.
        rows.sort_by_key(|rows| rows.table.uuid());
        let (mut tables, mut records, mut new) = (Vec::new(), Vec::new(), Vec::new());
        let mut relaxed = true;
        for TableRows { table, batch } in rows {
            let state = self.state(&table)?;
            state.check_writable(&table, self.options.flush)?;
            relaxed &= durability.is_relaxed(&table)?;
            let batch = detach(conform(&table, batch)?)?;
            let (bytes, schema_id) = (memory_bytes(&batch), table.schema_id());
            let head = RecordHead { table: table.uuid(), schema_id, tag: None };
            records.push(encode(&head, &batch)?);
            new.push(NewRows { batch, schema_id, bytes, relaxed: false });
            tables.push((table, state));
        }
        new.iter_mut().for_each(|new| new.relaxed = relaxed);
        let added: Vec<u64> = new.iter().map(|new| new.batch.num_rows() as u64).collect();
        let record = encode_group(&records)?;
        drop(records);
        let room = self.budget.take(new.iter().map(|new| new.bytes).sum()).await?;
        // Before anything is done: of rows that are durable together none may be refused.
        for (table, state) in &tables {
            self.check_exists(state, table).await?;
        }
        let append = self.put(record, relaxed);
        let stores: Vec<&Fresh> = tables.iter().map(|(_, state)| &state.fresh).collect();
        let pushed = match push_all(&stores, new, append, || self.log.durable_end()).await? {
            Ok(pushed) => pushed,
            Err(closed) => return Err(dropped(tables[closed].0.ident())),
        };
        room.keep();
        self.budget.give_back(pushed.freed_bytes);
        let mut ticket = pushed.ticket;
        ticket.acknowledged().await?;
        self.shipped(pushed.position, relaxed).await?;
        for ((_, state), added) in tables.iter().zip(&added) {
            self.wake_flusher(state, &state.fresh.totals(), *added);
        }
        failpoint::at("append.durable").await.map_err(injected)?;
        // A table that is dropped from here on goes with the rows that were added to it.
        let rows: u64 = added.iter().sum();
        self.counters.appends.fetch_add(1, Ordering::Relaxed);
        self.counters.rows.fetch_add(rows, Ordering::Relaxed);
        Ok(rows)
    }

    async fn append(
        &self,
        table: &Table,
        batch: RecordBatch,
        durability: Durability,
        tag: Option<&str>,
    ) -> Result<Ack> {
        if !self.is_open() {
            return Err(closed());
        }
        let rows = batch.num_rows() as u64;
        if rows == 0 {
            return Ok(Ack { rows, position: 0 });
        }
        let state = self.state(table)?;
        state.check_writable(table, self.options.flush)?;
        let relaxed = durability.is_relaxed(table)?;
        let batch = detach(conform(table, batch)?)?;
        let bytes = memory_bytes(&batch);
        let room = self.budget.take(bytes).await?;

        let schema_id = table.schema_id();
        let record = encode(&RecordHead { table: table.uuid(), schema_id, tag }, &batch)?;
        let new = NewRows { batch, schema_id, bytes, relaxed };
        let append = self.put(record, relaxed);
        let pushed = state.fresh.push(new, append, || self.log.durable_end()).await?;
        let mut pushed = pushed.ok_or_else(|| dropped(table.ident()))?;
        room.keep();
        self.budget.give_back(pushed.freed_bytes);
        pushed.ticket.acknowledged().await?;
        self.shipped(pushed.position, relaxed).await?;
        self.wake_flusher(&state, &pushed.totals, rows);
        failpoint::at("append.durable").await.map_err(injected)?;
        // Last of all, so that rows are never acknowledged after their table was dropped.
        self.check_exists(&state, table).await?;
        self.counters.appends.fetch_add(1, Ordering::Relaxed);
        self.counters.rows.fetch_add(rows, Ordering::Relaxed);
        Ok(Ack { rows, position: pushed.position })
    }

    /// Puts a record into the log, and on its way to others.
    async fn put(&self, record: Bytes, relaxed: bool) -> Result<(u64, Appended)> {
        let (position, ticket) = self.log.append(&record, relaxed).await?;
        // In the poll that gave the position out: nothing may come between.
        if let Some(outbox) = &self.outbox {
            outbox.add(position, record);
        }
        Ok((position, ticket))
    }

    /// Waits until all others show the rows at `position`; rows that need not be durable need not be shown.
    async fn shipped(&self, position: u64, relaxed: bool) -> Result<()> {
        let Some(outbox) = &self.outbox else { return Ok(()) };
        outbox.wake();
        if relaxed { Ok(()) } else { outbox.acknowledged(position).await }
    }

    /// Wakes the flusher for the first rows of a table, whose age it must watch, and for as many as
    /// make a flush.
    fn wake_flusher(&self, state: &TableState, totals: &Totals, added: u64) {
        let limits = state.limits();
        let is_first = totals.rows == added;
        if is_first || totals.rows >= limits.rows || totals.bytes >= limits.bytes {
            self.wake.notify_one();
        }
    }
}
