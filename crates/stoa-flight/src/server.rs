//! Serving: the listener, limits, and an ordered end.
//!
//! At shutdown no connection is taken any more and calls under way run to their end (the engine
//! cancels them when its own time is up); then connections are closed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::stream;
use stoa_error::{Error, Result};
use stoa_listen::{Door, Limits};
use stoa_query::Engine;
use stoa_tls::{Protocol, Socket, Tls};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::connection::Connection;
use crate::let_in::LetIn;
use crate::message_bytes::MessageBytes;
use crate::service::FlightSql;
use crate::whole_requests::WholeRequests;

/// How often idle sessions and statements are looked for.
const IDLE_CHECK: Duration = Duration::from_secs(30);
/// A client that answers nothing for so long is gone.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(60);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes that a client may send ahead of the server's reading, per stream and per connection.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// Bytes of a call's headers.
const CALL_HEADERS_BYTES_MAX: u32 = 16 << 10;
/// Calls at the same time on one connection.
const CONNECTION_STREAMS_MAX: u32 = 256;

/// How a server behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightOptions {
    /// Connections at the same time; a client beyond them makes the one give way that has waited
    /// longest with its first call, or waits.
    pub max_connections: usize,
    /// What holds for connections without a call that was let in.
    pub limits: Limits,
    /// Bytes of the largest message taken, so of the largest batch.
    pub message_bytes_max: usize,
    /// Bytes of all messages together that are on their way in.
    pub incoming_bytes_max: usize,
    /// Sessions that have tokens, kept at the same time; beyond them the longest unused one ends.
    pub max_sessions: usize,
    /// Prepared statements, and queries whose rows were not fetched yet, kept at the same time.
    pub max_statements: usize,
    /// How long a session or statement is kept that nobody uses.
    pub idle_max: Duration,
    /// How long a shutdown waits for calls under way before it closes their connections.
    pub drain_max: Duration,
    /// What connections are encrypted with; those that are not are refused then.
    pub tls: Option<Tls>,
}

impl Default for FlightOptions {
    fn default() -> Self {
        Self {
            max_connections: 1000,
            limits: Limits::default(),
            message_bytes_max: 64 << 20,
            incoming_bytes_max: 512 << 20,
            max_sessions: 10_000,
            max_statements: 10_000,
            idle_max: Duration::from_secs(3600),
            drain_max: Duration::from_secs(10),
            tls: None,
        }
    }
}

/// Answers calls on `listener` until `shutdown` completes, with default options.
///
/// # Errors
/// Unavailable: the listener is not usable.
pub async fn serve(
    listener: TcpListener,
    engine: Arc<Engine>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    serve_with(listener, engine, FlightOptions::default(), shutdown).await
}

/// Answers calls on `listener` until `shutdown` completes; then waits for those under way, at most
/// [`FlightOptions::drain_max`].
///
/// # Errors
/// Unavailable: the listener is not usable.
pub async fn serve_with(
    listener: TcpListener,
    engine: Arc<Engine>,
    options: FlightOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let service = FlightSql::new(engine, &options);
    let tidying = stoa_env::task::spawn({
        let service = service.clone();
        async move {
            loop {
                tokio::time::sleep(IDLE_CHECK).await;
                service.forget_idle();
            }
        }
    });
    let closed_all = CancellationToken::new();
    let (closing, mut closed) = watch::channel(false);
    let signal = async move {
        shutdown.await;
        closing.send_replace(true);
    };
    let bytes = MessageBytes::new(options.incoming_bytes_max, options.message_bytes_max);
    let clients = service.clone();
    let calls = FlightServiceServer::new(service)
        .max_decoding_message_size(options.message_bytes_max)
        .max_encoding_message_size(usize::MAX);
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(CONNECTION_STREAMS_MAX)
        .http2_max_header_list_size(CALL_HEADERS_BYTES_MAX)
        .add_service(LetIn::new(WholeRequests::new(calls, bytes), clients))
        .serve_with_incoming_shutdown(incoming(listener, &options, &closed_all), signal);
    let overdue = async {
        let _ = closed.wait_for(|closed| *closed).await;
        tokio::time::sleep(options.drain_max).await;
    };
    let result = tokio::select! {
        result = server => {
            result.map_err(|e| Error::unavailable("cannot serve Flight SQL").with_source(e))
        }
        () = overdue => {
            tracing::warn!("Flight SQL connections closed that did not end by themselves");
            Ok(())
        }
    };
    closed_all.cancel();
    tidying.abort();
    result
}

/// Connections as they come, not more at the same time than are allowed.
fn incoming(
    listener: TcpListener,
    options: &FlightOptions,
    closed: &CancellationToken,
) -> impl futures::Stream<Item = std::io::Result<Connection>> + use<> {
    let door = Door::new("Flight SQL", options.max_connections, options.limits.clone());
    let closed = closed.clone();
    let tls = options.tls.clone();
    stream::unfold((listener, door, tls, closed), |(listener, door, tls, closed)| async move {
        loop {
            let (socket, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, mostly: those in use must end first.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            door.room().await;
            match door.let_in(socket, peer) {
                Ok(socket) => {
                    let guest = socket.guest().clone();
                    let socket = match &tls {
                        Some(tls) => Socket::encrypted(socket, tls, Protocol::Flight, b""),
                        None => Socket::plain(socket),
                    };
                    let connection = Connection::new(socket, guest, closed.clone());
                    return Some((Ok(connection), (listener, door, tls, closed)));
                }
                // gRPC has no words for it; its clients take a closed connection for unavailable.
                Err((_, refusal)) => tracing::debug!(%refusal, "a connection is refused"),
            }
        }
    })
}
