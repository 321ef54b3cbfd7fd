//! Measures tables of cells:
//! `cargo run --release -p stoa-bench --example cells -- [lines] [runs] [rows] [directory]`.

use stoa_bench::cells::{CellsOptions, run};
use stoa_error::{Error, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
    let (lines, runs, rows) = (number(), number(), number());
    let directory = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let directory = directory.join(format!("stoa-cells-{}", std::process::id()));
    let mut options = CellsOptions::new(directory.clone());
    options.log.lines = lines.unwrap_or(options.log.lines);
    options.rows = rows.unwrap_or(options.rows);
    options.runs = runs.and_then(|runs| runs.try_into().ok()).unwrap_or(options.runs);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::unavailable("no runtime").with_source(e))?;
    let result = runtime.block_on(run(&options, &mut |step| eprintln!("{step} ...")))?;
    print!("{}", result.table());
    std::fs::remove_dir_all(&directory)
        .map_err(|e| Error::unavailable("cannot clean up").with_source(e))
}
