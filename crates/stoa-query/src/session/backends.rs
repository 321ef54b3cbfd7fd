//! The sessions of a server by the process ids that their clients know them by.
//!
//! In: sessions as they begin and end. Out: process ids that no two open sessions share, and sessions by process id.
//! A PostgreSQL client is told its id when it connects; `pg_backend_pid()` tells it, too, and
//! `pg_cancel_backend(pid)` and `pg_terminate_backend(pid)` take it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Session;

/// The open sessions of a server.
#[derive(Default)]
pub(crate) struct Backends {
    next_id: AtomicI32,
    sessions: Mutex<HashMap<i32, Weak<Session>>>,
}

/// A session's place among them; dropped, its id is free again.
pub(super) struct Backend {
    all: Arc<Backends>,
    id: i32,
}

impl Backends {
    /// Enters a session under an id of its own.
    pub(super) fn enter(self: &Arc<Self>, session: &Weak<Session>) -> Backend {
        let mut sessions = self.sessions.lock();
        // Ids wrap around after two thousand million sessions; those in use are passed over.
        let id = loop {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX;
            if id != 0 && !sessions.contains_key(&id) {
                break id;
            }
        };
        sessions.insert(id, Weak::clone(session));
        Backend { all: Arc::clone(self), id }
    }

    /// The open session with this id.
    pub(super) fn find(&self, id: i32) -> Option<Arc<Session>> {
        self.sessions.lock().get(&id)?.upgrade()
    }
}

impl Backend {
    pub(super) fn all(&self) -> &Backends {
        &self.all
    }

    pub(super) fn id(&self) -> i32 {
        self.id
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.all.sessions.lock().remove(&self.id);
    }
}
