//! What the tests share: a membership, daemons, and a proxy that can stand still.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod raw;

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_env::task;
use stoa_error::Result;
use stoa_peers::{Directory, Handler, Identity, PeerAddress, PeerOptions, PeerStatistics, Peers};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Longer than anything takes that works.
pub const LONG: Duration = Duration::from_secs(120);

pub fn id(number: u64) -> DaemonId {
    DaemonId::from_bits(number)
}

pub fn holder(number: u64) -> Holder {
    Holder { daemon: id(number), incarnation: 1 }
}

/// Who is there, for all daemons of a test.
#[derive(Default)]
pub struct Membership(Mutex<HashMap<DaemonId, PeerAddress>>);

impl Membership {
    pub fn join(&self, holder: Holder, address: impl ToString, fingerprint: [u8; 32]) {
        let peer = PeerAddress { address: address.to_string(), holder, fingerprint };
        self.0.lock().unwrap().insert(holder.daemon, peer);
    }

    pub fn die(&self, daemon: DaemonId) {
        self.0.lock().unwrap().remove(&daemon);
    }

    /// Lets all others find a daemon somewhere else.
    pub fn moved(&self, daemon: DaemonId, address: impl ToString) {
        self.0.lock().unwrap().get_mut(&daemon).unwrap().address = address.to_string();
    }

    pub fn get(&self, daemon: DaemonId) -> PeerAddress {
        self.address(daemon).unwrap()
    }
}

impl Directory for Membership {
    fn address(&self, daemon: DaemonId) -> Option<PeerAddress> {
        self.0.lock().unwrap().get(&daemon).cloned()
    }

    fn who(&self, fingerprint: [u8; 32]) -> BoxFuture<'_, Option<Holder>> {
        let members = self.0.lock().unwrap();
        let peer = members.values().find(|peer| peer.fingerprint == fingerprint);
        std::future::ready(peer.map(|peer| peer.holder)).boxed()
    }
}

/// A handler that is a function of sender, kind and body.
pub struct Does<F>(pub F);

impl<F, A> Handler for Does<F>
where
    F: Fn(Holder, u16, Bytes) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Bytes>> + Send + 'static,
{
    fn handle(&self, from: Holder, kind: u16, body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        self.0(from, kind, body).boxed()
    }
}

/// Answers with what was asked.
pub fn echo() -> Arc<dyn Handler> {
    Arc::new(Does(|_, _, body| async move { Ok(body) }))
}

/// A daemon that runs.
pub struct Daemon {
    pub id: DaemonId,
    pub peers: Peers,
    pub address: String,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Result<()>>,
}

impl Daemon {
    pub async fn start(
        membership: &Arc<Membership>,
        holder: Holder,
        options: PeerOptions,
        handler: Arc<dyn Handler>,
    ) -> Self {
        let identity = Identity::generate().unwrap();
        let fingerprint = identity.fingerprint();
        let daemon = Self::unknown(membership, identity, holder, options, handler).await;
        membership.join(holder, &daemon.address, fingerprint);
        daemon
    }

    /// One that is no member.
    pub async fn unknown(
        membership: &Arc<Membership>,
        identity: Identity,
        holder: Holder,
        options: PeerOptions,
        handler: Arc<dyn Handler>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peers = Peers::new(identity, membership.clone(), options);
        let (stop, stopped) = oneshot::channel();
        let server = peers.clone();
        let serving = task::spawn(async move {
            server.serve(listener, handler, stopped.map(|_: Result<(), _>| ())).await
        });
        Self { id: holder.daemon, peers, address, stop: Some(stop), serving }
    }

    pub async fn call(&self, to: DaemonId, kind: u16, body: impl Into<Bytes>) -> Result<Bytes> {
        self.peers.call(to, kind, body.into(), LONG).await
    }

    pub fn statistics(&self, of: DaemonId) -> PeerStatistics {
        let all = self.peers.statistics();
        all.into_iter().find(|peer| peer.daemon == of).expect("a peer that was called")
    }

    pub fn connected_from(&self, daemon: DaemonId) -> bool {
        self.peers.statistics().iter().any(|peer| peer.daemon == daemon && peer.connected_from)
    }

    pub fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    pub async fn stopped(self) {
        let Self { stop, serving, .. } = self;
        drop(stop);
        stoa_env::timer::timeout(LONG, serving).await.unwrap().unwrap().unwrap();
    }
}

/// Two daemons, 1 and 2; the second has the handler, the first echoes.
pub async fn two(
    options: PeerOptions,
    handler: Arc<dyn Handler>,
) -> (Arc<Membership>, Daemon, Daemon) {
    let membership = Arc::new(Membership::default());
    let one = Daemon::start(&membership, holder(1), options.clone(), echo()).await;
    let two = Daemon::start(&membership, holder(2), options, handler).await;
    (membership, one, two)
}

/// Handlers that hold a request until the test lets all go.
#[derive(Clone)]
pub struct Gate {
    open: watch::Sender<bool>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { open: watch::channel(false).0, running: Arc::default(), most: Arc::default() }
    }
}

impl Gate {
    pub async fn pass(&self) {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Requests that are held.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Requests that were held at once.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// Kind 0 answers at once, all others wait; answers are the requests.
    pub fn handler(&self) -> Arc<dyn Handler> {
        let gate = self.clone();
        Arc::new(Does(move |_, kind, body| {
            let gate = gate.clone();
            async move {
                if kind != 0 {
                    gate.pass().await;
                }
                Ok(body)
            }
        }))
    }
}

/// A TCP proxy in front of a daemon.
pub struct Proxy {
    pub address: String,
    state: watch::Sender<State>,
    accepted: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Forwards,
    /// It holds all connections, and passes nothing on.
    Frozen,
    /// It closes all connections, and those that come.
    Closes,
}

impl Proxy {
    pub async fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap().to_string(),
            state: watch::channel(State::Forwards).0,
            accepted: Arc::default(),
        };
        let (to, states) = (address.to_owned(), proxy.state.subscribe());
        let accepted = Arc::clone(&proxy.accepted);
        task::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                task::spawn(forward(socket, to.clone(), states.clone()));
            }
        });
        proxy
    }

    pub fn freeze(&self) {
        self.state.send_replace(State::Frozen);
    }

    pub fn close_all(&self) {
        self.state.send_replace(State::Closes);
    }

    pub fn restore(&self) {
        self.state.send_replace(State::Forwards);
    }

    /// Connections that came.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

async fn forward(socket: TcpStream, to: String, states: watch::Receiver<State>) {
    let closes = async |mut states: watch::Receiver<State>| {
        let _ = states.wait_for(|state| *state == State::Closes).await;
    };
    let pass = async {
        let Ok(other) = TcpStream::connect(to).await else { return };
        let ((a, b), (c, d)) = (socket.into_split(), other.into_split());
        tokio::join!(one_way(a, d, states.clone()), one_way(c, b, states.clone()));
    };
    tokio::select! {
        () = pass => {}
        () = closes(states.clone()) => {}
    }
}

async fn one_way(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut states: watch::Receiver<State>,
) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(read) = from.read(&mut bytes).await {
        // A frozen one has read some, and passes nothing on.
        let _ = states.wait_for(|state| *state != State::Frozen).await;
        if read == 0 || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
