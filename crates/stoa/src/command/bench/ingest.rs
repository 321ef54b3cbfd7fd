//! `stoa bench ingest`: durable rows per second over every protocol.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use stoa_bench::WritePath;
use stoa_bench::ingest::{IngestOptions, run};
use stoa_error::Result;

use crate::units;

/// Arguments of `ingest`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stoa bench ingest
  stoa bench ingest --path arrow,copy --writers 32 --seconds 20 --dir /mnt/disk/ingest

Each run has its own server and warehouse in --dir. An append is acknowledged when a sync of the log
covers it. After each run, the server is killed and restarted, and the table is compared with what was
acknowledged.")]
pub struct IngestArgs {
    /// Protocols [default: all]
    #[arg(long, value_enum, value_name = "PATH,…", value_delimiter = ',')]
    path: Vec<PathArg>,

    /// Concurrent connections; one run per number
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,32")]
    writers: Vec<usize>,

    /// Rows per acknowledgement; a row is eight integers, 36 bytes
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(i32).range(1..=1_000_000))]
    rows: i32,

    /// Duration of each run
    #[arg(long, visible_alias = "seconds", value_name = "TIME", default_value = "10s", value_parser = units::parse_duration)]
    duration: Duration,

    /// Where warehouses are created, on the disk to be measured
    /// [default: in the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PathArg {
    /// INSERT … VALUES, PostgreSQL protocol
    Insert,
    /// COPY … FROM STDIN, PostgreSQL protocol
    Copy,
    /// NDJSON over HTTP
    Ndjson,
    /// CSV over HTTP
    Csv,
    /// An Arrow stream over HTTP
    Arrow,
    /// Flight SQL's ingest
    Flight,
}

impl From<PathArg> for WritePath {
    fn from(path: PathArg) -> Self {
        match path {
            PathArg::Insert => Self::Insert,
            PathArg::Copy => Self::Copy,
            PathArg::Ndjson => Self::Ndjson,
            PathArg::Csv => Self::Csv,
            PathArg::Arrow => Self::Arrow,
            PathArg::Flight => Self::Flight,
        }
    }
}

pub async fn ingest(args: IngestArgs) -> Result<()> {
    let program = super::torture::this_program()?;
    let unnamed = || std::env::temp_dir().join(format!("stoa-ingest-{}", std::process::id()));
    let paths = match args.path.is_empty() {
        true => WritePath::ROWS.to_vec(),
        false => args.path.into_iter().map(WritePath::from).collect(),
    };
    let options = IngestOptions {
        program,
        directory: args.dir.unwrap_or_else(unnamed),
        arguments: Vec::new(),
        paths,
        writers: args.writers,
        rows: args.rows,
        duration: args.duration,
    };
    let result = run(&options, &mut |step| eprintln!("{step} ...")).await?;
    match args.json {
        true => println!("{}", result.json()?),
        false => print!("{}", result.table()),
    }
    Ok(())
}
