//! How fast rows come in, with fsync: `cargo run --release -p stoa-ingest --example ingest_speed --
//! [DIRECTORY] [SECONDS]`.
//!
//! Rows have eight integers, 36 bytes each: the row of the ad reports. Measured: rows per second
//! appended in batches of 1, 100 and 10,000 by 1 and 32 tasks, what an acknowledgement takes, what
//! encoding costs alone, what a reader pays for its view with and without fresh rows, how fast rows
//! are flushed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Date32Array, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use stoa_env::clock::monotonic;
use stoa_ingest::{
    Durability, FlushLimits, Ingest, IngestOptions, Record, RecordHead, TableSnapshot, encode,
};
use stoa_table::{PartitionTerm, SortTerm, Table, TableIdent, TableSpec, Transform, Warehouse};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds = arguments.next().map_or(2.0, |text| text.parse().expect("seconds"));
    let home = tempfile::tempdir_in(directory).expect("a directory to write in");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run(home.path(), Duration::from_secs_f64(seconds)));
}

async fn run(home: &Path, time: Duration) {
    encoding(time);
    println!(
        "\n{:<26}{:>12}{:>10}{:>10}{:>10}{:>12}{:>12}{:>10}",
        "append", "rows/s", "p50 µs", "p99 µs", "sync µs", "rows/sync", "CPU ns/row", "peak MiB"
    );
    for tasks in [1, 32] {
        for rows in [1, 100, 10_000] {
            appends(home, tasks, rows, time).await;
        }
    }
    views(home, time).await;
    flushes(home).await;
}

fn batch(rows: usize, from: usize) -> RecordBatch {
    let longs = |f: fn(usize) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((from..from + rows).map(f)))
    };
    let ints = |f: fn(usize) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values((from..from + rows).map(f)))
    };
    let columns = vec![
        Arc::new(Date32Array::from_iter_values(
            (from..from + rows).map(|n| 20_000 + (n.wrapping_mul(2_654_435_761) % 28) as i32),
        )) as ArrayRef,
        ints(|n| (n.wrapping_mul(40_503) % 50_021) as i32),
        ints(|n| (n % 1013) as i32),
        ints(|n| (n % 17) as i32),
        ints(|n| (n % 5) as i32),
        longs(|n| (n % 997) as i64),
        ints(|n| (n % 11) as i32),
        ints(|n| (n % 3) as i32),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn schema() -> Arc<Schema> {
    let int = |name| Field::new(name, DataType::Int32, true);
    Arc::new(Schema::new(vec![
        Field::new("yyyymmdd", DataType::Date32, false),
        int("account"),
        int("campaign"),
        int("device"),
        int("network"),
        Field::new("imps", DataType::Int64, true),
        int("clicks"),
        int("conversions"),
    ]))
}

fn encoding(time: Duration) {
    println!("{:<26}{:>12}{:>12}{:>12}", "encode, decode", "rows/s", "rows/s", "bytes/row");
    for rows in [1, 100, 10_000] {
        let batch = batch(rows, 0);
        let head = RecordHead { table: uuid::Uuid::nil(), schema_id: 0, tag: None };
        let bytes = encode(&head, &batch).unwrap();
        let encoded = repeat(time / 4, || encode(&head, &batch).unwrap().len());
        let decode = || Record::parse(&bytes).unwrap().batch(&batch.schema()).unwrap().num_rows();
        let decoded = repeat(time / 4, decode);
        println!(
            "{:<26}{:>12.0}{:>12.0}{:>12.1}",
            format!("batches of {rows}"),
            encoded * rows as f64,
            decoded * rows as f64,
            bytes.len() as f64 / rows as f64
        );
    }
}

/// How often per second `work` is done.
fn repeat<T>(time: Duration, mut work: impl FnMut() -> T) -> f64 {
    let (start, mut count) = (monotonic(), 0_u64);
    while start.elapsed() < time {
        std::hint::black_box(work());
        count += 1;
    }
    count as f64 / start.elapsed().as_secs_f64()
}

struct Home {
    warehouse: Warehouse,
    ingest: Ingest,
    table: Table,
}

impl Home {
    async fn new(directory: &Path, name: &str, flush: FlushLimits) -> Self {
        let place = |part: &str| directory.join(name).join(part).to_str().unwrap().to_owned();
        let url = |part: &str| stoa_store::parse_location(&place(part)).unwrap();
        let warehouse = Warehouse::open(&url("warehouse")).await.unwrap();
        let options = IngestOptions { flush, ..IngestOptions::default() };
        let (ingest, _) = Ingest::open(warehouse.clone(), &url("log"), options).await.unwrap();
        let spec = TableSpec {
            partition_by: vec![PartitionTerm::new("yyyymmdd", Transform::Month)],
            sort_by: vec![SortTerm::ascending("account"), SortTerm::ascending("yyyymmdd")],
            ..TableSpec::new(schema())
        };
        let ident = TableIdent::new("public", "report");
        let table = warehouse.create_table(&ident, spec).await.unwrap();
        Self { warehouse, ingest, table }
    }
}

async fn appends(directory: &Path, tasks: usize, rows: usize, time: Duration) {
    let name = format!("append-{tasks}-{rows}");
    let home = Home::new(directory, &name, FlushLimits::default()).await;
    let batch = batch(rows, 0);
    let cpu = cpu_seconds();
    let start = monotonic();
    let running: Vec<_> = (0..tasks)
        .map(|_| {
            let (ingest, table, batch) = (home.ingest.clone(), home.table.clone(), batch.clone());
            stoa_env::task::spawn(async move {
                let mut took = Vec::new();
                while start.elapsed() < time {
                    let begun = monotonic();
                    ingest.append(&table, batch.clone(), Durability::Synced).await.unwrap();
                    took.push(begun.elapsed());
                }
                took
            })
        })
        .collect();
    let mut took = Vec::new();
    for task in running {
        took.extend(task.await.unwrap());
    }
    let cpu = cpu_seconds() - cpu;
    let seconds = start.elapsed().as_secs_f64();
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_micros();
    let log = home.ingest.status().log;
    println!(
        "{:<26}{:>12.0}{:>10}{:>10}{:>10}{:>12.0}{:>12.0}{:>10}",
        format!("{tasks} × batches of {rows}"),
        (took.len() * rows) as f64 / seconds,
        at(0.5),
        at(0.99),
        log.sync_us.sum / log.syncs.max(1),
        (took.len() * rows) as f64 / log.syncs.max(1) as f64,
        cpu * 1e9 / (took.len() * rows) as f64,
        peak_memory_mib(),
    );
    home.ingest.close(false).await.unwrap();
}

async fn views(directory: &Path, time: Duration) {
    let never =
        FlushLimits { bytes: usize::MAX, rows: u64::MAX, age: Duration::from_secs(1 << 30) };
    let home = Home::new(directory, "views", never).await;
    println!("\n{:<26}{:>12}{:>12}{:>12}", "reader's view", "ns", "batches", "scan µs");
    view(&home, "no fresh rows", time);
    for count in 0..20_000_usize {
        home.ingest.append(&home.table, batch(1, count), Durability::Relaxed).await.unwrap();
    }
    view(&home, "20,000 appends of 1", time);
    for count in 0..200 {
        home.ingest.append(&home.table, batch(10_000, count), Durability::Relaxed).await.unwrap();
    }
    view(&home, "+ 200 of 10,000", time);
    home.ingest.close(false).await.unwrap();
    assert!(home.warehouse.tables("public").await.unwrap().len() == 1);
}

fn view(home: &Home, name: &str, time: Duration) {
    let look = || home.ingest.fresh_for(&home.table).unwrap().unwrap();
    let per_second = repeat(time / 4, look);
    let fresh = look();
    let start = monotonic();
    let rows: usize = fresh.batches().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows as u64, fresh.rows());
    println!(
        "{name:<26}{:>12.0}{:>12}{:>12}",
        1e9 / per_second,
        fresh.batch_count(),
        micros(start)
    );
}

async fn flushes(directory: &Path) {
    let never = FlushLimits { bytes: 64 << 20, rows: u64::MAX, age: Duration::from_secs(1 << 30) };
    let home = Home::new(directory, "flush", never).await;
    let mut rows = 0;
    for count in 0..150 {
        let batch = batch(10_000, count * 10_000);
        rows += home.ingest.append(&home.table, batch, Durability::Relaxed).await.unwrap().rows;
    }
    let start = monotonic();
    home.ingest.flush_now(&home.table).await.unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let snapshot: TableSnapshot = home.ingest.snapshot(home.table.ident()).await.unwrap();
    assert_eq!(snapshot.table.row_count(), Some(rows));
    println!("\nflush: {rows} rows in {seconds:.2} s, {:.0} rows/s", rows as f64 / seconds);
    home.ingest.close(false).await.unwrap();
}

/// Processor time of this process so far, flushes included (proc(5): fields 14 and 15 of `stat`, in
/// hundredths of a second); 0 where there is no such file.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The most memory this process ever had (proc(5): `VmHWM`); 0 where there is no such file.
fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn micros(since: Instant) -> u128 {
    since.elapsed().as_micros()
}
