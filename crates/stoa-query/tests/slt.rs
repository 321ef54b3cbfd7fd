//! Runs the `.slt` files beside this one against an engine on a new warehouse each: once with small
//! writes going straight to files, once through a commit log.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};

struct Database(Arc<Session>);

#[derive(Debug)]
struct Failure(stoa_error::Error);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Failure {}

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Self::ColumnType>, Self::Error> {
        match self.0.sql(sql).await.map_err(Failure)? {
            Outcome::Done(done) => Ok(DBOutput::StatementComplete(done.rows)),
            Outcome::CopyIn(_) => Ok(DBOutput::StatementComplete(0)),
            Outcome::Rows(rows) => {
                let types = vec![DefaultColumnType::Any; rows.schema().fields().len()];
                let batches = rows.collect().await.map_err(Failure)?;
                Ok(DBOutput::Rows { types, rows: batches.iter().flat_map(texts).collect() })
            }
        }
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "stoa"
    }
}

fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    let cell = |column: &ArrayFormatter<'_>, row| match column.value(row).to_string() {
        text if text.is_empty() => "(empty)".to_owned(),
        text => text,
    };
    (0..batch.num_rows()).map(|row| columns.iter().map(|c| cell(c, row)).collect()).collect()
}

async fn run_file(path: &Path, with_log: bool) {
    let dir = tempfile::tempdir().unwrap();
    let url = stoa_store::parse_location(dir.path().to_str().unwrap()).unwrap();
    let logs = stoa_store::parse_location(dir.path().join("_log").to_str().unwrap()).unwrap();
    let logs = Some(logs).filter(|_| with_log);
    let engine = Engine::open(EngineOptions { logs, ..EngineOptions::new(url) }).await.unwrap();
    let mut runner =
        Runner::new(|| async { Ok(Database(engine.session(SessionOptions::default()))) });
    runner.set_var("DIR".to_owned(), dir.path().to_str().unwrap().to_owned());
    if let Err(error) = runner.run_file_async(path).await {
        panic!("{} (with log: {with_log}): {error}", path.display());
    }
    engine.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_files_pass() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        eprintln!("{}", file.display());
        run_file(&file, false).await;
        run_file(&file, true).await;
    }
}
