//! Cancel requests: which connection a process id and secret belong to.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use stoa_query::Session;

/// The open connections, by the process id told to their clients.
#[derive(Debug, Default)]
pub(crate) struct CancelRegistry {
    entries: Mutex<HashMap<i32, Entry>>,
}

struct Entry {
    secret: u32,
    session: Weak<Session>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}

/// An open connection's entry; goes when dropped.
#[derive(Debug)]
pub(crate) struct CancelKey {
    registry: Arc<CancelRegistry>,
    pub(crate) process_id: i32,
    pub(crate) secret: u32,
}

impl CancelRegistry {
    /// Enters a session under its process id and a new secret.
    pub(crate) fn register(self: &Arc<Self>, session: &Arc<Session>) -> CancelKey {
        let secret = (stoa_env::random::u64() >> 32) as u32;
        let process_id = session.backend_id();
        let entry = Entry { secret, session: Arc::downgrade(session) };
        self.entries.lock().insert(process_id, entry);
        CancelKey { registry: Arc::clone(self), process_id, secret }
    }

    /// Cancels what the session runs; `false` for an unknown process id or a wrong secret.
    pub(crate) fn cancel(&self, process_id: i32, secret: &Bytes) -> bool {
        let session = {
            let entries = self.entries.lock();
            let entry = entries.get(&process_id);
            entry
                .filter(|entry| entry.secret.to_be_bytes()[..] == secret[..])
                .and_then(|entry| entry.session.upgrade())
        };
        if let Some(session) = &session {
            session.cancel();
        }
        session.is_some()
    }

    /// Cancels what all sessions run.
    pub(crate) fn cancel_all(&self) {
        let sessions: Vec<_> =
            self.entries.lock().values().filter_map(|entry| entry.session.upgrade()).collect();
        sessions.iter().for_each(|session| session.cancel());
    }
}

impl Drop for CancelKey {
    fn drop(&mut self) {
        self.registry.entries.lock().remove(&self.process_id);
    }
}
