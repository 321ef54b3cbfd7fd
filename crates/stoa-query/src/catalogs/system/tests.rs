//! The tables of an engine, and who may read them.

use arrow::array::RecordBatch;
use stoa_figures::{Seen, declarations};
use url::Url;

use super::*;
use crate::engine::EngineOptions;
use crate::session::{Session, SessionOptions};
use crate::statements::outcome::Outcome;

async fn engine(directory: &tempfile::TempDir) -> Arc<Engine> {
    let warehouse = Url::from_directory_path(directory.path()).unwrap();
    let options = EngineOptions { access_control: true, ..EngineOptions::new(warehouse) };
    Engine::open(options).await.unwrap()
}

/// The answer, or the error's SQLSTATE.
async fn answer(session: &Session, sql: &str) -> Result<Vec<RecordBatch>, &'static str> {
    let outcome = session.sql(sql).await.map_err(|error| error.sqlstate())?;
    let Outcome::Rows(rows) = outcome else { return Ok(Vec::new()) };
    rows.collect().await.map_err(|error| error.sqlstate())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_is_open_or_closed_as_it_is_declared() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
    assert_eq!(answer(&root, "CREATE USER ann PASSWORD 'pencil'").await, Ok(Vec::new()));
    let ann =
        engine.session(SessionOptions { user: "ann".to_owned(), ..SessionOptions::default() });
    for group in declarations().iter().filter(|group| group.is_table) {
        let sql = format!("SELECT * FROM system.{}", group.name);
        for batch in answer(&root, &sql).await.unwrap() {
            let schema = batch.schema();
            let found: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let wanted: Vec<&str> = group.columns.iter().map(|c| c.sql_name()).collect();
            assert_eq!(found, wanted, "{sql}");
        }
        match group.seen {
            Seen::Superusers => assert_eq!(answer(&ann, &sql).await, Err("42501"), "{sql}"),
            Seen::Everyone | Seen::Owner | Seen::Granted => {
                assert!(answer(&ann, &sql).await.is_ok(), "{sql}");
            }
        }
    }
    assert_eq!(answer(&root, "ALTER ROLE ann SUPERUSER").await, Ok(Vec::new()));
    assert!(answer(&ann, "SELECT * FROM system.query_shapes").await.is_ok());
}
