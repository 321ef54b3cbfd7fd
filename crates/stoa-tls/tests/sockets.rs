//! Sockets with certificates that `openssl` made, against a client of rustls.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

use std::io;
use std::path::Path;
use std::sync::Arc;

use stoa_testkit::{Authority, Certificate, Key, Usage, hash_of};
use stoa_tls::{Protocol, Socket, Tls, TlsFiles};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ClientConfig, DEFAULT_VERSIONS, RootCertStore, SupportedProtocolVersion,
};

const REFUSED: &[u8] = b"encrypt, please\n";

fn files(certificate: &Certificate) -> TlsFiles {
    TlsFiles { cert: certificate.cert.clone(), key: certificate.key.clone(), client_ca: None }
}

/// A client that trusts the authority, and shows a certificate if it has one.
fn client(authority: &Authority, own: Option<&Certificate>) -> ClientConfig {
    client_of_versions(authority, own, DEFAULT_VERSIONS)
}

fn client_of_versions(
    authority: &Authority,
    own: Option<&Certificate>,
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate_in(authority.cert())).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let key = PrivateKeyDer::from_pem_file(&own.key).unwrap();
            builder.with_client_auth_cert(vec![certificate_in(&own.cert)], key).unwrap()
        }
    }
}

fn certificate_in(file: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file).unwrap()
}

/// Both ends of a connection; the server's is encrypted with `tls`.
async fn pair(tls: &Tls) -> (TcpStream, Socket) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (tcp, _) = listener.accept().await.unwrap();
    (client, Socket::encrypted(tcp, tls, Protocol::Postgres, REFUSED))
}

/// What the client gets from a server that sends back what it reads, and the server's certificate.
async fn echo(
    tls: &Tls,
    config: ClientConfig,
) -> io::Result<(String, CertificateDer<'static>, Option<Vec<u8>>)> {
    let (tcp, mut server) = pair(tls).await;
    let serving = stoa_env::task::spawn(async move {
        let mut word = [0; 4];
        server.read_exact(&mut word).await?;
        let bound_to = server.end_point().map(<[u8]>::to_vec);
        server.write_all(&word).await?;
        server.shutdown().await?;
        io::Result::Ok(bound_to)
    });
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
    let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    stream.write_all(b"ping").await?;
    stream.flush().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok((answer, certificate, serving.await.unwrap()?))
}

struct CertificateFolder {
    folder: TempDir,
    authority: Authority,
}

impl CertificateFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "authority");
        Self { folder, authority }
    }
}

#[tokio::test]
async fn a_client_that_trusts_the_authority_is_answered() {
    let place = CertificateFolder::new();
    let tls = Tls::open(files(&place.authority.issue("server", Usage::Server))).unwrap();
    let (answer, ..) = echo(&tls, client(&place.authority, None)).await.unwrap();
    assert_eq!(answer, "ping");
    let other = Authority::new(place.folder.path(), "other");
    let error = echo(&tls, client(&other, None)).await.unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn the_protocol_is_agreed_upon() {
    let place = CertificateFolder::new();
    let tls = Tls::open(files(&place.authority.issue("server", Usage::Server))).unwrap();
    let mut right = client(&place.authority, None);
    right.alpn_protocols = vec![b"postgresql".to_vec()];
    assert_eq!(echo(&tls, right).await.unwrap().0, "ping");
    let mut wrong = client(&place.authority, None);
    wrong.alpn_protocols = vec![b"h2".to_vec()];
    let error = echo(&tls, wrong).await.unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
}

#[tokio::test]
async fn a_client_that_does_not_encrypt_is_told_so() {
    let place = CertificateFolder::new();
    let tls = Tls::open(files(&place.authority.issue("server", Usage::Server))).unwrap();
    let (mut client, mut server) = pair(&tls).await;
    let serving = stoa_env::task::spawn(async move { server.read_u8().await });
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, REFUSED);
    drop(client);
    let error = serving.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_does_not_stay() {
    let place = CertificateFolder::new();
    let tls = Tls::open(files(&place.authority.issue("server", Usage::Server))).unwrap();
    let (mut client, mut server) = pair(&tls).await;
    assert_eq!(server.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    // Not in the middle of the handshake either.
    let (mut begun, mut server) = pair(&tls).await;
    begun.write_all(&[0x16, 3, 1]).await.unwrap();
    assert_eq!(server.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn clients_need_a_certificate_where_authorities_are_named() {
    let place = CertificateFolder::new();
    let server = place.authority.issue("server", Usage::Server);
    let issuer = Authority::new(place.folder.path(), "issuer");
    let client_ca = Some(issuer.cert().to_owned());
    let tls = Tls::open(TlsFiles { client_ca, ..files(&server) }).unwrap();
    let known = issuer.issue("known", Usage::Client);
    let (answer, ..) = echo(&tls, client(&place.authority, Some(&known))).await.unwrap();
    assert_eq!(answer, "ping");
    assert!(echo(&tls, client(&place.authority, None)).await.is_err());
    let foreign = place.authority.issue("foreign", Usage::Client);
    assert!(echo(&tls, client(&place.authority, Some(&foreign))).await.is_err());
    // What is for servers is not for clients.
    let of_server = issuer.issue("of_server", Usage::Server);
    assert!(echo(&tls, client(&place.authority, Some(&of_server))).await.is_err());
}

#[tokio::test]
async fn new_files_are_used_and_broken_ones_are_not() {
    let place = CertificateFolder::new();
    let live = place.authority.issue("live", Usage::Server);
    let first = certificate_in(&live.cert);
    let tls = Tls::open(files(&live)).unwrap();
    let served = || async { echo(&tls, client(&place.authority, None)).await.unwrap().1 };
    assert!(!tls.refresh().unwrap());
    assert_eq!(served().await, first);

    // A certificate without its key yet: the same at two looks, it is tried, and refused.
    let next = place.authority.issue("next", Usage::Server);
    let second = certificate_in(&next.cert);
    std::fs::rename(&next.cert, &live.cert).unwrap();
    assert!(!tls.refresh().unwrap());
    let error = tls.refresh().unwrap_err();
    assert!(error.message().starts_with("tls_cert: "), "{error}");
    assert!(!tls.refresh().unwrap(), "told once");
    assert_eq!(served().await, first);

    std::fs::rename(&next.key, &live.key).unwrap();
    assert!(!tls.refresh().unwrap());
    assert!(tls.refresh().unwrap());
    assert_eq!(served().await, second);

    std::fs::remove_file(&live.key).unwrap();
    assert!(!tls.refresh().unwrap());
    let error = tls.refresh().unwrap_err();
    assert!(error.message().starts_with("tls_key: cannot read "), "{error}");
    assert_eq!(served().await, second);
}

#[tokio::test]
async fn logins_are_bound_to_the_certificates_hash() {
    let place = CertificateFolder::new();
    for hash in ["sha256", "sha384"] {
        let server = place.authority.issue_with(hash, Usage::Server, Key::P256, hash);
        let tls = Tls::open(files(&server)).unwrap();
        let (_, _, bound_to) = echo(&tls, client(&place.authority, None)).await.unwrap();
        assert_eq!(bound_to, Some(hash_of(&server.cert, hash)), "{hash}");
    }
    let rsa = Authority::with_key(place.folder.path(), "rsa_authority", Key::Rsa);
    let server = rsa.issue("of_rsa", Usage::Server);
    let (_, _, bound_to) =
        echo(&Tls::open(files(&server)).unwrap(), client(&rsa, None)).await.unwrap();
    assert_eq!(bound_to, Some(hash_of(&server.cert, "sha256")));
    let server = rsa.issue_with("sha512", Usage::Server, Key::P256, "sha512");
    let (_, _, bound_to) =
        echo(&Tls::open(files(&server)).unwrap(), client(&rsa, None)).await.unwrap();
    assert_eq!(bound_to, Some(hash_of(&server.cert, "sha512")));
    // Its signatures have no hash function that client and server could agree upon.
    let ed25519 = Authority::with_key(place.folder.path(), "ed25519_authority", Key::Ed25519);
    let server = ed25519.issue("of_ed25519", Usage::Server);
    let (answer, _, bound_to) =
        echo(&Tls::open(files(&server)).unwrap(), client(&ed25519, None)).await.unwrap();
    assert_eq!((answer.as_str(), bound_to), ("ping", None));
}

#[tokio::test]
async fn keys_of_all_kinds_and_both_versions_work() {
    let place = CertificateFolder::new();
    for (name, key) in
        [("p256", Key::P256), ("p384", Key::P384), ("rsa", Key::Rsa), ("ed25519", Key::Ed25519)]
    {
        let server = place.authority.issue_with(name, Usage::Server, key, "sha256");
        let tls = Tls::open(files(&server)).unwrap();
        for version in [&TLS12, &TLS13] {
            let config = client_of_versions(&place.authority, None, &[version]);
            assert_eq!(echo(&tls, config).await.unwrap().0, "ping", "{name} {version:?}");
        }
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let place = CertificateFolder::new();
    let good = place.authority.issue("server", Usage::Server);
    let other = place.authority.issue("other", Usage::Server);
    let none = place.folder.path().join("none.pem");
    let empty = place.folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let broken = place.folder.path().join("broken.pem");
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
    let check = |files: TlsFiles, expected: &str| {
        let error = Tls::open(files).unwrap_err();
        assert!(error.message().contains(expected), "{error}, not {expected}");
    };
    let good = || files(&good);
    check(TlsFiles { cert: none.clone(), ..good() }, "tls_cert: cannot read ");
    check(TlsFiles { cert: empty.clone(), ..good() }, "empty.pem has no certificate");
    check(TlsFiles { cert: broken, ..good() }, "broken.pem is no valid PEM");
    check(TlsFiles { key: none, ..good() }, "tls_key: cannot read ");
    check(TlsFiles { key: empty.clone(), ..good() }, "empty.pem has no private key");
    check(TlsFiles { key: other.key, ..good() }, "cannot be used together");
    check(TlsFiles { client_ca: Some(empty), ..good() }, "tls_client_ca: ");
}
