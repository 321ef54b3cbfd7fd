//! A socket of which something was read already: that comes first, again.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A socket with what was read of it.
#[derive(Debug)]
pub(crate) struct Prefixed<S> {
    read_already: Vec<u8>,
    socket: S,
}

impl<S> Prefixed<S> {
    pub(crate) fn new(read_already: Vec<u8>, socket: S) -> Self {
        Self { read_already, socket }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read_already.is_empty() {
            return Pin::new(&mut self.socket).poll_read(cx, buffer);
        }
        let count = self.read_already.len().min(buffer.remaining());
        buffer.put_slice(&self.read_already[..count]);
        self.read_already.drain(..count);
        if self.read_already.is_empty() {
            self.read_already = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn what_was_read_comes_first() {
        let (mut client, server) = tokio::io::duplex(64);
        client.write_all(b"def").await.unwrap();
        drop(client);
        let mut socket = Prefixed::new(b"abc".to_vec(), server);
        let mut two = [0; 2];
        socket.read_exact(&mut two).await.unwrap();
        let mut rest = String::new();
        socket.read_to_string(&mut rest).await.unwrap();
        assert_eq!((&two, rest.as_str()), (b"ab", "cdef"));
    }
}
