//! TLS 1.3 between two certificates that are known by their fingerprints.
//!
//! rustls asks a verifier twice: whether it accepts a certificate, and whether the handshake is signed
//! with that certificate's key. The second is checked as usual. As to the first, whoever connects expects
//! exactly one certificate; whoever is connected to accepts any here, and looks its fingerprint up in the
//! membership as soon as the handshake is done.

use std::io;
use std::sync::Arc;

use stoa_error::{Error, Result};
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, PeerMisbehaved,
    ServerConfig, SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::identity::{Identity, NAME, fingerprint_of};

/// For what a connection is, so that nobody can lead a client of another protocol here, or a daemon elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Calls of this crate.
    Calls,
    /// A protocol of the caller.
    Raw,
}

impl Use {
    fn alpn(self) -> Vec<u8> {
        match self {
            Self::Calls => b"stoa-peer".to_vec(),
            Self::Raw => b"stoa-tasks".to_vec(),
        }
    }
}

/// Bytes of the largest certificate taken; those of [`Identity`] have about 400.
const CERTIFICATE_BYTES_MAX: usize = 4 << 10;

/// What connections are encrypted with.
pub(crate) struct PeerTls {
    provider: Arc<CryptoProvider>,
    own: Arc<SingleCertAndKey>,
}

impl PeerTls {
    pub(crate) fn new(identity: &Identity) -> Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let key = provider.key_provider.load_private_key(identity.key().clone_key());
        let key = key.map_err(cannot_set_up)?;
        let own = CertifiedKey::new(vec![identity.certificate().clone()], key);
        Ok(Self { provider, own: Arc::new(own.into()) })
    }

    /// For a connection to the peer with this certificate.
    pub(crate) fn connector(&self, fingerprint: [u8; 32], to: Use) -> Result<TlsConnector> {
        let provider = Arc::clone(&self.provider);
        let verifier = PinnedServer { fingerprint, provider: Arc::clone(&provider) };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(cannot_set_up)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(Arc::clone(&self.own) as _);
        config.alpn_protocols = vec![to.alpn()];
        config.enable_sni = false;
        config.resumption = Resumption::disabled();
        Ok(TlsConnector::from(Arc::new(config)))
    }

    /// For connections from peers.
    pub(crate) fn acceptor(&self, of: Use) -> Result<TlsAcceptor> {
        let provider = Arc::clone(&self.provider);
        let verifier = KeyHolder { provider: Arc::clone(&provider) };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(cannot_set_up)?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_cert_resolver(Arc::clone(&self.own) as _);
        config.alpn_protocols = vec![of.alpn()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn cannot_set_up(source: rustls::Error) -> Error {
    Error::internal("TLS between daemons cannot be set up").with_source(source)
}

/// The name that TLS wants of a server; it is not sent.
pub(crate) fn server_name() -> Result<ServerName<'static>> {
    let invalid = |e| Error::internal("the name of peers is no name of a server").with_source(e);
    ServerName::try_from(NAME).map_err(invalid)
}

/// Why a handshake failed, as operators read it.
pub(crate) fn why(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
    match tls {
        Some(tls) if *tls == refused() => {
            "its certificate is not the one in the membership; it may have restarted".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Accepts one certificate, whose fingerprint is known.
#[derive(Debug)]
struct PinnedServer {
    fingerprint: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedServer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        acceptable(certificate, intermediates)?;
        match fingerprint_of(certificate) == self.fingerprint {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(refused()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts any certificate whose key the client has.
#[derive(Debug)]
struct KeyHolder {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for KeyHolder {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        acceptable(certificate, intermediates)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// One certificate, and no larger than it needs to be.
fn acceptable(
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> Result<(), rustls::Error> {
    match intermediates.is_empty() && certificate.len() <= CERTIFICATE_BYTES_MAX {
        true => Ok(()),
        false => Err(refused()),
    }
}

fn refused() -> rustls::Error {
    CertificateError::ApplicationVerificationFailure.into()
}

fn no_tls12() -> rustls::Error {
    PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into()
}
