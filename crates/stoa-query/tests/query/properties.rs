//! Table properties that SQL sets: a value that could not be followed, or would make the table something
//! else, is refused when it is set.

use std::sync::Arc;

use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};
use stoa_table::{TableChange, TableIdent};
use url::Url;

async fn session() -> (Arc<Session>, tempfile::TempDir, Arc<Engine>) {
    let directory = tempfile::tempdir().unwrap();
    let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
    let options = EngineOptions { logs: Some(url("log")), ..EngineOptions::new(url("warehouse")) };
    let engine = Engine::open(options).await.unwrap();
    (engine.session(SessionOptions::default()), directory, engine)
}

async fn code(session: &Session, sql: &str) -> &'static str {
    let ended = match session.sql(sql).await {
        Ok(Outcome::Rows(rows)) => rows.collect().await.map(drop),
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    ended.err().map_or("ok", |error| error.sqlstate())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_followed_is_refused() {
    let (session, _directory, _engine) = session().await;
    assert_eq!(code(&session, "CREATE TABLE t (n bigint)").await, "ok");
    for (key, value, expected) in [
        ("stoa.kind", "cells", "0A000"),
        ("stoa.kind", "rows", "0A000"),
        ("stoa.cells.schema", "{", "0A000"),
        ("stoa.cells.readonly", "true", "0A000"),
        ("stoa.log.x", "7", "0A000"),
        ("stoa.log-sync", "sometimes", "22023"),
        ("stoa.flush-rows", "0", "22023"),
        ("stoa.flush-bytes", "64 MiB", "22023"),
        ("stoa.flush-age-ms", "-1", "22023"),
        ("stoa.retention", "13", "22023"),
        ("stoa.retentoin", "13 months", "22023"),
        ("stoa.history.snapshots-max", "all", "22023"),
        ("history.expire.max-snapshot-age-ms", "soon", "22023"),
        ("write.orc.compression-codec", "rar", "22023"),
        ("write.orc.bloom.filter.columns", "m", "22023"),
    ] {
        let set = format!("('{key}' = '{value}')");
        for sql in [
            format!("ALTER TABLE t SET TBLPROPERTIES {set}"),
            format!("CREATE TABLE x (n bigint) TBLPROPERTIES {set}"),
            format!("CREATE TABLE x (n bigint) WITH {set}"),
            format!("CREATE TABLE x TBLPROPERTIES {set} AS SELECT 1 AS n"),
        ] {
            assert_eq!(code(&session, &sql).await, expected, "{sql}");
        }
    }
    // Everybody still sees what there is.
    for sql in [
        "SELECT * FROM information_schema.columns",
        "SELECT * FROM information_schema.tables",
        "INSERT INTO t VALUES (1)",
        "FLUSH TABLE t",
        "SELECT n FROM t",
    ] {
        assert_eq!(code(&session, sql).await, "ok", "{sql}");
    }
    for set in [
        "('stoa.log-sync' = 'off')",
        "('stoa.flush-rows' = '100', 'stoa.flush-age-ms' = '50')",
        "('stoa.retention' = '13 months')",
        "('stoa.history.snapshots-max' = '0')",
        "('write.orc.compression-codec' = 'zlib', 'stoa.orc.compression-level' = '9')",
        "('somebody.else' = 'whatever')",
    ] {
        let sql = format!("ALTER TABLE t SET TBLPROPERTIES {set}");
        assert_eq!(code(&session, &sql).await, "ok", "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_value_that_another_engine_set_is_the_trouble_of_one_table() {
    let (session, _directory, engine) = session().await;
    for sql in ["CREATE TABLE t (n bigint)", "CREATE TABLE broken (n bigint)"] {
        assert_eq!(code(&session, sql).await, "ok", "{sql}");
    }
    let ident = TableIdent { namespace: "public".to_owned(), name: "broken".to_owned() };
    let table = engine.warehouse().table(&ident).await.unwrap();
    let kind = [("stoa.kind".to_owned(), "cells".to_owned())].into();
    table.alter(vec![TableChange::SetProperties(kind)]).await.unwrap();
    for sql in [
        "SELECT table_name, column_name FROM information_schema.columns",
        "SELECT table_name FROM information_schema.tables",
        "SELECT relname FROM pg_catalog.pg_class",
        "SHOW TABLES",
        "SELECT n FROM t",
    ] {
        assert_eq!(code(&session, sql).await, "ok", "{sql}");
    }
    for sql in ["SELECT n FROM broken", "SELECT count(*) FROM broken"] {
        assert_eq!(code(&session, sql).await, "XX001", "{sql}");
    }
    assert_eq!(code(&session, "INSERT INTO broken VALUES (1)").await, "42809");
    assert_eq!(code(&session, "DROP TABLE broken").await, "ok");
}
