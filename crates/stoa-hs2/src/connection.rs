//! A connection without HTTP: Thrift's messages, in frames of SASL or one after another.
//!
//! **Invariants:** one call at a time; a client that goes away while its call runs cancels it, and its sessions end with
//! the connection. What is read ahead of a call is bounded.

use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use stoa_error::{Error, Result};
use stoa_listen::Guest;
use stoa_thrift::sasl::{self, LoginFrame, Plain};
use stoa_thrift::{Extent, extent};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use crate::peer::Peer;
use crate::service::{Service, too_long};

/// What a connection without frames begins with: the version of Thrift's binary protocol.
pub(crate) const THRIFT: u8 = 0x80;
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// Bytes that are read while a call runs: enough to see that the client has gone.
const AHEAD_BYTES_MAX: usize = 64 << 10;

/// A socket, and what was read of it.
pub(crate) struct Wire<S> {
    socket: S,
    /// Bytes as they came.
    raw: BytesMut,
    /// Bytes out of frames; empty without frames.
    unframed: BytesMut,
    has_frames: bool,
    message_bytes_max: usize,
}

/// Why no message comes any more.
enum End {
    /// The client has gone.
    Gone,
    /// It sends what is no message; that may be answered.
    Wrong(Error, Option<Vec<u8>>),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Wrong(error, None)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Of `socket`, nothing was read but `raw`.
    pub(crate) fn new(socket: S, raw: BytesMut, message_bytes_max: usize) -> Self {
        Self { socket, raw, unframed: BytesMut::new(), has_frames: false, message_bytes_max }
    }

    async fn fill(&mut self) -> Result<(), End> {
        self.raw.reserve(READ_BYTES);
        match self.socket.read_buf(&mut self.raw).await? {
            0 => Err(End::Gone),
            _ => Ok(()),
        }
    }

    /// The next message. Nothing is lost when it is not waited for.
    async fn message(&mut self) -> Result<BytesMut, End> {
        let mut wanted = 1;
        loop {
            let bytes = if self.has_frames { &mut self.unframed } else { &mut self.raw };
            if bytes.len() >= wanted {
                match extent(bytes)? {
                    Extent::Whole(length) => return Ok(bytes.split_to(length)),
                    Extent::Partial { at_least } => wanted = at_least,
                }
                if wanted > self.message_bytes_max {
                    let error = Error::invalid("a message is too long").with_sqlstate("08P01");
                    return Err(End::Wrong(error, too_long(bytes, self.message_bytes_max)));
                }
            }
            if !(self.has_frames && self.next_frame()?) {
                self.fill().await?;
            }
        }
    }

    /// Takes a frame out of what was read, if there is a whole one.
    fn next_frame(&mut self) -> Result<bool> {
        let Some(head) = self.raw.first_chunk::<{ sasl::FRAME_HEAD_BYTES }>() else {
            return Ok(false);
        };
        let length = sasl::length_of(*head, self.message_bytes_max)?;
        if self.raw.len() < sasl::FRAME_HEAD_BYTES + length {
            return Ok(false);
        }
        self.raw.advance(sasl::FRAME_HEAD_BYTES);
        let payload = self.raw.split_to(length);
        match self.unframed.is_empty() {
            true => self.unframed = payload,
            false => self.unframed.extend_from_slice(&payload),
        }
        Ok(true)
    }

    /// Completes when the client has gone.
    async fn gone(&mut self) {
        while self.raw.len() < AHEAD_BYTES_MAX {
            if self.fill().await.is_err() {
                return;
            }
        }
        std::future::pending().await
    }

    async fn send(&mut self, answer: Vec<u8>) -> io::Result<()> {
        if self.has_frames {
            let length = u32::try_from(answer.len()).map_err(|_| io::ErrorKind::InvalidData)?;
            let mut framed = Vec::with_capacity(answer.len() + sasl::FRAME_HEAD_BYTES);
            framed.extend_from_slice(&length.to_be_bytes());
            framed.extend_from_slice(&answer);
            self.socket.write_all(&framed).await?;
        } else {
            self.socket.write_all(&answer).await?;
        }
        self.socket.flush().await
    }

    /// Sends bytes that are in no frame.
    async fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await?;
        self.socket.flush().await
    }

    async fn login_frame(&mut self) -> Result<(u8, Vec<u8>), End> {
        loop {
            if let Some((frame, length)) = LoginFrame::read(&self.raw)? {
                let taken = (frame.status, frame.payload.to_vec());
                self.raw.advance(length);
                return Ok(taken);
            }
            self.fill().await?;
        }
    }
}

/// Serves a client that begins with SASL.
pub(crate) async fn serve_sasl<S: AsyncRead + AsyncWrite + Unpin>(
    mut wire: Wire<S>,
    service: &Arc<Service>,
    guest: &Guest,
    closing: watch::Receiver<bool>,
) {
    let mut peer = Peer::new(guest.address());
    match log_in(&mut wire, service, &mut peer).await {
        Ok(()) => {
            wire.has_frames = true;
            serve(wire, service, guest, peer, closing).await;
        }
        Err(End::Gone) => {}
        Err(End::Wrong(error, _)) => {
            tracing::debug!(?error, "login refused");
            let frame = LoginFrame::write(sasl::BAD, error.message().as_bytes());
            let _ = wire.send_raw(&frame).await;
            let _ = wire.socket.shutdown().await;
        }
    }
}

async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    service: &Service,
    peer: &mut Peer,
) -> Result<(), End> {
    let (status, mechanism) = wire.login_frame().await?;
    if status != sasl::START || mechanism != b"PLAIN" {
        let mechanism = String::from_utf8_lossy(&mechanism).into_owned();
        return Err(Error::unsupported(format!("login by {mechanism} is not offered"))
            .with_hint("use PLAIN: authentication NONE, LDAP or CUSTOM in Hive's clients")
            .into());
    }
    let (status, payload) = wire.login_frame().await?;
    if status != sasl::OK && status != sasl::COMPLETE {
        return Err(Error::invalid("the login was given up").with_sqlstate("08P01").into());
    }
    let Plain { user, password } = Plain::read(&payload)?;
    service.log_in(user, &password, peer).await?;
    wire.send_raw(&LoginFrame::write(sasl::COMPLETE, b"")).await?;
    Ok(())
}

/// Serves a client whose messages come as they are.
pub(crate) async fn serve_plain<S: AsyncRead + AsyncWrite + Unpin>(
    wire: Wire<S>,
    service: &Arc<Service>,
    guest: &Guest,
    closing: watch::Receiver<bool>,
) {
    let peer = Peer::new(guest.address());
    serve(wire, service, guest, peer, closing).await;
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut wire: Wire<S>,
    service: &Arc<Service>,
    guest: &Guest,
    mut peer: Peer,
    mut closing: watch::Receiver<bool>,
) {
    let end = answer_calls(&mut wire, service, guest, &mut peer, &mut closing).await;
    service.forget(&peer.opened);
    if let Err(End::Wrong(error, answer)) = end {
        tracing::debug!(?error, "connection closed");
        if let Some(answer) = answer {
            let _ = wire.send(answer).await;
        }
    }
    let _ = wire.socket.shutdown().await;
}

async fn answer_calls<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    service: &Arc<Service>,
    guest: &Guest,
    peer: &mut Peer,
    closing: &mut watch::Receiver<bool>,
) -> Result<(), End> {
    let mut is_free = false;
    loop {
        if peer.is_known && !is_free {
            guest.known();
            is_free = true;
        }
        let message = tokio::select! {
            biased;
            message = wire.message() => message?,
            _ = closing.wait_for(|closing| *closing) => return Ok(()),
            () = service.terminated(&peer.opened) => return Ok(()),
        };
        let answer = tokio::select! {
            biased;
            answer = service.call(&message, peer) => answer?,
            () = wire.gone() => return Err(End::Gone),
        };
        drop(message);
        wire.send(answer).await?;
    }
}
