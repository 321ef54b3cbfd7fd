//! Runs the `.slt` files beside this one against an engine on a new warehouse each: once with small
//! writes going straight to files, once through a commit log. `stoa/tests/it/slt` runs the same files
//! over a server's protocols.

use std::sync::Arc;
use std::time::Duration;

use stoa_query::{Engine, EngineOptions, FileAccess, Outcome, Session, SessionOptions};
use stoa_testkit::slt::{Answer, Connection, Failure, Protocol, cells, folder, run};

/// An engine in this process.
struct Embedded(Arc<Engine>);

#[async_trait::async_trait]
impl Protocol for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
        Ok(Box::new(Client(self.0.session(SessionOptions::default()))))
    }
}

struct Client(Arc<Session>);

#[async_trait::async_trait]
impl Connection for Client {
    async fn run(&mut self, sql: &str) -> Result<Answer, Failure> {
        match self.0.sql(sql).await.map_err(failure)? {
            Outcome::Done(done) => Ok(Answer::Done(done.rows)),
            Outcome::CopyIn(_) => Ok(Answer::Done(0)),
            Outcome::Rows(rows) => {
                let batches = rows.collect().await.map_err(failure)?;
                Ok(Answer::Rows(batches.iter().flat_map(cells).collect()))
            }
        }
    }
}

fn failure(error: stoa_error::Error) -> Failure {
    Failure { sqlstate: error.sqlstate().to_owned(), message: format!("{error:?}") }
}

async fn run_with(name: &str, with_log: bool) {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("files");
    std::fs::create_dir(&files).unwrap();
    std::fs::create_dir(dir.path().join("warehouse")).unwrap();
    let location =
        |name: &str| stoa_store::parse_location(dir.path().join(name).to_str().unwrap()).unwrap();
    let options = EngineOptions {
        logs: Some(location("log")).filter(|_| with_log),
        file_access: FileAccess::Folders(vec![files.clone()]),
        ..EngineOptions::new(location("warehouse"))
    };
    let engine = Engine::open(options).await.unwrap();
    let protocol: Arc<dyn Protocol> = Arc::new(Embedded(Arc::clone(&engine)));
    let ran = run(&folder().join(format!("{name}.slt")), &protocol, &files).await;
    engine.shutdown(Duration::from_secs(10)).await;
    if let Err(failures) = ran {
        panic!("with log: {with_log}: {failures}");
    }
}

async fn run_file(name: &str) {
    run_with(name, false).await;
    run_with(name, true).await;
}

stoa_testkit::slt_tests!(run_file);
