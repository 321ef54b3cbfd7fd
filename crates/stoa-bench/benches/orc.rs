//! What `stoa bench orc` measures, with orc-rust beside the others.
//!
//! `cargo bench -p stoa-bench --bench orc -- [--rows N] [--rounds N] [--python PATH] [--dir DIR]
//! [--only WORK,…] [--json]`
//!
//! With `cargo test` it runs small, so that it cannot rot.

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use orc_rust::ArrowReaderBuilder;
use orc_rust::arrow_writer::ArrowWriterBuilder;
use orc_rust::compression::CompressionType;
use orc_rust::projection::ProjectionMask;
use stoa_bench::orc::{Contender, Format, InProcess, Library, OrcOptions, Sink, Workload, run};
use stoa_bench::{AdReport, AdReportSpec};
use stoa_error::{Error, Result};

const BENCH_ROWS: u64 = 10_000_000;
const TEST_ROWS: u64 = 30_000;

fn main() -> Result<()> {
    let dir_of_a_test = tempfile::tempdir().map_err(|e| failed(Path::new("temporary"), e))?;
    let mut options = OrcOptions {
        spec: AdReportSpec { rows: TEST_ROWS, ..AdReportSpec::default() },
        work_dir: dir_of_a_test.path().to_owned(),
        rounds: 1,
        python: None,
        works: Workload::ALL.to_vec(),
    };
    let mut json = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || {
            let value = arguments.next();
            value.ok_or_else(|| Error::invalid(format!("{name} needs a value")))
        };
        match name.as_str() {
            // Cargo says so when it is a bench, not a test.
            "--bench" => {
                (options.spec.rows, options.rounds) = (BENCH_ROWS, 7);
                options.work_dir = std::env::temp_dir().join("stoa-bench");
            }
            "--rows" => options.spec.rows = number(&value()?)?,
            "--rounds" => options.rounds = number(&value()?)? as usize,
            "--python" => options.python = Some(PathBuf::from(value()?)),
            "--dir" => options.work_dir = PathBuf::from(value()?),
            "--only" => options.works = works(&value()?)?,
            "--json" => json = true,
            _ => {}
        }
    }
    let others: Vec<Box<dyn Contender>> = vec![Box::new(InProcess(OrcRust))];
    let result = run(&options, others, &mut |step| eprintln!("{step}"))?;
    match json {
        true => println!("{}", result.json()?),
        false => print!("{}", result.table()),
    }
    Ok(())
}

/// Works by their names in JSON, with commas between them.
fn works(text: &str) -> Result<Vec<Workload>> {
    let known = |name: &str| {
        Workload::ALL
            .into_iter()
            .find(|work| serde_json::json!(work) == name)
            .ok_or_else(|| Error::invalid(format!("there is no work {name:?}")))
    };
    text.split(',').map(known).collect()
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::invalid(format!("{text:?} is not a number")))
}

/// orc-rust 0.9. Reports read whole columns: its row selections return wrong rows where a run of
/// them is longer than a batch.
struct OrcRust;

impl Library for OrcRust {
    fn name(&self) -> String {
        "orc-rust 0.9".to_owned()
    }

    fn format(&self) -> Format {
        Format::Orc
    }

    fn read(&self, path: &Path, columns: Option<&[&str]>, sink: &mut Sink<'_>) -> Result<()> {
        let file = File::open(path).map_err(|e| failed(path, e))?;
        let builder = ArrowReaderBuilder::try_new(file).map_err(|e| failed(path, e))?;
        let root = builder.file_metadata().root_data_type();
        let mask = match columns {
            Some(names) => ProjectionMask::named_roots(root, names),
            None => ProjectionMask::all(),
        };
        for batch in builder.with_projection(mask).build() {
            sink(batch.map_err(|e| failed(path, e))?)?;
        }
        Ok(())
    }

    fn write(&self, path: &Path, batches: &[RecordBatch]) -> Result<()> {
        // 0.9.0 panics on integers whose bit width has no code of its own.
        let written = std::panic::catch_unwind(AssertUnwindSafe(|| write(path, batches)));
        written.unwrap_or_else(|_| Err(Error::unsupported("orc-rust panics on these values")))
    }
}

fn write(path: &Path, batches: &[RecordBatch]) -> Result<()> {
    let file = File::create(path).map_err(|e| failed(path, e))?;
    let mut writer = ArrowWriterBuilder::new(file, AdReport::schema())
        .with_compression(CompressionType::Zstd)
        .try_build()
        .map_err(|e| failed(path, e))?;
    batches.iter().try_for_each(|batch| writer.write(batch)).map_err(|e| failed(path, e))?;
    writer.close().map_err(|e| failed(path, e))
}

fn failed(path: &Path, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::unavailable(format!("orc-rust fails on {}", path.display())).with_source(error)
}
