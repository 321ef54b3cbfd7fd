//! `stoa bench cluster`: reports on one daemon and on several.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stoa_bench::cluster::{Change, ClusterOptions, ClusterResult, Steady, run_cluster_reports};
use stoa_error::Result;

use super::SpecArgs;
use super::torture::{end, make_empty, this_program};
use crate::units::{self, count};

/// Arguments of `cluster`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stoa bench cluster --catalog postgres://me@localhost/new
  stoa bench cluster --catalog postgres://me@localhost/new --daemons 5 --rows 50000000 --json

Starts daemons that know nothing of each other, then one alone, which others join, and sends each report to a
random one of them. Prints what a report costs on daemons apart, on one and on all together, and what
clients see second by second while daemons join, while one is killed, and while it comes back.")]
pub struct ClusterArgs {
    /// A new database for the catalog: postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    catalog: String,

    /// Daemons
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=16))]
    daemons: u8,

    #[command(flatten)]
    spec: SpecArgs,

    /// Clients at once, for each daemon
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,

    /// Give each daemon one processor, as far as there are enough
    #[arg(long)]
    pin: bool,

    /// Memory for data of each daemon, such as 64MB; with less than the table needs, reports are forwarded
    #[arg(long, value_name = "BYTES")]
    cache_memory: Option<String>,

    /// Duration of each measurement, and of the warm-up before it
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = units::parse_duration)]
    duration: Duration,

    /// Compare one in N answers with the generator's sums; 0 = none
    #[arg(long, value_name = "N", default_value_t = 20)]
    check_every: u64,

    /// An empty or new directory for the warehouse
    /// [default: in the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn cluster(args: ClusterArgs) -> Result<()> {
    let unnamed = || std::env::temp_dir().join(format!("stoa-cluster-{}", std::process::id()));
    let warehouse = args.dir.unwrap_or_else(unnamed);
    make_empty(&warehouse)?;
    let options = ClusterOptions {
        program: this_program()?,
        warehouse: warehouse.clone(),
        catalog: args.catalog,
        daemons: usize::from(args.daemons),
        spec: args.spec.into(),
        clients: usize::from(args.clients),
        pin: args.pin,
        cache_memory: args.cache_memory,
        duration: args.duration,
        check_every: args.check_every,
    };
    let result = run_cluster_reports(&options, &mut |step| eprintln!("{step}")).await;
    end(&warehouse, args.json, result, text)
}

fn text(result: &ClusterResult) -> String {
    let mut out = String::from(
        "daemons         reports/s     p50     p99   CPU per report   forwarded   hedged   reads per report\n",
    );
    for Steady {
        daemons,
        apart,
        per_second,
        p50_us,
        p99_us,
        cpu_us,
        forwarded,
        hedged,
        reads,
        ..
    } in &result.steady
    {
        let apart = if *apart { "apart" } else { "" };
        let (forwarded, hedged) = (forwarded * 100.0, hedged * 100.0);
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{daemons:>7} {apart:5} {:>11} {p50_us:>4} µs {p99_us:>4} µs {cpu_us:>13.1} µs {forwarded:>9.1} % {hedged:>6.2} % \
             {reads:>18.4}",
            count(*per_second as u64),
        );
    }
    for Change { what, seconds, repeated, lost } in &result.changes {
        let _ = writeln!(
            out,
            "\n{what}: {repeated} reports were repeated at another daemon, {lost} were not answered"
        );
        out.push_str("second    reports      p50      p99      max, µs\n");
        for (number, second) in seconds.iter().enumerate() {
            let _ = writeln!(
                out,
                "{number:>6} {:>10} {:>8} {:>8} {:>8}",
                second.answered, second.p50_us, second.p99_us, second.max_us
            );
        }
    }
    out
}
