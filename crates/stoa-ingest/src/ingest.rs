//! The engine: its start and its end.
//!
//! Not here: what it is made of (`inner`), adding rows (`append`), looking at them (`view`), keeping
//! flushes away (`hold`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use stoa_commitlog::{CommitLog, Recovery};
use stoa_error::{Error, Result};
use stoa_table::Warehouse;
use tokio::sync::{Notify, watch};
use url::Url;

use crate::budget::Budget;
use crate::copies::Copies;
use crate::flusher;
use crate::inner::{Counters, Inner};
use crate::log::{self, LogWriter};
use crate::options::IngestOptions;
use crate::recovery::{RecoveryReport, recover};
use crate::status::IngestStatus;
use crate::tables::Tables;

/// Takes rows in durably; see the crate's documentation. Cheap to clone.
///
/// When the last clone is dropped without [`Self::close`], the background work ends after the flush
/// that it is at.
#[derive(Clone)]
pub struct Ingest {
    pub(crate) inner: Arc<Inner>,
    _running: Arc<Running>,
}

/// Ends the background work with the last handle.
struct Running(Arc<Inner>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop.send_replace(true);
    }
}

impl Ingest {
    /// Opens the log at `location`, which this process then owns, and brings back the rows that it
    /// holds and no table has yet.
    ///
    /// # Errors
    /// Those of the log (`Corrupt` for a damaged one, `Unavailable` with 55006 where another process
    /// has it open), of the catalog, and `Unsupported` for records of a newer version.
    pub async fn open(
        warehouse: Warehouse,
        location: &Url,
        options: IngestOptions,
    ) -> Result<(Self, RecoveryReport)> {
        let log = log::open(&warehouse, location, options.log_store_wait).await?;
        Self::with_log(warehouse, log, options).await
    }

    /// The name of its log, which no other server has.
    pub fn log_id(&self) -> &str {
        self.inner.log.id()
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
        let budget =
            Budget::new(options.fresh_bytes_max, options.room_wait_max, warehouse.env().clone());
        let inner = Inner {
            warehouse,
            log,
            options,
            tables: Tables::default(),
            copies: Copies::default(),
            copy_watch: OnceLock::new(),
            others: OnceLock::new(),
            clock: OnceLock::new(),
            outbox: None,
            budget,
            unresolved_from: u64::MAX,
            wake: Notify::new(),
            stop: watch::Sender::new(false),
            flusher: Mutex::default(),
            counters: Counters::default(),
            closing: AtomicBool::new(false),
        };
        let known = inner.note_opened().await?;
        let (mut inner, mut report) = recover(inner, known.is_whole(&recovery)).await?;
        report.logs_gone = known.gone();
        if inner.options.ships {
            inner.outbox = Some(inner.new_outbox()?);
        }
        let inner = Arc::new(inner);
        inner.release().await;
        *inner.flusher.lock() = Some(inner.env().spawn(flusher::run(inner.clone())));
        let running = Arc::new(Running(inner.clone()));
        Ok((Self { inner, _running: running }, report))
    }

    /// What the engine is doing.
    pub fn status(&self) -> IngestStatus {
        IngestStatus::of(&self.inner)
    }

    /// Why the commit log has stopped, after which rows are refused until the next start; `None`
    /// while it runs.
    pub fn log_stopped(&self) -> Option<String> {
        self.inner.log.stopped()
    }

    /// Waits until the commit log has stopped because of an error and its storage answers again: a start would open it.
    pub async fn log_can_be_reopened(&self) {
        self.inner.log.can_be_reopened().await;
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
        if flush && result.is_ok() && inner.is_all_in_files() {
            result = inner.note_closed().await;
        }
        result.and(inner.log.close().await)
    }
}

impl std::fmt::Debug for Ingest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ingest({:?}, log {})", self.inner.warehouse, self.inner.log.id())
    }
}
