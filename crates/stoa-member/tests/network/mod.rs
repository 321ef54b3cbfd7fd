//! Lines between the members of a test and their database, which fall silent on command.
//!
//! A silent line takes bytes and passes none on: nobody learns that it is cut. When it speaks again, what was
//! under way arrives late, or the connections are torn.

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_env::task;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// A member's place in the test; members that follow each other have the same one.
pub type Place = usize;

/// Where the database is.
pub const DATABASE: Place = usize::MAX;

#[derive(Clone, Copy, Default)]
struct Line {
    is_silent: bool,
    /// How often its connections were torn.
    torn: u64,
}

/// All lines of a test.
pub struct Network {
    runtime: Handle,
    lines: Mutex<HashMap<(Place, Place), watch::Sender<Line>>>,
    /// Who listens on a port.
    listening: Mutex<HashMap<u16, Place>>,
    /// The port that stands for another one, by who connects.
    ports: Mutex<HashMap<(Place, u16), u16>>,
}

impl Network {
    /// Lines that live on this runtime.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            runtime: Handle::current(),
            lines: Mutex::default(),
            listening: Mutex::default(),
            ports: Mutex::default(),
        })
    }

    /// Takes note of who listens on a port of this machine.
    pub fn listens(&self, place: Place, port: u16) {
        self.listening.lock().insert(port, place);
    }

    /// Where `from` reaches what listens on `port`.
    pub fn port(&self, from: Place, port: u16) -> u16 {
        let mut ports = self.ports.lock();
        *ports.entry((from, port)).or_insert_with(|| {
            let to = self.listening.lock()[&port];
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let here = listener.local_addr().unwrap().port();
            let line = self.line(from, to).subscribe();
            self.runtime.spawn(async move { serve(listener, port, line).await });
            here
        })
    }

    fn line(&self, from: Place, to: Place) -> watch::Sender<Line> {
        let mut lines = self.lines.lock();
        lines.entry((from, to)).or_insert_with(|| watch::Sender::new(Line::default())).clone()
    }

    /// Cuts two places from each other.
    pub fn cut(&self, one: Place, other: Place) {
        for line in [self.line(one, other), self.line(other, one)] {
            line.send_modify(|line| line.is_silent = true);
        }
    }

    /// Lets all lines speak again; those that were silent with torn connections if `torn`.
    pub fn heal(&self, torn: bool) {
        for line in self.lines.lock().values() {
            line.send_modify(|line| {
                line.torn += u64::from(torn && line.is_silent);
                line.is_silent = false;
            });
        }
    }
}

async fn serve(listener: TcpListener, port: u16, line: watch::Receiver<Line>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        let mut line = line.clone();
        task::spawn(async move {
            let began = line.borrow().torn;
            if !speaks(&mut line, began).await {
                return;
            }
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            tokio::select! {
                () = pass(from_client, to_server, line.clone(), began) => {}
                () = pass(from_server, to_client, line.clone(), began) => {}
            }
        });
    }
}

/// Waits until the line is not silent; false once connections of that age are torn.
async fn speaks(line: &mut watch::Receiver<Line>, began: u64) -> bool {
    let speaks = line.wait_for(|line| !line.is_silent || line.torn != began).await;
    speaks.is_ok_and(|line| line.torn == began)
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut line: watch::Receiver<Line>,
    began: u64,
) {
    let mut bytes = vec![0; 1 << 16];
    while speaks(&mut line, began).await {
        tokio::select! {
            _ = line.changed() => {}
            read = from.read(&mut bytes) => match read {
                Ok(read) if speaks(&mut line, began).await && read > 0 => {
                    if to.write_all(&bytes[..read]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}
