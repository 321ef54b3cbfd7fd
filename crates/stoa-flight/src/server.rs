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
use stoa_query::Engine;
use stoa_tls::{Protocol, Socket, Tls};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::connection::Connection;
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
/// Calls at the same time on one connection.
const CONNECTION_STREAMS_MAX: u32 = 256;

/// How a server behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightOptions {
    /// Connections at the same time; further clients wait.
    pub max_connections: usize,
    /// Bytes of the largest message taken, so of the largest batch.
    pub message_bytes_max: usize,
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
            message_bytes_max: 64 << 20,
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
    let calls = FlightServiceServer::new(service)
        .max_decoding_message_size(options.message_bytes_max)
        .max_encoding_message_size(usize::MAX);
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(CONNECTION_STREAMS_MAX)
        .add_service(WholeRequests(calls))
        .serve_with_incoming_shutdown(
            incoming(listener, options.max_connections, options.tls.clone(), &closed_all),
            signal,
        );
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
    max: usize,
    tls: Option<Tls>,
    closed: &CancellationToken,
) -> impl futures::Stream<Item = std::io::Result<Connection>> + use<> {
    let slots = Arc::new(Semaphore::new(max.clamp(1, Semaphore::MAX_PERMITS)));
    let closed = closed.clone();
    stream::unfold((listener, slots, tls, closed), |(listener, slots, tls, closed)| async move {
        let slot = Arc::clone(&slots).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((socket, _)) => {
                    // Answers are small and complete: waiting for more to send only delays them.
                    let _ = socket.set_nodelay(true);
                    let socket = match &tls {
                        Some(tls) => Socket::encrypted(socket, tls, Protocol::Flight, b""),
                        None => Socket::plain(socket),
                    };
                    let connection = Connection::new(socket, slot, closed.clone());
                    return Some((Ok(connection), (listener, slots, tls, closed)));
                }
                Err(error) => {
                    // Out of file descriptors, mostly: those in use must end first.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    })
}
