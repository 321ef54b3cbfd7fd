//! Connections as they come, encrypted where the server has a certificate.

use std::io;
use std::net::SocketAddr;

use axum::serve::Listener;
use stoa_tls::{Protocol, Socket, Tls};
use tokio::net::TcpListener;

/// What a client is told that does not encrypt, in the form of all errors.
const PLAIN_REFUSED: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: application/json\r\n\
    Connection: close\r\n\r\n\
    {\"error\":{\"code\":\"08P01\",\"kind\":\"invalid\",\"message\":\"this port speaks HTTPS\",\
    \"detail\":null,\"hint\":\"write https:// in place of http://\",\"position\":null,\
    \"retryable\":false}}\n";

/// A listener of plain or encrypted connections.
pub(crate) struct Sockets {
    listener: TcpListener,
    tls: Option<Tls>,
}

impl Sockets {
    pub(crate) fn new(listener: TcpListener, tls: Option<Tls>) -> Self {
        Self { listener, tls }
    }
}

impl Listener for Sockets {
    type Io = Socket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Socket, SocketAddr) {
        // Axum's own goes on after errors.
        let (tcp, peer) = Listener::accept(&mut self.listener).await;
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let socket = match &self.tls {
            Some(tls) => Socket::encrypted(tcp, tls, Protocol::Http, PLAIN_REFUSED),
            None => Socket::plain(tcp),
        };
        (socket, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
