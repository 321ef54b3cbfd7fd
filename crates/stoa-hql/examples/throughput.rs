//! How fast cells go through each part:
//! `cargo run --release -p stoa-hql --example throughput -- [lines] [runs]`.
//!
//! The input is a query log with the marginals of the one of 2008 (7-byte keys, 15-byte values,
//! 2.07 cells a line), made from a fixed seed. Prints the median of the runs in cells per second of
//! processor time (all threads together), which other work on the machine disturbs least.

use std::fs;
use std::sync::Arc;

use stoa_error::{Error, Result};
use stoa_hql::batch::sort_cells;
use stoa_hql::scan::ScanSpec;
use stoa_hql::{
    CellBatch, CellFormat, CellReader, CellStore, LocalFiles, MemoryCells, NamespacePath, Output,
    ReadStep, Session, SessionOptions, TableName, TableSchema,
};

/// Lines of the log.
const LINES: u64 = 1_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse().ok());
    let lines = arguments.next().unwrap_or(LINES);
    let runs = arguments.next().unwrap_or(5) as usize;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(measure(lines, runs)),
        Err(e) => Err(Error::unavailable("no runtime").with_source(e)),
    };
    if let Err(e) = done {
        eprintln!("{e:?}");
    }
}

/// Throws away what is written.
struct Discard;

impl Output for Discard {
    fn write(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    fn notice(&mut self, _text: &str) -> Result<()> {
        Ok(())
    }

    fn progress(&mut self, _text: &str) -> Result<()> {
        Ok(())
    }
}

async fn measure(lines: u64, runs: usize) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("stoa-hql-{}", std::process::id()));
    let failed = |e: std::io::Error| Error::unavailable("cannot write the log").with_source(e);
    fs::create_dir_all(&folder).map_err(failed)?;
    fs::write(folder.join("a.tsv"), query_log(lines)).map_err(failed)?;

    let mut rates: [Vec<f64>; 5] = Default::default();
    for _ in 0..runs {
        let store = Arc::new(MemoryCells::default());
        let files = Arc::new(LocalFiles::new(&folder));
        let mut session = Session::new(store.clone(), files, SessionOptions::default());
        let mut out = Discard;
        let create = "CREATE TABLE \"query-log\" (Query, ItemRank, ClickURL)";
        session.run_text(create, &mut out).await?;
        let statements = [
            // To a file that is thrown away: parsing and printing alone.
            "LOAD DATA INFILE ROW_KEY_COLUMN=AnonID 'a.tsv' INTO FILE '/dev/null'",
            "LOAD DATA INFILE ROW_KEY_COLUMN=AnonID 'a.tsv' INTO TABLE \"query-log\"",
            "select * from \"query-log\"",
        ];
        let mut seconds = Vec::new();
        for statement in statements {
            let started = cpu_s();
            session.run_text(statement, &mut out).await?;
            seconds.push(cpu_s() - started);
        }
        let table = TableName::resolve(&NamespacePath::root(), "query-log")?;
        let (cells, merge_s, print_s) = by_parts(store.as_ref(), &table).await?;
        seconds.extend([merge_s, print_s]);
        for (rates, seconds) in rates.iter_mut().zip(seconds) {
            rates.push(cells as f64 / seconds.max(0.01));
        }
    }
    let names = [
        "parse and print",
        "LOAD into memory",
        "SELECT * from memory",
        "merge ten inputs",
        "print",
    ];
    for (name, rates) in names.iter().zip(rates) {
        println!("{name:<24} {:>12.0} cells/s", median(rates));
    }
    fs::remove_dir_all(&folder).map_err(failed)
}

/// The number of cells, and the seconds of merging ten sorted inputs and of printing.
async fn by_parts(store: &dyn CellStore, table: &TableName) -> Result<(usize, f64, f64)> {
    use futures::TryStreamExt;
    let schema = store.schema(table).await?.ok_or_else(|| Error::internal("no table"))?;
    let batches: Vec<CellBatch> =
        store.scan(table, ScanSpec::default()).await?.try_collect().await?;
    let mut inputs: Vec<Vec<CellBatch>> = vec![Vec::new(); 10];
    for batch in &batches {
        let size = batch.len().div_ceil(10);
        for (input, at) in inputs.iter_mut().zip((0..batch.len()).step_by(size.max(1))) {
            // Every tenth cell, so that the inputs interleave.
            let mut builder = stoa_hql::CellBatchBuilder::new();
            let first = at / size.max(1);
            (first..batch.len()).step_by(10).try_for_each(|i| builder.push(batch.cell(i)))?;
            input.push(sort_cells(&builder.finish())?);
        }
    }
    let started = cpu_s();
    let merged = merge(&schema, inputs)?;
    let merge_s = cpu_s() - started;
    let cells = merged.iter().map(CellBatch::len).sum();
    let mut format = CellFormat::new(&schema);
    let mut text = Vec::new();
    let started = cpu_s();
    for batch in &merged {
        text.clear();
        format.write(batch, &mut text);
    }
    Ok((cells, merge_s, cpu_s() - started))
}

fn merge(schema: &TableSchema, inputs: Vec<Vec<CellBatch>>) -> Result<Vec<CellBatch>> {
    let mut reader = CellReader::new(schema, &ScanSpec::default(), 0, inputs.len());
    let mut inputs: Vec<_> = inputs.into_iter().map(Vec::into_iter).collect();
    let mut merged = Vec::new();
    loop {
        match reader.step()? {
            ReadStep::NeedsInput(input) => reader.push(input, inputs[input].next()),
            ReadStep::Batch(batch) => merged.push(batch),
            ReadStep::Finished => return Ok(merged),
        }
    }
}

/// Seconds of processor time that all threads have used; counted in hundredths.
fn cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

fn query_log(lines: u64) -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let words =
        ["weather", "zip codes", "lyrics", "www.example.com", "maps of", "used cars", "news"];
    let users = (lines / 3).max(1);
    let mut log = String::from("AnonID\tQuery\tItemRank\tClickURL\n");
    for _ in 0..lines {
        let user = 100_000 + random(users) * 7;
        let query = format!("{} {}", words[random(7) as usize], random(10_000));
        let line = match random(1000) {
            0..534 => format!(
                "{user}\t{query}\t{}\thttp://www.example{}.com\n",
                1 + random(9),
                random(9999)
            ),
            _ => format!("{user}\t{query}\n"),
        };
        log.push_str(&line);
    }
    log
}
