//! Encrypted connections: a driver (tokio-postgres over rustls) and raw bytes against a server with a
//! certificate that asks for logins.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::common::raw::RawClient;
use crate::common::within;
use stoa_pgwire::ServeOptions;
use stoa_query::{Engine, EngineOptions, SessionOptions};
use stoa_testkit::ENDLESS;
use stoa_testkit::{Authority, Usage, hash_of};
use stoa_tls::{Tls, TlsFiles};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio_postgres::config::{ChannelBinding as Binding, SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A server with a certificate, on which `ann` logs in with the password `pencil`.
struct Server {
    port: u16,
    engine: Arc<Engine>,
    authority: Authority,
    /// What logins are bound to, as `openssl` has it.
    end_point: Vec<u8>,
    _folder: TempDir,
}

impl Server {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "authority");
        let certificate = authority.issue("server", Usage::Server);
        let end_point = hash_of(&certificate.cert, "sha256");
        let files = TlsFiles { cert: certificate.cert, key: certificate.key, client_ca: None };
        let url = url::Url::from_directory_path(folder.path().join("warehouse")).unwrap();
        let options = EngineOptions { access_control: true, ..EngineOptions::new(url) };
        let engine = Engine::open(options).await.unwrap();
        let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
        root.sql("CREATE USER ann PASSWORD 'pencil'").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let options =
            ServeOptions { tls: Some(Tls::open(files).unwrap()), ..ServeOptions::default() };
        let serving = Arc::clone(&engine);
        stoa_env::task::spawn(async move {
            stoa_pgwire::serve_with(listener, serving, options, std::future::pending()).await
        });
        Self { port, engine, authority, end_point, _folder: folder }
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.host("localhost").hostaddr([127, 0, 0, 1].into()).port(self.port);
        config.user("ann").password("pencil").dbname("stoa");
        config
    }

    /// A client that trusts the authority, and names these protocols.
    fn connector(&self, alpn: &[&[u8]]) -> Connector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.authority.cert()).unwrap()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Connector { config: Arc::new(config), end_point: self.end_point.clone() }
    }
}

async fn connect(config: &Config, connector: Connector) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = within(config.connect(connector)).await?;
    stoa_env::task::spawn(connection);
    Ok(client)
}

async fn count(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM generate_series(1, 10)", &[]).await.unwrap().get(0)
}

/// The SQLSTATE with which a connection is refused.
async fn refused(config: &Config, connector: Connector) -> String {
    let error = connect(config, connector).await.expect_err("the connection is refused");
    error.code().unwrap_or_else(|| panic!("{error:?}")).code().to_owned()
}

#[tokio::test]
async fn sessions_are_encrypted_with_and_without_a_request_for_it() {
    let server = Server::start().await;
    let asked = server.config().ssl_mode(SslMode::Require).to_owned();
    assert_eq!(count(&connect(&asked, server.connector(&[])).await.unwrap()).await, 10);
    let direct = asked.clone().ssl_negotiation(SslNegotiation::Direct).to_owned();
    let connector = server.connector(&[b"postgresql"]);
    let client = connect(&direct, connector).await.unwrap();
    assert_eq!(count(&client).await, 10);
    // More than any buffer on the way holds.
    let rows = client
        .simple_query("SELECT value FROM generate_series(1, 200000) AS s(value)")
        .await
        .unwrap();
    let rows = rows.iter().filter(|message| matches!(message, SimpleQueryMessage::Row(_)));
    assert_eq!(rows.count(), 200_000);
}

#[tokio::test]
async fn tls_without_a_request_needs_the_protocols_name() {
    let server = Server::start().await;
    let mut direct = server.config();
    direct.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    assert_eq!(refused(&direct, server.connector(&[])).await, "08P01");
    let error = connect(&direct, server.connector(&[b"h2"])).await.unwrap_err();
    assert!(format!("{error:?}").contains("NoApplicationProtocol"), "{error:?}");
}

#[tokio::test]
async fn logins_are_bound_to_the_certificate() {
    let server = Server::start().await;
    let mut config = server.config();
    config.ssl_mode(SslMode::Require);
    for binding in [Binding::Require, Binding::Prefer, Binding::Disable] {
        config.channel_binding(binding);
        assert_eq!(count(&connect(&config, server.connector(&[])).await.unwrap()).await, 10);
    }
    // Somebody in between, whose certificate is another one.
    config.channel_binding(Binding::Require);
    let mut connector = server.connector(&[]);
    connector.end_point[0] ^= 1;
    assert_eq!(refused(&config, connector).await, "28000");
    config.password("brush");
    assert_eq!(refused(&config, server.connector(&[])).await, "28P01");
}

#[tokio::test]
async fn sessions_that_are_not_encrypted_are_refused() {
    let server = Server::start().await;
    let mut config = server.config();
    config.ssl_mode(SslMode::Disable);
    let error = config.connect(NoTls).await.err().expect("the connection is refused");
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "28000");
    assert!(error.hint().unwrap().contains("sslmode=verify-full"), "{error:?}");
}

#[tokio::test]
async fn a_query_is_cancelled_with_and_without_encryption() {
    let server = Server::start().await;
    let client = connect(&server.config(), server.connector(&[])).await.unwrap();
    let client = Arc::new(client);
    for encrypts in [true, false] {
        let running = stoa_env::task::spawn({
            let client = Arc::clone(&client);
            async move { client.simple_query(ENDLESS).await }
        });
        within(async {
            while server.engine.queries().running_count() != 1 {
                stoa_env::timer::sleep(std::time::Duration::from_millis(2)).await;
            }
        })
        .await;
        let token = client.cancel_token();
        match encrypts {
            true => token.cancel_query(server.connector(&[])).await.unwrap(),
            false => token.cancel_query(NoTls).await.unwrap(),
        }
        let error = within(running).await.unwrap().unwrap_err();
        assert_eq!(error.code().unwrap().code(), "57014");
    }
    assert_eq!(count(&client).await, 10);
}

#[tokio::test]
async fn bytes_before_the_handshake_are_not_taken_for_what_follows_it() {
    let server = Server::start().await;
    let mut client = RawClient::silent(server.port).await;
    let mut request = vec![0, 0, 0, 8];
    request.extend(((1234_i32 << 16) | 5679).to_be_bytes());
    // A packet that an attacker has put behind the client's request.
    request.extend_from_slice(&[0, 0, 0, 9, 0, 3, 0, 0, 0]);
    client.send_bytes(&request).await;
    let answer = client.next().await.unwrap();
    assert_eq!((answer.kind, answer.field(b'C').as_deref()), ('E', Some("08P01")));
    assert_eq!(client.next().await, None);
}

/// Encrypts as a client.
#[derive(Clone)]
struct Connector {
    config: Arc<ClientConfig>,
    end_point: Vec<u8>,
}

struct Encrypted<S> {
    stream: tokio_rustls::client::TlsStream<S>,
    end_point: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Connector {
    type Stream = Encrypted<S>;
    type TlsConnect = Self;
    type Error = io::Error;

    fn make_tls_connect(&mut self, _domain: &str) -> io::Result<Self> {
        Ok(self.clone())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connector {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from("localhost").unwrap();
            let stream = TlsConnector::from(self.config).connect(name, stream).await?;
            Ok(Encrypted { stream, end_point: self.end_point })
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::tls_server_end_point(self.end_point.clone())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
