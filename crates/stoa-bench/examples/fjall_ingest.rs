//! Durable writes with fjall, an LSM tree: what `bench/peers/ingest.py` sets beside Stoa.
//!
//! `fjall_ingest DIR WRITERS ROWS SECONDS` writes batches of ROWS rows (key: 8-byte sequence; value: 28
//! bytes) from WRITERS threads, each persisted with `SyncAll` before the next, and prints JSON.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fjall::{Database, KeyspaceCreateOptions, PersistMode};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, writers, rows, seconds] = arguments.as_slice() else {
        eprintln!("fjall_ingest DIR WRITERS ROWS SECONDS");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<u64>().unwrap();
    let (writers, rows, duration) =
        (number(writers), number(rows), Duration::from_secs(number(seconds)));
    let database = Database::builder(directory).open().unwrap();
    let events = database.keyspace("events", KeyspaceCreateOptions::default).unwrap();
    let next = AtomicU64::new(0);
    let begin = Instant::now();
    let mut times: Vec<u64> = std::thread::scope(|scope| {
        let work = || {
            let mut times = Vec::new();
            while begin.elapsed() < duration {
                let one = Instant::now();
                let first = next.fetch_add(rows, Ordering::Relaxed);
                let mut batch = database.batch();
                for key in first..first + rows {
                    batch.insert(&events, key.to_be_bytes(), value(key));
                }
                batch.commit().unwrap();
                database.persist(PersistMode::SyncAll).unwrap();
                times.push(one.elapsed().as_micros() as u64);
            }
            times
        };
        let threads: Vec<_> = (0..writers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let took = begin.elapsed().as_secs_f64();
    let written = times.len() as u64 * rows;
    let usage = usage();
    assert_eq!(events.len().unwrap() as u64, written);
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
    println!(
        "{}",
        serde_json::json!({
            "rows_per_second": written as f64 / took,
            "ack_p50_ms": at(0.5),
            "ack_p99_ms": at(0.99),
            "cpu_ns_per_row": usage.0 * 1e9 / written as f64,
            "peak_mib": usage.1,
        })
    );
}

fn value(key: u64) -> [u8; 28] {
    let mut value = [0; 28];
    for (place, bytes) in value.chunks_exact_mut(4).enumerate() {
        let mixed = (key ^ (place as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bytes.copy_from_slice(&((mixed >> 40) as u32 % 100_000).to_le_bytes());
    }
    value
}

/// Processor seconds and peak memory (MiB) of this process.
fn usage() -> (f64, u64) {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap();
    (clock.tv_sec as f64 + clock.tv_nsec as f64 / 1e9, kib / 1024)
}
