//! Requests to other daemons, and who they are.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use stoa_cluster::DaemonId;
use stoa_cluster::membership::MemberState;
use stoa_error::Result;
use stoa_peers::Peers;

use crate::member::{Inner, Member};
use crate::service::{Service, ServiceKind};

impl Member {
    /// Answers requests of a kind from now on, instead of what did so before.
    pub fn serve(&self, kind: ServiceKind, service: Arc<dyn Service>) {
        self.0.services.set(kind, service);
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

    /// The way to other daemons, for connections of a protocol of the caller's.
    pub fn peers(&self) -> &Peers {
        &self.0.peers
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

    /// The name of another machine with a living daemon; `None` if all are on this one, whose disks they share.
    pub fn other_machine(&self) -> Option<String> {
        let state = self.0.known.state()?;
        let name = |daemon: DaemonId| state.daemons.get(&daemon).map(|info| info.name.as_str());
        let own = name(self.id())?;
        let found = self.others().into_iter().filter_map(name).find(|other| *other != own);
        found.map(str::to_owned)
    }

    /// The other living daemons, in the order of their ids.
    pub fn others(&self) -> Vec<DaemonId> {
        let Inner { me, known, .. } = &*self.0;
        known.living().into_keys().filter(|daemon| *daemon != me.daemon).collect()
    }
}
