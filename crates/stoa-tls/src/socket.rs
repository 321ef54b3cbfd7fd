//! A socket that may be encrypted.
//!
//! The handshake is done by whoever reads or writes first, so that accepting a connection waits for
//! no client.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::prefixed::Prefixed;
use crate::tls::{Begin, Protocol, Tls};

/// How long a client may take for its handshake.
pub const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// The first byte of a client that begins with TLS: the type of a record of the handshake.
pub const HANDSHAKE_RECORD: u8 = 0x16;

/// Bytes that are read of a client that was refused.
const REFUSED_BYTES_MAX: usize = 64 << 10;

type Encrypted<S> = TlsStream<Prefixed<S>>;
type Handshake<S> = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

/// A socket, encrypted or not.
pub struct Socket<S = TcpStream> {
    state: State<S>,
    end_point: Option<Arc<[u8]>>,
}

enum State<S> {
    Plain(S),
    Handshake(Handshake<S>),
    Encrypted(Box<Encrypted<S>>),
    /// The handshake failed.
    Broken(io::ErrorKind),
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Socket<S> {
    /// A socket that is not encrypted.
    pub fn plain(socket: S) -> Self {
        Self { state: State::Plain(socket), end_point: None }
    }

    /// A socket that is encrypted from its first byte. A client that does not encrypt is sent
    /// `answer_to_plain`, and its connection ends.
    pub fn encrypted(
        socket: S,
        tls: &Tls,
        protocol: Protocol,
        answer_to_plain: &'static [u8],
    ) -> Self {
        Self::begin(Vec::new(), socket, tls, protocol, answer_to_plain)
    }

    fn begin(
        read_already: Vec<u8>,
        socket: S,
        tls: &Tls,
        protocol: Protocol,
        answer_to_plain: &'static [u8],
    ) -> Self {
        let Begin { acceptor, end_point } = tls.begin(protocol);
        let handshake = shake_hands(read_already, socket, acceptor, answer_to_plain);
        let handshake = async move {
            match stoa_env::timer::timeout(HANDSHAKE_LIMIT, handshake).await {
                Ok(done) => done,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            }
        };
        Self { state: State::Handshake(Box::pin(handshake)), end_point }
    }

    /// Encrypts what comes from now on, and waits until the handshake is done. `read_already` is what
    /// was read of the handshake.
    ///
    /// # Errors
    /// The client did not encrypt, had no certificate that is accepted, took too long, or went away;
    /// or the socket is encrypted already.
    pub async fn begin_tls(
        &mut self,
        read_already: Vec<u8>,
        tls: &Tls,
        protocol: Protocol,
    ) -> io::Result<()> {
        let broken = State::Broken(io::ErrorKind::NotConnected);
        match std::mem::replace(&mut self.state, broken) {
            State::Plain(socket) => *self = Self::begin(read_already, socket, tls, protocol, b""),
            other => {
                self.state = other;
                return Err(io::ErrorKind::AlreadyExists.into());
            }
        }
        poll_fn(|cx| self.poll_established(cx)).await
    }

    fn poll_established(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Plain(_) | State::Encrypted(_) => Poll::Ready(Ok(())),
            State::Broken(kind) => Poll::Ready(Err((*kind).into())),
            State::Handshake(handshake) => match ready!(handshake.as_mut().poll(cx)) {
                Ok(stream) => {
                    self.state = State::Encrypted(Box::new(stream));
                    Poll::Ready(Ok(()))
                }
                Err(error) => {
                    tracing::debug!(%error, "TLS handshake failed");
                    self.state = State::Broken(error.kind());
                    Poll::Ready(Err(error))
                }
            },
        }
    }
}

impl<S> Socket<S> {
    /// Whether the handshake is done.
    pub fn is_encrypted(&self) -> bool {
        matches!(self.state, State::Encrypted(_))
    }

    /// The protocol that the handshake has agreed upon, if the client named any.
    pub fn alpn(&self) -> Option<&[u8]> {
        match &self.state {
            State::Encrypted(stream) => stream.get_ref().1.alpn_protocol(),
            _ => None,
        }
    }

    /// What a login can be bound to (`tls-server-end-point`); `None` where nothing is encrypted, or
    /// where the certificate does not allow it.
    pub fn end_point(&self) -> Option<&[u8]> {
        self.end_point.as_deref().filter(|_| self.is_encrypted())
    }
}

async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
    mut read_already: Vec<u8>,
    mut socket: S,
    acceptor: TlsAcceptor,
    answer_to_plain: &'static [u8],
) -> io::Result<Encrypted<S>> {
    if read_already.is_empty() {
        read_already.push(socket.read_u8().await?);
    }
    if read_already.first() != Some(&HANDSHAKE_RECORD) {
        socket.write_all(answer_to_plain).await?;
        part(&mut socket).await?;
        let error = "the client does not encrypt, and the server has tls_cert set";
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    match acceptor.accept(Prefixed::new(read_already, socket)).into_fallible().await {
        Ok(stream) => Ok(stream),
        Err((error, mut socket)) => {
            // What is wrong was told the client; it matters to nobody whether it listens.
            let _ = part(&mut socket).await;
            Err(error)
        }
    }
}

/// Says that no more will come, and reads what the client sends until it goes: a socket that is closed
/// before may take with it what the client has not read yet.
async fn part<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut S) -> io::Result<()> {
    socket.shutdown().await?;
    let mut bytes = [0; 1024];
    let mut taken = 0;
    while taken < REFUSED_BYTES_MAX {
        match socket.read(&mut bytes).await? {
            0 => break,
            read => taken += read,
        }
    }
    Ok(())
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_established(cx))?;
        match &mut self.state {
            State::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            State::Encrypted(stream) => Pin::new(stream).poll_read(cx, buffer),
            State::Handshake(_) | State::Broken(_) => not_connected(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_established(cx))?;
        match &mut self.state {
            State::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            State::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
            State::Handshake(_) | State::Broken(_) => not_connected(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Plain(socket) => Pin::new(socket).poll_flush(cx),
            State::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
            // Nothing was written.
            State::Handshake(_) | State::Broken(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            State::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
            // Whoever does not go on with a handshake drops the socket.
            State::Handshake(_) | State::Broken(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_established(cx))?;
        match &mut self.state {
            State::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, parts),
            State::Encrypted(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            State::Handshake(_) | State::Broken(_) => not_connected(),
        }
    }

    fn is_write_vectored(&self) -> bool {
        // Both kinds are.
        true
    }
}

fn not_connected<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

impl<S> fmt::Debug for Socket<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Plain(_) => "plain",
            State::Handshake(_) => "handshake",
            State::Encrypted(_) => "encrypted",
            State::Broken(_) => "broken",
        };
        f.debug_struct("Socket").field("state", &state).finish_non_exhaustive()
    }
}
