//! What a call between two daemons costs: processor time of both sides per call, by how many are under way at once.
//!
//! Both daemons are in this process, each on a runtime of its own, so that what is measured is the work of both, the
//! kernel's for their sockets included. Requests and answers are as large as those of a small report.
//!
//! `cargo bench -p stoa-peers`; `cargo test` runs it with few calls.

#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::{Daemon, Membership, echo, holder, id};
use futures::future::join_all;
use stoa_env::{clock, task};
use stoa_peers::PeerOptions;
use tokio::runtime::{Builder, Runtime};

const REQUEST_BYTES: usize = 300;

/// Threads of each daemon.
const THREADS: usize = 2;

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let calls = if is_test { 100 } else { 200_000 };
    let (one, two) = (runtime(), runtime());
    let membership = Arc::new(Membership::default());
    let start = |number| Daemon::start(&membership, holder(number), PeerOptions::default(), echo());
    let asks = Arc::new(one.block_on(start(1)));
    let _answers = two.block_on(start(2));
    println!("at once      calls/s    CPU per call");
    for at_once in [1, 4, 16, 64] {
        let calls = if at_once == 1 { calls / 4 } else { calls };
        one.block_on(run(&asks, at_once, calls / 10 / at_once));
        let (cpu, begin) = (cpu_time(), clock::monotonic());
        one.block_on(run(&asks, at_once, calls / at_once));
        let (cpu, elapsed) = (cpu_time() - cpu, begin.elapsed());
        let done = (calls / at_once * at_once) as f64;
        println!(
            "{at_once:>7} {:>12.0} {:>12.1} µs",
            done / elapsed.as_secs_f64(),
            cpu.as_secs_f64() * 1e6 / done
        );
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(THREADS).enable_all().build().unwrap()
}

/// `each` calls after each other, by each of `at_once` callers.
async fn run(daemon: &Arc<Daemon>, at_once: usize, each: usize) {
    let callers = (0..at_once).map(|_| {
        let daemon = Arc::clone(daemon);
        task::spawn(async move {
            let body = Bytes::from(vec![7; REQUEST_BYTES]);
            for _ in 0..each {
                assert_eq!(daemon.call(id(2), 1, body.clone()).await.unwrap().len(), REQUEST_BYTES);
            }
        })
    });
    for caller in join_all(callers).await {
        caller.unwrap();
    }
}

/// Processor time of this process so far; in steps of ten milliseconds.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = stat.rsplit_once(')').unwrap().1;
    let mut fields = behind_name.split_whitespace().skip(11);
    let ticks: u64 = (0..2).map(|_| fields.next().unwrap().parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
