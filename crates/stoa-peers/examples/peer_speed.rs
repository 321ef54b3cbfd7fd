//! What a call to another daemon costs: CPU time of both sides together, and time to the answer.
//!
//! Two daemons on loopback, each with a runtime of its own; requests of 200 bytes, answers of 400.
//!
//! ```sh
//! cargo run --release -p stoa-peers --example peer_speed [seconds per step]
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_env::{clock, task};
use stoa_error::Result;
use stoa_peers::{Directory, Handler, Identity, PeerAddress, PeerOptions, Peers};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

const REQUEST_BYTES: usize = 200;
const ANSWER_BYTES: usize = 400;
const LIMIT: Duration = Duration::from_secs(10);

/// Two daemons that never change.
struct Both(HashMap<DaemonId, PeerAddress>);

impl Directory for Both {
    fn address(&self, daemon: DaemonId) -> Option<PeerAddress> {
        self.0.get(&daemon).cloned()
    }

    fn who(&self, fingerprint: [u8; 32]) -> BoxFuture<'_, Option<Holder>> {
        let peer = self.0.values().find(|peer| peer.fingerprint == fingerprint);
        std::future::ready(peer.map(|peer| peer.holder)).boxed()
    }
}

struct Constant(Bytes);

impl Handler for Constant {
    fn handle(&self, _: Holder, _: u16, _: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        std::future::ready(Ok(self.0.clone())).boxed()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    let (here, there) = (runtime()?, runtime()?);
    let (caller, callee) = (Identity::generate()?, Identity::generate()?);
    let listener = there.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?.to_string();
    let member = |bits, address: &str, identity: &Identity| {
        let holder = Holder { daemon: DaemonId::from_bits(bits), incarnation: 1 };
        let fingerprint = identity.fingerprint();
        (holder.daemon, PeerAddress { address: address.to_owned(), holder, fingerprint })
    };
    let both = [member(1, "", &caller), member(2, &address, &callee)];
    let both = Arc::new(Both(both.into_iter().collect()));
    let server = Peers::new(callee, both.clone(), PeerOptions::default());
    let handler = Arc::new(Constant(Bytes::from(vec![7; ANSWER_BYTES])));
    there.spawn(async move { server.serve(listener, handler, std::future::pending()).await });
    let peers = Peers::new(caller, both, PeerOptions::default());
    println!("calls at once   calls/s   µs of CPU per call, both sides   µs to the answer");
    for at_once in [1, 16, 128] {
        here.block_on(step(&peers, at_once, Duration::from_millis(300)))?;
        let (cpu, began) = (cpu_seconds()?, clock::monotonic());
        let calls = here.block_on(step(&peers, at_once, Duration::from_secs(seconds)))?;
        let (cpu, took) = (cpu_seconds()? - cpu, began.elapsed().as_secs_f64());
        let calls = calls as f64;
        println!(
            "{at_once:>13} {:>9.0} {:>32.1} {:>18.1}",
            calls / took,
            cpu * 1e6 / calls,
            took * 1e6 * f64::from(at_once) / calls
        );
    }
    Ok(())
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Calls for some time; how many were answered.
async fn step(peers: &Peers, at_once: u32, time: Duration) -> Result<u64> {
    let until = clock::monotonic() + time;
    let answered = Arc::new(AtomicU64::new(0));
    let callers: Vec<_> = (0..at_once)
        .map(|_| task::spawn(call_until(peers.clone(), until, Arc::clone(&answered))))
        .collect();
    for caller in callers {
        caller
            .await
            .map_err(|e| stoa_error::Error::internal("a caller failed").with_source(e))??;
    }
    Ok(answered.load(Ordering::Relaxed))
}

async fn call_until(peers: Peers, until: Instant, answered: Arc<AtomicU64>) -> Result<()> {
    let request = Bytes::from(vec![1; REQUEST_BYTES]);
    while clock::monotonic() < until {
        peers.call(DaemonId::from_bits(2), 1, request.clone(), LIMIT).await?;
        answered.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// User and system time of this process (`proc(5)`), in steps of 10 ms.
fn cpu_seconds() -> std::io::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}
