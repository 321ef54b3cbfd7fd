//! Requests of what stands above a membership: cancel a statement, show figures, answer a report.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use parking_lot::RwLock;
use stoa_cluster::DaemonId;
use stoa_cluster::membership::MemberState;
use stoa_error::{Error, Result};

use crate::member::{Inner, Member};

/// What a request is for. The numbers are those on the wire and stay what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ServiceKind {
    /// A key of the PostgreSQL protocol that cancels what its connection runs.
    Cancel = 0x100,
    /// End a query, a session, or what a session runs, by its id.
    Kill = 0x101,
    /// What the daemon would show of itself.
    Figures = 0x102,
    /// The rows of a ticket.
    Ticket = 0x103,
    /// Answer a report.
    Report = 0x104,
}

/// Answers requests of one kind that other daemons send. Called on the runtime of the membership; long work
/// belongs elsewhere.
pub trait Service: Send + Sync + 'static {
    /// The answer to a request of `from`, who has proved who it is and is a living member. Kind, SQLSTATE, message
    /// and hint of an error reach who asked.
    fn answer(&self, from: DaemonId, body: Bytes) -> BoxFuture<'static, Result<Bytes>>;
}

/// The services of this daemon.
#[derive(Default)]
pub(crate) struct Services(RwLock<HashMap<u16, Arc<dyn Service>>>);

impl Services {
    pub(crate) fn find(&self, kind: u16) -> Option<Arc<dyn Service>> {
        self.0.read().get(&kind).map(Arc::clone)
    }
}

impl Member {
    /// Answers requests of a kind from now on, instead of what did so before.
    pub fn serve(&self, kind: ServiceKind, service: Arc<dyn Service>) {
        self.0.services.0.write().insert(kind as u16, service);
    }

    /// Asks another daemon, which answers within `limit`.
    ///
    /// # Errors
    /// The other's, as it told it; 0A000 if it has no such service; Unavailable if it does not answer.
    pub async fn ask(
        &self,
        daemon: DaemonId,
        kind: ServiceKind,
        body: Bytes,
        limit: Duration,
    ) -> Result<Bytes> {
        self.0.peers.call(daemon, kind as u16, body, limit).await
    }

    /// Asks all other living daemons at once, and waits for all of them, `limit` at most. In the order of their ids.
    pub async fn ask_others(
        &self,
        kind: ServiceKind,
        body: Bytes,
        limit: Duration,
    ) -> Vec<(DaemonId, Result<Bytes>)> {
        let calls = self.others().into_iter().map(|daemon| {
            let body = body.clone();
            async move { (daemon, self.ask(daemon, kind, body, limit).await) }
        });
        join_all(calls).await
    }

    /// This daemon's number: no other living daemon has it. Small.
    pub fn number(&self) -> u32 {
        let life = self.0.known.state().and_then(|state| state.lives.get(&self.id()).copied());
        life.map_or(0, |life| life.number)
    }

    /// The living daemon with this number, which may be this one.
    pub fn numbered(&self, number: u32) -> Option<DaemonId> {
        let state = self.0.known.state()?;
        let lives = state.lives.iter().filter(|(_, life)| life.number == number);
        lives.map(|(daemon, _)| *daemon).find(|daemon| {
            state.members.get(*daemon).is_some_and(|row| row.state != MemberState::Dead)
        })
    }

    /// The other living daemons, in the order of their ids.
    pub fn others(&self) -> Vec<DaemonId> {
        let Inner { me, known, .. } = &*self.0;
        known.living().into_keys().filter(|daemon| *daemon != me.daemon).collect()
    }
}

pub(crate) fn unknown(kind: u16) -> Error {
    Error::unsupported(format!("this daemon does not know requests of kind {kind}"))
        .with_hint("a newer version of stoa asks; upgrade this daemon")
}
