//! Looking after tables in the background: retention, compaction, snapshot expiry, orphans.
//!
//! In: a warehouse, how often to look, and what it may cost. Out: tables of few sorted files and
//! little history. One thing is done at a time; reads are kept to a rate, memory to a bound.
//!
//! A table whose metadata has not changed since it was last found to be in order is not looked at
//! again. Several processes may look after one warehouse: who commits first wins, the other leaves
//! it for the next round.
//!
//! Not here: how it is done (`stoa-table`), flushing (`flusher`), doing it by command.

mod rate;
mod status;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_env::Env;
use stoa_env::executors::Executors;
use stoa_error::{Error, Result};
use stoa_table::{CancelToken, CompactionWork, ExpireOptions, MergeHooks, Table, Warehouse};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::locate::all_tables;
use rate::Rate;
pub use status::{MaintenanceKind, MaintenanceStatus, MaintenanceWork};

/// Settings of [`Maintenance`].
#[derive(Clone, Debug)]
pub struct MaintenanceOptions {
    /// Time between two rounds over all tables.
    pub interval: Duration,
    /// Bytes per second that compactions may read, and as many that they may write.
    pub bytes_per_second: u64,
    /// Memory of a compaction.
    pub memory_max_bytes: usize,
    /// Time between two expiries of a table's snapshots.
    pub expire_interval: Duration,
    /// How much history stays.
    pub expire: ExpireOptions,
    /// Time between two searches for a table's orphans, which list all of its files.
    pub orphan_interval: Duration,
    /// Age of files that no snapshot names at which they are deleted: well above the time that a
    /// load may take.
    pub orphan_age: Duration,
    /// Decides about rows while files are merged, such as which versions of a cell stay.
    pub hooks: Option<Arc<dyn MergeHooks>>,
    /// Whether a table is this process's to look after; all are without it.
    pub share: Option<Arc<dyn Share>>,
    /// The threads that do the work; if none are given, those of the current runtime.
    pub executors: Option<Executors>,
}

/// Divides tables between processes. Where two think that a table is theirs, who commits first wins.
pub trait Share: std::fmt::Debug + Send + Sync {
    /// Whether this process looks after the table now.
    fn is_mine(&self, table: Uuid) -> bool;
}

impl Default for MaintenanceOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            bytes_per_second: 64 << 20,
            memory_max_bytes: 128 << 20,
            expire_interval: Duration::from_secs(60 * 60),
            expire: ExpireOptions::default(),
            orphan_interval: Duration::from_secs(24 * 60 * 60),
            orphan_age: Duration::from_secs(3 * 24 * 60 * 60),
            hooks: None,
            share: None,
            executors: None,
        }
    }
}

/// Background work on the tables of a warehouse. Ends after what it is at when it is dropped; to
/// wait for that, use [`Self::stop`].
pub struct Maintenance {
    shared: Arc<Shared>,
    running: JoinHandle<()>,
}

pub(crate) struct Shared {
    warehouse: Warehouse,
    options: MaintenanceOptions,
    work: CompactionWork,
    status: Mutex<MaintenanceStatus>,
    /// Asks for a round now.
    wake: Notify,
    /// Set once, to end.
    stop: watch::Sender<bool>,
}

/// When a table was last looked after.
struct Visit {
    /// The version that was found to be in order.
    in_order: Option<String>,
    expired: Instant,
    searched: Instant,
}

impl Maintenance {
    /// Starts the work in a task; the first round begins after one [`MaintenanceOptions::interval`].
    pub fn start(warehouse: Warehouse, options: MaintenanceOptions) -> Self {
        let work = CompactionWork {
            memory_max_bytes: options.memory_max_bytes,
            throttle: Some(Arc::new(Rate::new(warehouse.env().clone(), options.bytes_per_second))),
            cancel: CancelToken::new(),
            hooks: options.hooks.clone(),
            ..CompactionWork::default()
        };
        let shared = Arc::new(Shared {
            warehouse,
            options,
            work,
            status: Mutex::default(),
            wake: Notify::new(),
            stop: watch::Sender::new(false),
        });
        let running = match &shared.options.executors {
            Some(executors) => executors.spawn(run(shared.clone())),
            None => shared.env().spawn(run(shared.clone())),
        };
        Self { shared, running }
    }

    /// Begins the next round now.
    pub fn wake(&self) {
        self.shared.wake.notify_one();
    }

    /// What it does and has done.
    pub fn status(&self) -> MaintenanceStatus {
        let progress = &self.shared.work.progress;
        MaintenanceStatus {
            compacted_files_read: progress.files_read(),
            compacted_files_written: progress.files_written(),
            compacted_rows: progress.rows_written(),
            compacted_bytes_read: progress.bytes_read(),
            compacted_bytes_written: progress.bytes_written(),
            ..self.shared.status.lock().clone()
        }
    }

    /// Ends the work: what is under way is given up where that loses nothing.
    ///
    /// # Errors
    /// `Internal` where the work had panicked.
    pub async fn stop(mut self) -> Result<()> {
        self.shared.end();
        (&mut self.running)
            .await
            .map_err(|source| Error::internal("background maintenance failed").with_source(source))
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Shared {
    /// The world: that of the warehouse.
    fn env(&self) -> &Env {
        self.warehouse.env()
    }

    fn end(&self) {
        self.work.cancel.cancel();
        self.stop.send_replace(true);
    }

    fn is_ending(&self) -> bool {
        *self.stop.borrow()
    }
}

async fn run(shared: Arc<Shared>) {
    let mut visits: HashMap<Uuid, Visit> = HashMap::new();
    let mut stop = shared.stop.subscribe();
    loop {
        tokio::select! {
            () = shared.env().sleep(shared.options.interval) => {}
            () = shared.wake.notified() => {}
            // Also where the sender is gone.
            _ = stop.wait_for(|stop| *stop) => return,
        }
        if let Err(error) = round(&shared, &mut visits).await {
            tracing::warn!(%error, "tables cannot be listed for maintenance");
            shared.status.lock().failed(None, &error);
        }
        shared.status.lock().rounds += 1;
    }
}

async fn round(shared: &Shared, visits: &mut HashMap<Uuid, Visit>) -> Result<()> {
    let all = all_tables(&shared.warehouse).await?;
    visits.retain(|uuid, _| all.tables.contains_key(uuid) || all.unreadable.is_some());
    for (uuid, table) in all.tables {
        if shared.is_ending() {
            break;
        }
        if shared.options.share.as_ref().is_some_and(|share| !share.is_mine(uuid)) {
            visits.remove(&uuid);
            continue;
        }
        // A table is old enough for expiry and search only after it was here for a while.
        let now = shared.env().monotonic();
        let visit =
            visits.entry(uuid).or_insert(Visit { in_order: None, expired: now, searched: now });
        visit.look_after(shared, &table, now).await;
    }
    Ok(())
}

impl Visit {
    async fn look_after(&mut self, shared: &Shared, table: &Table, now: Instant) {
        let options = &shared.options;
        if self.in_order.as_deref() != Some(table.metadata_location()) {
            let done = table::tidy(shared, table).await;
            self.in_order = done.map(|table| table.metadata_location().to_owned());
        }
        // By the hour, and sooner where there are so many that commits get slow.
        if now.duration_since(self.expired) >= options.expire_interval
            || table.has_many_snapshots().unwrap_or(false)
        {
            table::expire(shared, table).await;
            self.expired = now;
        }
        if now.duration_since(self.searched) >= options.orphan_interval {
            table::remove_orphans(shared, table).await;
            self.searched = now;
        }
    }
}

impl std::fmt::Debug for Maintenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Maintenance({:?})", self.shared.warehouse)
    }
}
