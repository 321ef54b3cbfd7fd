//! Connections as they come, within the limits of the listener.
//!
//! A connection waits until a request has come whole, but for its body, and was let in (`asker`); it
//! waits again once the answer was handed over. How long it may wait, and that it makes room for others
//! meanwhile, is `stoa-listen`'s to say. So slow heads, connections without a request, and those kept for
//! later requests are bounded alike.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use http_body::{Frame, SizeHint};
use serde_json::json;
use stoa_error::{Condition, Error, ErrorKind};
use stoa_listen::{Busy, Door, Guarded, Guest, Refusal, turn_away};
use stoa_tls::{Protocol, Socket, Tls};
use tokio::net::{TcpListener, TcpStream};

use crate::problem;

/// What a client is told that does not encrypt, in the form of all errors.
const PLAIN_REFUSED: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: application/json\r\n\
    Connection: close\r\n\r\n\
    {\"error\":{\"code\":\"08P01\",\"kind\":\"invalid\",\"message\":\"this port speaks HTTPS\",\
    \"detail\":null,\"hint\":\"write https:// in place of http://\",\"position\":null,\
    \"retryable\":false}}\n";

/// A listener that lets in no more than it may, of plain or encrypted connections.
pub(crate) struct Arrivals {
    listener: TcpListener,
    door: Arc<Door>,
    tls: Option<Tls>,
}

impl Arrivals {
    pub(crate) fn new(listener: TcpListener, door: Arc<Door>, tls: Option<Tls>) -> Self {
        Self { listener, door, tls }
    }
}

impl Listener for Arrivals {
    type Io = Socket<Guarded<TcpStream>>;
    type Addr = Visitor;

    async fn accept(&mut self) -> (Socket<Guarded<TcpStream>>, Visitor) {
        loop {
            match self.listener.accept().await {
                Ok((socket, peer)) => match self.door.let_in(socket, peer).await {
                    Ok(socket) => {
                        let visitor = Visitor(Some(socket.guest().clone()));
                        let socket = match &self.tls {
                            Some(tls) => {
                                Socket::encrypted(socket, tls, Protocol::Http, PLAIN_REFUSED)
                            }
                            None => Socket::plain(socket),
                        };
                        return (socket, visitor);
                    }
                    Err((socket, refusal)) => turn_away(socket, &refused(refusal)),
                },
                Err(error) => {
                    // Out of file descriptors, mostly: those in use must end first.
                    tracing::warn!(%error, "cannot accept a connection");
                    stoa_env::timer::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Visitor> {
        // The server's own address is asked for before it serves, and visits nobody.
        self.listener.local_addr().map(|_| Visitor(None))
    }
}

/// What a client is told whose request nobody has read.
fn refused(refusal: Refusal) -> Vec<u8> {
    let error = Error::new(ErrorKind::Exhausted, refusal.to_string())
        .with_condition(Condition::TooManyConnections)
        .with_hint("send the request again later");
    let body = json!({ "error": problem::to_json(&error) }).to_string();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// The connection of a request; stands in the place of its address, which goes to each request.
#[derive(Clone, Debug)]
pub(crate) struct Visitor(Option<Guest>);

impl Visitor {
    /// Where the client is.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.0.as_ref().map(Guest::address)
    }

    /// A request was let in.
    pub(crate) fn begin(&self) -> Option<Busy> {
        self.0.as_ref().map(Guest::begin)
    }
}

impl Connected<IncomingStream<'_, Arrivals>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Arrivals>) -> Self {
        stream.remote_addr().clone()
    }
}

/// An answer's body, until whose end its connection does not wait.
pub(crate) struct Attended {
    body: Body,
    _busy: Option<Busy>,
}

impl Attended {
    pub(crate) fn new(body: Body, busy: Option<Busy>) -> Self {
        Self { body, _busy: busy }
    }
}

impl HttpBody for Attended {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
