//! What the engine knows about each table that it takes rows for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use stoa_env::Env;
use stoa_error::{Error, Result};
use stoa_table::{Table, TableIdent, WriteOptions};
use uuid::Uuid;

use crate::fresh::Fresh;
use crate::options::FlushLimits;

/// The first wait after a flush that failed; doubles with each failure.
const RETRY_WAIT_MIN: Duration = Duration::from_millis(100);

/// All tables that rows were written to since the start, with fresh rows now or not.
#[derive(Default)]
pub(crate) struct Tables {
    /// Written only when a table is met for the first time, or dropped.
    by_uuid: RwLock<HashMap<Uuid, Arc<TableState>>>,
}

/// One table.
pub(crate) struct TableState {
    uuid: Uuid,
    env: Env,
    pub(crate) fresh: Fresh,
    /// Whoever brings rows into the table, or keeps others from it, holds this.
    pub(crate) flushing: Arc<tokio::sync::Mutex<()>>,
    known: Mutex<LastSeen>,
    history: Mutex<History>,
}

/// What was last seen of the table itself.
struct LastSeen {
    ident: TableIdent,
    limits: FlushLimits,
    /// The metadata file whose table was last found to be writable.
    writable: Option<String>,
    /// The metadata file at which the table was last found in the catalog.
    found_at: Option<String>,
}

/// What flushes of a table did.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) flushes: u64,
    pub(crate) flushed_rows: u64,
    pub(crate) last_flush_unix_ms: Option<i64>,
    /// Why the last flush failed, if it did.
    pub(crate) last_error: Option<String>,
    /// Flushes that failed since the last one that did not.
    pub(crate) failures: u32,
    not_before: Option<Instant>,
}

impl Tables {
    pub(crate) fn get(&self, uuid: Uuid) -> Option<Arc<TableState>> {
        self.by_uuid.read().get(&uuid).cloned()
    }

    /// The state of `table`, made if it is met for the first time.
    ///
    /// # Errors
    /// `Invalid` where its properties cannot be used.
    pub(crate) fn get_or_add(
        &self,
        env: &Env,
        table: &Table,
        defaults: FlushLimits,
    ) -> Result<Arc<TableState>> {
        if let Some(state) = self.get(table.uuid()) {
            return Ok(state);
        }
        let limits = FlushLimits::of(table, defaults)?;
        let mut tables = self.by_uuid.write();
        let state = tables
            .entry(table.uuid())
            .or_insert_with(|| Arc::new(TableState::new(env, table, limits)));
        Ok(state.clone())
    }

    pub(crate) fn remove(&self, uuid: Uuid) {
        self.by_uuid.write().remove(&uuid);
    }

    pub(crate) fn all(&self) -> Vec<Arc<TableState>> {
        self.by_uuid.read().values().cloned().collect()
    }
}

impl TableState {
    fn new(env: &Env, table: &Table, limits: FlushLimits) -> Self {
        let known =
            LastSeen { ident: table.ident().clone(), limits, writable: None, found_at: None };
        Self {
            uuid: table.uuid(),
            env: env.clone(),
            fresh: Fresh::new(env.clone()),
            flushing: Arc::default(),
            known: Mutex::new(known),
            history: Mutex::default(),
        }
    }

    pub(crate) fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The name under which the table was last seen.
    pub(crate) fn ident(&self) -> TableIdent {
        self.known.lock().ident.clone()
    }

    pub(crate) fn limits(&self) -> FlushLimits {
        self.known.lock().limits
    }

    /// Whether `pointer` is a version of this table that was seen before.
    pub(crate) fn was_at(&self, pointer: &str) -> bool {
        self.known.lock().found_at.as_deref() == Some(pointer)
    }

    /// Notes where the table was found in the catalog.
    pub(crate) fn found(&self, table: &Table) {
        let mut known = self.known.lock();
        known.ident = table.ident().clone();
        known.found_at = Some(table.metadata_location().to_owned());
    }

    /// Notes the version that a flush found. Properties that make no sense change nothing.
    pub(crate) fn seen(&self, table: &Table, defaults: FlushLimits) {
        let limits = FlushLimits::of(table, defaults);
        let mut known = self.known.lock();
        known.ident = table.ident().clone();
        match limits {
            Ok(limits) => known.limits = limits,
            Err(error) => tracing::warn!(table = %table.ident(), %error, "property is ignored"),
        }
    }

    /// Checks that rows of this version of the table can be flushed, and takes note of its
    /// properties.
    ///
    /// # Errors
    /// Those of [`Table::writer`]; `Invalid` where properties cannot be used.
    pub(crate) fn check_writable(&self, table: &Table, defaults: FlushLimits) -> Result<()> {
        let version = table.metadata_location();
        if self.known.lock().writable.as_deref() == Some(version) {
            return Ok(());
        }
        table.writer(WriteOptions::default())?;
        let limits = FlushLimits::of(table, defaults)?;
        let mut known = self.known.lock();
        known.limits = limits;
        known.writable = Some(version.to_owned());
        Ok(())
    }

    /// Notes a flush that succeeded.
    pub(crate) fn flushed(&self, rows: u64) {
        let mut history = self.history.lock();
        history.flushes += 1;
        history.flushed_rows += rows;
        history.last_flush_unix_ms = Some(self.env.unix_ms());
        history.last_error = None;
        history.failures = 0;
        history.not_before = None;
    }

    /// Notes a flush that failed; the next one waits.
    pub(crate) fn failed(&self, error: &Error, wait_max: Duration) {
        let mut history = self.history.lock();
        let doubled = RETRY_WAIT_MIN.saturating_mul(1 << history.failures.min(16));
        history.failures = history.failures.saturating_add(1);
        history.last_error = Some(error.message_with_sources());
        history.not_before = self.env.monotonic().checked_add(doubled.min(wait_max));
    }

    /// When the next flush may be tried; `None` for now.
    pub(crate) fn not_before(&self) -> Option<Instant> {
        self.history.lock().not_before
    }

    pub(crate) fn history(&self) -> History {
        self.history.lock().clone()
    }
}
