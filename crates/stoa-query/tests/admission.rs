//! Who may compute, who waits, who is refused; and what goes on all the same.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::datatypes::Int64Type;
use stoa_query::{Engine, EngineOptions, Outcome, RowStream, Session, SessionOptions};
use url::Url;

/// Takes longer than any test.
const ENDLESS: &str = "SELECT count(*) FROM t a, t b, t c, t d WHERE a.n + b.n + c.n + d.n = -1";

async fn engine(directory: &tempfile::TempDir) -> Arc<Engine> {
    let warehouse = Url::from_directory_path(directory.path()).unwrap();
    let options =
        EngineOptions { query_slots: 1, queue_max: 1, threads: 2, ..EngineOptions::new(warehouse) };
    let engine = Engine::open(options).await.unwrap();
    let session = session(&engine);
    session.sql("CREATE TABLE t (n bigint)").await.unwrap();
    let rows: Vec<String> = (0..1000).map(|n| format!("({n})")).collect();
    session.sql(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await.unwrap();
    engine
}

fn session(engine: &Arc<Engine>) -> Arc<Session> {
    engine.session(SessionOptions::default())
}

/// A session that waits for nobody else's answer.
fn alone(engine: &Arc<Engine>) -> Arc<Session> {
    let session = session(engine);
    session.set("result_reuse", Some("off")).unwrap();
    session
}

async fn rows(session: &Session, sql: &str) -> RowStream {
    match session.sql(sql).await.unwrap() {
        Outcome::Rows(rows) => rows,
        _ => panic!("{sql} gives no rows"),
    }
}

async fn number(session: &Session, sql: &str) -> i64 {
    let batches = rows(session, sql).await.collect().await.unwrap();
    let batch = batches.iter().find(|batch| batch.num_rows() > 0).unwrap();
    batch.column(0).as_primitive::<Int64Type>().value(0)
}

async fn until(engine: &Engine, running: usize, waiting: usize) {
    loop {
        let status = engine.admission_status();
        if (status.running, status.waiting) == (running, waiting) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_server_refuses_answers_reports_and_obeys_kill() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    let first = rows(&alone(&engine), ENDLESS).await;
    until(&engine, 1, 0).await;
    let second = {
        let session = alone(&engine);
        stoa_env::task::spawn(async move { session.sql(ENDLESS).await.map(|_| ()) })
    };
    until(&engine, 1, 1).await;
    let asks = alone(&engine);
    let refused = asks.sql(ENDLESS).await.err().unwrap();
    assert_eq!((refused.sqlstate(), refused.is_retryable()), ("53300", true));
    // What needs no executor is answered.
    assert_eq!(number(&asks, "SELECT n FROM t WHERE n = 7").await, 7);
    assert_eq!(number(&asks, "SELECT waiting FROM system.executors").await, 1);
    let queued = "SELECT id FROM system.queries WHERE state = 'queued'";
    let waits = number(&asks, queued).await;
    asks.sql(&format!("KILL QUERY {waits}")).await.unwrap();
    assert_eq!(second.await.unwrap().unwrap_err().sqlstate(), "57014");
    until(&engine, 1, 0).await;
    asks.sql(&format!("KILL {}", first.query_id())).await.unwrap();
    assert_eq!(first.collect().await.unwrap_err().sqlstate(), "57014");
    until(&engine, 0, 0).await;
    let gone = asks.sql(&format!("KILL QUERY {waits}")).await.err().unwrap();
    assert_eq!(gone.sqlstate(), "42704");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stops_keeps_nobody_from_computing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    // Many batches, of which the client takes none for now.
    let slow = rows(&session(&engine), "SELECT a.n + b.n FROM t a, t b").await;
    until(&engine, 0, 0).await;
    let asks = session(&engine);
    assert_eq!(number(&asks, "SELECT sum(a.n) - sum(b.n) FROM t a, t b").await, 0);
    let read: usize =
        slow.collect().await.unwrap().iter().map(arrow::array::RecordBatch::num_rows).sum();
    assert_eq!(read, 1_000_000);
    until(&engine, 0, 0).await;
}

#[tokio::test]
async fn the_server_shows_what_it_does() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    let session = session(&engine);
    for n in 0..5 {
        assert_eq!(number(&session, &format!("SELECT count(*) FROM t WHERE n < {n}")).await, n);
    }
    let shape = "sql = 'SELECT count(*) FROM t WHERE n < $L0i'";
    let of = async |column: &str| {
        number(&session, &format!("SELECT {column} FROM system.query_shapes WHERE {shape}")).await
    };
    assert_eq!((of("queries").await, of("short_path").await, of("rows").await), (5, 5, 5));
    // `n < 0` is answered by bounds alone.
    assert_eq!(number(&session, "SELECT chunk_misses FROM system.cache").await, 1);
    assert_eq!(number(&session, "SELECT chunk_hits FROM system.cache").await, 3);
    assert_eq!(number(&session, "SELECT executors FROM system.executors").await, 2);
    assert_eq!(number(&session, "SELECT count(*) FROM system.log").await, 0);
    session.sql("PURGE CACHE").await.unwrap();
    assert_eq!(number(&session, "SELECT entries FROM system.cache").await, 0);
    let cached = session.sql("CACHE TABLE t").await.unwrap();
    let Outcome::Done(done) = cached else { panic!("CACHE TABLE gives no rows") };
    assert_eq!(done.notices, ["public.t: 1 chunks are in memory"]);
    assert_eq!(number(&session, "SELECT count(*) FROM t WHERE n < 7").await, 7);
    assert_eq!(number(&session, "SELECT chunk_misses FROM system.cache").await, 1);
    let failed = "SELECT count(*) FROM system.queries WHERE state = 'failed'";
    assert_eq!(number(&session, failed).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_given_again_until_something_changes() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    let session = session(&engine);
    let sum = "SELECT sum(n + 1) FROM t";
    let check = async |sql: &str, expected: i64, reused: u64| {
        assert_eq!(number(&session, sql).await, expected, "{sql}");
        assert_eq!(engine.results_reused(), reused, "{sql}");
    };
    check(sum, 500_500, 0).await;
    check(sum, 500_500, 1).await;
    check("SELECT sum(n + 2) FROM t", 501_500, 1).await;
    session.sql("INSERT INTO t VALUES (9)").await.unwrap();
    check(sum, 500_510, 1).await;
    check(sum, 500_510, 2).await;
    session.sql("DELETE FROM t WHERE n = 9").await.unwrap();
    check(sum, 500_490, 2).await;
    session.set("result_reuse", Some("off")).unwrap();
    check(sum, 500_490, 2).await;
    session.set("result_reuse", Some("on")).unwrap();
    check("SELECT count(*) FROM t WHERE now() IS NOT NULL", 999, 2).await;
    check("SELECT count(*) FROM t WHERE now() IS NOT NULL", 999, 2).await;
    session.sql("DROP TABLE t").await.unwrap();
    assert_eq!(session.sql(sum).await.err().unwrap().sqlstate(), "42P01");
    // Of equal statements at once, one is computed.
    session.sql("CREATE TABLE t AS SELECT 1::bigint AS n").await.unwrap();
    let many = (0..20).map(|_| {
        let session = engine.session(SessionOptions::default());
        stoa_env::task::spawn(async move { number(&session, "SELECT sum(n + 1) FROM t").await })
    });
    for one in many.collect::<Vec<_>>() {
        assert_eq!(one.await.unwrap(), 2);
    }
    assert_eq!(engine.results_reused(), 2 + 19);
}
