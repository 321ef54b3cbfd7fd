//! A socket that ends when its client has waited too long, or must make room.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use stoa_env::timer::Sleep;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::guest::{Guest, Standing};

/// A socket within the limits of its listener, whose place is given back when it is dropped.
#[derive(Debug)]
pub struct Guarded<S> {
    socket: S,
    /// Dropped after the socket, so that whoever gets its place finds a descriptor.
    place: Place,
    /// Wakes a client that waits for too long.
    alarm: Option<Pin<Box<Sleep>>>,
}

/// A place at the door, given back when this is dropped.
#[derive(Debug)]
struct Place(Guest);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl<S> Guarded<S> {
    pub(crate) fn new(socket: S, guest: Guest) -> Self {
        Self { socket, place: Place(guest), alarm: None }
    }

    /// What the protocol tells of the client.
    pub fn guest(&self) -> &Guest {
        &self.place.0
    }

    /// Whether the time to wait is up.
    fn is_late(&mut self, until: Instant, cx: &mut Context<'_>) -> bool {
        let until: stoa_env::timer::Instant = until.into();
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(stoa_env::timer::sleep_until(until)));
        if alarm.deadline() != until {
            alarm.as_mut().reset(until);
        }
        alarm.as_mut().poll(cx).is_ready()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        match this.guest().standing(cx.waker()) {
            Standing::Free => {
                this.alarm = None;
                return Pin::new(&mut this.socket).poll_read(cx, buffer);
            }
            Standing::SentAway => return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            Standing::Waiting { until, full } => {
                if this.is_late(until, cx) {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                if full {
                    // Woken when the client is let in, or by the alarm.
                    return Poll::Pending;
                }
            }
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.socket).poll_read(cx, buffer);
        this.guest().has_read(buffer.filled().len() - before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    crate::write_through!(socket);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use crate::{Door, Limits};

    use super::*;

    async fn pair(door: &std::sync::Arc<Door>) -> (TcpStream, Guarded<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, peer) = listener.accept().await.unwrap();
        (client, door.let_in(socket, peer).await.unwrap())
    }

    #[tokio::test]
    async fn a_client_that_says_nothing_ends() {
        let limits = Limits { login_timeout: Duration::ZERO, ..Limits::default() };
        let (_client, mut server) = pair(&Door::new("test", 9, limits)).await;
        let error = server.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_is_known_may_be_silent() {
        let limits = Limits { login_timeout: Duration::ZERO, ..Limits::default() };
        let (mut client, mut server) = pair(&Door::new("test", 9, limits)).await;
        server.guest().known();
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    }

    #[tokio::test]
    async fn after_a_request_the_clock_starts_again() {
        let limits = Limits { idle_timeout: Duration::ZERO, ..Limits::default() };
        let (mut client, mut server) = pair(&Door::new("test", 9, limits)).await;
        let busy = server.guest().begin();
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
        drop(busy);
        let error = server.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_waits_is_read_from_up_to_a_bound() {
        let limits = Limits { waiting_bytes_max: 4, ..Limits::default() };
        let (mut client, mut server) = pair(&Door::new("test", 9, limits)).await;
        client.write_all(&[7; 12]).await.unwrap();
        let mut four = [0; 4];
        server.read_exact(&mut four).await.unwrap();
        let mut more = [0; 8];
        let mut reading = std::pin::pin!(server.read(&mut more));
        let waker = std::task::Waker::noop();
        assert!(reading.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }

    #[tokio::test]
    async fn whoever_makes_room_is_woken_and_ends() {
        let door = Door::new("test", 1, Limits::default());
        let (_client, mut first) = pair(&door).await;
        let reading = stoa_env::task::spawn(async move { first.read_u8().await });
        let (_other, second) = pair(&door).await;
        let error = reading.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        second.guest().known();
    }
}
