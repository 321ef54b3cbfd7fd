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

/// A session that others can end.
pub(crate) trait Ends: Send + Sync {
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

    pub(crate) fn locks(&self) -> &Arc<AdvisoryLocks> {
        &self.locks
    }

    /// When the server started, microseconds since 1970-01-01 UTC.
    pub(crate) fn started_unix_us(&self) -> i64 {
        self.started_unix_us
    }
}

/// The open sessions of a server.
#[derive(Default)]
pub(crate) struct Backends {
    next_id: AtomicI32,
    sessions: Mutex<HashMap<i32, Weak<dyn Ends>>>,
}

/// A session's place among them; dropped, its id is free again.
pub(crate) struct Backend {
    all: Arc<Backends>,
    id: i32,
}

impl Backends {
    fn enter(self: &Arc<Self>, session: Weak<dyn Ends>) -> Backend {
        let mut sessions = self.sessions.lock();
        // Ids wrap around after two thousand million sessions; those in use are passed over.
        let id = loop {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX;
            if id != 0 && !sessions.contains_key(&id) {
                break id;
            }
        };
        sessions.insert(id, session);
        Backend { all: Arc::clone(self), id }
    }

    /// The open session with this id.
    pub(crate) fn find(&self, id: i32) -> Option<Arc<dyn Ends>> {
        self.sessions.lock().get(&id)?.upgrade()
    }
}

impl Backend {
    pub(crate) fn all(&self) -> &Backends {
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
