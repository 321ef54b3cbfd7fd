//! A client's TCP connection: what lives as long as it does.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use stoa_listen::{Guarded, Guest};
use stoa_tls::Socket;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use crate::client::Client;

/// A socket and its place among those allowed.
pub(crate) struct Connection {
    socket: Socket<Guarded<TcpStream>>,
    state: ConnectionState,
    /// Completes when the server closes all connections.
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Reached from every call on the connection.
#[derive(Clone)]
pub(crate) struct ConnectionState {
    /// The session of calls without a token.
    pub(crate) client: Arc<Mutex<Option<Arc<Client>>>>,
    /// It waits until one of its calls was let in.
    pub(crate) guest: Guest,
}

impl Connection {
    pub(crate) fn new(
        socket: Socket<Guarded<TcpStream>>,
        guest: Guest,
        closed: CancellationToken,
    ) -> Self {
        let state = ConnectionState { client: Arc::default(), guest };
        Self { socket, state, closed: Box::pin(closed.cancelled_owned()) }
    }
}

impl Connected for Connection {
    type ConnectInfo = ConnectionState;

    fn connect_info(&self) -> ConnectionState {
        self.state.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    stoa_listen::write_through!(socket);
}
