//! What connections are encrypted with, read from files again when they change.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use stoa_env::task;
use stoa_error::{Error, Result};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::WebPkiClientVerifier;

use crate::end_point;
use crate::files::{Stamp, TlsFiles, unusable};

/// How often the files are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Which protocol is spoken over a connection: told to clients (ALPN), so that nobody can lead one of
/// another protocol here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL's.
    Postgres,
    /// HTTP/1.1.
    Http,
    /// Flight SQL, over HTTP/2.
    Flight,
}

impl Protocol {
    /// Its name in ALPN.
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Self::Postgres => b"postgresql",
            Self::Http => b"http/1.1",
            Self::Flight => b"h2",
        }
    }
}

/// What connections are encrypted with at the moment. Clones are the same one.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    files: TlsFiles,
    current: RwLock<Arc<Loaded>>,
    seen: Mutex<Seen>,
}

/// What is known of the files.
struct Seen {
    /// How they were when they were read, or tried.
    tried: Stamp,
    /// How they were at the last look, if not so.
    changed: Option<Stamp>,
}

/// What the files said.
struct Loaded {
    postgres: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
    flight: Arc<ServerConfig>,
    end_point: Option<Arc<[u8]>>,
}

/// What one connection is encrypted with.
pub(crate) struct Begin {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) end_point: Option<Arc<[u8]>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// Not found, invalid: with the setting and the file that cannot be used.
    pub fn open(files: TlsFiles) -> Result<Self> {
        // Before they are read: a change in between is seen later.
        let seen = Seen { tried: files.stamp(), changed: None };
        let current = RwLock::new(Arc::new(Loaded::read(&files)?));
        Ok(Self(Arc::new(Shared { files, current, seen: Mutex::new(seen) })))
    }

    /// Reads the files again if they have changed, and were the same at two looks: a certificate and
    /// its key are written one after the other. Says whether new ones are in use.
    ///
    /// # Errors
    /// As [`Self::open`], once for each change; the old ones stay in use.
    pub fn refresh(&self) -> Result<bool> {
        let stamp = self.0.files.stamp();
        let mut seen = self.0.seen.lock();
        if stamp == seen.tried {
            seen.changed = None;
            return Ok(false);
        }
        if seen.changed.as_ref() != Some(&stamp) {
            seen.changed = Some(stamp);
            return Ok(false);
        }
        seen.changed = None;
        seen.tried = stamp;
        let loaded = Loaded::read(&self.0.files)?;
        *self.0.current.write() = Arc::new(loaded);
        Ok(true)
    }

    /// Looks at the files for as long as it is polled, and logs what came of changes.
    pub async fn watch(self) {
        loop {
            stoa_env::timer::sleep(LOOK_INTERVAL).await;
            let tls = self.clone();
            let cert = self.0.files.cert.display();
            match task::spawn_blocking(move || tls.refresh()).await {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => tracing::info!(%cert, "new TLS certificate in use"),
                Ok(Err(error)) => {
                    let error = error.message_with_sources();
                    tracing::error!(%cert, error, "the TLS files changed and cannot be used; the old ones stay in use");
                }
                Err(error) => {
                    tracing::error!(%error, "the TLS files cannot be looked at any more");
                    return;
                }
            }
        }
    }

    pub(crate) fn begin(&self, protocol: Protocol) -> Begin {
        let loaded = Arc::clone(&self.0.current.read());
        let config = match protocol {
            Protocol::Postgres => &loaded.postgres,
            Protocol::Http => &loaded.http,
            Protocol::Flight => &loaded.flight,
        };
        Begin {
            acceptor: TlsAcceptor::from(Arc::clone(config)),
            end_point: loaded.end_point.clone(),
        }
    }
}

impl Loaded {
    fn read(files: &TlsFiles) -> Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let (chain, key) = (files.chain()?, files.key()?);
        let verifier = files.client_authorities()?.map(|roots| {
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|e| Error::invalid("tls_client_ca cannot be used").with_source(e))
        });
        let verifier = verifier.transpose()?;
        let config = |protocol: Protocol| -> Result<Arc<ServerConfig>> {
            let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(|e| Error::internal("TLS cannot be set up").with_source(e))?;
            let builder = match &verifier {
                Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
                None => builder.with_no_client_auth(),
            };
            let config = builder.with_single_cert(chain.clone(), key.clone_key());
            let mut config = config.map_err(|source| {
                unusable("tls_cert", &files.cert, "and the key in tls_key cannot be used together")
                    .with_source(source)
                    .with_hint("tls_key is the key of the first certificate in tls_cert: RSA, P-256, P-384 or Ed25519")
            })?;
            config.alpn_protocols = vec![protocol.alpn().to_vec()];
            Ok(Arc::new(config))
        };
        let end_point = chain.first().and_then(|certificate| end_point::of(certificate));
        Ok(Self {
            postgres: config(Protocol::Postgres)?,
            http: config(Protocol::Http)?,
            flight: config(Protocol::Flight)?,
            end_point: end_point.map(Arc::from),
        })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.0.files).finish()
    }
}

/// Whether both are the same one.
impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Tls {}
