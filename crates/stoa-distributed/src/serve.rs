//! The port on which a daemon computes parts of other daemons' plans.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use datafusion_distributed::Worker;
use futures::stream;
use stoa_env::{task, timer};
use stoa_error::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use crate::network::{Network, Socket};

/// After so long without a sign of life, a connection ends, and with it the tasks that it was for.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);
/// After so long without a byte, the other side is asked for a sign of life.
const PING_AFTER: Duration = Duration::from_secs(2);
/// Connections that may wait to be served.
const WAITING_MAX: usize = 64;

/// Answers daemons that `network` admits, on the runtime on which this is called, until `until` completes. Tasks run
/// there, too.
///
/// # Errors
/// Internal: the port cannot be served any more.
pub async fn serve(
    listener: TcpListener,
    network: Arc<dyn Network>,
    worker: Worker,
    until: impl Future<Output = ()> + Send,
) -> Result<()> {
    let (admitted, incoming) = mpsc::channel(WAITING_MAX);
    let incoming = stream::unfold(incoming, |mut incoming| async move {
        let next: Connection = incoming.recv().await?;
        Some((Ok::<_, io::Error>(next), incoming))
    });
    let serving = Server::builder()
        .http2_keepalive_interval(Some(PING_AFTER))
        .http2_keepalive_timeout(Some(SILENCE_MAX - PING_AFTER))
        .add_service(worker.into_worker_server())
        .serve_with_incoming(incoming);
    tokio::select! {
        () = until => Ok(()),
        () = accept(listener, network, admitted) => Ok(()),
        served = serving => served.map_err(|e| {
            Error::internal("parts of other daemons' plans are not computed any more").with_source(e)
        }),
    }
}

async fn accept(
    listener: TcpListener,
    network: Arc<dyn Network>,
    admitted: mpsc::Sender<Connection>,
) {
    loop {
        match listener.accept().await {
            Ok((socket, address)) => {
                let (admitting, admitted) = (network.admit(socket), admitted.clone());
                task::spawn(async move {
                    match admitting.await {
                        Ok(socket) => drop(admitted.send(Connection(socket)).await),
                        Err(error) => tracing::debug!(%address, %error, "a connection is refused"),
                    }
                });
            }
            // Not the system's: the threads that would serve it are ending.
            Err(error) if error.kind() == io::ErrorKind::Other => return,
            Err(error) => {
                // Out of file descriptors, mostly: those in use must end first.
                tracing::warn!(%error, "cannot accept a connection from another daemon");
                timer::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A connection that was admitted.
struct Connection(Box<dyn Socket>);

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
