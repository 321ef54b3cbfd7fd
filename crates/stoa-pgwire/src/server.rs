//! Accepts connections, bounds how many there are, and ends them in order.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stoa_env::task;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_listen::{Door, Guarded, Guest, Limits, Refusal, turn_away};
use stoa_query::Engine;
use stoa_tls::{Socket, Tls};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::cancel::CancelRegistry;
use crate::connection::Connection;
use crate::login;
use crate::startup::{self, Opening};
use crate::wire::backend::{Output, Severity};
use crate::wire::stream::{Stop, Wire};

/// Sockets beyond those of sessions, for clients that log in, for cancel requests, and for clients
/// that are told no.
const SPARE_SOCKETS: usize = 64;
/// Permits of sockets; how many there are is the door's to say.
const SOCKET_PERMITS: u32 = u32::MAX >> 3;

/// How the server behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Sessions at the same time; further clients are refused (53300).
    pub max_connections: usize,
    /// Sockets at the same time, those of clients that log in among them; beyond them, a new one makes
    /// the client that has waited longest to log in give way.
    pub sockets_max: usize,
    /// What holds for clients that have not logged in.
    pub limits: Limits,
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
            sockets_max: sockets_for(1000),
            limits: Limits::default(),
            message_bytes_max: 64 << 20,
            startup_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
            tls: None,
        }
    }
}

/// As many sockets as `max_connections` sessions need, so that clients can log in while all but one
/// of them are in use.
pub fn sockets_for(max_connections: usize) -> usize {
    max_connections.saturating_add(max_connections / 4).saturating_add(SPARE_SOCKETS)
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
    let door = Door::new("PostgreSQL", options.sockets_max, options.limits.clone());
    let shared = Arc::new(Shared {
        engine,
        cancels: Arc::default(),
        sessions: AtomicUsize::new(0),
        sockets: Arc::new(Semaphore::new(SOCKET_PERMITS as usize)),
        door,
        options,
    });
    let cancels = Arc::clone(&shared.cancels);
    shared.engine.cancel_for_others(move |process_id, secret| cancels.cancel(process_id, secret));
    let (close, closing) = watch::channel(false);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => match shared.door.let_in(socket, peer).await {
                    Ok(socket) => shared.accept(socket, closing.clone()),
                    Err((socket, refusal)) => refuse(socket, &shared.refusal(refusal)),
                }
                Err(error) => {
                    // Out of file descriptors, mostly: those in use must end first.
                    tracing::warn!(%error, "cannot accept a connection");
                    stoa_env::timer::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    drop(listener);
    let _ = close.send(true);
    shared.drain().await;
    Ok(())
}

struct Shared {
    engine: Arc<Engine>,
    cancels: Arc<CancelRegistry>,
    sessions: AtomicUsize,
    sockets: Arc<Semaphore>,
    door: Arc<Door>,
    options: ServeOptions,
}

impl Shared {
    fn accept(self: &Arc<Self>, socket: Guarded<TcpStream>, closing: watch::Receiver<bool>) {
        let Ok(permit) = Arc::clone(&self.sockets).try_acquire_owned() else { return };
        let shared = Arc::clone(self);
        task::spawn(async move { shared.connection(socket, permit, closing).await });
    }

    async fn connection(
        self: Arc<Self>,
        socket: Guarded<TcpStream>,
        permit: OwnedSemaphorePermit,
        closing: watch::Receiver<bool>,
    ) {
        let guest = socket.guest().clone();
        let mut wire = Wire::new(Socket::plain(socket), self.options.message_bytes_max);
        // Boxed, so that a connection does not hold room for its start all its life.
        let opened = tokio::select! {
            biased;
            opened = Box::pin(self.open(&mut wire, &guest)) => opened,
            // Whoever has not logged in by now does not keep the server from its end.
            () = closed(closing.clone()) => Err(closing_error().into()),
        };
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
        wire: &mut Wire<Socket<Guarded<TcpStream>>>,
        guest: &Guest,
    ) -> Result<Option<(Arc<stoa_query::Session>, SessionSlot, crate::cancel::CancelKey)>, Stop>
    {
        let opening = startup::open(wire, self.options.tls.as_ref());
        let opening = stoa_env::timer::timeout(self.options.startup_timeout, opening);
        let parameters = match opening.await.map_err(|_| Stop::Gone)?? {
            Opening::Cancel { process_id, secret } => {
                if !self.cancels.cancel(process_id, &secret) {
                    self.engine.cancel_elsewhere(process_id, &secret).await;
                }
                return Ok(None);
            }
            Opening::Session(parameters) => parameters,
        };
        if self.engine.is_closing() {
            return Err(closing_error().into());
        }
        parameters.negotiate(wire);
        if self.engine.asks_for_login() {
            let end_point = wire.socket().end_point().map(<[u8]>::to_vec);
            let (user, peer) = (parameters.user(), Some(guest.address()));
            let login = login::log_in(wire, &self.engine, user, peer, end_point);
            let login = stoa_env::timer::timeout(self.options.startup_timeout, login);
            login.await.map_err(|_| Stop::Gone)??;
        }
        // Not before: whoever has no password would hold the places of those who have one.
        let slot =
            SessionSlot::take(self).ok_or_else(|| full_error(self.options.max_connections))?;
        guest.known();
        wire.output.authentication_ok();
        let session = parameters.session(&self.engine, wire)?;
        let key = self.cancels.register(&session);
        wire.output.backend_key_data(key.process_id, key.secret);
        Ok(Some((session, slot, key)))
    }

    fn refusal(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Full => full_error(self.options.max_connections),
            Refusal::Address => too_many("too many connections from your address")
                .with_hint("close idle connections, or raise max_connections_per_address"),
            Refusal::Descriptors => too_many(
                "too few file descriptors are left for one more client",
            )
            .with_hint("connect again later; the server's limit of open files should be higher"),
        }
    }

    /// Waits until all connections have ended; cancels what runs after the grace.
    async fn drain(&self) {
        let all = SOCKET_PERMITS;
        let grace = self.options.shutdown_grace;
        if stoa_env::timer::timeout(grace, self.sockets.acquire_many(all)).await.is_ok() {
            return;
        }
        self.cancels.cancel_all();
        let _ =
            stoa_env::timer::timeout(Duration::from_secs(2), self.sockets.acquire_many(all)).await;
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

async fn closed(mut closing: watch::Receiver<bool>) {
    // A sender that is gone means the same.
    let _ = closing.wait_for(|closing| *closing).await;
}

fn closing_error() -> Error {
    Error::unavailable("the server is shutting down")
        .with_sqlstate("57P03")
        .with_hint("connect again later")
}

fn too_many(message: &str) -> Error {
    Error::new(ErrorKind::Exhausted, message).with_condition(Condition::TooManyConnections)
}

fn full_error(max: usize) -> Error {
    too_many("sorry, too many clients already")
        .with_detail(format!("{max} connections are open, which is the limit"))
        .with_hint("close idle connections, use a pool, or raise the limit of connections")
}

/// Tells a client no without reading what it asks for.
fn refuse(socket: TcpStream, error: &Error) {
    let mut output = Output::default();
    output.error(Severity::Fatal, error, 0);
    turn_away(socket, output.bytes());
}
