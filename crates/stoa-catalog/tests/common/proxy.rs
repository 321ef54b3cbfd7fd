//! A connection to PostgreSQL that is cut on command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cut {
    Never = 0,
    /// COMMIT does not reach the server.
    BeforeCommit = 1,
    /// COMMIT reaches the server, its answer nobody.
    AfterCommit = 2,
    /// As after, and the server does not learn that its client is gone.
    AfterCommitUnnoticed = 3,
    /// Whatever the client says, and new connections.
    All = 4,
    /// As after, and everything from then on.
    AfterCommitAndAll = 5,
    /// Nothing is cut, and nothing gets through any more.
    Silence = 6,
}

/// Forwards connections, and cuts the next one that commits if it is told to.
#[derive(Clone)]
pub struct Proxy {
    port: u16,
    cut: Arc<AtomicU8>,
    cuts: Arc<AtomicU32>,
}

impl Proxy {
    /// In front of a server on this machine.
    pub async fn before(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Self { port, cut: Arc::default(), cuts: Arc::default() };
        let forwarding = proxy.clone();
        stoa_env::task::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let proxy = forwarding.clone();
                stoa_env::task::spawn(async move {
                    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
                        return;
                    };
                    let _ = proxy.forward(client, server).await;
                });
            }
        });
        proxy
    }

    /// A server's URL by way of this.
    pub fn url(&self, url: &str) -> String {
        let (account, rest) = url.split_once("@127.0.0.1:").unwrap();
        let (_, database) = rest.split_once('/').unwrap();
        format!("{account}@127.0.0.1:{}/{database}", self.port)
    }

    pub fn set(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }

    /// How many connections were cut at a commit.
    pub fn cuts(&self) -> u32 {
        self.cuts.load(Ordering::SeqCst)
    }

    fn is(&self, cut: Cut) -> bool {
        self.cut.load(Ordering::SeqCst) == cut as u8
    }

    /// Takes the order, so that one connection carries it out.
    fn take(&self, cut: Cut) -> bool {
        let taken = self
            .cut
            .compare_exchange(cut as u8, Cut::Never as u8, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        self.cuts.fetch_add(u32::from(taken), Ordering::SeqCst);
        taken
    }

    async fn forward(&self, mut client: TcpStream, mut server: TcpStream) -> std::io::Result<()> {
        let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        loop {
            if self.is(Cut::All) {
                return Ok(());
            }
            if self.is(Cut::Silence) {
                std::future::pending::<()>().await;
            }
            tokio::select! {
                read = client.read(&mut asked) => {
                    let read = read?;
                    if read == 0 || self.is(Cut::All) {
                        return Ok(());
                    }
                    if self.is(Cut::Silence) {
                        continue;
                    }
                    let asked = &asked[..read];
                    let commits = asked.windows(7).any(|part| part == b"COMMIT\0");
                    if commits && self.take(Cut::BeforeCommit) {
                        return Ok(());
                    }
                    server.write_all(asked).await?;
                    if commits && self.take(Cut::AfterCommit) {
                        return Ok(());
                    }
                    if commits && self.take(Cut::AfterCommitAndAll) {
                        self.set(Cut::All);
                        return Ok(());
                    }
                    if commits && self.take(Cut::AfterCommitUnnoticed) {
                        drop(client);
                        // Until the server itself has had enough.
                        while server.read(&mut answered).await? > 0 {}
                        return Ok(());
                    }
                }
                read = server.read(&mut answered) => {
                    let read = read?;
                    if read == 0 {
                        return Ok(());
                    }
                    client.write_all(&answered[..read]).await?;
                }
            }
        }
    }
}
