//! What this crate is told by its caller: the membership, and what to answer.

use bytes::Bytes;
use futures::future::BoxFuture;
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_error::Result;

/// Where a member is, and how it proves that it is the one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// `host:port`.
    pub address: String,
    /// Who it is.
    pub holder: Holder,
    /// SHA-256 of its certificate.
    pub fingerprint: [u8; 32],
}

/// The membership as this daemon knows it.
pub trait Directory: Send + Sync + 'static {
    /// Where a living member is. Asked before each attempt to connect, not for each call.
    fn address(&self, daemon: DaemonId) -> Option<PeerAddress>;

    /// Which living member has this certificate; asked for each incoming connection. May read the
    /// membership again, because the daemon may have just joined. The other side has proved that it has the
    /// certificate's key. A lookup is dropped when the time to connect is over
    /// ([`open_timeout`](crate::PeerOptions::open_timeout)).
    fn who(&self, fingerprint: [u8; 32]) -> BoxFuture<'_, Option<Holder>>;
}

/// What this daemon answers.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request of a member. Each request runs as a task of its own on the runtime of
    /// [`Peers::serve`](crate::Peers::serve), to its end even if the caller gives up. Errors reach the caller
    /// with kind, SQLSTATE, message, detail, hint and position.
    fn handle(&self, from: Holder, kind: u16, body: Bytes) -> BoxFuture<'static, Result<Bytes>>;
}
