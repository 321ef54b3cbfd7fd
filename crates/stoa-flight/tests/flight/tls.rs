//! Encrypted connections: whether HTTP/2 begins behind the handshake, and nothing without it. What
//! clients ask over it is tried with theirs, in `clients/flight`.

use std::sync::Arc;

use stoa_flight::FlightOptions;
use stoa_testkit::{Authority, Usage};
use stoa_tls::{Tls, TlsFiles};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::support::Server;

/// What an HTTP/2 client begins with, and its settings, which are empty.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test]
async fn calls_are_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "authority");
    let made = authority.issue("server", Usage::Server);
    let files = TlsFiles { cert: made.cert, key: made.key, client_ca: None };
    let tls = Some(Tls::open(files).unwrap());
    let mut server = Server::start_with(FlightOptions { tls, ..FlightOptions::default() }).await;
    let address = server.url.replace("http://", "");

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.cert()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let tcp = TcpStream::connect(&address).await.unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    stream.write_all(PREFACE).await.unwrap();
    stream.flush().await.unwrap();
    // The head of a frame: three bytes of length, then its type, of which 4 is SETTINGS.
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4);

    let mut plain = TcpStream::connect(&address).await.unwrap();
    plain.write_all(PREFACE).await.unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"");
    drop((stream, plain));
    server.stop();
    server.ended().await;
}
