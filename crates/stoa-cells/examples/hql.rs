//! HQL over tables in a directory:
//! `cargo run --release -p stoa-cells --example hql -- DIRECTORY < script.hql`.

use std::io::{BufReader, BufWriter, stdin, stdout};
use std::sync::Arc;

use stoa_cells::{CellFlushOrder, CellOptions, CellTables};
use stoa_error::{Error, Result};
use stoa_hql::{
    ConsoleOutput, LocalFiles, ReaderLines, Session, SessionOptions, Shell, ShellOptions,
};
use stoa_ingest::{Ingest, IngestOptions};
use stoa_store::parse_location;
use stoa_table::Warehouse;

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "stoa-cells".to_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::unavailable("no runtime").with_source(e))?;
    runtime.block_on(run(&directory))
}

async fn run(directory: &str) -> Result<()> {
    let warehouse = Warehouse::open(&parse_location(&format!("{directory}/warehouse"))?).await?;
    let log = parse_location(&format!("{directory}/log"))?;
    let options = IngestOptions { order: Some(Arc::new(CellFlushOrder)), ..Default::default() };
    let (ingest, _) = Ingest::open(warehouse.clone(), &log, options).await?;
    let store = CellTables::open(warehouse, Some(ingest.clone()), CellOptions::default()).await?;
    let files = Arc::new(LocalFiles::new("."));
    let session = Session::new(Arc::new(store), files, SessionOptions::default());
    let options = ShellOptions { batch: true, ..ShellOptions::default() };
    let mut out = ConsoleOutput::new(BufWriter::new(stdout()), std::io::stderr());
    let mut lines = ReaderLines::new(BufReader::new(stdin()));
    Shell::new(session, options).run(&mut lines, &mut out).await?;
    ingest.close(true).await
}
