//! Who may compute, who waits, who is refused; and what goes on all the same.

use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::datatypes::Int64Type;
use stoa_query::{
    Engine, EngineOptions, Outcome, PoolOptions, RowStream, Session, SessionOptions, WorkloadRule,
};
use tokio::task::JoinHandle;
use url::Url;

/// Takes longer than any test, and can be stopped after each batch of numbers.
const ENDLESS: &str = "SELECT count(*) FROM (SELECT n FROM t WHERE n < 2) t, \
     generate_series(1, 1000000000000) s (m) WHERE n + m = -1";

async fn engine(directory: &tempfile::TempDir) -> Arc<Engine> {
    engine_with(directory, |_| {}).await
}

async fn engine_with(
    directory: &tempfile::TempDir,
    change: impl FnOnce(&mut EngineOptions),
) -> Arc<Engine> {
    let warehouse = Url::from_directory_path(directory.path()).unwrap();
    let mut options =
        EngineOptions { query_slots: 1, queue_max: 1, threads: 2, ..EngineOptions::new(warehouse) };
    change(&mut options);
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

/// Takes the only slot and the only place in the queue.
async fn fill(engine: &Arc<Engine>) -> (RowStream, JoinHandle<stoa_error::Result<()>>) {
    let first = rows(&alone(engine), ENDLESS).await;
    until(engine, 1, 0).await;
    let session = alone(engine);
    let second = stoa_env::task::spawn(async move { session.sql(ENDLESS).await.map(|_| ()) });
    until(engine, 1, 1).await;
    (first, second)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_server_refuses_answers_reports_and_obeys_kill() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    let (first, second) = fill(&engine).await;
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

/// A session of a program, which waits for nobody else's answer.
fn of_program(engine: &Arc<Engine>, application: &str) -> Arc<Session> {
    let options =
        SessionOptions { application: application.to_owned(), ..SessionOptions::default() };
    let session = engine.session(options);
    session.set("result_reuse", Some("off")).unwrap();
    session
}

async fn error_of(session: &Session, sql: &str) -> stoa_error::Error {
    match session.sql(sql).await {
        Ok(Outcome::Rows(rows)) => rows.collect().await.unwrap_err(),
        Ok(_) => panic!("{sql} gives no rows"),
        Err(error) => error,
    }
}

fn batch_pool(engine: &mut EngineOptions, pool: PoolOptions) {
    engine.pools = vec![PoolOptions { name: "batch".to_owned(), ..pool }];
    engine.workload_rules = vec![WorkloadRule {
        application: Some("etl*".to_owned()),
        pool: "batch".to_owned(),
        ..WorkloadRule::default()
    }];
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pools_have_slots_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let pool = PoolOptions { slots: Some(1), queue_max: Some(1), ..PoolOptions::default() };
    let engine = engine_with(&directory, |options| batch_pool(options, pool)).await;
    let etl = of_program(&engine, "etl_7");
    let endless = stoa_env::task::spawn({
        let etl = etl.clone();
        async move { error_of(&etl, ENDLESS).await }
    });
    until(&engine, 1, 0).await;
    // The other pool's slot is free, and so is the way for a session that changes its name.
    assert_eq!(number(&alone(&engine), "SELECT count(*) FROM t WHERE n >= 0").await, 1000);
    let renamed = of_program(&engine, "psql");
    assert_eq!(number(&renamed, "SELECT count(*) FROM t WHERE n >= 1").await, 999);
    renamed.set("application_name", Some("etl")).unwrap();
    let waits =
        stoa_env::task::spawn(async move { number(&renamed, "SELECT max(n + 0) FROM t").await });
    until(&engine, 1, 1).await;
    let refused = error_of(&of_program(&engine, "etl"), "SELECT sum(n + 0) FROM t").await;
    assert_eq!(refused.sqlstate(), "53300");
    let busy = "SELECT running * 100 + waiting * 10 + refused FROM system.pools \
                WHERE pool = 'batch'";
    assert_eq!(number(&alone(&engine), busy).await, 111);
    etl.cancel();
    assert_eq!(endless.await.unwrap().sqlstate(), "57014");
    assert_eq!(waits.await.unwrap(), 999);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_too_long_for_its_pool_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let timeout = Some(std::time::Duration::from_millis(300));
    let pool = PoolOptions { timeout, ..PoolOptions::default() };
    let engine = engine_with(&directory, |options| batch_pool(options, pool)).await;
    let error = error_of(&of_program(&engine, "etl"), ENDLESS).await;
    assert_eq!(error.sqlstate(), "57014");
    assert!(error.to_string().contains("timeout of pool batch"), "{error}");
    let info = engine.queries().recent().swap_remove(0);
    assert_eq!((info.state.name(), info.pool.as_str()), ("cancelled", "batch"));
    until(&engine, 0, 0).await;
    assert_eq!(engine.pools_status()[1].ended, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reads_too_much_for_its_pool_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let pool = PoolOptions { bytes_read_max: Some(100), ..PoolOptions::default() };
    let engine = engine_with(&directory, |options| batch_pool(options, pool)).await;
    let error = error_of(&of_program(&engine, "etl"), ENDLESS).await;
    assert_eq!(error.sqlstate(), "57014");
    assert!(error.to_string().contains("read too much for pool batch"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_counted_for_query_and_pool() {
    let directory = tempfile::tempdir().unwrap();
    let pool = PoolOptions { memory_bytes_max: Some(1 << 20), ..PoolOptions::default() };
    let engine = engine_with(&directory, |options| batch_pool(options, pool)).await;
    let wide = "SELECT count(*) FROM (SELECT DISTINCT a.n, b.n AS m FROM t a, t b) AS x";
    // Groups that spill go on; the bound holds whether they do or not.
    match of_program(&engine, "etl").sql(wide).await {
        Ok(Outcome::Rows(rows)) => {
            let ended = rows.collect().await;
            assert!(ended.is_ok() || ended.unwrap_err().sqlstate() == "53200");
        }
        Ok(_) => panic!("no rows"),
        Err(error) => assert_eq!(error.sqlstate(), "53200"),
    }
    let of_pool = engine.queries().recent().swap_remove(0);
    assert!(of_pool.memory_peak_bytes <= 1 << 20, "{}", of_pool.memory_peak_bytes);
    assert_eq!(number(&alone(&engine), wide).await, 1_000_000);
    let free = engine.queries().recent().swap_remove(0);
    assert!(free.memory_peak_bytes > 4 << 20, "{}", free.memory_peak_bytes);
    assert_eq!(free.progress, Some(1.0));
    assert_eq!(engine.pools_status().iter().map(|pool| pool.memory_bytes).sum::<usize>(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_still_gives_answers_that_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    let asks = session(&engine);
    // Statements that compute on reports need no slot.
    asks.set("short_path", Some("off")).unwrap();
    let kept = "SELECT sum(n) + 1 FROM t WHERE n < 10";
    let other = "SELECT sum(n) + 1 FROM t WHERE n < 11";
    for _ in 0..4 {
        assert_eq!(number(&asks, kept).await, 46);
    }
    let (first, second) = fill(&engine).await;
    let used = engine.plan_templates_used();
    assert_eq!(number(&asks, kept).await, 46);
    assert_eq!(error_of(&asks, other).await.sqlstate(), "53300");
    assert_eq!(number(&asks, "SELECT 1::bigint + 1").await, 2);
    // Neither of them was bound to values.
    assert!(engine.plan_templates_used() <= used + 1);
    engine.queries().cancel_all();
    assert_eq!(first.collect().await.unwrap_err().sqlstate(), "57014");
    assert!(second.await.unwrap().is_err());
    until(&engine, 0, 0).await;
    assert_eq!(number(&asks, other).await, 56);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_shown_while_it_is_planned_and_can_be_ended() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    let session = session(&engine);
    // Other threads plan, and may be done before the first look at them: then, another statement.
    let mut tried = 0;
    let (sql, before, planning) = loop {
        let sql = format!("SELECT a.n FROM t a JOIN t b ON a.n = b.n WHERE a.n + b.n > {tried}");
        let statement = session.parse(&sql).await.unwrap().remove(0);
        let before = engine.queries().totals();
        let mut planning = Box::pin(session.prepare(statement, Vec::new()));
        if futures::FutureExt::now_or_never(&mut planning).is_none() {
            break (sql, before, planning);
        }
        tried += 1;
        assert!(tried < 1000, "who asks never waits for the planners");
    };
    let shown = engine.queries().running();
    let shown = shown.iter().find(|query| query.sql == sql).unwrap();
    assert_eq!(shown.state.name(), "planning");
    assert!(engine.session(SessionOptions::default()).kill(shown.id).await.unwrap());
    assert_eq!(planning.await.err().unwrap().sqlstate(), "57014");
    assert_eq!(engine.queries().running_count(), 0);
    // One statement has failed, as ever when planning fails; the attempt to plan is none of its own.
    let after = engine.queries().totals();
    assert_eq!((after.started, after.cancelled), (before.started + 1, before.cancelled + 1));
}
