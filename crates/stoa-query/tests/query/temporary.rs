//! Temporary tables of several sessions: nobody else's statement, list or plan knows them, and they go with their
//! session. What statements on them answer is compared with PostgreSQL in `clients/oracle/cases/temporary.sql`.

use std::sync::Arc;
use std::time::Duration;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use stoa_query::{Engine, EngineOptions, Outcome, ScalarValue, Session, SessionOptions};
use url::Url;

async fn open(directory: &tempfile::TempDir, access_control: bool) -> Arc<Engine> {
    let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
    let options = EngineOptions {
        logs: Some(url("log")),
        access_control,
        ..EngineOptions::new(url("warehouse"))
    };
    Engine::open(options).await.unwrap()
}

fn of(engine: &Arc<Engine>, role: &str) -> Arc<Session> {
    engine.session(SessionOptions { user: role.to_owned(), ..SessionOptions::default() })
}

/// Rows as texts, sorted; the SQLSTATE of an error.
async fn run(session: &Session, sql: &str) -> Result<Vec<String>, &'static str> {
    match session.sql(sql).await {
        Ok(outcome) => shown(outcome).await,
        Err(error) => Err(error.sqlstate()),
    }
}

async fn shown(outcome: Outcome) -> Result<Vec<String>, &'static str> {
    let Outcome::Rows(rows) = outcome else { return Ok(Vec::new()) };
    let options = FormatOptions::default();
    let mut lines = Vec::new();
    for batch in rows.collect().await.map_err(|error| error.sqlstate())? {
        for row in 0..batch.num_rows() {
            let cell =
                |column| ArrayFormatter::try_new(column, &options).unwrap().value(row).to_string();
            lines.push(batch.columns().iter().map(|c| cell(c)).collect::<Vec<_>>().join("|"));
        }
    }
    lines.sort_unstable();
    Ok(lines)
}

async fn schema_of(session: &Session) -> String {
    let sql = "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()";
    run(session, sql).await.unwrap().remove(0)
}

/// Names that a warehouse has for schemas of temporary tables.
async fn schemas(engine: &Engine) -> Vec<String> {
    let all = engine.warehouse().namespaces().await.unwrap();
    all.into_iter().filter(|name| name.starts_with("pg_temp_")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_means_the_sessions_own_table_first() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory, false).await;
    let (here, there) = (of(&engine, "stoa"), of(&engine, "stoa"));
    run(&here, "CREATE TABLE t (n bigint); INSERT INTO t VALUES (1), (2)").await.unwrap();
    // Plans, reports and answers of others are not taken.
    let count = "SELECT count(*), sum(n) FROM t WHERE n > 0";
    for _ in 0..5 {
        assert_eq!(run(&there, count).await.unwrap(), ["2|3"]);
    }
    run(&here, "CREATE TEMP TABLE t (n bigint); INSERT INTO t VALUES (50)").await.unwrap();
    for _ in 0..5 {
        assert_eq!(run(&here, count).await.unwrap(), ["1|50"]);
        assert_eq!(run(&there, count).await.unwrap(), ["2|3"]);
    }
    assert_eq!(run(&here, "SELECT count(*) FROM public.t").await.unwrap(), ["2"]);
    let statement = there.parse("SELECT max(n) FROM t WHERE n > $1").await.unwrap().remove(0);
    let prepared = there.prepare(statement, Vec::new()).await.unwrap();
    let zero = || vec![ScalarValue::Int64(Some(0))];
    assert_eq!(shown(there.execute(&prepared, zero()).await.unwrap()).await.unwrap(), ["2"]);
    // What was prepared before means the table that has the name now.
    run(&there, "CREATE TEMP TABLE t AS SELECT 7::bigint AS n").await.unwrap();
    assert_eq!(shown(there.execute(&prepared, zero()).await.unwrap()).await.unwrap(), ["7"]);
    run(&there, "DROP TABLE t").await.unwrap();
    assert_eq!(shown(there.execute(&prepared, zero()).await.unwrap()).await.unwrap(), ["2"]);
    assert_eq!(run(&here, count).await.unwrap(), ["1|50"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_do_not_know_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory, false).await;
    let (here, there) = (of(&engine, "stoa"), of(&engine, "stoa"));
    run(&here, "CREATE TEMP TABLE mine (n bigint); INSERT INTO mine VALUES (1)").await.unwrap();
    run(&here, "CREATE TEMP VIEW seen AS SELECT n FROM mine").await.unwrap();
    let schema = schema_of(&here).await;
    for sql in [
        format!("SELECT * FROM {schema}.mine"),
        format!("SELECT * FROM stoa.{schema}.seen"),
        format!("INSERT INTO {schema}.mine VALUES (2)"),
        format!("WITH x AS (SELECT * FROM {schema}.mine) SELECT 1"),
        format!("SELECT (SELECT max(n) FROM {schema}.mine)"),
        format!("DELETE FROM {schema}.mine"),
        format!("DROP TABLE {schema}.mine"),
        format!("ALTER TABLE {schema}.mine RENAME TO yours"),
        format!("COPY {schema}.mine TO STDOUT"),
        format!("COPY {schema}.mine FROM STDIN"),
        format!("CREATE TABLE copied AS SELECT * FROM {schema}.mine"),
        format!("CREATE VIEW copied AS SELECT * FROM {schema}.mine"),
        format!("TRUNCATE {schema}.mine"),
        format!("FLUSH TABLE {schema}.mine"),
        format!("DESCRIBE {schema}.mine"),
    ] {
        assert_eq!(run(&there, &sql).await, Err("0A000"), "{sql}");
    }
    for sql in [
        "SELECT table_name FROM information_schema.tables WHERE table_name IN ('mine', 'seen')",
        "SELECT table_name FROM information_schema.columns WHERE table_name IN ('mine', 'seen')",
        "SELECT relname FROM pg_class WHERE relname IN ('mine', 'seen')",
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pg_temp%'",
        "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'pg_temp%'",
        "SELECT viewname FROM pg_views WHERE viewname = 'seen'",
        "SELECT name FROM system.tables WHERE name = 'mine'",
        "SHOW SCHEMAS LIKE 'pg_temp%'",
    ] {
        assert_eq!(run(&there, sql).await.unwrap(), [""; 0], "{sql}");
    }
    assert_eq!(run(&here, "SELECT * FROM seen").await.unwrap(), ["1"]);
    assert_eq!(run(&there, "SELECT * FROM mine").await, Err("42P01"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_go_with_their_session_and_with_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory, false).await;
    let here = of(&engine, "stoa");
    run(&here, "CREATE TEMP TABLE t AS SELECT 1 AS n; CREATE TEMP VIEW v AS SELECT n FROM t")
        .await
        .unwrap();
    assert_eq!(schemas(&engine).await.len(), 1);
    drop(here);
    while !schemas(&engine).await.is_empty() {
        stoa_env::timer::sleep(Duration::from_millis(5)).await;
    }
    // A server that ends leaves them to the one that has its log next.
    let here = of(&engine, "stoa");
    run(&here, "CREATE TEMP TABLE t (n bigint); INSERT INTO t VALUES (1)").await.unwrap();
    engine.shutdown(Duration::ZERO).await;
    drop(here);
    assert_eq!(schemas(&engine).await.len(), 1);
    drop(engine);
    let engine = open(&directory, false).await;
    assert_eq!(schemas(&engine).await, [""; 0]);
    let folders = std::fs::read_dir(directory.path().join("warehouse")).unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("pg_temp")).count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_have_temporary_tables_of_their_own_and_no_more_rights_by_them() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory, true).await;
    let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
    run(&root, "CREATE TABLE secrets (n bigint); INSERT INTO secrets VALUES (42)").await.unwrap();
    run(&root, "CREATE USER ann PASSWORD 'pencil'; CREATE USER bob PASSWORD 'pencil'")
        .await
        .unwrap();
    let (ann, bob) = (of(&engine, "ann"), of(&engine, "bob"));
    run(&ann, "CREATE TEMP TABLE own (n bigint)").await.unwrap();
    run(
        &ann,
        "INSERT INTO own VALUES (1), (2); UPDATE own SET n = n + 1; DELETE FROM own WHERE n = 2",
    )
    .await
    .unwrap();
    assert_eq!(run(&ann, "SELECT n FROM own").await.unwrap(), ["3"]);
    run(&ann, "CREATE TEMP VIEW v AS SELECT n FROM own").await.unwrap();
    assert_eq!(run(&ann, "SELECT n FROM v").await.unwrap(), ["3"]);
    let schema = schema_of(&ann).await;
    for sql in [
        "CREATE TABLE lasting (n bigint)",
        "CREATE TEMP TABLE copied AS SELECT n FROM secrets",
        "CREATE TEMP VIEW spy AS SELECT n FROM secrets",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT n FROM secrets",
        "INSERT INTO own SELECT n FROM secrets",
        "INSERT INTO secrets VALUES (1) RETURNING n",
        "ALTER TABLE own RENAME TO public.own",
    ] {
        let code = run(&ann, sql).await.unwrap_err();
        assert!(["42501", "42P01"].contains(&code), "{sql}: {code}");
    }
    assert_eq!(run(&bob, &format!("SELECT n FROM {schema}.own")).await, Err("0A000"));
    assert_eq!(run(&bob, "SELECT n FROM own").await, Err("42P01"));
    run(&ann, "DROP VIEW v; DROP TABLE own").await.unwrap();
    assert_eq!(run(&ann, "SELECT n FROM own").await, Err("42P01"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_do_not_disturb_statements_that_list_names() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory, false).await;
    let lister = of(&engine, "stoa");
    run(&lister, "CREATE TABLE t (n bigint)").await.unwrap();
    let made = async {
        for _ in 0..60 {
            let session = of(&engine, "stoa");
            run(&session, "CREATE TEMP TABLE x (n bigint)").await.unwrap();
        }
    };
    let mut made = std::pin::pin!(made);
    let statements = [
        "COMMENT ON TABLE t IS 'all the while'",
        "SELECT count(*) FROM pg_class WHERE relname = 't'",
        "SELECT count(*) FROM information_schema.columns WHERE table_name = 't'",
        "SELECT count(*) FROM information_schema.key_column_usage",
        "SELECT count(*) FROM system.tables",
        "SELECT count(*) FROM system.grants",
        "SELECT to_regclass('t')::text",
        "INSERT INTO t VALUES (1)",
        "DELETE FROM t WHERE n = 2",
    ];
    let listed = async {
        loop {
            for sql in statements {
                if let Err(code) = run(&lister, sql).await {
                    panic!("{sql}: {code}");
                }
            }
        }
    };
    tokio::select! {
        () = &mut made => {}
        () = listed => {}
    }
}
