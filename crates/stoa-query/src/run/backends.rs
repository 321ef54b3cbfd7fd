//! The sessions of a server by the process ids that their clients know them by.
//!
//! In: sessions as they begin and end. Out: process ids that no two open sessions share, and sessions by process id.
//! A PostgreSQL client is told its id when it connects; `pg_backend_pid()` tells it, too, and
//! `pg_cancel_backend(pid)` and `pg_terminate_backend(pid)` take it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::advisory::AdvisoryLocks;

/// What is known of an open session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The process id that its client knows it by.
    pub process_id: i32,
    /// Its role.
    pub user: String,
    /// `postgresql`, `http`, `flight`, `hive`, `shell`.
    pub protocol: &'static str,
    /// When it began, milliseconds since 1970-01-01 UTC.
    pub opened_unix_ms: i64,
    /// When its latest statement began; when it began, if there was none.
    pub used_unix_ms: i64,
}

/// A session that others can end.
pub(crate) trait Ends: Send + Sync {
    /// What is known of it.
    fn info(&self) -> SessionInfo;

    /// Its role.
    fn user(&self) -> &str;

    /// Cancels what it runs.
    fn cancel(&self);

    /// Cancels what it runs, and asks its connection to close.
    fn terminate(&self);
}

/// What the sessions of a server have together.
pub(crate) struct SharedByAll {
    backends: Arc<Backends>,
    locks: Arc<AdvisoryLocks>,
    started_unix_us: i64,
}

impl SharedByAll {
    /// For a server that starts now.
    pub(crate) fn starting() -> Self {
        let started_unix_us = stoa_env::clock::unix_ms().saturating_mul(1000);
        Self { backends: Arc::default(), locks: Arc::default(), started_unix_us }
    }

    /// Enters a session under an id of its own.
    pub(crate) fn enter(&self, session: Weak<dyn Ends>) -> Backend {
        self.backends.enter(session)
    }

    pub(crate) fn backends(&self) -> &Arc<Backends> {
        &self.backends
    }

    pub(crate) fn locks(&self) -> &Arc<AdvisoryLocks> {
        &self.locks
    }

    /// When the server started, microseconds since 1970-01-01 UTC.
    pub(crate) fn started_unix_us(&self) -> i64 {
        self.started_unix_us
    }
}

/// The open sessions of a server.
pub(crate) struct Backends {
    next_id: AtomicI32,
    /// The number of the daemon in a cluster; negative where there is none.
    daemon: AtomicI32,
    sessions: Mutex<HashMap<i32, Weak<dyn Ends>>>,
}

/// A session's place among them; dropped, its id is free again.
pub(crate) struct Backend {
    all: Arc<Backends>,
    id: i32,
}

/// The lower bits of a process id, which count; those above are the daemon's number, so that a cluster of up to 1,024
/// daemons has each id once.
const COUNTED: i32 = (1 << 21) - 1;

/// The number of the daemon of a cluster that gave the process id.
pub(crate) fn number_of_session(id: i32) -> u32 {
    id.cast_unsigned() >> COUNTED.count_ones()
}

impl Default for Backends {
    fn default() -> Self {
        Self { next_id: AtomicI32::new(0), daemon: AtomicI32::new(-1), sessions: Mutex::default() }
    }
}

impl Backends {
    /// Gives ids from now on that tell the number of the daemon.
    pub(crate) fn begin_at(&self, daemon: u32) {
        let within = number_of_session(i32::MAX) + 1;
        self.daemon.store((daemon % within).cast_signed(), Ordering::Relaxed);
    }

    fn enter(self: &Arc<Self>, session: Weak<dyn Ends>) -> Backend {
        let mut sessions = self.sessions.lock();
        // Ids wrap around, after two thousand million sessions, or two million in a cluster; those in use are
        // passed over.
        let (high, low) = match self.daemon.load(Ordering::Relaxed) {
            ..0 => (0, i32::MAX),
            daemon => (daemon << COUNTED.count_ones(), COUNTED),
        };
        let id = loop {
            let count = self.next_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & low;
            let id = high | count;
            if id != 0 && !sessions.contains_key(&id) {
                break id;
            }
        };
        sessions.insert(id, session);
        Backend { all: Arc::clone(self), id }
    }

    /// What is known of the open sessions, oldest first.
    pub(crate) fn open(&self) -> Vec<SessionInfo> {
        let sessions: Vec<_> = self.sessions.lock().values().filter_map(Weak::upgrade).collect();
        let mut all: Vec<SessionInfo> = sessions.iter().map(|session| session.info()).collect();
        all.sort_by_key(|session| (session.opened_unix_ms, session.process_id));
        all
    }

    /// The open session with this id.
    pub(crate) fn find(&self, id: i32) -> Option<Arc<dyn Ends>> {
        self.sessions.lock().get(&id)?.upgrade()
    }
}

impl Backend {
    pub(crate) fn all(&self) -> &Arc<Backends> {
        &self.all
    }

    pub(crate) fn id(&self) -> i32 {
        self.id
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.all.sessions.lock().remove(&self.id);
    }
}
