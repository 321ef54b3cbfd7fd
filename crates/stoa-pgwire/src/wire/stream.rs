//! The socket: reads messages, sends the output, and notices a client that goes away.
//!
//! **Invariant:** memory per connection is bounded: output is sent at [`FLUSH_BYTES`], input read
//! ahead stops at [`AHEAD_BYTES_MAX`], and an idle connection keeps at most a few KiB.

use std::future::Future;
use std::io;
use std::task::Poll;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use stoa_error::{Error, ErrorKind};
use stoa_tls::{HANDSHAKE_RECORD, Protocol, Socket, Tls};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::backend::Output;
use super::frontend::{Damage, Message, StartupPacket, take_login, take_message, take_startup};

/// Output is sent when it holds this much.
pub(crate) const FLUSH_BYTES: usize = 64 << 10;
/// Input that is read while a statement runs.
const AHEAD_BYTES_MAX: usize = 1 << 20;
/// Room for one read.
const READ_BYTES: usize = 8 << 10;
/// Buffers larger than this are given back between messages.
const KEEP_BYTES: usize = 64 << 10;

/// Why a handler stops before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// To be told to the client.
    Failed(Error),
    /// The client is gone; nobody to tell.
    Gone,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// What comes next from the client.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Message),
    Damaged(Damage),
    /// The client closed the connection, or it broke.
    End,
}

/// A connection's socket with its buffers.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    socket: S,
    input: BytesMut,
    message_bytes_max: usize,
    /// Messages not sent yet.
    pub(crate) output: Output,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Messages longer than `message_bytes_max` are refused.
    pub(crate) fn new(socket: S, message_bytes_max: usize) -> Self {
        Self { socket, input: BytesMut::new(), message_bytes_max, output: Output::default() }
    }

    /// The first packet; `None` if the client closed the connection.
    ///
    /// # Errors
    /// The packet is damaged.
    pub(crate) async fn startup_packet(&mut self) -> Result<Option<StartupPacket>, Error> {
        loop {
            if let Some(packet) = take_startup(&mut self.input)? {
                return Ok(Some(packet));
            }
            if !matches!(read_more(&mut self.socket, &mut self.input).await, Ok(true)) {
                return Ok(None);
            }
        }
    }

    /// A client's word of a login.
    ///
    /// # Errors
    /// It is none, or the client went away.
    pub(crate) async fn login(&mut self) -> Result<Bytes, Stop> {
        loop {
            if let Some(word) = take_login(&mut self.input)? {
                return Ok(word);
            }
            if !matches!(read_more(&mut self.socket, &mut self.input).await, Ok(true)) {
                return Err(Stop::Gone);
            }
        }
    }

    /// The next message. May be dropped and called again without loss.
    pub(crate) async fn next(&mut self) -> Incoming {
        loop {
            match take_message(&mut self.input, self.message_bytes_max) {
                Ok(Some(message)) => return Incoming::Message(message),
                Err(damage) => return Incoming::Damaged(damage),
                Ok(None) => {}
            }
            if self.input.is_empty() && self.input.capacity() > KEEP_BYTES {
                self.input = BytesMut::new();
            }
            if !matches!(read_more(&mut self.socket, &mut self.input).await, Ok(true)) {
                return Incoming::End;
            }
        }
    }

    /// Whether bytes of a next message are here already.
    pub(crate) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Sends the output.
    pub(crate) async fn flush(&mut self) -> Result<(), Stop> {
        if !self.output.bytes().is_empty() {
            self.socket.write_all(self.output.bytes()).await?;
            // What is encrypted may wait for more.
            self.socket.flush().await?;
            self.output.clear(KEEP_BYTES);
        }
        Ok(())
    }

    /// Sends the output if there is much of it.
    pub(crate) async fn flush_if_large(&mut self) -> Result<(), Stop> {
        if self.output.bytes().len() >= FLUSH_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Waits for `work`, which ends early if the client goes away or `deadline` passes. What the
    /// client sends meanwhile is kept for later.
    ///
    /// # Errors
    /// [`Stop::Gone`], or 57014 at the deadline.
    pub(crate) async fn watch<T>(
        &mut self,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let mut work = std::pin::pin!(work);
        // Most work is done at once; only what is not is worth a look at the socket.
        if let Poll::Ready(done) = futures::poll!(work.as_mut()) {
            return Ok(done);
        }
        loop {
            let ahead = self.input.len() < AHEAD_BYTES_MAX;
            // Work comes last: it may use up the task's budget at every turn, and then neither
            // clock nor socket would ever be seen to be ready.
            tokio::select! {
                biased;
                () = passed(deadline), if deadline.is_some() => {
                    return Err(Stop::Failed(timeout_error()));
                }
                read = read_more(&mut self.socket, &mut self.input), if ahead => {
                    if !matches!(read, Ok(true)) {
                        return Err(Stop::Gone);
                    }
                }
                done = &mut work => return Ok(done),
            }
        }
    }

    /// Sends the output and says that no more will come.
    pub(crate) async fn close(mut self) {
        if self.flush().await.is_ok() {
            let _ = self.socket.shutdown().await;
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Wire<Socket<S>> {
    pub(crate) fn socket(&self) -> &Socket<S> {
        &self.socket
    }

    /// Whether the client begins with TLS, without a request for it. Waits for its first byte.
    ///
    /// # Errors
    /// [`Stop::Gone`]
    pub(crate) async fn begins_with_tls(&mut self) -> Result<bool, Stop> {
        if self.input.is_empty() && !read_more(&mut self.socket, &mut self.input).await? {
            return Err(Stop::Gone);
        }
        Ok(self.input.first() == Some(&HANDSHAKE_RECORD))
    }

    /// Encrypts what comes from now on; what was read already is the begin of the handshake.
    ///
    /// # Errors
    /// [`Stop::Gone`]: the client and the server did not agree; the handshake has told the client.
    pub(crate) async fn begin_tls(&mut self, tls: &Tls) -> Result<(), Stop> {
        let read_already = std::mem::take(&mut self.input).to_vec();
        self.socket.begin_tls(read_already, tls, Protocol::Postgres).await?;
        Ok(())
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => stoa_env::timer::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn timeout_error() -> Error {
    Error::new(ErrorKind::Timeout, "canceling statement due to statement timeout")
        .with_sqlstate("57014")
        .with_hint("raise statement_timeout, or set it to 0 for no limit")
}

/// Reads once; `false` at the end.
async fn read_more(
    socket: &mut (impl AsyncRead + Unpin),
    input: &mut BytesMut,
) -> io::Result<bool> {
    input.reserve(READ_BYTES);
    Ok(socket.read_buf(input).await? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_goes_away_ends_the_wait() {
        let (server, client) = tokio::io::duplex(64);
        let mut wire = Wire::new(server, 100);
        drop(client);
        let never = std::future::pending::<()>();
        assert!(matches!(wire.watch(None, never).await, Err(Stop::Gone)));
    }

    #[tokio::test]
    async fn what_comes_during_a_wait_is_kept() {
        let (server, mut client) = tokio::io::duplex(64);
        let mut wire = Wire::new(server, 100);
        client.write_all(b"S\0\0\0\x04").await.unwrap();
        let deadline = Some(stoa_env::clock::monotonic());
        let never = std::future::pending::<()>();
        let stopped = wire.watch(deadline, never).await;
        assert!(matches!(stopped, Err(Stop::Failed(error)) if error.sqlstate() == "57014"));
        assert!(matches!(wire.next().await, Incoming::Message(Message::Sync)));
    }
}
