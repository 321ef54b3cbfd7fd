//! Serving: the listener, which transport a connection speaks, and an ordered end.
//!
//! At shutdown no connection is taken any more; calls under way run to their end (the engine cancels them when its own
//! time is up), and connections close after them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use stoa_env::task;
use stoa_error::Result;
use stoa_listen::{Door, Guarded};
use stoa_query::Engine;
use stoa_tls::{Protocol, Socket};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::connection::{self, Wire};
use crate::http;
use crate::options::HiveOptions;
use crate::service::Service;

/// How often idle sessions and operations are looked for, at least.
const IDLE_CHECK: Duration = Duration::from_secs(15);

/// Serves clients on `listener` until `shutdown` completes, with default options.
///
/// # Errors
/// None at present; failures of single connections end those only.
pub async fn serve(
    listener: TcpListener,
    engine: Arc<Engine>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    serve_with(listener, engine, HiveOptions::default(), shutdown).await
}

/// As [`serve`], with options; then waits for calls under way, at most [`HiveOptions::drain_max`].
///
/// # Errors
/// As [`serve`].
pub async fn serve_with(
    listener: TcpListener,
    engine: Arc<Engine>,
    options: HiveOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    let door = Door::new("HiveServer2", options.max_connections, options.limits.clone());
    let service = Arc::new(Service::new(engine, options));
    let tidying = task::spawn(tidy(Arc::clone(&service)));
    let (close, closing) = watch::channel(false);
    // Each connection holds a sender; all have ended when it is closed.
    let (open, mut all_ended) = mpsc::channel::<()>(1);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => match door.let_in(socket, peer).await {
                    Ok(socket) => {
                        let (service, closing, open) = (Arc::clone(&service), closing.clone(), open.clone());
                        task::spawn(async move {
                            serve_one(socket, &service, closing).await;
                            drop(open);
                        });
                    }
                    // Nothing can be said before the client's first byte tells its transport.
                    Err((_, refusal)) => tracing::debug!(%refusal, "a connection is refused"),
                },
                Err(error) => {
                    // Out of file descriptors, mostly: those in use must end first.
                    tracing::warn!(%error, "cannot accept a connection");
                    stoa_env::timer::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    drop((listener, open));
    let _ = close.send(true);
    if stoa_env::timer::timeout(service.options.drain_max, all_ended.recv()).await.is_err() {
        tracing::warn!("HiveServer2 connections left that did not end by themselves");
    }
    service.forget_all();
    tidying.abort();
    Ok(())
}

async fn tidy(service: Arc<Service>) {
    let HiveOptions { session_idle_max, operation_idle_max, .. } = service.options;
    let interval = IDLE_CHECK.min(session_idle_max).min(operation_idle_max);
    loop {
        stoa_env::timer::sleep(interval).await;
        service.forget_idle();
    }
}

async fn serve_one(
    socket: Guarded<TcpStream>,
    service: &Arc<Service>,
    closing: watch::Receiver<bool>,
) {
    let guest = socket.guest().clone();
    // Clients that negotiate a protocol (ALPN) at all are those over HTTP.
    let mut socket = match &service.options.tls {
        Some(tls) => Socket::encrypted(socket, tls, Protocol::Http, b""),
        None => Socket::plain(socket),
    };
    let mut until_closing = closing.clone();
    let first = tokio::select! {
        first = first_byte(&mut socket) => first,
        _ = until_closing.wait_for(|closing| *closing) => None,
    };
    let Some(first) = first else { return };
    let max = service.options.message_bytes_max;
    let wire = |socket| Wire::new(socket, BytesMut::from(&[first][..]), max);
    // Boxed, so that a connection does not hold room for the largest of them.
    match first {
        stoa_thrift::sasl::START => {
            Box::pin(connection::serve_sasl(wire(socket), service, &guest, closing)).await;
        }
        connection::THRIFT => {
            Box::pin(connection::serve_plain(wire(socket), service, &guest, closing)).await;
        }
        letter if letter.is_ascii_uppercase() => {
            let (read, write) = tokio::io::split(socket);
            let read = AsyncReadExt::chain(std::io::Cursor::new([first]), read);
            let socket = tokio::io::join(read, write);
            Box::pin(http::serve(socket, service, &guest, closing)).await;
        }
        other => tracing::debug!(other, "connection closed: it begins like no client of Hive"),
    }
}

async fn first_byte(socket: &mut (impl AsyncRead + Unpin)) -> Option<u8> {
    socket.read_u8().await.ok()
}
