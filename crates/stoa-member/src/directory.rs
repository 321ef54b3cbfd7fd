//! The members as they were last read: for whoever calls them, and for connections from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::RwLock;
use stoa_catalog::{Cluster, ClusterState};
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_peers::{Directory, PeerAddress};

/// What was read last.
pub(crate) struct Known {
    cluster: Cluster,
    route: Route,
    state: RwLock<Option<Arc<ClusterState>>>,
}

/// The address under which this daemon reaches the one that a peer gives of itself.
pub type Route = Arc<dyn Fn(&str) -> String + Send + Sync>;

impl Known {
    pub(crate) fn new(cluster: Cluster, route: Route) -> Self {
        Self { cluster, route, state: RwLock::new(None) }
    }

    pub(crate) fn state(&self) -> Option<Arc<ClusterState>> {
        self.state.read().clone()
    }

    /// Keeps what was read, unless the members are known as of a later epoch: answers may overtake each other.
    pub(crate) fn set(&self, state: Arc<ClusterState>) {
        let mut known = self.state.write();
        let epoch = state.members.epoch();
        if known.as_ref().is_none_or(|known| known.members.epoch() <= epoch) {
            *known = Some(state);
        }
    }

    /// Living lives of daemons, by daemon.
    pub(crate) fn living(&self) -> BTreeMap<DaemonId, Holder> {
        self.state().map(|state| living(&state)).unwrap_or_default()
    }

    fn with_certificate(&self, fingerprint: [u8; 32]) -> Option<Holder> {
        let state = self.state()?;
        let mut daemons = state.daemons.values();
        let daemon = daemons.find(|info| info.certificate == fingerprint)?.id;
        self.living().remove(&daemon)
    }
}

/// Living lives of daemons, by daemon.
pub(crate) fn living(state: &ClusterState) -> BTreeMap<DaemonId, Holder> {
    let lives = state
        .members
        .iter()
        .map(|(daemon, member)| Holder { daemon, incarnation: member.incarnation });
    let living = lives.filter(|holder| state.members.lives(*holder));
    living.map(|holder| (holder.daemon, holder)).collect()
}

impl Directory for Known {
    fn address(&self, daemon: DaemonId) -> Option<PeerAddress> {
        let holder = self.living().remove(&daemon)?;
        let state = self.state()?;
        let info = state.daemons.get(&daemon)?;
        let (address, fingerprint) = ((self.route)(&info.peer_address), info.certificate);
        Some(PeerAddress { address, holder, fingerprint })
    }

    fn who(&self, fingerprint: [u8; 32]) -> BoxFuture<'_, Option<Holder>> {
        Box::pin(async move {
            if let Some(known) = self.with_certificate(fingerprint) {
                return Some(known);
            }
            // It may have joined since.
            match self.cluster.state().await {
                Ok(state) => self.set(Arc::new(state)),
                Err(error) => tracing::debug!(%error, "members cannot be read"),
            }
            self.with_certificate(fingerprint)
        })
    }
}
