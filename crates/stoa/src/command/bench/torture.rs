//! `stoa bench torture`: kills servers while they take in rows, and looks for what is lost.

use std::path::PathBuf;

use clap::Args;
use stoa_bench::torture::{
    ClusterTortureOptions, ClusterTortureResult, HistoryOptions, HistoryResult, TortureOptions,
    TortureResult, Warehouse, run, run_cluster, run_histories,
};
use stoa_env::clock;
use stoa_error::{Error, Result};

use crate::units::count;

/// Arguments of `torture`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stoa bench torture                                   100 servers
  stoa bench torture --kills 1000 --dir /mnt/disk/torture
  stoa bench torture --histories --statements 100000 --kills 0
  stoa bench torture --daemons 3 --catalog postgres://me@localhost/new
  stoa bench torture --daemons 3 --catalog postgres://me@localhost/new \\
      --store s3://bucket/new --store-endpoint http://localhost:9000
  stoa bench torture --histories --servers 3 --catalog postgres://me@localhost/new

Starts servers on their own warehouse, writes to them over all protocols, and kills them: by a signal
at random moments, or at fail points in log, flush, commit, compaction and expiry. After each restart,
every acknowledged row must be there exactly once. Only the warehouse in --dir is used; it is removed
if nothing is wrong. This does not test what a power failure does to a disk.

With --histories, sessions on two servers change the same rows with statements of all kinds, and drop,
create and rename the tables that others write to. What each session saw must be consistent: no row is
lost or duplicated, no increment is lost, and nothing that was seen disappears.

With --daemons, that many daemons share a catalog in PostgreSQL, and all are written to while one at a
time is killed, frozen for up to nine seconds, ended, or cut off from PostgreSQL or from the others; or
all are. Whatever one has acknowledged, all others must show at once, and after they have taken its log
over. With --store, files and logs are in S3, and daemons are cut off from there as well.")]
pub struct TortureArgs {
    /// Number of kills
    #[arg(long, value_name = "N", default_value_t = 100)]
    kills: u32,

    /// Equal seeds make equal choices [default: from the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Connections per protocol and table
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    writers: u16,

    /// Maximum rows per acknowledgement
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(i32).range(1..=100_000))]
    rows: i32,

    /// An empty or new directory on the disk to be tested
    /// [default: in the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Daemons of a cluster; --kills is how often one of them is hurt
    #[arg(long, value_name = "N", requires = "catalog", conflicts_with = "histories", value_parser = clap::value_parser!(u8).range(2..=16))]
    daemons: Option<u8>,

    /// A new database for the catalog that makes the daemons, or the servers of --histories, a cluster:
    /// postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    catalog: Option<String>,

    /// Where the files and logs of --daemons are, instead of --dir: s3://BUCKET/PREFIX, where nothing is
    #[arg(long, value_name = "URL", requires_all = ["daemons", "store_endpoint"])]
    store: Option<String>,

    /// The endpoint of --store, http://HOST:PORT; its keys are in the environment
    #[arg(long, value_name = "URL", requires = "store")]
    store_endpoint: Option<String>,

    /// Check the histories of concurrent sessions
    #[arg(long)]
    histories: bool,

    /// Statements before the first kill, with --histories
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "histories")]
    statements: u64,

    /// Servers on the warehouse, with --histories; more than 2 need --catalog
    #[arg(long, value_name = "N", default_value_t = 2, requires = "histories", value_parser = clap::value_parser!(u8).range(1..=8))]
    servers: u8,

    /// Only statements that read no rows except those they change, with --histories
    #[arg(long, requires = "histories")]
    plain: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn torture(args: TortureArgs) -> Result<()> {
    let program = this_program()?;
    let seed = args.seed.unwrap_or_else(|| clock::unix_ms().unsigned_abs());
    let unnamed = || std::env::temp_dir().join(format!("stoa-torture-{}", std::process::id()));
    let warehouse = args.dir.clone().unwrap_or_else(unnamed);
    make_empty(&warehouse)?;
    if args.histories {
        return histories(args, program, warehouse, seed).await;
    }
    if args.catalog.is_some() && args.daemons.is_none() {
        return Err(Error::invalid("--catalog is for --daemons and --histories"));
    }
    if let (Some(daemons), Some(catalog)) = (args.daemons, args.catalog.clone()) {
        return cluster(args, program, warehouse, seed, usize::from(daemons), catalog).await;
    }
    let options = TortureOptions {
        program,
        warehouse: warehouse.clone(),
        kills: args.kills,
        seed,
        writers: usize::from(args.writers),
        rows_max: args.rows,
    };
    eprintln!("seed {seed}, warehouse {}", warehouse.display());
    let result = run(&options, &mut |step| eprintln!("{step}")).await;
    end(&warehouse, args.json, result, text)
}

/// # Errors
/// Unavailable: the system does not say which file it is.
pub(super) fn this_program() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|e| Error::unavailable("cannot find this program's file").with_source(e))
}

async fn histories(
    args: TortureArgs,
    program: PathBuf,
    warehouse: PathBuf,
    seed: u64,
) -> Result<()> {
    let options = HistoryOptions {
        program,
        warehouse: warehouse.clone(),
        statements: args.statements,
        kills: args.kills,
        servers: usize::from(args.servers),
        catalog: args.catalog.clone(),
        plain: args.plain,
        seed,
    };
    if options.servers > 2 && options.catalog.is_none() {
        return Err(Error::invalid("more than two servers need a catalog that they share")
            .with_hint("add --catalog postgres://USER@HOST/DATABASE, a new database"));
    }
    eprintln!("seed {seed}, warehouse {}", warehouse.display());
    let result = run_histories(&options, &mut |step| eprintln!("{step}")).await;
    end(&warehouse, args.json, result, history_text)
}

async fn cluster(
    args: TortureArgs,
    program: PathBuf,
    warehouse: PathBuf,
    seed: u64,
    daemons: usize,
    catalog: String,
) -> Result<()> {
    let place = match args.store.zip(args.store_endpoint) {
        Some((url, endpoint)) => Warehouse::Store { url, endpoint },
        None => Warehouse::Directory(warehouse.clone()),
    };
    let options = ClusterTortureOptions {
        program,
        warehouse: place,
        catalog,
        daemons,
        faults: args.kills,
        seed,
        writers: usize::from(args.writers),
        rows_max: args.rows,
    };
    eprintln!("seed {seed}, warehouse {}", warehouse.display());
    let result = run_cluster(&options, &mut |step| eprintln!("{step}")).await;
    end(&warehouse, args.json, result, cluster_text)
}

fn cluster_text(result: &ClusterTortureResult) -> String {
    format!(
        "nothing lost, doubled or unseen\n\
         daemons hurt       {}\n\
         \x20 killed           {}\n\
         \x20 at fail points   {}\n\
         \x20 frozen           {}, of which {} were declared dead\n\
         \x20 ended in order   {}\n\
         \x20 cut off          {}, {} daemons were declared dead\n\
         \x20 dead afterwards  {}\n\
         \x20 logs stopped     {}\n\
         parcels there      {} with {} rows\n\
         in flight          {} there, {} not\n\
         statements         {}\n\
         comparisons        {}\n\
         fault to settled   {} ms median, {} ms most\n\
         took               {:.0} s\n",
        result.faults,
        result.killed,
        result.failed,
        result.frozen[0],
        result.frozen[1],
        result.drained,
        result.cut[0],
        result.cut[1],
        result.late,
        result.stopped,
        count(result.parcels),
        count(result.rows),
        count(result.in_flight_kept),
        count(result.in_flight_gone),
        count(result.statements),
        count(result.checks),
        result.settle_ms[0],
        result.settle_ms[1],
        result.seconds,
    )
}

/// Prints what happened and removes the warehouse; where something is wrong, it stays.
pub(super) fn end<R: serde::Serialize>(
    warehouse: &std::path::Path,
    as_json: bool,
    result: Result<R>,
    text: fn(&R) -> String,
) -> Result<()> {
    let left =
        |error: Error| error.with_hint(format!("what it left is in {}", warehouse.display()));
    let result = result.map_err(left)?;
    let _ = std::fs::remove_dir_all(warehouse);
    match as_json {
        true => println!("{}", json(&result)?),
        false => print!("{}", text(&result)),
    }
    Ok(())
}

fn history_text(result: &HistoryResult) -> String {
    format!(
        "nothing lost, doubled or unseen\n\
         rounds             {}\n\
         statements         {}\n\
         servers ended      {}\n\
         rows read          {}\n\
         increments         {}\n\
         rows under names   {}\n\
         outcome unknown    {}\n\
         forwarded reports  {}\n\
         took               {:.0} s\n",
        count(result.rounds),
        count(result.statements),
        result.kills,
        count(result.rows_read),
        count(result.increments),
        count(result.rows_named),
        count(result.unknown),
        count(result.forwarded),
        result.seconds,
    )
}

pub(super) fn make_empty(directory: &std::path::Path) -> Result<()> {
    let failed =
        |e| Error::unavailable(format!("cannot use {}", directory.display())).with_source(e);
    std::fs::create_dir_all(directory).map_err(failed)?;
    match std::fs::read_dir(directory).map_err(failed)?.next() {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("{} is not empty", directory.display()))
            .with_hint("name a directory that does not exist")),
    }
}

fn json(result: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string_pretty(result)
        .map_err(|e| Error::internal("the result is no JSON").with_source(e))
}

fn text(result: &TortureResult) -> String {
    let by_point = |points: &std::collections::BTreeMap<String, u32>| {
        let points: Vec<String> =
            points.iter().map(|(point, times)| format!("{point} {times}")).collect();
        points.join(", ")
    };
    let died: u32 = result.died_at.values().sum();
    let faulty: u32 = result.faults_at.values().sum();
    format!(
        "nothing lost\n\
         servers ended      {}\n\
         \x20 by signal        {} starting, {} serving\n\
         \x20 at fail points   {died}: {}\n\
         \x20 after an error   {faulty}: {}\n\
         parcels there      {} with {} rows\n\
         in flight          {} there, {} not\n\
         statements         {}\n\
         comparisons        {}\n\
         start to listening {} ms median, {} ms most\n\
         took               {:.0} s\n",
        result.deaths,
        result.killed_starting,
        result.killed_serving,
        by_point(&result.died_at),
        by_point(&result.faults_at),
        count(result.parcels),
        count(result.rows),
        count(result.in_flight_kept),
        count(result.in_flight_gone),
        count(result.statements),
        count(result.checks),
        result.start_ms[0],
        result.start_ms[1],
        result.seconds,
    )
}
