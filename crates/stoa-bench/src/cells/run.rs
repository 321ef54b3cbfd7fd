//! The steps of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures::TryStreamExt;
use stoa_env::clock;
use stoa_error::{Error, Result};
use stoa_hql::scan::ScanSpec;
use stoa_hql::{CellStore, LocalFiles, NamespacePath, Output, Session, SessionOptions, TableName};

use super::home::{Home, remove};
use super::outcome::{CellsResult, CellsStep, median, medians, row_reads};
use super::process;
use super::query_log::{QueryLog, QueryLogFile};

/// The table of the query log.
const TABLE: &str = "query-log";

/// What to measure.
#[derive(Clone, Debug)]
pub struct CellsOptions {
    /// Where load files and tables are made; what the runs make there is removed.
    pub directory: PathBuf,
    /// The log to load.
    pub log: QueryLog,
    /// How often.
    pub runs: usize,
    /// Single rows that are asked for in each run.
    pub rows: u64,
}

impl CellsOptions {
    /// 3.6 million lines in five files, three runs.
    pub fn new(directory: PathBuf) -> Self {
        let log = QueryLog { lines: 3_600_000, files: 5, seed: 1 };
        Self { directory, log, runs: 3, rows: 1000 }
    }
}

/// Measures; `progress` is told what is being done.
///
/// # Errors
/// Those of the store, and `Internal` if a count is not what the files make.
pub async fn run(options: &CellsOptions, progress: &mut dyn FnMut(&str)) -> Result<CellsResult> {
    let data = options.directory.join("data");
    std::fs::create_dir_all(&data)
        .map_err(|e| Error::unavailable("cannot make the directory").with_source(e))?;
    progress("making the query log");
    let files = options.log.write(&data)?;
    let (mut steps, mut rows, mut restarts) = (Vec::new(), Vec::new(), Vec::new());
    for nth in 0..options.runs {
        let mut run = Run {
            options,
            files: &files,
            data: &data,
            cells: files.iter().map(QueryLogFile::cells).sum(),
            steps: Vec::new(),
            rows: Vec::new(),
        };
        progress(&format!("run {} of {}: loads into files", nth + 1, options.runs));
        run.files().await?;
        progress(&format!("run {} of {}: loads through the log", nth + 1, options.runs));
        restarts.push(run.log().await?);
        steps.push(run.steps);
        rows.extend(run.rows);
    }
    Ok(CellsResult {
        lines: options.log.lines,
        cells: files.iter().map(QueryLogFile::cells).sum(),
        bytes: files.iter().map(|file| file.bytes).sum(),
        runs: options.runs,
        steps: medians(&steps),
        rows: row_reads(&rows),
        restart_ms: median(restarts),
    })
}

struct Run<'a> {
    options: &'a CellsOptions,
    files: &'a [QueryLogFile],
    data: &'a Path,
    cells: u64,
    steps: Vec<CellsStep>,
    /// When rows were asked for, and how many milliseconds each took.
    rows: Vec<(&'static str, Vec<f64>)>,
}

impl Run<'_> {
    /// Loads without the log, dumps, compacts, dumps.
    async fn files(&mut self) -> Result<()> {
        let home = Home::open(&self.options.directory.join("files")).await?;
        let table = format!("CREATE TABLE \"{TABLE}\" (Query, ItemRank, ClickURL)");
        statement(self.data, &home, &table).await?;
        self.load(&home, "load into files", "NO_LOG").await?;
        self.dump(&home, "dump").await?;
        self.rows(&home, "over files that overlap").await?;
        let (data, cells) = (self.data, self.cells);
        let compact = format!("COMPACT TABLE \"{TABLE}\"");
        let work = async {
            statement(data, &home, &compact).await?;
            Ok(cells)
        };
        self.steps.push(measure(&home, "compact", work).await?);
        self.dump(&home, "dump, compacted").await?;
        self.rows(&home, "compacted").await?;
        self.check_count(&home).await?;
        remove(home.close().await?).await
    }

    /// Loads through the log, dumps, starts anew, counts. Gives back how long the start took.
    async fn log(&mut self) -> Result<f64> {
        let home = Home::open(&self.options.directory.join("log")).await?;
        let table = format!("CREATE TABLE \"{TABLE}\" (Query, ItemRank, ClickURL)");
        statement(self.data, &home, &table).await?;
        self.load(&home, "load through the log", "").await?;
        self.dump(&home, "dump while flushing").await?;
        self.rows(&home, "while flushing").await?;
        let directory = home.close().await?;
        let started = clock::monotonic();
        let home = Home::open(&directory).await?;
        let restart_ms = milliseconds(started);
        self.check_count(&home).await?;
        remove(home.close().await?).await?;
        Ok(restart_ms)
    }

    async fn load(&mut self, home: &Home, name: &str, option: &str) -> Result<()> {
        let bytes = self.files.iter().map(|file| file.bytes).sum();
        let (files, data, cells) = (self.files, self.data, self.cells);
        let work = async {
            for file in files {
                let file = file.path.file_name().unwrap_or_default().to_string_lossy();
                let load = format!(
                    "LOAD DATA INFILE ROW_KEY_COLUMN=AnonID {option} '{file}' INTO TABLE \"{TABLE}\""
                );
                statement(data, home, &load).await?;
            }
            Ok(cells)
        };
        let step = measure(home, name, work).await?;
        self.steps.push(with_bytes(step, bytes));
        Ok(())
    }

    /// Prints everything, and throws it away.
    async fn dump(&mut self, home: &Home, name: &str) -> Result<()> {
        let mut bytes = 0;
        let (data, cells) = (self.data, self.cells);
        let work = async {
            let select = format!("select * from \"{TABLE}\"");
            let printed = statement(data, home, &select).await?;
            bytes = printed.bytes;
            check(printed.lines, cells)?;
            Ok(printed.lines)
        };
        let step = measure(home, name, work).await?;
        self.steps.push(with_bytes(step, bytes));
        Ok(())
    }

    /// Asks for single rows, of users with many lines and with few.
    async fn rows(&mut self, home: &Home, when: &'static str) -> Result<()> {
        let log = &self.options.log;
        let mut latencies_ms = Vec::new();
        let mut session = session(self.data, home);
        for nth in 0..self.options.rows {
            let user = log.user(nth * log.users() / self.options.rows.max(1));
            let select = format!("SELECT * FROM \"{TABLE}\" WHERE ROW = '{user}'");
            let started = clock::monotonic();
            session.run_text(&select, &mut Printed::default()).await?;
            latencies_ms.push(milliseconds(started));
        }
        self.rows.push((when, latencies_ms));
        Ok(())
    }

    /// Counts the cells without printing them.
    async fn check_count(&self, home: &Home) -> Result<()> {
        let table = TableName::resolve(&NamespacePath::root(), TABLE)?;
        let spec = ScanSpec { keys_only: true, ..ScanSpec::default() };
        let store: &Arc<dyn CellStore> = &home.store;
        let cells = store.scan(&table, spec).await?;
        let count = cells.try_fold(0, |sum, batch| async move { Ok(sum + batch.len() as u64) });
        check(count.await?, self.cells)
    }
}

/// Does something, and notes what it took.
async fn measure(
    home: &Home,
    name: &str,
    work: impl Future<Output = Result<u64>>,
) -> Result<CellsStep> {
    process::forget_peak();
    let (cpu, (syncs, bytes), started) = (process::cpu(), home.log_usage(), clock::monotonic());
    let cells = work.await?;
    let seconds = clock::monotonic().duration_since(started).as_secs_f64();
    let cpu_s = (process::cpu() - cpu).as_secs_f64();
    let (syncs_after, bytes_after) = home.log_usage();
    Ok(CellsStep {
        name: name.to_owned(),
        cells,
        seconds,
        cells_per_second: cells as f64 / seconds,
        bytes_per_second: 0.0,
        cpu_ns_per_cell: cpu_s * 1e9 / cells.max(1) as f64,
        log_syncs: syncs_after - syncs,
        log_bytes: bytes_after - bytes,
        peak_memory_bytes: process::peak_memory_bytes(),
    })
}

fn with_bytes(step: CellsStep, bytes: u64) -> CellsStep {
    CellsStep { bytes_per_second: bytes as f64 / step.seconds, ..step }
}

fn session(data: &Path, home: &Home) -> Session {
    let options = SessionOptions { silent: true, ..SessionOptions::default() };
    Session::new(Arc::clone(&home.store), Arc::new(LocalFiles::new(data)), options)
}

async fn statement(data: &Path, home: &Home, text: &str) -> Result<Printed> {
    let mut printed = Printed::default();
    session(data, home).run_text(text, &mut printed).await?;
    Ok(printed)
}

/// Counts what is printed, and throws it away.
#[derive(Default)]
struct Printed {
    bytes: u64,
    lines: u64,
}

impl Output for Printed {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        Ok(())
    }

    fn notice(&mut self, _text: &str) -> Result<()> {
        Ok(())
    }

    fn progress(&mut self, _text: &str) -> Result<()> {
        Ok(())
    }
}

fn check(found: u64, expected: u64) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::internal(format!("{found} cells were found, {expected} were loaded")))
}

fn milliseconds(since: Instant) -> f64 {
    clock::monotonic().duration_since(since).as_secs_f64() * 1e3
}
