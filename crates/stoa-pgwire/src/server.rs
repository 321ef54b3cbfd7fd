//! Accepts connections, bounds how many there are, and ends them in order.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stoa_env::task;
use stoa_error::{Error, ErrorKind, Result};
use stoa_query::Engine;
use stoa_tls::{Socket, Tls};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::cancel::CancelRegistry;
use crate::connection::Connection;
use crate::login;
use crate::startup::{self, Opening};
use crate::wire::backend::{Output, Severity};
use crate::wire::stream::{Stop, Wire};

/// Sockets beyond the connection limit, for cancel requests and for clients that are told no.
const SPARE_SOCKETS: usize = 64;

/// How the server behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Sessions at the same time; further clients are refused (53300).
    pub max_connections: usize,
    /// Bytes of the largest message taken, so of the longest statement or parameter set.
    pub message_bytes_max: usize,
    /// Time a client has to say who it is.
    pub startup_timeout: Duration,
    /// Time that running statements get to finish at shutdown before they are cancelled.
    pub shutdown_grace: Duration,
    /// What connections are encrypted with; those that are not are refused then.
    pub tls: Option<Tls>,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 1000,
            message_bytes_max: 64 << 20,
            startup_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
            tls: None,
        }
    }
}

/// Serves clients until `shutdown` completes, then ends their connections: idle ones at once,
/// others after their statement, the rest after a grace.
///
/// # Errors
/// None at present; failures of single connections end those only.
pub async fn serve(
    listener: TcpListener,
    engine: Arc<Engine>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    serve_with(listener, engine, ServeOptions::default(), shutdown).await
}

/// As [`serve`], with options.
///
/// # Errors
/// As [`serve`].
pub async fn serve_with(
    listener: TcpListener,
    engine: Arc<Engine>,
    options: ServeOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    let sockets = options.max_connections.saturating_add(SPARE_SOCKETS);
    let sockets = sockets.min(Semaphore::MAX_PERMITS.min(u32::MAX as usize));
    let shared = Arc::new(Shared {
        engine,
        cancels: Arc::default(),
        sessions: AtomicUsize::new(0),
        sockets: Arc::new(Semaphore::new(sockets)),
        options,
    });
    let (close, closing) = watch::channel(false);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => shared.accept(socket, closing.clone()),
                Err(error) => {
                    // Out of file descriptors, mostly: those in use must end first.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    drop(listener);
    let _ = close.send(true);
    shared.drain(sockets).await;
    Ok(())
}

struct Shared {
    engine: Arc<Engine>,
    cancels: Arc<CancelRegistry>,
    sessions: AtomicUsize,
    sockets: Arc<Semaphore>,
    options: ServeOptions,
}

impl Shared {
    fn accept(self: &Arc<Self>, socket: TcpStream, closing: watch::Receiver<bool>) {
        let Ok(permit) = Arc::clone(&self.sockets).try_acquire_owned() else {
            let error = full_error(self.options.max_connections);
            task::spawn(refuse(socket, error));
            return;
        };
        // Answers are small and complete: waiting for more to send only delays them.
        let _ = socket.set_nodelay(true);
        let shared = Arc::clone(self);
        task::spawn(async move { shared.connection(socket, permit, closing).await });
    }

    async fn connection(
        self: Arc<Self>,
        socket: TcpStream,
        permit: OwnedSemaphorePermit,
        closing: watch::Receiver<bool>,
    ) {
        let mut wire = Wire::new(Socket::plain(socket), self.options.message_bytes_max);
        // Boxed, so that a connection does not hold room for its start all its life.
        let opened = Box::pin(self.open(&mut wire)).await;
        match opened {
            Ok(Some((session, _slot, _key))) => Connection::new(wire, session).run(closing).await,
            Ok(None) | Err(Stop::Gone) => {}
            Err(Stop::Failed(error)) => {
                tracing::debug!(?error, "connection refused");
                wire.output.error(Severity::Fatal, &error, 0);
                wire.close().await;
            }
        }
        drop(permit);
    }

    async fn open(
        self: &Arc<Self>,
        wire: &mut Wire<Socket>,
    ) -> Result<Option<(Arc<stoa_query::Session>, SessionSlot, crate::cancel::CancelKey)>, Stop>
    {
        let opening = startup::open(wire, self.options.tls.as_ref());
        let opening = tokio::time::timeout(self.options.startup_timeout, opening);
        let parameters = match opening.await.map_err(|_| Stop::Gone)?? {
            Opening::Cancel { process_id, secret } => {
                self.cancels.cancel(process_id, &secret);
                return Ok(None);
            }
            Opening::Session(parameters) => parameters,
        };
        if self.engine.is_closing() {
            return Err(Error::unavailable("the server is shutting down")
                .with_sqlstate("57P03")
                .with_hint("connect again later")
                .into());
        }
        let slot =
            SessionSlot::take(self).ok_or_else(|| full_error(self.options.max_connections))?;
        parameters.negotiate(wire);
        if self.engine.asks_for_login() {
            let end_point = wire.socket().end_point().map(<[u8]>::to_vec);
            let login = login::log_in(wire, &self.engine, parameters.user(), end_point);
            let login = tokio::time::timeout(self.options.startup_timeout, login);
            login.await.map_err(|_| Stop::Gone)??;
        }
        wire.output.authentication_ok();
        let session = parameters.session(&self.engine, wire)?;
        let key = self.cancels.register(&session);
        wire.output.backend_key_data(key.process_id, key.secret);
        Ok(Some((session, slot, key)))
    }

    /// Waits until all connections have ended; cancels what runs after the grace.
    async fn drain(&self, sockets: usize) {
        let all = u32::try_from(sockets).unwrap_or(u32::MAX);
        let grace = self.options.shutdown_grace;
        if tokio::time::timeout(grace, self.sockets.acquire_many(all)).await.is_ok() {
            return;
        }
        self.cancels.cancel_all();
        let _ = tokio::time::timeout(Duration::from_secs(2), self.sockets.acquire_many(all)).await;
    }
}

/// One of the sessions allowed; given back when dropped.
struct SessionSlot(Arc<Shared>);

impl SessionSlot {
    fn take(shared: &Arc<Shared>) -> Option<Self> {
        let max = shared.options.max_connections;
        let take = |open: usize| (open < max).then_some(open + 1);
        shared.sessions.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
        Some(Self(Arc::clone(shared)))
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::AcqRel);
    }
}

fn full_error(max: usize) -> Error {
    Error::new(ErrorKind::Exhausted, "sorry, too many clients already")
        .with_sqlstate("53300")
        .with_detail(format!("{max} connections are open, which is the limit"))
        .with_hint("close idle connections, use a pool, or raise the limit of connections")
}

/// Tells a client no without reading what it asks for.
async fn refuse(mut socket: TcpStream, error: Error) {
    let mut output = Output::default();
    output.error(Severity::Fatal, &error, 0);
    let sending = async {
        let _ = socket.write_all(output.bytes()).await;
        let _ = socket.shutdown().await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), sending).await;
}
