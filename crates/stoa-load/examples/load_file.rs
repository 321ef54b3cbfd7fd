//! Infers the schema of files and reads them all; prints the schema, rows, speed and (on Linux)
//! peak memory. `cargo run --release -p stoa-load --example load_file -- [name=value …] FILE …`
#![allow(clippy::expect_used)]

use std::path::PathBuf;

use stoa_error::Result;
use stoa_load::{Input, LoadOptions, infer_schema, open};

fn main() -> Result<()> {
    let mut options = LoadOptions::default();
    let mut files: Vec<PathBuf> = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some((name, value)) => options.set(name, value)?,
            None => files.push(argument.into()),
        }
    }
    let schema = infer_schema(&files, &options)?;
    for field in schema.fields() {
        println!("{} {}", field.name(), field.data_type());
    }
    let started = stoa_env::clock::monotonic();
    let reader = open(files.into_iter().map(Input::Path).collect(), schema, options)?;
    let progress = reader.progress();
    for batch in reader {
        batch?;
    }
    let seconds = (stoa_env::clock::monotonic() - started).as_secs_f64();
    println!(
        "{} rows, {} rejected, {:.1} MB in {seconds:.2} s: {:.2} M rows/s, {:.0} MB/s",
        progress.rows_read(),
        progress.rows_rejected(),
        progress.bytes_read() as f64 / 1e6,
        progress.rows_read() as f64 / seconds / 1e6,
        progress.bytes_read() as f64 / seconds / 1e6,
    );
    if let Ok(status) = std::fs::read_to_string("/proc/self/status")
        && let Some(peak) = status.lines().find(|line| line.starts_with("VmHWM"))
    {
        println!("{peak}");
    }
    Ok(())
}
