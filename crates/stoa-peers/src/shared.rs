//! What all connections of a process share.

use std::future::Future;
use std::sync::Arc;

use stoa_env::task;
use stoa_error::Result;
use tokio::runtime::Handle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::directory::Directory;
use crate::identity::Identity;
use crate::options::PeerOptions;
use crate::tls::{PeerTls, Use};

pub(crate) struct Shared {
    /// A process that cannot set TLS up says so at its first connection.
    tls: Result<PeerTls>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) options: PeerOptions,
    /// Where connections live.
    runtime: Option<Handle>,
}

impl Shared {
    pub(crate) fn new(
        identity: &Identity,
        directory: Arc<dyn Directory>,
        options: PeerOptions,
    ) -> Self {
        let runtime = Handle::try_current().ok();
        Self { tls: PeerTls::new(identity), directory, options, runtime }
    }

    pub(crate) fn connector(&self, fingerprint: [u8; 32], to: Use) -> Result<TlsConnector> {
        self.tls()?.connector(fingerprint, to)
    }

    pub(crate) fn acceptor(&self, of: Use) -> Result<TlsAcceptor> {
        self.tls()?.acceptor(of)
    }

    /// Starts the task of a connection to a peer: not on the runtime of whoever happens to call first.
    pub(crate) fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let _entered = self.runtime.as_ref().map(Handle::enter);
        task::spawn(connection);
    }

    fn tls(&self) -> Result<&PeerTls> {
        self.tls.as_ref().map_err(stoa_error::Error::copied)
    }
}
