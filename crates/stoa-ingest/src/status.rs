//! What the engine is doing, as numbers: for console, `system.*` and metrics.

use std::sync::atomic::Ordering;
use std::time::Duration;

use stoa_commitlog::LogStatus;
use stoa_env::Env;
use stoa_table::TableIdent;
use uuid::Uuid;

use crate::inner::Inner;
use crate::tables::TableState;

/// The engine at one moment.
#[derive(Clone, Debug)]
pub struct IngestStatus {
    /// Whether rows are taken; not any more once the engine is being closed.
    pub open: bool,
    /// Bytes that fresh rows of all tables hold.
    pub fresh_bytes: usize,
    /// What they may hold.
    pub fresh_bytes_max: usize,
    /// Appends that wait for room now.
    pub appends_waiting: usize,
    /// Appends acknowledged since the start.
    pub appends: u64,
    /// Their rows.
    pub appended_rows: u64,
    /// The tables that rows were written to since the start, by name.
    pub tables: Vec<TableIngestStatus>,
    /// The commit log.
    pub log: LogStatus,
}

/// One table at one moment.
#[derive(Clone, Debug)]
pub struct TableIngestStatus {
    /// Its name, as it was last seen.
    pub table: TableIdent,
    /// Its identity.
    pub uuid: Uuid,
    /// Rows that are in no data file yet.
    pub fresh_rows: u64,
    /// Bytes of memory that they hold.
    pub fresh_bytes: usize,
    /// How long the oldest of them has been here; `None` where there are none.
    pub oldest_age: Option<Duration>,
    /// Flushes that succeeded since the start.
    pub flushes: u64,
    /// Rows that they brought into data files.
    pub flushed_rows: u64,
    /// When the last of them ended, in milliseconds since 1970-01-01 UTC.
    pub last_flush_unix_ms: Option<i64>,
    /// Flushes that failed since then.
    pub failures: u32,
    /// Why the last one failed; `None` once one has succeeded.
    pub last_error: Option<String>,
    /// Whether a flush runs, or a statement holds it.
    pub busy: bool,
}

impl IngestStatus {
    pub(crate) fn of(inner: &Inner) -> Self {
        let mut tables: Vec<_> = inner
            .tables
            .all()
            .iter()
            .map(|state| TableIngestStatus::of(inner.env(), state))
            .collect();
        let name = |table: &TableIdent| (table.namespace.clone(), table.name.clone());
        tables.sort_by_cached_key(|status| name(&status.table));
        Self {
            open: inner.is_open(),
            fresh_bytes: inner.budget.used_bytes(),
            fresh_bytes_max: inner.budget.limit_bytes(),
            appends_waiting: inner.budget.waiting(),
            appends: inner.counters.appends.load(Ordering::Relaxed),
            appended_rows: inner.counters.rows.load(Ordering::Relaxed),
            tables,
            log: inner.log.status(),
        }
    }
}

impl TableIngestStatus {
    fn of(env: &Env, state: &TableState) -> Self {
        let (totals, history) = (state.fresh.totals(), state.history());
        let now = env.monotonic();
        Self {
            table: state.ident(),
            uuid: state.uuid(),
            fresh_rows: totals.rows,
            fresh_bytes: totals.bytes,
            oldest_age: totals.oldest.map(|oldest| now.duration_since(oldest)),
            flushes: history.flushes,
            flushed_rows: history.flushed_rows,
            last_flush_unix_ms: history.last_flush_unix_ms,
            failures: history.failures,
            last_error: history.last_error,
            busy: state.flushing.try_lock().is_err(),
        }
    }
}
