//! Writers that send as fast as they are acknowledged.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use stoa_env::clock::monotonic;
use stoa_env::task;
use stoa_error::{Error, Result};
use tokio::sync::Barrier;

use super::sync::{SyncTimes, histogram, measure};
use crate::measure::ServerUsage;
use crate::server_process::ServerProcess;
use crate::write::{PARCEL_BYTES_PER_ROW, Parcel, ServerAddress, WritePath, Writer, columns_sql};

/// Parcels that each writer sends in turn, made before the clock runs.
const PARCELS_PER_WRITER: i64 = 32;

/// How long the disk alone is measured.
const SYNC_TIME: Duration = Duration::from_secs(2);

/// What to measure.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// The `stoa` binary.
    pub program: PathBuf,
    /// A directory for warehouses, on the disk to be measured.
    pub directory: PathBuf,
    /// More arguments of `stoa server`.
    pub arguments: Vec<String>,
    /// Protocols.
    pub paths: Vec<WritePath>,
    /// Numbers of writers.
    pub writers: Vec<usize>,
    /// Rows per acknowledgement.
    pub rows: i32,
    /// How long each run takes.
    pub duration: Duration,
}

/// What all runs measured.
#[derive(Clone, Debug, Serialize)]
pub struct IngestResult {
    /// Rows per acknowledgement.
    pub rows_per_append: i32,
    /// The disk alone, with as many bytes as the values of one append have.
    pub bare_sync: SyncTimes,
    /// One per protocol and number of writers.
    pub runs: Vec<IngestRun>,
}

/// What one run measured.
#[derive(Clone, Debug, Serialize)]
pub struct IngestRun {
    /// The protocol.
    pub path: WritePath,
    /// Connections that wrote at the same time.
    pub writers: usize,
    /// Rows acknowledged per second.
    pub rows_per_second: f64,
    /// Bytes of their values per second.
    pub bytes_per_second: f64,
    /// From sending to the acknowledgement, microseconds.
    pub ack_p50_us: u64,
    /// As before; all but one of a hundred.
    pub ack_p99_us: u64,
    /// Processor time of the server per row, nanoseconds.
    pub server_cpu_ns_per_row: Option<f64>,
    /// Syncs of the log.
    pub syncs: u64,
    /// The most memory that the server had, bytes.
    pub server_peak_rss_bytes: Option<u64>,
    /// Rows acknowledged, all of which were there after the server was killed.
    pub rows: u64,
}

/// Runs all combinations one after the other, each on a server and warehouse of its own.
///
/// # Errors
/// `Corrupt` where rows are missing after a restart; `Unavailable` where a server or a writer fails.
pub async fn run(options: &IngestOptions, progress: &mut dyn FnMut(&str)) -> Result<IngestResult> {
    let bytes = options.rows as usize * PARCEL_BYTES_PER_ROW as usize;
    let directory = &options.directory;
    std::fs::create_dir_all(directory).map_err(|e| {
        Error::unavailable(format!("cannot make {}", directory.display())).with_source(e)
    })?;
    progress("bare sync");
    let bare_sync = measure(directory, bytes, SYNC_TIME)?;
    let mut runs = Vec::new();
    for path in &options.paths {
        for writers in &options.writers {
            progress(&format!("{path}, {writers} writers"));
            runs.push(one_run(options, *path, *writers).await?);
        }
    }
    Ok(IngestResult { rows_per_append: options.rows, bare_sync, runs })
}

async fn one_run(options: &IngestOptions, path: WritePath, writers: usize) -> Result<IngestRun> {
    let warehouse = options.directory.join("warehouse");
    remove(&warehouse)?;
    let warehouse_text = warehouse.display().to_string();
    let mut arguments = vec!["--warehouse", &warehouse_text, "--log-level", "warn"];
    arguments.extend(options.arguments.iter().map(String::as_str));
    let server = ServerProcess::start(&options.program, &arguments).await?;
    let address = server.address();
    let statement = format!("CREATE TABLE events ({}) ORDER BY (account)", columns_sql());
    execute(&address, &statement).await?;

    let before = (server.probe().sample().await?, server.probe().log_syncs().await?);
    let written = write(options, path, writers, &address).await?;
    let after = (server.probe().sample().await?, server.probe().log_syncs().await?);

    compare(&address, &written).await?;
    server.kill().await?;
    let server = ServerProcess::start(&options.program, &arguments).await?;
    compare(&server.address(), &written).await.map_err(|e| e.at("after the server was killed"))?;
    server.stop().await?;
    remove(&warehouse)?;
    Ok(summary(path, writers, written, before, after))
}

fn summary(
    path: WritePath,
    writers: usize,
    written: Written,
    before: (ServerUsage, u64),
    after: (ServerUsage, u64),
) -> IngestRun {
    let rows_per_second = written.rows as f64 / written.seconds;
    let cpu = after.0.cpu.zip(before.0.cpu).map(|(after, before)| after.saturating_sub(before));
    IngestRun {
        path,
        writers,
        rows_per_second,
        bytes_per_second: rows_per_second * PARCEL_BYTES_PER_ROW as f64,
        ack_p50_us: written.times.value_at_quantile(0.5),
        ack_p99_us: written.times.value_at_quantile(0.99),
        server_cpu_ns_per_row: cpu.map(|cpu| cpu.as_nanos() as f64 / written.rows as f64),
        syncs: after.1.saturating_sub(before.1),
        server_peak_rss_bytes: after.0.peak_rss_bytes,
        rows: written.rows,
    }
}

/// What writers were told is in the table.
struct Written {
    rows: u64,
    cost: i64,
    seconds: f64,
    times: Histogram<u64>,
}

async fn write(
    options: &IngestOptions,
    path: WritePath,
    writers: usize,
    address: &ServerAddress,
) -> Result<Written> {
    let ready = Arc::new(Barrier::new(writers + 1));
    let mut tasks = Vec::new();
    for number in 0..writers as i64 {
        let (address, ready, options) = (address.clone(), ready.clone(), options.clone());
        tasks.push(task::spawn(async move {
            let prepared = prepare(&options, path, number, &address).await;
            ready.wait().await;
            let (writer, payloads) = prepared?;
            write_for(writer, &payloads, options.duration).await
        }));
    }
    ready.wait().await;
    let begin = monotonic();
    let mut all = Written { rows: 0, cost: 0, seconds: 0.0, times: histogram()? };
    for task in tasks {
        let one = task.await.map_err(|e| Error::internal("a writer failed").with_source(e))??;
        all.rows += one.rows;
        all.cost += one.cost;
        all.times
            .add(&one.times)
            .map_err(|e| Error::internal("cannot add histograms").with_source(e))?;
    }
    all.seconds = begin.elapsed().as_secs_f64();
    Ok(all)
}

type Payloads = Vec<(Parcel, crate::write::Payload)>;

async fn prepare(
    options: &IngestOptions,
    path: WritePath,
    writer_number: i64,
    address: &ServerAddress,
) -> Result<(Writer, Payloads)> {
    let writer = Writer::connect(path, address, "events").await?;
    let numbers = (0..PARCELS_PER_WRITER).map(|number| writer_number * PARCELS_PER_WRITER + number);
    let payloads = numbers.map(|number| {
        let parcel = Parcel { number, rows: options.rows };
        Ok((parcel, writer.payload(parcel)?))
    });
    let payloads = payloads.collect::<Result<_>>()?;
    Ok((writer, payloads))
}

async fn write_for(mut writer: Writer, payloads: &Payloads, duration: Duration) -> Result<Written> {
    let costs: Vec<i64> = payloads.iter().map(|(parcel, _)| parcel.cost()).collect();
    let mut written = Written { rows: 0, cost: 0, seconds: 0.0, times: histogram()? };
    let begin = monotonic();
    for ((parcel, payload), cost) in payloads.iter().zip(costs).cycle() {
        let sent = monotonic();
        if sent - begin >= duration {
            break;
        }
        writer.send(payload).await?;
        written.times.saturating_record(sent.elapsed().as_micros() as u64);
        written.rows += parcel.rows as u64;
        written.cost += cost;
    }
    Ok(written)
}

async fn execute(address: &ServerAddress, statement: &str) -> Result<()> {
    let client = address.postgres().await?;
    client.batch_execute(statement).await.map_err(|e| {
        Error::unavailable(format!("{statement} fails"))
            .with_detail(e.as_db_error().map_or_else(|| e.to_string(), ToString::to_string))
            .with_source(e)
    })
}

async fn compare(address: &ServerAddress, written: &Written) -> Result<()> {
    let client = address.postgres().await?;
    let row = client
        .query_one("SELECT count(*), sum(cost)::bigint FROM events", &[])
        .await
        .map_err(|e| Error::unavailable("the table cannot be read").with_source(e))?;
    let found: (i64, Option<i64>) = (row.get(0), row.get(1));
    let expected = (written.rows as i64, Some(written.cost));
    if found == expected {
        return Ok(());
    }
    Err(Error::corrupt("the table does not hold what was acknowledged")
        .with_detail(format!("rows and sum: {found:?}, acknowledged: {expected:?}")))
}

fn remove(directory: &std::path::Path) -> Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::unavailable(format!("cannot remove {}", directory.display())).with_source(e))
        }
        _ => Ok(()),
    }
}
