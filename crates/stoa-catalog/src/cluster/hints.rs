//! Hints that members or leases have changed.

use tokio::sync::watch;

use super::Cluster;

/// Hints that members or leases have changed, for reading them before it is time. Some are lost: whoever
/// listens reads every two seconds all the same.
#[derive(Debug)]
pub struct ClusterHints {
    received: watch::Receiver<u64>,
}

impl Cluster {
    /// Listens for hints, on a connection of its own, until the answer is dropped.
    pub fn hints(&self) -> ClusterHints {
        ClusterHints { received: self.database.listen() }
    }
}

impl ClusterHints {
    /// Waits for a hint that came since the last call, or for a new connection, before which some may have been
    /// missed. Many hints count as one. Waits for ever once the catalog is closed; may be dropped.
    pub async fn next(&mut self) {
        if self.received.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
