//! `stoa bench`: makes the ad-report table and measures reports over it, the ORC reader and writer, and
//! range reads.

mod cells;
mod cluster;
mod ingest;
mod own_server;
mod s3_proxy;
mod torture;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use futures::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use stoa_bench::ingest::PacedWriters;
use stoa_bench::orc::{OrcOptions, Workload};
use stoa_bench::seek::SeekOptions;
use stoa_bench::{
    AdReport, AdReportSpec, Limit, Mode, RunOptions, RunResult, ServerAddress, ServerProbe,
};
use stoa_env::clock::monotonic;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_query::{Engine, LoadTarget};

use self::cells::{CellsArgs, cells};
use self::cluster::{ClusterArgs, cluster};
use self::ingest::{IngestArgs, ingest};
use self::own_server::start_server;
use self::s3_proxy::{S3ProxyArgs, s3_proxy};
use self::torture::{TortureArgs, torture};
use super::settle;
use super::table::parse_ident;
use crate::config::{Config, SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::{LogUse, block_on, block_on_threads, open_engine, start_log};
use crate::units;

/// Threads of a command that only drives servers.
const CLIENT_THREADS: usize = 2;

/// Most rows of the generated table that are sorted at once.
const ROWS_AT_ONCE: u64 = 80_000_000;

/// What `--ingest` writes into; made anew each time.
const INGEST_TABLE: &str = "bench_ingest";

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Create the ad-report table: 13 months of days, Zipf-skewed accounts, always the same rows
    Generate(GenerateArgs),
    /// Run reports over the PostgreSQL protocol: reports/hour, latency, CPU and bytes per report
    Report(ReportArgs),
    /// Measure Stoa's ORC reader and writer against pyarrow (ORC C++) and parquet-rs: CPU time
    Orc(OrcArgs),
    /// Repeat the experiment of ORC-1136: what merging range reads saves on a slow store
    Seek(SeekArgs),
    /// Kill servers during writes over all protocols, and check that nothing is lost
    Torture(TortureArgs),
    /// Measure reports on one daemon and on several, and while one joins or is killed
    Cluster(ClusterArgs),
    /// Measure durable writes over all protocols: rows/s, acknowledgement time, CPU per row
    Ingest(IngestArgs),
    /// Measure tables of cells: loads, dumps, single rows, restart
    Cells(CellsArgs),
    /// Simulate a slow or faulty store in front of an S3 endpoint
    S3Proxy(S3ProxyArgs),
}

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    table: TableArgs,

    /// Drop the table first if it exists
    #[arg(long)]
    recreate: bool,

    #[command(flatten)]
    settings: SettingFlags<{ scope::ENGINE }>,
}

/// Which table.
#[derive(Clone, Debug, Args)]
struct TableArgs {
    /// Rows in total [default: 10000000]
    #[arg(long, value_name = "N")]
    rows: Option<u64>,

    /// Accounts; the one of rank r has a share of 1/r
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    accounts: u32,

    /// Equal seeds make equal tables
    #[arg(long, value_name = "N", default_value_t = AdReportSpec::default().seed)]
    seed: u64,

    /// Name of the table
    #[arg(long, value_name = "TABLE", default_value = "ad_report")]
    table: String,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    #[command(flatten)]
    table: TableArgs,

    /// Concurrent connections; one run per number
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,8,32")]
    clients: Vec<usize>,

    /// How reports are sent; one run per mode
    #[arg(
        long,
        value_enum,
        value_name = "MODE,…",
        value_delimiter = ',',
        default_value = "prepared"
    )]
    mode: Vec<ModeArg>,

    /// Duration of each run
    #[arg(long, visible_alias = "seconds", value_name = "TIME", default_value = "10s", value_parser = units::parse_duration)]
    duration: Duration,

    /// End each run after this many reports instead
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    reports: Option<u64>,

    /// Warm-up of each run before it measures
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::parse_duration)]
    warm_up: Duration,

    /// Compare one in N answers with the generator's sums; 0 = none
    #[arg(long, value_name = "N", default_value_t = 20)]
    check_every: u64,

    /// Meanwhile, write this many rows per second to another table, by COPY of 1,000 rows each
    #[arg(long, value_name = "ROWS/S")]
    ingest: Option<u64>,

    /// A setting of each connection, such as short_path=off
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Meanwhile, run this statement in a loop; can be repeated, one connection each
    #[arg(long, value_name = "SQL")]
    beside: Vec<String>,

    /// Use a running server: its HTTP address, http://HOST:PORT (needs --port)
    #[arg(long, value_name = "URL", requires = "port")]
    url: Option<String>,

    /// Use a running server: its port of the PostgreSQL protocol
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Process id of that server, to show its peak memory
    #[arg(long, value_name = "PID", requires = "port")]
    pid: Option<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags<{ scope::ENGINE }>,
}

const EXAMPLES: &str = "\
Examples:
  stoa bench report                                    10 M rows, 1, 8 and 32 clients
  stoa bench report --rows 1000000 --mode prepared,extended,simple --clients 8
  stoa bench report --url http://127.0.0.1:15002 --port 5433 --clients 32 --json

Without --port, creates the table in the warehouse if it does not exist, and starts its own server on
free ports. A sample of the answers is compared with sums from the generator; a wrong answer ends the
measurement with an error.";

/// What the table is made from.
#[derive(Clone, Debug, Args)]
struct SpecArgs {
    /// Rows of the ad-report table
    #[arg(long, value_name = "N", default_value_t = AdReportSpec::default().rows, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,

    /// Its accounts; the one of rank r has a share of 1/r
    #[arg(long, value_name = "N", default_value_t = AdReportSpec::default().accounts, value_parser = clap::value_parser!(u32).range(1..))]
    accounts: u32,

    /// Equal seeds make equal tables
    #[arg(long, value_name = "N", default_value_t = AdReportSpec::default().seed)]
    seed: u64,
}

/// Arguments of `orc`.
#[derive(Debug, Args)]
#[command(after_help = ORC_EXAMPLES)]
pub struct OrcArgs {
    #[command(flatten)]
    spec: SpecArgs,

    /// Rounds in which all contenders take turns; the median counts
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,

    /// A Python that has pyarrow [default: python3 or python, if it has pyarrow]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,

    /// Where files are created, about 300 MB for 10 M rows; they are kept for the next run
    /// [default: stoa-bench in the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// What to measure [default: everything]
    #[arg(long, value_enum, value_name = "WORK,…", value_delimiter = ',')]
    only: Vec<WorkArg>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const ORC_EXAMPLES: &str = "\
Examples:
  stoa bench orc                                       10 M rows, seven rounds
  stoa bench orc --python venv/bin/python3 --json
  stoa bench orc --rows 1000000 --only read-all,write

CPU time is user and system time of one thread; files are in the page cache; contenders take turns.
Everything that is read or written is compared with the generator's sums; a wrong answer ends the
measurement with an error. To measure orc-rust too, run `cargo bench -p stoa-bench --bench orc`.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WorkArg {
    /// All columns of the file that Stoa wrote
    ReadAll,
    /// All columns of the file that pyarrow wrote
    ReadAllOfPyarrow,
    /// Three columns
    ReadThree,
    /// One account over seven days
    Report,
    /// The whole table
    Write,
}

impl From<WorkArg> for Workload {
    fn from(work: WorkArg) -> Self {
        match work {
            WorkArg::ReadAll => Self::ReadAll,
            WorkArg::ReadAllOfPyarrow => Self::ReadAllOfPyarrow,
            WorkArg::ReadThree => Self::ReadThree,
            WorkArg::Report => Self::Report,
            WorkArg::Write => Self::Write,
        }
    }
}

/// Arguments of `seek`.
#[derive(Debug, Args)]
#[command(after_help = "\
Time is simulated: waits for the store take no real time, and figures are the same on every machine.")]
pub struct SeekArgs {
    #[command(flatten)]
    spec: SpecArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeArg {
    /// Prepared once per connection
    Prepared,
    /// Parsed, bound and executed each time
    Extended,
    /// As text with literals
    Simple,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Prepared => Self::Prepared,
            ModeArg::Extended => Self::Extended,
            ModeArg::Simple => Self::Simple,
        }
    }
}

pub fn run(command: BenchCommand, file: Option<PathBuf>) -> Result<(), Failure> {
    match command {
        BenchCommand::Generate(args) => {
            let resolved = settle(&args.settings, file)?;
            start_log(&resolved, true);
            block_on(&resolved.config, async {
                let engine = open_engine(&resolved.config, LogUse::Leave).await?;
                if args.recreate {
                    drop_table(&engine, &args.table.table).await?;
                }
                generate(&engine, &args.table).await
            })
        }
        BenchCommand::Report(args) => {
            let resolved = settle(&args.settings, file)?;
            start_log(&resolved, true);
            block_on(&resolved.config, report(&args, &resolved.config))
        }
        // No warehouse, no server: no settings.
        BenchCommand::Orc(args) => orc(args),
        BenchCommand::Seek(args) => seek(args),
        BenchCommand::Torture(args) => block_on_threads(CLIENT_THREADS, torture(args)),
        BenchCommand::Cluster(args) => block_on_threads(CLIENT_THREADS, cluster(args)),
        BenchCommand::Cells(args) => block_on_threads(CLIENT_THREADS, cells(args)),
        BenchCommand::S3Proxy(args) => block_on_threads(CLIENT_THREADS, s3_proxy(args)),
        BenchCommand::Ingest(args) => block_on_threads(CLIENT_THREADS, ingest(args)),
    }
    .map_err(Failure::Failed)
}

impl From<SpecArgs> for AdReportSpec {
    fn from(args: SpecArgs) -> Self {
        Self { rows: args.rows, accounts: args.accounts, seed: args.seed }
    }
}

fn orc(args: OrcArgs) -> Result<()> {
    let works = match args.only.is_empty() {
        true => Workload::ALL.to_vec(),
        false => args.only.into_iter().map(Workload::from).collect(),
    };
    let options = OrcOptions {
        spec: args.spec.into(),
        work_dir: args.dir.unwrap_or_else(|| std::env::temp_dir().join("stoa-bench")),
        rounds: args.rounds,
        python: args.python,
        works,
    };
    let result = stoa_bench::orc::run(&options, Vec::new(), &mut |step| eprintln!("{step} ..."))?;
    match args.json {
        true => println!("{}", result.json()?),
        false => print!("{}", result.table()),
    }
    Ok(())
}

fn seek(args: SeekArgs) -> Result<()> {
    let options = SeekOptions { report_table: args.spec.into(), ..SeekOptions::default() };
    let result = stoa_bench::seek::run(&options, &mut |step| eprintln!("{step} ..."))?;
    match args.json {
        true => println!("{}", result.json()?),
        false => print!("{}", result.table()),
    }
    Ok(())
}

impl TableArgs {
    fn spec(&self) -> AdReportSpec {
        let rows = self.rows.unwrap_or(AdReportSpec::default().rows);
        AdReportSpec { rows, accounts: self.accounts, seed: self.seed }
    }
}

async fn drop_table(engine: &Engine, table: &str) -> Result<()> {
    match engine.warehouse().drop_table(&parse_ident(table)?, true).await {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn generate(engine: &Arc<Engine>, args: &TableArgs) -> Result<()> {
    let begin = monotonic();
    let ident = parse_ident(&args.table)?;
    if engine.warehouse().table(&ident).await.is_ok() {
        return Err(Error::already_exists(format!("table {ident} already exists"))
            .with_condition(Condition::DuplicateTable)
            .with_hint("add --recreate to replace it, or name another table with --table"));
    }
    let table = Arc::new(AdReport::new(args.spec()));
    let bar = ProgressBar::new(table.spec().rows);
    let template = "{wide_bar} {human_pos}/{human_len} rows, {per_sec}, {elapsed}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    // A part at a time: the sort of a billion rows would spill tens of gigabytes.
    let mut rows = 0;
    for part in table.parts(ROWS_AT_ONCE) {
        let counted = bar.clone();
        let batches = table.stream(part, engine.options().batch_rows).inspect(move |batch| {
            if let Ok(batch) = batch {
                counted.inc(batch.num_rows() as u64);
            }
        });
        let target = LoadTarget {
            table: args.table.clone(),
            create: rows == 0,
            partition_by: "month(day)".to_owned(),
            order_by: "account_id, day".to_owned(),
            ..LoadTarget::default()
        };
        rows += engine.write_batches(target, AdReport::schema(), batches.boxed()).await?.rows;
    }
    bar.finish_and_clear();
    let seconds = begin.elapsed().as_secs_f64();
    eprintln!(
        "generated {} rows of {ident} in {seconds:.1} s, {} rows/s",
        units::count(rows),
        units::count((rows as f64 / seconds) as u64)
    );
    Ok(())
}

async fn report(args: &ReportArgs, config: &Config) -> Result<()> {
    match args.port {
        Some(port) => {
            let probe = ServerProbe {
                pid: args.pid,
                http_url: args.url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
            };
            let host = host_of(args.url.as_deref())?;
            let spec = match args.table.rows {
                Some(_) => args.table.spec(),
                None => {
                    let rows = stoa_bench::count_rows(&host, port, &args.table.table).await?;
                    AdReportSpec { rows, ..args.table.spec() }
                }
            };
            measure(args, spec, &host, port, &probe).await
        }
        None => {
            ensure_table(args, config).await?;
            let server = start_server(config).await?;
            let probe = server.probe();
            let measured =
                measure(args, args.table.spec(), "127.0.0.1", server.pg_port(), &probe).await;
            let stopped = server.stop().await;
            measured?;
            stopped.map(drop)
        }
    }
}

fn host_of(url: Option<&str>) -> Result<String> {
    let Some(url) = url else { return Ok("127.0.0.1".to_owned()) };
    let parsed = url::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| url.host_str());
    host.map(str::to_owned).ok_or_else(|| {
        Error::invalid(format!("--url {url:?} is not a URL")).with_hint("write http://HOST:PORT")
    })
}

/// Makes the table unless it is there with as many rows; memory that this takes is free again when
/// the server starts.
async fn ensure_table(args: &ReportArgs, config: &Config) -> Result<()> {
    let engine = open_engine(config, LogUse::Leave).await?;
    let ident = parse_ident(&args.table.table)?;
    let wanted = args.table.spec().rows;
    match engine.warehouse().table(&ident).await {
        Err(error) if error.kind() == ErrorKind::NotFound => generate(&engine, &args.table).await,
        Err(error) => Err(error),
        Ok(table) => match table.row_count() {
            Some(rows) if rows != wanted => {
                Err(Error::invalid(format!("table {ident} has {rows} rows, not {wanted}"))
                    .with_hint(format!(
                        "use --rows {rows}, or replace it with `stoa bench generate --recreate`"
                    )))
            }
            _ => Ok(()),
        },
    }
}

fn address_of(host: &str, pg_port: u16, probe: &ServerProbe) -> ServerAddress {
    let http_url = probe.http_url.clone().unwrap_or_default();
    ServerAddress { host: host.to_owned(), pg_port, http_url, flight_port: 0 }
}

async fn measure(
    args: &ReportArgs,
    spec: AdReportSpec,
    host: &str,
    pg_port: u16,
    probe: &ServerProbe,
) -> Result<()> {
    let table = Arc::new(AdReport::new(spec));
    let mut results: Vec<RunResult> = Vec::new();
    for mode in &args.mode {
        for clients in &args.clients {
            let options = RunOptions {
                host: host.to_owned(),
                pg_port,
                table: args.table.table.clone(),
                mode: (*mode).into(),
                clients: *clients,
                limit: args.reports.map_or(Limit::Duration(args.duration), Limit::Reports),
                warm_up: args.warm_up,
                seed: args.table.seed,
                check_every: args.check_every,
                settings: args.set.clone(),
                beside: args.beside.clone(),
            };
            let writers = match args.ingest {
                Some(rows) => Some(
                    PacedWriters::start(&address_of(host, pg_port, probe), INGEST_TABLE, rows)
                        .await?,
                ),
                None => None,
            };
            results.push(stoa_bench::run(&table, &options, probe).await?);
            if let Some(result) = results.last().filter(|_| !args.beside.is_empty()) {
                let runs = units::count(result.beside);
                eprintln!("{clients} clients: {runs} other statements were run meanwhile");
            }
            if let Some(writers) = writers {
                let rows = writers.stop().await?;
                eprintln!(
                    "{clients} clients: {} rows/s were written meanwhile",
                    units::count(rows as u64)
                );
            }
        }
    }
    match args.json {
        true => println!("{}", stoa_bench::json(table.spec(), &results)?),
        false => print!("{}", stoa_bench::table(&results)),
    }
    match results.iter().find_map(|result| result.first_error.as_ref()) {
        Some(error) => Err(Error::unavailable("some reports failed").with_detail(error.clone())),
        None => Ok(()),
    }
}
