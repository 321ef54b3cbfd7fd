//! Sessions that last from request to request.
//!
//! **Invariants:** a session is used by the role that opened it only, one statement after the other. A role has a
//! bounded number of them; the one that was not used for longest makes room. One that is not used for long ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_env::clock;
use stoa_error::{Error, Result};
use stoa_query::Session;
use tokio::sync::OwnedMutexGuard;

use super::id;

/// The sessions that clients have opened.
pub(crate) struct Sessions {
    idle_max: Duration,
    per_role_max: usize,
    all: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    owner: String,
    session: Arc<Session>,
    /// Held while a request uses the session.
    turn: Arc<tokio::sync::Mutex<()>>,
    ends_at: Instant,
}

/// A session, until dropped for nobody else.
pub(crate) struct Turn {
    pub(crate) session: Arc<Session>,
    _held: OwnedMutexGuard<()>,
}

impl Sessions {
    pub(crate) fn new(idle_max: Duration, per_role_max: usize) -> Self {
        Self { idle_max, per_role_max, all: Mutex::default() }
    }

    /// Keeps a new session of `owner`; its id.
    pub(crate) fn add(&self, owner: &str, session: Arc<Session>) -> String {
        let mut all = self.all.lock();
        let own = |all: &HashMap<String, Entry>| {
            all.values().filter(|entry| entry.owner == owner).count()
        };
        while own(&all) >= self.per_role_max {
            let idle = all.iter().filter(|(_, entry)| entry.owner == owner && !is_used(entry));
            let oldest = idle.min_by_key(|(_, entry)| entry.ends_at).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { break };
            all.remove(&oldest);
        }
        let id = id();
        let ends_at = clock::monotonic() + self.idle_max;
        let entry = Entry { owner: owner.to_owned(), session, turn: Arc::default(), ends_at };
        all.insert(id.clone(), entry);
        id
    }

    /// The session `id` of `owner`, once no other request uses it.
    ///
    /// # Errors
    /// Not found (08003): there is none, none any more, or it is another role's.
    pub(crate) async fn turn(&self, id: &str, owner: &str) -> Result<Turn> {
        let (session, turn) = {
            let mut all = self.all.lock();
            let entry = all.get_mut(id).filter(|entry| entry.owner == owner);
            let entry = entry.filter(|entry| !entry.session.is_terminated()).ok_or_else(gone)?;
            entry.ends_at = clock::monotonic() + self.idle_max;
            (Arc::clone(&entry.session), Arc::clone(&entry.turn))
        };
        Ok(Turn { session, _held: turn.lock_owned().await })
    }

    /// Ends a session after `grace`, unless it is used again by then.
    ///
    /// # Errors
    /// Not found (08003): as for [`Sessions::turn`].
    pub(crate) fn end(&self, id: &str, owner: &str, grace: Duration) -> Result<()> {
        let mut all = self.all.lock();
        let entry = all.get_mut(id).filter(|entry| entry.owner == owner).ok_or_else(gone)?;
        match grace.is_zero() {
            true => drop(all.remove(id)),
            false => entry.ends_at = entry.ends_at.min(clock::monotonic() + grace),
        }
        Ok(())
    }

    /// Ends sessions that were not used for long.
    pub(crate) fn tidy(&self) {
        let now = clock::monotonic();
        self.all.lock().retain(|_, entry| {
            is_used(entry) || (entry.ends_at > now && !entry.session.is_terminated())
        });
    }
}

fn is_used(entry: &Entry) -> bool {
    Arc::strong_count(&entry.turn) > 1
}

fn gone() -> Error {
    Error::not_found("there is no such session, or it has ended").with_sqlstate("08003").with_hint(
        "open one with POST /v1/sessions; what SET has changed, and temporary tables, are gone",
    )
}
