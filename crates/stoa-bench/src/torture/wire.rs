//! A way for TCP connections that can be cut.
//!
//! ```text
//! client ─► listener ─► copies bytes, both ways ─► upstream
//!                          └ cut: silent (bytes wait, nobody is told) or broken (connections end, new ones too)
//! ```

use std::net::{IpAddr, SocketAddr};

use stoa_env::task;
use stoa_error::{Error, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Bytes that are copied at once.
const BUFFER_BYTES: usize = 16 << 10;

/// What happens to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Whole,
    /// Nothing arrives, and nobody is told: a network that drops packets.
    Silent,
    /// Connections end: a host that is gone.
    Broken,
}

/// A listener whose connections go on to another address. Dropped, it and its connections end.
pub(crate) struct Wire {
    address: SocketAddr,
    state: watch::Sender<State>,
    accepting: JoinHandle<()>,
}

impl Wire {
    /// Listens at `ip` and a port, 0 for any that is free, and connects to `upstream`, a host and a port.
    ///
    /// # Errors
    /// Unavailable: the address cannot be listened at.
    pub(crate) async fn open(ip: IpAddr, port: u16, upstream: String) -> Result<Self> {
        let failed = |e| Error::unavailable(format!("cannot listen at {ip}:{port}")).with_source(e);
        let listener = TcpListener::bind((ip, port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (state, states) = watch::channel(State::Whole);
        let accepting = task::spawn(accept(listener, upstream, states));
        Ok(Self { address, state, accepting })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn set(&self, state: State) {
        self.state.send_replace(state);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, upstream: String, states: watch::Receiver<State>) {
    // One that cannot be accepted is its client's trouble.
    while let Ok((client, _)) = listener.accept().await {
        let (upstream, states) = (upstream.clone(), states.clone());
        task::spawn(async move {
            let mut broken = states.clone();
            tokio::select! {
                _ = connect(client, &upstream, states) => {}
                // Also where the wire itself is dropped.
                _ = broken.wait_for(|state| *state == State::Broken) => {}
            }
        });
    }
}

/// Until one side ends.
async fn connect(client: TcpStream, upstream: &str, states: watch::Receiver<State>) -> Option<()> {
    let mut whole = states.clone();
    whole.wait_for(|state| *state == State::Whole).await.ok()?;
    let server = TcpStream::connect(upstream).await.ok()?;
    // A daemon counts on its small messages.
    client.set_nodelay(true).ok()?;
    server.set_nodelay(true).ok()?;
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    tokio::join!(
        copy(from_client, to_server, states.clone()),
        copy(from_server, to_client, states)
    );
    Some(())
}

/// Until there is no more to read, or nobody to write to.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut states: watch::Receiver<State>,
) -> Option<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = from.read(&mut buffer).await.ok()?;
        states.wait_for(|state| *state == State::Whole).await.ok()?;
        match length {
            0 => return to.shutdown().await.ok(),
            length => to.write_all(&buffer[..length]).await.ok()?,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use stoa_env::timer;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// A server that sends back what it gets.
    async fn echo() -> String {
        let listener = TcpListener::bind((HERE, 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        task::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                task::spawn(async move {
                    let (mut from, mut to) = client.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        address
    }

    async fn said(client: &mut TcpStream, byte: u8) -> Option<u8> {
        client.write_all(&[byte]).await.ok()?;
        client.read_u8().await.ok()
    }

    #[tokio::test]
    async fn bytes_wait_while_it_is_silent_and_connections_end_where_it_breaks() {
        let wire = Wire::open(HERE, 0, echo().await).await.unwrap();
        let connect = || TcpStream::connect((HERE, wire.port()));
        let mut client = connect().await.unwrap();
        assert_eq!(said(&mut client, 1).await, Some(1));
        wire.set(State::Silent);
        let mut other = connect().await.unwrap();
        {
            let both = async { (said(&mut client, 2).await, said(&mut other, 3).await) };
            let mut both = std::pin::pin!(both);
            assert!(timer::timeout(Duration::from_millis(50), &mut both).await.is_err());
            wire.set(State::Whole);
            assert_eq!(both.await, (Some(2), Some(3)));
        }
        wire.set(State::Broken);
        assert_eq!(said(&mut client, 4).await, None);
        let mut late = connect().await.unwrap();
        assert_eq!(said(&mut late, 5).await, None);
        wire.set(State::Whole);
        let mut last = connect().await.unwrap();
        assert_eq!(said(&mut last, 6).await, Some(6));
    }
}
