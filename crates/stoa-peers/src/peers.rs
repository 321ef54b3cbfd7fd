//! The way to all peers.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::RwLock;
use stoa_cluster::DaemonId;
use stoa_env::{clock, timer};
use stoa_error::Result;
use tokio::net::TcpListener;

use crate::directory::{Directory, Handler};
use crate::failure;
use crate::identity::Identity;
use crate::incoming;
use crate::link::Link;
use crate::options::PeerOptions;
use crate::registry::Registry;
use crate::shared::Shared;
use crate::statistics::PeerStatistics;

/// Calls other daemons, and answers their calls. Clones share connections; dropping the last one closes the
/// connections to peers.
#[derive(Clone)]
pub struct Peers(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    links: RwLock<HashMap<DaemonId, Arc<Link>>>,
    incoming: Arc<Registry>,
}

impl Peers {
    /// Peers of the process with this identity. Nothing is connected before it is needed. Connections to
    /// peers live on the runtime on which this is called, wherever calls come from.
    pub fn new(identity: Identity, directory: Arc<dyn Directory>, options: PeerOptions) -> Self {
        let shared = Arc::new(Shared::new(&identity, directory, options));
        Self(Arc::new(Inner { shared, links: RwLock::default(), incoming: Arc::default() }))
    }

    /// Answers peers until `shutdown` completes. Requests that run then get
    /// [`PeerOptions::shutdown_grace`]; new ones are refused (57P03).
    ///
    /// # Errors
    /// Internal: TLS cannot be set up. Failures of single connections end those only.
    pub async fn serve(
        &self,
        listener: TcpListener,
        handler: Arc<dyn Handler>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        let (shared, registry) = (Arc::clone(&self.0.shared), Arc::clone(&self.0.incoming));
        incoming::serve(shared, registry, listener, handler, shutdown).await
    }

    /// Sends one request to a daemon and waits for its answer, for `limit` at most, connecting included.
    /// `kind` and `body` are for the peer's [`Handler`]. If the call is dropped, its answer is ignored; the
    /// peer may have handled the request.
    ///
    /// # Errors
    /// - Unavailable, 08001: the daemon is no living member or cannot be reached. It has not got the request.
    /// - Unavailable, 08006: the connection was lost, or no answer came in time. It may have handled the request.
    /// - Invalid, 54000: request or answer is larger than [`PeerOptions::frame_bytes_max`] of either side.
    /// - Any other: what the daemon itself answered. [`is_unreachable`](crate::is_unreachable) tells them apart.
    pub async fn call(
        &self,
        to: DaemonId,
        kind: u16,
        body: Bytes,
        limit: Duration,
    ) -> Result<Bytes> {
        let link = self.link(to);
        let _in_flight = InFlight::begin(&link.counters.in_flight);
        let began = clock::monotonic();
        let mut connected = false;
        let call = async {
            let connection = link.connection(&self.0.shared).await?;
            connected = true;
            connection.call(kind, body).await
        };
        let answer = match timer::timeout(limit, call).await {
            Ok(answer) => answer,
            Err(_) if connected => Err(failure::late(to, limit)),
            Err(_) => Err(failure::late_to_connect(to, limit)),
        };
        match &answer {
            Err(error) if failure::is_unreachable(error) => link.counters.failed(),
            _ => link.counters.answered(began.elapsed()),
        }
        answer
    }

    /// Ends the connections to and from a daemon, and fails the calls that wait for it (08006). Call this
    /// when a member has died or has been replaced by a new incarnation of its daemon, after the directory
    /// knows about it. If the daemon is a member again, the next call connects again.
    pub fn forget(&self, daemon: DaemonId) {
        let link = self.0.links.read().get(&daemon).map(Arc::clone);
        if let Some(link) = link {
            link.forget("it is not a living member of the cluster any more");
        }
        self.0.incoming.forget(daemon);
    }

    /// What was exchanged with each peer that was called or is connected, in the order of their ids.
    pub fn statistics(&self) -> Vec<PeerStatistics> {
        let from = self.0.incoming.daemons();
        let mut links: BTreeMap<_, _> =
            self.0.links.read().iter().map(|(id, link)| (*id, Arc::clone(link))).collect();
        for daemon in &from {
            links.entry(*daemon).or_insert_with(|| Arc::new(Link::new(*daemon)));
        }
        links.iter().map(|(daemon, link)| link.statistics(from.contains(daemon))).collect()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    fn link(&self, daemon: DaemonId) -> Arc<Link> {
        if let Some(link) = self.0.links.read().get(&daemon) {
            return Arc::clone(link);
        }
        let mut links = self.0.links.write();
        Arc::clone(links.entry(daemon).or_insert_with(|| Arc::new(Link::new(daemon))))
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").field("links", &self.0.links.read().len()).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for link in self.links.get_mut().values() {
            link.forget("this daemon closed it");
        }
    }
}

/// Counts a call, until it ends or is dropped.
struct InFlight<'a>(&'a AtomicUsize);

impl<'a> InFlight<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
