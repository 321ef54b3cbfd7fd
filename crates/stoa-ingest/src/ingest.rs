//! The engine's front: appends in, consistent views out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::RecordBatch;
use parking_lot::Mutex;
use stoa_commitlog::{CommitLog, Recovery};
use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_table::{Table, TableIdent, Warehouse};
use tokio::sync::{Notify, OwnedMutexGuard, watch};
use tokio::task::JoinHandle;
use url::Url;

use crate::budget::Budget;
use crate::conform::conform;
use crate::error::{closed, dropped};
use crate::flusher;
use crate::fresh::{FreshRows, NewRows, Totals, detach, memory_bytes};
use crate::log::{self, LogWriter};
use crate::options::{Durability, IngestOptions};
use crate::record::{RecordHead, encode};
use crate::recovery::{RecoveryReport, recover};
use crate::status::IngestStatus;
use crate::tables::{TableState, Tables};

/// Takes rows in durably; see the crate's documentation. Cheap to clone.
///
/// When the last clone is dropped without [`Self::close`], the background work ends after the flush
/// that it is at.
#[derive(Clone)]
pub struct Ingest {
    inner: Arc<Inner>,
    _running: Arc<Running>,
}

/// Ends the background work with the last handle.
struct Running(Arc<Inner>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop.send_replace(true);
    }
}

pub(crate) struct Inner {
    pub(crate) warehouse: Warehouse,
    pub(crate) log: LogWriter,
    pub(crate) options: IngestOptions,
    pub(crate) tables: Tables,
    pub(crate) budget: Budget,
    /// The log is needed from here on for tables that could not be read at the start.
    pub(crate) unresolved_from: u64,
    /// Wakes the flusher.
    pub(crate) wake: Notify,
    /// Set once, when the engine is closed.
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) flusher: Mutex<Option<JoinHandle<()>>>,
    pub(crate) counters: Counters,
    closing: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) appends: AtomicU64,
    pub(crate) rows: AtomicU64,
}

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Rows added.
    pub rows: u64,
    /// Their position in the log; 0 where there were no rows.
    pub position: u64,
}

/// One consistent view of a table: data files and fresh rows, each row exactly once.
#[derive(Clone, Debug)]
pub struct TableSnapshot {
    /// The version whose data files to scan.
    pub table: Table,
    /// The rows to add to them.
    pub fresh: FreshRows,
}

/// Keeps a table's rows from being flushed, for a statement that rewrites its files. The flush of
/// everything that was acknowledged before is done. Ends when dropped.
pub struct FlushHold {
    table: Table,
    inner: Arc<Inner>,
    /// `None` only while it is dropped.
    holding: Option<OwnedMutexGuard<()>>,
}

impl Ingest {
    /// Opens the log at `location`, which this process then owns, and brings back the rows that it
    /// holds and no table has yet.
    ///
    /// # Errors
    /// Those of the log (`Corrupt` for a damaged one, `Conflict` where another process has it
    /// open), of the catalog, and `Unsupported` for records of a newer version.
    pub async fn open(
        warehouse: Warehouse,
        location: &Url,
        options: IngestOptions,
    ) -> Result<(Self, RecoveryReport)> {
        let log = log::open(location, warehouse.stores()).await?;
        Self::with_log(warehouse, log, options).await
    }

    /// As [`Self::open`], on a log that was just opened and not written to yet.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn with_log(
        warehouse: Warehouse,
        (log, recovery): (CommitLog, Recovery),
        options: IngestOptions,
    ) -> Result<(Self, RecoveryReport)> {
        let log = LogWriter::new(log, &recovery);
        let budget = Budget::new(options.fresh_bytes_max, options.room_wait_max);
        let inner = Inner {
            warehouse,
            log,
            options,
            tables: Tables::default(),
            budget,
            unresolved_from: u64::MAX,
            wake: Notify::new(),
            stop: watch::Sender::new(false),
            flusher: Mutex::default(),
            counters: Counters::default(),
            closing: AtomicBool::new(false),
        };
        let (inner, report) = recover(inner).await?;
        let inner = Arc::new(inner);
        inner.release().await;
        *inner.flusher.lock() = Some(task::spawn(flusher::run(inner.clone())));
        let running = Arc::new(Running(inner.clone()));
        Ok((Self { inner, _running: running }, report))
    }

    /// Adds the rows of `batch` (the table's columns in the table's order; types are cast where no
    /// value is lost) and returns when they are as durable as `durability` says. All of them become
    /// visible to [`Self::fresh_for`] at once, before this returns.
    ///
    /// A caller that goes away before it has an answer may have added the rows, or not.
    ///
    /// # Errors
    /// `Invalid` for rows that do not fit the table (23502, 22003, 42601) or are too many at once
    /// (54000); `NotFound` (42P01) for a dropped table; `Exhausted` (53200), to be retried, where
    /// memory for fresh rows did not come free in time; `Unavailable` while closing, or where the
    /// log failed: then nothing is known of the rows.
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

    /// The rows that a reader of this version of `table` adds to its data files. `None` where the
    /// version is too old: a flush has brought rows into a newer one, or there are rows of a schema
    /// that it does not know. [`Self::snapshot`] finds the newer one.
    ///
    /// # Errors
    /// `Corrupt` where the table's metadata says nonsense about its position.
    pub fn fresh_for(&self, table: &Table) -> Result<Option<FreshRows>> {
        let fresh = self.inner.fresh_since(table, self.inner.position(table)?);
        match fresh {
            Some(fresh) if fresh.has_schemas_of(table)? => Ok(Some(fresh)),
            _ => Ok(None),
        }
    }

    /// The table as it is now, with all rows that are acknowledged.
    ///
    /// # Errors
    /// `NotFound` (42P01), and those of reading the table's metadata.
    pub async fn snapshot(&self, ident: &TableIdent) -> Result<TableSnapshot> {
        let inner = &self.inner;
        let mut table = inner.warehouse.table(ident).await?;
        let mut floor = 0;
        loop {
            let seen = inner.position(&table)?.max(floor);
            let fresh = inner.fresh_since(&table, seen);
            if let Some(fresh) = &fresh
                && fresh.has_schemas_of(&table)?
            {
                return Ok(TableSnapshot { fresh: fresh.clone(), table });
            }
            // Rows before a floor were committed before it was raised, so a version that is read
            // after the floor has them (unless somebody took them out again).
            let floor_before = inner.tables.get(table.uuid()).map_or(0, |s| s.fresh.floor());
            let newer = inner.warehouse.table(ident).await?;
            match fresh {
                // Not even the newest version knows the schema: it was removed from the metadata.
                Some(fresh) if newer.metadata_location() == table.metadata_location() => {
                    return Ok(TableSnapshot { table, fresh });
                }
                _ => floor = if newer.uuid() == table.uuid() { floor_before } else { 0 },
            }
            table = newer;
        }
    }

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

    /// What the engine is doing.
    pub fn status(&self) -> IngestStatus {
        IngestStatus::of(&self.inner)
    }

    /// Takes no more rows, flushes what there is if `flush` says so, and closes the log. What is
    /// not flushed is replayed at the next start.
    ///
    /// # Errors
    /// The first error of a flush or of the log; everything else is done all the same.
    pub async fn close(&self, flush: bool) -> Result<()> {
        let inner = &self.inner;
        inner.closing.store(true, Ordering::SeqCst);
        inner.budget.close();
        inner.stop.send_replace(true);
        let flusher = inner.flusher.lock().take();
        if let Some(flusher) = flusher {
            flusher.await.map_err(|source| {
                Error::internal("the background flush failed").with_source(source)
            })?;
        }
        let mut result = Ok(());
        for state in inner.tables.all().into_iter().filter(|_| flush) {
            let _holding = state.flushing.lock().await;
            result = result.and(inner.flush(&state).await.map(|_| ()));
        }
        result.and(inner.log.close().await)
    }
}

impl Inner {
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
        let append = self.log.append(&record, relaxed);
        let pushed = state.fresh.push(new, append, || self.log.durable_end()).await?;
        let mut pushed = pushed.ok_or_else(|| dropped(table.ident()))?;
        room.keep();
        self.budget.give_back(pushed.freed_bytes);
        pushed.ticket.acknowledged().await?;
        self.wake_flusher(&state, &pushed.totals, rows);
        self.counters.appends.fetch_add(1, Ordering::Relaxed);
        self.counters.rows.fetch_add(rows, Ordering::Relaxed);
        Ok(Ack { rows, position: pushed.position })
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.closing.load(Ordering::SeqCst)
    }

    /// What is known of `table`.
    ///
    /// # Errors
    /// `Corrupt` where the table has rows from beyond the end of the log.
    fn state(&self, table: &Table) -> Result<Arc<TableState>> {
        if let Some(state) = self.tables.get(table.uuid()) {
            return Ok(state);
        }
        if table.is_staged() {
            return Err(Error::internal(format!("table {} does not exist yet", table.ident())));
        }
        let (at, end) = (self.position(table)?, self.log.durable_end());
        if at > end {
            return Err(log_is_older(table, self.log.id(), at, end));
        }
        self.tables.get_or_add(table, self.options.flush)
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

    fn fresh_since(&self, table: &Table, seen: u64) -> Option<FreshRows> {
        let chunks = match self.tables.get(table.uuid()) {
            Some(state) => state.fresh.since(seen, || self.log.durable_end())?,
            None => Vec::new(),
        };
        Some(FreshRows::new(table.schema(), table.schema_id(), chunks))
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

/// New rows would get positions that the table has passed, and be lost at the next start.
fn log_is_older(table: &Table, log: &str, at: u64, end: u64) -> Error {
    Error::corrupt(format!(
        "table {} is at position {at} of log {log}, which ends before {end}",
        table.ident()
    ))
    .with_hint("the log's newest segments are missing: restore them, or remove the log's directory")
}

impl std::fmt::Debug for Ingest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ingest({:?}, log {})", self.inner.warehouse, self.inner.log.id())
    }
}
