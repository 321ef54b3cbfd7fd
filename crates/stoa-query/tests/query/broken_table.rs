//! A table whose metadata cannot be read hides no other in the catalog's lists.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};
use url::Url;

async fn session(folder: &Path) -> Arc<Session> {
    let warehouse = Url::from_directory_path(folder).unwrap();
    let engine = Engine::open(EngineOptions::new(warehouse)).await.unwrap();
    engine.session(SessionOptions::default())
}

/// The rows of an answer, as text.
async fn ask(session: &Session, sql: &str) -> String {
    let Outcome::Rows(rows) = session.sql(sql).await.unwrap() else { panic!("{sql}") };
    let batches = rows.collect().await.unwrap();
    arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_listed_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let writer = session(folder.path()).await;
    writer.sql("CREATE TABLE whole (day int)").await.unwrap();
    writer.sql("CREATE TABLE broken (only_in_broken int)").await.unwrap();
    drop(writer);
    let metadata = files(folder.path()).into_iter().filter(|path| {
        path.to_string_lossy().ends_with(".metadata.json")
            && std::fs::read_to_string(path).unwrap().contains("only_in_broken")
    });
    let damaged: Vec<_> = metadata.inspect(|path| std::fs::write(path, "{").unwrap()).collect();
    assert!(!damaged.is_empty());

    let reader = session(folder.path()).await;
    assert!(reader.sql("SELECT * FROM broken").await.is_err());
    for (sql, lists_broken) in [
        ("SELECT table_name FROM information_schema.tables", true),
        ("SELECT table_name, column_name FROM information_schema.columns", false),
        ("SELECT relname FROM pg_catalog.pg_class", true),
        (
            "SELECT c.relname, a.attname FROM pg_catalog.pg_attribute a \
             JOIN pg_catalog.pg_class c ON a.attrelid = c.oid",
            false,
        ),
        ("SELECT name FROM system.tables", true),
    ] {
        let listed = ask(&reader, sql).await;
        assert!(listed.contains("whole"), "{sql}\n{listed}");
        assert_eq!(listed.contains("broken"), lists_broken, "{sql}\n{listed}");
    }
}
