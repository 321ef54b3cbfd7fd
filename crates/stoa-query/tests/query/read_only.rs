//! What docs/transactions.md says of transactions that only read, and of isolation levels.

use std::sync::Arc;

use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};

async fn run(session: &Session, sql: &str) -> Result<(), String> {
    let ended = async {
        if let Outcome::Rows(rows) = session.sql(sql).await? {
            rows.collect().await?;
        }
        Ok::<_, stoa_error::Error>(())
    };
    ended.await.map_err(|error| error.sqlstate().to_owned())
}

async fn session() -> (Arc<Session>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let url = url::Url::from_directory_path(folder.path()).unwrap();
    let engine = Engine::open(EngineOptions::new(url)).await.unwrap();
    let session = engine.session(SessionOptions::default());
    run(&session, "CREATE TABLE t (k bigint)").await.unwrap();
    (session, folder)
}

#[tokio::test]
async fn whoever_only_reads_cannot_write() {
    let (session, _folder) = session().await;
    for (begin, end) in [
        ("BEGIN READ ONLY", "COMMIT"),
        ("START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", "ROLLBACK"),
        ("BEGIN; SET TRANSACTION READ ONLY", "COMMIT"),
        ("SET default_transaction_read_only = on", "RESET default_transaction_read_only"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        ),
    ] {
        for write in [
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t SELECT 1",
            "DELETE FROM t",
            "UPDATE t SET k = 1",
            "TRUNCATE TABLE t",
            "COPY t FROM STDIN",
            "CREATE TABLE x (k bigint)",
            "DROP TABLE t",
            "ALTER TABLE t RENAME TO v",
        ] {
            run(&session, begin).await.unwrap();
            run(&session, "SELECT * FROM t").await.unwrap();
            assert_eq!(run(&session, write).await.unwrap_err(), "25006", "{begin}: {write}");
            run(&session, end).await.unwrap();
        }
        run(&session, "INSERT INTO t VALUES (1)").await.unwrap();
    }
}

#[tokio::test]
async fn levels_that_there_are_not_are_refused() {
    let (session, _folder) = session().await;
    for sql in [
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "START TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET default_transaction_isolation = 'SERIALIZABLE'",
    ] {
        assert_eq!(run(&session, sql).await.unwrap_err(), "0A000", "{sql}");
    }
    run(&session, "BEGIN ISOLATION LEVEL READ COMMITTED; COMMIT").await.unwrap();
}
