//! How fast the log takes appends, against one bare fdatasync of the same disk in the same run.
//!
//! `cargo run --release -p stoa-commitlog --example append_speed -- DIRECTORY [SECONDS [GROUP_KIB]]`
//!
//! Rows of 36 bytes (eight small integers), in payloads of so many rows, from 1 and 32 writers that
//! each wait for an acknowledgement before they append again, or once 1000 are on their way. `× p50`
//! and `× p99` are ratios to a bare write and fdatasync of the same disk, with as many bytes as the
//! log's groups had on average, measured in between.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use stoa_commitlog::{Appended, CommitLog, Durability, LogOptions, LogStatus, local_storage};
use stoa_env::clock::monotonic;

const ROW_BYTES: usize = 36;
const SEGMENTS_PER_FLUSH: usize = 3;

#[derive(Clone, Copy)]
struct Workload {
    writers: usize,
    /// Appends of one writer that may wait for their acknowledgement.
    window: usize,
    rows: usize,
    durability: Durability,
}

struct Measured {
    took: Duration,
    cpu: Duration,
    acks_us: Histogram<u64>,
    status: LogStatus,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("a directory to write to");
    let seconds = arguments.next().map_or(3.0, |text| text.parse().expect("seconds"));
    let group_kib = arguments.next().map(|text| text.parse::<usize>().expect("KiB per group"));
    let mut options = LogOptions::disk();
    options.group_bytes_max = group_kib.map_or(options.group_bytes_max, |kib| kib << 10);
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!(
        "{:>7} {:>6} {:>6} {:>8} {:>10} {:>8} {:>7} {:>9} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>9}",
        "writers",
        "window",
        "rows",
        "acks on",
        "rows/s",
        "MB/s",
        "syncs/s",
        "group KiB",
        "ack p50",
        "ack p99",
        "sync p50",
        "sync p99",
        "× p50",
        "× p99",
        "CPU ms/MB"
    );
    for durability in [Durability::Sync, Durability::Relaxed] {
        for (writers, window) in [(1, 1), (32, 1), (1, 1000)] {
            for rows in [1, 10, 100, 1000, 10_000] {
                let work = Workload { writers, window, rows, durability };
                let log = directory.join("log");
                let _ = std::fs::remove_dir_all(&log);
                let measured = runtime.block_on(run(&log, &work, options, seconds));
                let _ = std::fs::remove_dir_all(&log);
                let group = measured.status.group_bytes.sum / measured.status.group_bytes.count;
                let bare = bare_sync(directory, group as usize, seconds / 3.0);
                print(&work, &measured, &bare);
            }
        }
    }
}

async fn run(directory: &Path, work: &Workload, options: LogOptions, seconds: f64) -> Measured {
    let storage = local_storage(directory).unwrap();
    let (log, _) = CommitLog::open(storage, options).await.unwrap();
    let log = Arc::new(log);
    let (started, cpu) = (monotonic(), cpu_time());
    let end = started + Duration::from_secs_f64(seconds);
    let writers = (0..work.writers).map(|_| {
        let (log, work) = (log.clone(), *work);
        stoa_env::task::spawn(async move { write(&log, work, end).await })
    });
    let writers = writers.collect::<Vec<_>>();
    let flush = stoa_env::task::spawn(flush(log.clone(), end));
    let mut acks_us = histogram();
    for writer in writers {
        acks_us.add(writer.await.unwrap()).unwrap();
    }
    flush.await.unwrap();
    let (took, cpu) = (monotonic() - started, cpu_time() - cpu);
    let status = log.status();
    log.close().await.unwrap();
    Measured { took, cpu, acks_us, status }
}

/// Gives segments up as a table's flush does, some at a time.
async fn flush(log: Arc<CommitLog>, end: Instant) {
    while monotonic() < end {
        if log.status().segments > SEGMENTS_PER_FLUSH {
            log.release(log.durable()).await.unwrap();
        }
        stoa_env::timer::sleep(Duration::from_millis(20)).await;
    }
}

async fn write(log: &CommitLog, work: Workload, end: Instant) -> Histogram<u64> {
    let payload: Vec<u8> = (0..work.rows * ROW_BYTES).map(|n| n as u8).collect();
    let mut acks_us = histogram();
    let mut waiting = VecDeque::new();
    while monotonic() < end {
        let begin = monotonic();
        waiting.push_back((begin, log.append(&[&payload], work.durability).await.unwrap()));
        if waiting.len() >= work.window {
            acknowledge(&mut waiting, &mut acks_us).await;
        }
    }
    while !waiting.is_empty() {
        acknowledge(&mut waiting, &mut acks_us).await;
    }
    acks_us
}

/// Waits for the oldest append.
async fn acknowledge(waiting: &mut VecDeque<(Instant, Appended)>, acks_us: &mut Histogram<u64>) {
    let Some((begin, mut appended)) = waiting.pop_front() else { return };
    appended.acknowledged().await.unwrap();
    acks_us.saturating_record((monotonic() - begin).as_micros() as u64);
}

/// Microseconds per write at the end of a file and fdatasync.
fn bare_sync(directory: &Path, bytes: usize, seconds: f64) -> Histogram<u64> {
    let path = directory.join("bare");
    let file: File =
        OpenOptions::new().write(true).create(true).truncate(true).open(&path).unwrap();
    let data = vec![1; bytes];
    let mut took_us = histogram();
    let end = monotonic() + Duration::from_secs_f64(seconds);
    for n in 0.. {
        let begin = monotonic();
        if begin >= end {
            break;
        }
        file.write_all_at(&data, n * bytes as u64).unwrap();
        file.sync_data().unwrap();
        took_us.saturating_record((monotonic() - begin).as_micros() as u64);
    }
    std::fs::remove_file(&path).unwrap();
    took_us
}

fn print(work: &Workload, measured: &Measured, bare: &Histogram<u64>) {
    let status = &measured.status;
    let seconds = measured.took.as_secs_f64();
    let megabytes = status.payload_bytes as f64 / 1e6;
    let ack = |share| measured.acks_us.value_at_quantile(share);
    let sync = |share| bare.value_at_quantile(share);
    let ratio = |share| ack(share) as f64 / sync(share).max(1) as f64;
    println!(
        "{:>7} {:>6} {:>6} {:>8} {:>10.0} {:>8.1} {:>7.0} {:>9.1} {:>8} {:>8} {:>8} {:>8} {:>7.2} {:>7.2} {:>9.2}",
        work.writers,
        work.window,
        work.rows,
        if work.durability == Durability::Sync { "sync" } else { "write" },
        (status.appends * work.rows as u64) as f64 / seconds,
        megabytes / seconds,
        status.syncs as f64 / seconds,
        status.group_bytes.sum as f64 / status.group_bytes.count as f64 / 1024.0,
        ack(0.5),
        ack(0.99),
        sync(0.5),
        sync(0.99),
        ratio(0.5),
        ratio(0.99),
        measured.cpu.as_secs_f64() * 1e3 / megabytes,
    );
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).unwrap()
}

/// User and system time of this process; counted in ticks of 10 ms.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<u64>().unwrap();
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}
