//! What all connections of a process share.

use std::sync::Arc;

use stoa_error::Result;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::directory::Directory;
use crate::identity::Identity;
use crate::options::PeerOptions;
use crate::tls::PeerTls;

pub(crate) struct Shared {
    /// A process that cannot set TLS up says so at its first connection.
    tls: Result<PeerTls>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) options: PeerOptions,
}

impl Shared {
    pub(crate) fn new(
        identity: &Identity,
        directory: Arc<dyn Directory>,
        options: PeerOptions,
    ) -> Self {
        Self { tls: PeerTls::new(identity), directory, options }
    }

    pub(crate) fn connector(&self, fingerprint: [u8; 32]) -> Result<TlsConnector> {
        self.tls()?.connector(fingerprint)
    }

    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor> {
        self.tls()?.acceptor()
    }

    fn tls(&self) -> Result<&PeerTls> {
        self.tls.as_ref().map_err(stoa_error::Error::copied)
    }
}
