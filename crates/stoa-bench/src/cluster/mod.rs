//! Reports on one daemon and on several: what it costs when each report arrives at any of them, and what clients see while
//! one joins, is killed and comes back.
//!
//! ```text
//! daemons apart ─► one daemon ─► the others join ─► all of them ─► one is killed ─► it comes back
//!    figures         figures        a line per second    figures      a line per second
//! ```
//! Daemons apart know nothing of each other: each has a table of its own. What they cost beyond one daemon is what processes
//! that share processors and their caches cost; what those of the cluster cost beyond that is what the cluster costs.
//!
//! The daemons of the cluster agree by the catalog's database, which must be a new one in PostgreSQL. The table is shared from the
//! first byte on, so that each part has its homes.

mod clients;
mod curve;
mod processors;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use stoa_env::clock::monotonic;
use stoa_env::timer;
use stoa_error::{Error, Result};
use tokio::process::Command;

use self::clients::{Clients, Seen};
pub use self::curve::Second;
use crate::ad_report::{AdReport, AdReportSpec};
use crate::server_process::ServerProcess;

/// The table that is made.
const TABLE: &str = "ad_report";

/// What to measure.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The `stoa` binary.
    pub program: PathBuf,
    /// An empty directory, or one that does not exist.
    pub warehouse: PathBuf,
    /// A new database of PostgreSQL: `postgres://user@host/name`.
    pub catalog: String,
    /// How many daemons there are in the end, at least 2.
    pub daemons: usize,
    /// The table's rows.
    pub spec: AdReportSpec,
    /// Clients at once for each daemon; each has a connection to every daemon.
    pub clients: usize,
    /// Whether each daemon has one processor of its own, as far as there are enough.
    pub pin: bool,
    /// The memory for data of each daemon (`--cache-memory`); with less than the table needs, reports are forwarded.
    pub cache_memory: Option<String>,
    /// How long each measurement takes.
    pub duration: Duration,
    /// One of so many answers is checked; 0 = none.
    pub check_every: u64,
}

/// Figures of a while in which nothing happened. Times in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Steady {
    /// Daemons, at a random one of which each report arrived.
    pub daemons: usize,
    /// Whether they know nothing of each other.
    pub apart: bool,
    /// Reports answered.
    pub reports: u64,
    /// Answers compared with the generator's sums; all were right.
    pub checked: u64,
    /// Reports per second.
    pub per_second: f64,
    /// Median.
    pub p50_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// CPU time of all daemons together, per report.
    pub cpu_us: f64,
    /// The share of the reports that another daemon than the one that was asked has answered.
    pub forwarded: f64,
    /// The share that was answered where it was asked as well, since the home did not, or not soon.
    pub hedged: f64,
    /// Read requests to storage per report.
    pub reads: f64,
}

/// What happened in a while, second by second.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// What happened.
    pub what: String,
    /// The seconds, from the first one of the measurement.
    pub seconds: Vec<Second>,
    /// Reports that failed at a daemon and were then answered by another one.
    pub repeated: u64,
    /// Reports that no daemon answered.
    pub lost: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterResult {
    /// Daemons apart, one daemon, then all as a cluster.
    pub steady: Vec<Steady>,
    /// Joining, and a kill -9 and the start afterwards.
    pub changes: Vec<Change>,
}

/// Runs it all.
///
/// # Errors
/// `Corrupt`: an answer is wrong. `Unavailable`: a daemon does not start or answer.
pub async fn run_cluster_reports(
    options: &ClusterOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<ClusterResult> {
    let table = Arc::new(AdReport::new(options.spec.clone()));
    let apart = measure_apart(options, &table, progress).await?;
    progress(&format!("making {TABLE} with {} rows", options.spec.rows));
    generate(options, &options.warehouse.join("cluster"), Some(&options.catalog)).await?;
    let mut bench = Bench { options, table, daemons: Vec::new() };
    bench.start().await?;
    progress("one daemon");
    let one = bench.steady().await?;
    progress("the others join");
    let joined = bench.join().await?;
    progress("all daemons");
    let all = bench.steady().await?;
    progress("one is killed, and comes back");
    let killed = bench.kill().await?;
    for daemon in bench.daemons {
        daemon.stop().await?;
    }
    Ok(ClusterResult { steady: vec![apart, one, all], changes: vec![joined, killed] })
}

/// Reports on daemons that know nothing of each other.
async fn measure_apart(
    options: &ClusterOptions,
    table: &Arc<AdReport>,
    progress: &mut dyn FnMut(&str),
) -> Result<Steady> {
    let mut bench = Bench { options, table: Arc::clone(table), daemons: Vec::new() };
    for number in 0..options.daemons {
        progress(&format!("making {TABLE} of daemon {number}, which is apart"));
        let warehouse = options.warehouse.join(format!("apart-{number}"));
        generate(options, &warehouse, None).await?;
        bench.start_in(&warehouse, None).await?;
    }
    progress("daemons apart");
    let steady = bench.steady().await?;
    for daemon in bench.daemons {
        daemon.stop().await?;
    }
    Ok(Steady { apart: true, ..steady })
}

/// Makes the table with a process of its own, whose memory is free again then.
async fn generate(options: &ClusterOptions, warehouse: &Path, catalog: Option<&str>) -> Result<()> {
    let mut command = Command::new(&options.program);
    command.args(["bench", "generate", "--table", TABLE]);
    command.args(catalog.iter().flat_map(|catalog| ["--catalog", catalog]));
    command.args(["--rows", &options.spec.rows.to_string()]);
    command.args(["--accounts", &options.spec.accounts.to_string()]);
    command.args(["--seed", &options.spec.seed.to_string()]);
    command.arg("--warehouse").arg(warehouse);
    let status = command.kill_on_drop(true).status().await;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::unavailable(format!("the table was not made: {status}"))),
        Err(e) => Err(Error::unavailable("cannot start this program").with_source(e)),
    }
}

struct Bench<'a> {
    options: &'a ClusterOptions,
    table: Arc<AdReport>,
    daemons: Vec<ServerProcess>,
}

/// Sums over all daemons.
#[derive(Clone, Copy, Default)]
struct Used {
    cpu_us: f64,
    reads: f64,
    forwarded: f64,
    hedged: f64,
}

impl Bench<'_> {
    /// Starts another daemon of the cluster.
    async fn start(&mut self) -> Result<()> {
        let options = self.options;
        self.start_in(&options.warehouse.join("cluster"), Some(&options.catalog)).await
    }

    async fn start_in(&mut self, warehouse: &Path, catalog: Option<&str>) -> Result<()> {
        let warehouse = warehouse.display().to_string();
        let mut arguments = vec![
            ["--warehouse", &warehouse],
            ["--shared-table-size", "0"],
            ["--log-level", "error"],
        ];
        arguments.extend(catalog.iter().map(|catalog| ["--catalog", catalog]));
        arguments.extend(self.options.cache_memory.iter().map(|size| ["--cache-memory", size]));
        let processor = self.options.pin.then_some(self.daemons.len());
        let start = ServerProcess::start(&self.options.program, arguments.as_flattened());
        self.daemons.push(processors::started_on(processor, start).await?);
        Ok(())
    }

    /// Clients for so many daemons.
    fn clients(&self, daemons: usize) -> Clients {
        let options =
            ClusterOptions { clients: self.options.clients * daemons, ..self.options.clone() };
        let addresses = self.daemons.iter().map(ServerProcess::address).collect();
        Clients::start(&options, TABLE, Arc::clone(&self.table), addresses)
    }

    /// Warms up for as long as it measures.
    async fn steady(&self) -> Result<Steady> {
        let clients = self.clients(self.daemons.len());
        timer::sleep(self.options.duration).await;
        let (before, begin) = (self.used().await?, monotonic());
        clients.forget();
        timer::sleep(self.options.duration).await;
        let seen = clients.stop().await?;
        let (after, seconds) = (self.used().await?, begin.elapsed().as_secs_f64());
        let latency_us: Histogram<u64> = seen.latency_us()?;
        let reports = latency_us.len();
        let Seen { repeated: 0, lost: 0, .. } = seen else {
            return Err(Error::unavailable("reports failed though nothing happened")
                .with_detail(seen.first_error.unwrap_or_default()));
        };
        let per_report = |used: fn(&Used) -> f64| (used(&after) - used(&before)) / reports as f64;
        Ok(Steady {
            daemons: self.daemons.len(),
            apart: false,
            reports,
            checked: seen.checked,
            per_second: reports as f64 / seconds,
            p50_us: latency_us.value_at_quantile(0.5),
            p99_us: latency_us.value_at_quantile(0.99),
            cpu_us: per_report(|used| used.cpu_us),
            forwarded: per_report(|used| used.forwarded),
            hedged: per_report(|used| used.hedged),
            reads: per_report(|used| used.reads),
        })
    }

    async fn join(&mut self) -> Result<Change> {
        let clients = self.clients(self.options.daemons);
        timer::sleep(self.options.duration / 4).await;
        while self.daemons.len() < self.options.daemons {
            self.start().await?;
            clients.meet(self.daemons.iter().map(ServerProcess::address).collect());
        }
        timer::sleep(self.options.duration * 2).await;
        self.change("the other daemons join", clients).await
    }

    async fn kill(&mut self) -> Result<Change> {
        let clients = self.clients(self.options.daemons);
        timer::sleep(self.options.duration / 4).await;
        if let Some(last) = self.daemons.pop() {
            last.kill().await?;
        }
        timer::sleep(self.options.duration * 2).await;
        self.start().await?;
        clients.meet(self.daemons.iter().map(ServerProcess::address).collect());
        timer::sleep(self.options.duration * 2).await;
        self.change("a daemon is killed (SIGKILL), and another started later", clients).await
    }

    async fn change(&self, what: &str, clients: Clients) -> Result<Change> {
        let Seen { mut seconds, repeated, lost, .. } = clients.stop().await?;
        // It ends in a second that is not whole.
        seconds.pop();
        let seconds = seconds.into_iter().map(Second::from).collect();
        Ok(Change { what: what.to_owned(), seconds, repeated, lost })
    }

    async fn used(&self) -> Result<Used> {
        const COUNTS: &str = "SELECT reports_forwarded, reports_hedged FROM system.cluster";
        let mut sum = Used::default();
        for daemon in &self.daemons {
            let usage = daemon.probe().sample().await?;
            sum.cpu_us += usage.cpu.map_or(0.0, |cpu| cpu.as_micros() as f64);
            sum.reads += usage.read_requests.map_or(0.0, |reads| reads as f64);
            let client = daemon.address().postgres().await?;
            let failed =
                |e| Error::unavailable("a daemon does not tell of its cluster").with_source(e);
            // A daemon that is apart has none.
            let Some(row) = client.query_opt(COUNTS, &[]).await.map_err(failed)? else { continue };
            sum.forwarded += row.try_get::<_, i64>(0).map_err(failed)? as f64;
            sum.hedged += row.try_get::<_, i64>(1).map_err(failed)? as f64;
        }
        Ok(sum)
    }
}
