//! One side of a connection between daemons, made by hand, so that a test can say anything over it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// A certificate and a key that the test knows.
pub struct Raw {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Raw {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(["stoa-peer".to_owned()]).unwrap();
        let certificate = parameters.self_signed(&key).unwrap().der().clone();
        Self { certificate, key: key.serialize_der() }
    }

    /// The certificate of one with the key of another.
    pub fn with_key_of(&self, other: &Self) -> Self {
        Self { certificate: self.certificate.clone(), key: other.key.clone() }
    }

    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(&self.certificate).into()
    }

    fn resolver(&self) -> Arc<SingleCertAndKey> {
        let key = PrivatePkcs8KeyDer::from(self.key.clone()).into();
        let key = ring::default_provider().key_provider.load_private_key(key).unwrap();
        Arc::new(CertifiedKey::new(vec![self.certificate.clone()], key).into())
    }

    /// Connects to a daemon with this certificate.
    pub async fn connect(&self, address: &str) -> std::io::Result<client::TlsStream<TcpStream>> {
        connect(address, Some(self), &TLS13).await
    }

    /// What a daemon's connection becomes.
    pub async fn accept(&self, socket: TcpStream) -> std::io::Result<server::TlsStream<TcpStream>> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_client_cert_verifier(Arc::new(Anybody))
            .with_cert_resolver(self.resolver());
        config.alpn_protocols = vec![b"stoa-peer".to_vec()];
        TlsAcceptor::from(Arc::new(config)).accept(socket).await
    }
}

/// Connects to a daemon, with a certificate or without.
pub async fn connect(
    address: &str,
    raw: Option<&Raw>,
    version: &'static SupportedProtocolVersion,
) -> std::io::Result<client::TlsStream<TcpStream>> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody));
    let mut config = match raw {
        Some(raw) => config.with_client_cert_resolver(raw.resolver()),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"stoa-peer".to_vec()];
    let socket = TcpStream::connect(address).await?;
    let name = ServerName::try_from("stoa-peer").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

/// The bytes of a hello.
pub fn hello(protocol_min: u16, protocol_max: u16) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&protocol_min.to_be_bytes());
    body.extend_from_slice(&protocol_max.to_be_bytes());
    body.extend_from_slice(&(64_u32 << 20).to_be_bytes());
    body.push(0);
    body.extend_from_slice(&3_u16.to_be_bytes());
    body.extend_from_slice(b"raw");
    let length = u32::try_from(body.len()).unwrap();
    [b"stoapeer".as_slice(), &length.to_be_bytes(), &body].concat()
}

/// The bytes of a frame, of which the body may be missing.
pub fn frame(length: u32, frame: u8, kind: u16, id: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(&[frame, 0]);
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Trusts everybody.
#[derive(Debug)]
struct Anybody;

fn schemes() -> Vec<SignatureScheme> {
    ring::default_provider().signature_verification_algorithms.supported_schemes()
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }
}

impl ClientCertVerifier for Anybody {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }
}
