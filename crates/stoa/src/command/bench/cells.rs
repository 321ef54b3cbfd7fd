//! `stoa bench cells`: the query log of 2008, loaded, dumped, asked for rows, found after a restart.

use std::path::PathBuf;

use clap::Args;
use stoa_bench::cells::{CellsOptions, run};
use stoa_error::{Error, Result};

/// Arguments of `cells`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stoa bench cells                                     3.6 M lines, 7.5 M cells
  stoa bench cells --lines 36389567 --runs 1           75,274,825 cells: the whole log

The lines are synthetic, with the distributions of the log that Hypertable was measured on, in five files.
They are loaded to sorted files, loaded again through the commit log, and dumped without output; then single
rows are read. After a restart, the count is compared with lines + 2 x clicks.")]
pub struct CellsArgs {
    /// Lines of the log
    #[arg(long, value_name = "N", default_value_t = 3_600_000, value_parser = clap::value_parser!(u64).range(1..))]
    lines: u64,

    /// Runs; results are medians
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,

    /// Rows to read, one by one
    #[arg(long, value_name = "N")]
    rows: Option<u64>,

    /// Where files and warehouses are created, on the disk to be measured
    /// [default: in the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn cells(args: CellsArgs) -> Result<()> {
    let parent = args.dir.unwrap_or_else(std::env::temp_dir);
    let directory = parent.join(format!("stoa-cells-{}", std::process::id()));
    let mut options = CellsOptions::new(directory.clone());
    options.log.lines = args.lines;
    options.runs = args.runs.map_or(options.runs, usize::from);
    options.rows = args.rows.unwrap_or(options.rows);
    let result = run(&options, &mut |step| eprintln!("{step} ...")).await?;
    std::fs::remove_dir_all(&directory).map_err(|e| {
        Error::unavailable(format!("cannot remove {}", directory.display())).with_source(e)
    })?;
    match args.json {
        true => println!("{}", result.json()?),
        false => print!("{}", result.table()),
    }
    Ok(())
}
