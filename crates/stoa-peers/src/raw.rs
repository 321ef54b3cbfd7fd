//! Connections for a protocol of the caller, as well guarded as those for calls: each side has proved that it has the
//! key of its certificate, and the membership says whose that is. They carry the caller's bytes and nothing else.

use std::time::Duration;

use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_env::timer;
use stoa_error::{Error, Result};
use tokio::net::TcpStream;

use crate::failure;
use crate::identity::fingerprint_of;
use crate::peers::Peers;
use crate::tls::{self, Use};

/// A connection to a peer.
pub type RawClient = tokio_rustls::client::TlsStream<TcpStream>;
/// A connection from a peer.
pub type RawServer = tokio_rustls::server::TlsStream<TcpStream>;

impl Peers {
    /// Connects to a port of a living member, on the host on which it answers calls.
    ///
    /// # Errors
    /// Unavailable, 08001: it is no living member, does not answer within
    /// [`PeerOptions::open_timeout`](crate::PeerOptions::open_timeout), or is another process than the member.
    pub async fn connect(&self, to: DaemonId, port: u16) -> Result<RawClient> {
        let shared = self.shared();
        let peer = shared.directory.address(to).ok_or_else(|| failure::not_a_member(to))?;
        let host = peer.address.rsplit_once(':').map_or(peer.address.as_str(), |(host, _)| host);
        let address = format!("{host}:{port}");
        let failed = |why: &dyn std::fmt::Display| failure::cannot_connect(to, &address, why);
        let connector = shared.connector(peer.fingerprint, Use::Raw)?;
        let name = tls::server_name()?;
        let open = async {
            let socket = TcpStream::connect(&address).await.map_err(|e| failed(&e))?;
            let _ = socket.set_nodelay(true);
            connector.connect(name, socket).await.map_err(|e| failed(&tls::why(&e)))
        };
        within(shared.options.open_timeout, open, || {
            failed(&format_args!(
                "it took more than {} ms",
                shared.options.open_timeout.as_millis()
            ))
        })
        .await
    }

    /// Who has connected to a port of the caller's, and the connection.
    ///
    /// # Errors
    /// Forbidden: no living member. Unavailable: the handshake failed, or took longer than
    /// [`PeerOptions::open_timeout`](crate::PeerOptions::open_timeout).
    pub async fn admit(&self, socket: TcpStream) -> Result<(Holder, RawServer)> {
        let shared = self.shared();
        let acceptor = shared.acceptor(Use::Raw)?;
        let failed = || Error::unavailable("a connection from another daemon cannot be accepted");
        let open = async {
            let _ = socket.set_nodelay(true);
            let stream = acceptor.accept(socket).await.map_err(|e| failed().with_source(e))?;
            let certificates = stream.get_ref().1.peer_certificates();
            let certificate = certificates.and_then(|certificates| certificates.first());
            let fingerprint = certificate.map(fingerprint_of);
            let from = match fingerprint {
                Some(fingerprint) => shared.directory.who(fingerprint).await,
                None => None,
            };
            let stranger = || {
                let what = "a connection comes from no living member of the cluster";
                Error::new(stoa_error::ErrorKind::Forbidden, what)
            };
            Ok((from.ok_or_else(stranger)?, stream))
        };
        within(shared.options.open_timeout, open, failed).await
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T>>,
    late: impl FnOnce() -> Error,
) -> Result<T> {
    timer::timeout(limit, work).await.unwrap_or_else(|_| Err(late()))
}
