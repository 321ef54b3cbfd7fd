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
use stoa_listen::Door;
use stoa_query::Engine;
use stoa_tls::{Protocol, Socket};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::connection::Connection;
use crate::let_in::LetIn;
use crate::message_bytes::MessageBytes;
use crate::options::FlightOptions;
use crate::state::FlightSql;
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
    service.answer_others();
    let tidying = stoa_env::task::spawn({
        let service = service.clone();
        async move {
            loop {
                stoa_env::timer::sleep(IDLE_CHECK).await;
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
        stoa_env::timer::sleep(options.drain_max).await;
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
                    stoa_env::timer::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            door.room().await;
            match door.let_in(socket, peer).await {
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
