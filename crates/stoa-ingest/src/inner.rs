//! What the engine is made of, and what is known of tables.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use stoa_env::Env;
use stoa_error::{Error, Result};
use stoa_table::{Table, Warehouse};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::budget::Budget;
use crate::copies::{Copies, CopyWatch};
use crate::log::LogWriter;
use crate::options::IngestOptions;
use crate::others::{Others, WriteClock};
use crate::outbox::Outbox;
use crate::tables::{TableState, Tables};

/// What all handles, the flusher and recovery work on.
pub(crate) struct Inner {
    pub(crate) warehouse: Warehouse,
    pub(crate) log: LogWriter,
    pub(crate) options: IngestOptions,
    pub(crate) tables: Tables,
    /// Fresh rows of other daemons.
    pub(crate) copies: Copies,
    /// Who is shown rows of other daemons.
    pub(crate) copy_watch: OnceLock<Arc<dyn CopyWatch>>,
    /// The other daemons, where there are some.
    pub(crate) others: OnceLock<Arc<dyn Others>>,
    /// The clock of writes that carry a time.
    pub(crate) clock: OnceLock<Arc<dyn WriteClock>>,
    /// Where others are to have the records of the log.
    pub(crate) outbox: Option<Arc<Outbox>>,
    pub(crate) budget: Budget,
    /// The log is needed from here on for tables that could not be read at the start.
    pub(crate) unresolved_from: u64,
    /// Wakes the flusher.
    pub(crate) wake: Notify,
    /// Set once, when the engine is closed.
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) flusher: Mutex<Option<JoinHandle<()>>>,
    pub(crate) counters: Counters,
    /// No more rows are taken.
    pub(crate) closing: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) appends: AtomicU64,
    pub(crate) rows: AtomicU64,
}

impl Inner {
    /// The world: that of the warehouse.
    pub(crate) fn env(&self) -> &Env {
        self.warehouse.env()
    }

    /// Whether rows are taken.
    pub(crate) fn is_open(&self) -> bool {
        !self.closing.load(Ordering::SeqCst)
    }

    /// Whether no table has rows that are in the log only.
    pub(crate) fn is_all_in_files(&self) -> bool {
        let is_flushed = |state: &Arc<TableState>| state.fresh.totals().rows == 0;
        self.unresolved_from == u64::MAX && self.tables.all().iter().all(is_flushed)
    }

    /// Where others are to have the log's records from.
    ///
    /// # Errors
    /// `Unsupported` for a log with rows that are in no file: nobody has been sent them.
    pub(crate) fn new_outbox(&self) -> Result<Arc<Outbox>> {
        if !self.is_all_in_files() {
            return Err(Error::unsupported(
                "a log with rows of an earlier start cannot be shipped",
            )
            .with_hint("bring its rows into files first, and begin a new log"));
        }
        Ok(Arc::new(Outbox::new(self.log.durable_end().saturating_sub(1))))
    }

    /// What is known of `table`.
    ///
    /// # Errors
    /// `Corrupt` where the table has rows from beyond the end of the log.
    pub(crate) fn state(&self, table: &Table) -> Result<Arc<TableState>> {
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
        self.tables.get_or_add(self.env(), table, self.options.flush)
    }
}

/// New rows would get positions that the table has passed, and be lost at the next start.
fn log_is_older(table: &Table, log: &str, at: u64, end: u64) -> Error {
    Error::corrupt(format!(
        "table {} is at position {at} of log {log}, which ends before {end}",
        table.ident()
    ))
    .with_hint(
        "the log's newest segments are missing: restore them. A log made anew would do as well, but \
         rows that are in the old one only would be given up",
    )
}
