//! What an engine tells of its statements: the registry, shapes, answers and plans that are used again,
//! and what is noted for the next start.

use std::sync::Arc;
use std::time::Duration;

use crate::statements::{Home, answer};
use stoa_query::{
    Engine, EngineOptions, Outcome, PlanNode, QueryInfo, QueryState, RowStream, Session,
    SessionOptions,
};

/// Runs for minutes unless it is ended.
const LONG: &str = "SELECT sum(a.value * b.value) FROM generate_series(1, 1000000) a(value), \
     generate_series(1, 1000000) b(value)";

async fn with_table() -> Home {
    let home = Home::new().await;
    home.run("CREATE TABLE t (a bigint, s text)").await;
    home.run("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'x')").await;
    home
}

async fn rows_of(session: &Session, sql: &str) -> RowStream {
    match session.sql(sql).await.unwrap() {
        Outcome::Rows(rows) => rows,
        _ => panic!("{sql} gives no rows"),
    }
}

/// The SQLSTATE with which a statement fails, at once or with its rows.
async fn code(session: &Session, sql: &str) -> &'static str {
    match session.sql(sql).await {
        Err(error) => error.sqlstate(),
        Ok(Outcome::Rows(rows)) => rows.collect().await.unwrap_err().sqlstate(),
        Ok(_) => panic!("{sql} goes well"),
    }
}

/// Waits until `fact` holds.
async fn until(what: &str, fact: impl Fn() -> bool) {
    let waiting = async {
        while !fact() {
            tokio::task::yield_now().await;
        }
    };
    stoa_env::timer::timeout(Duration::from_secs(60), waiting).await.expect(what);
}

fn ended(home: &Home, id: u64) -> Vec<QueryInfo> {
    home.engine.queries().recent().into_iter().filter(|info| info.id == id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_written_are_counted() {
    let home = with_table().await;
    for (sql, rows) in [
        ("INSERT INTO t VALUES (4, 'four'), (5, 'five')", 2),
        ("INSERT INTO t SELECT value, 'x' FROM generate_series(6, 105) AS s(value)", 100),
        ("UPDATE t SET s = 'y' WHERE a > 100", 5),
        ("DELETE FROM t WHERE a <= 50", 50),
        ("CREATE TABLE u AS SELECT a FROM t", 55),
    ] {
        home.run(sql).await;
        let recent = home.engine.queries().recent();
        let query = recent.iter().find(|query| query.sql == sql).unwrap();
        assert_eq!(query.rows, rows, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_are_counted_once_they_end() {
    let home = with_table().await;
    let before = home.engine.queries().totals();
    let rows = rows_of(&home.long, "SELECT a FROM t WHERE a >= 2").await;
    let id = rows.query_id();
    assert_eq!(rows.collect().await.unwrap().iter().map(|b| b.num_rows()).sum::<usize>(), 2);
    let [info] = <[QueryInfo; 1]>::try_from(ended(&home, id)).unwrap();
    assert_eq!((info.state, info.rows), (QueryState::Finished, 2));
    assert_eq!((info.error, info.sqlstate), (None, None));
    assert_eq!(info.sql, "SELECT a FROM t WHERE a >= 2");
    let after = home.engine.queries().totals();
    assert_eq!(after.finished, before.finished + 1);
    assert_eq!(after.rows, before.rows + 2);
    assert_eq!((after.failed, after.cancelled), (before.failed, before.cancelled));
    assert!(after.started > before.started);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_fails_is_remembered_with_its_error() {
    let home = with_table().await;
    let before = home.engine.queries().totals();
    let sql = "SELECT CAST(s AS bigint) FROM t";
    assert_eq!(code(&home.long, sql).await, "22P02");
    let recent = home.engine.queries().recent();
    let info = recent.iter().find(|info| info.sql == sql).unwrap();
    assert_eq!((info.state, info.sqlstate), (QueryState::Failed, Some("22P02")));
    assert!(info.error.as_ref().is_some_and(|error| !error.is_empty()));
    assert_eq!(home.engine.queries().totals().failed, before.failed + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_statement_is_listed_and_can_be_cancelled() {
    let home = with_table().await;
    let rows = rows_of(&home.long, LONG).await;
    let id = rows.query_id();
    let queries = home.engine.queries();
    let running = queries.running();
    let info = running.iter().find(|info| info.id == id).unwrap();
    assert!(matches!(info.state, QueryState::Running | QueryState::Queued), "{:?}", info.state);
    assert_eq!(queries.user_of(id).as_deref(), Some(info.user.as_str()));
    assert!(queries.running_count() >= 1);

    assert!(queries.cancel(id));
    assert_eq!(rows.collect().await.unwrap_err().sqlstate(), "57014");
    let [info] = <[QueryInfo; 1]>::try_from(ended(&home, id)).unwrap();
    assert_eq!(info.state, QueryState::Cancelled);
    assert!(queries.running().iter().all(|info| info.id != id));
    // What has ended cannot be asked to.
    assert!(!queries.cancel(id));
    assert_eq!(queries.user_of(id), None);
    assert_eq!(queries.plan(u64::MAX).unwrap_err().sqlstate(), "42704");
}

fn find<'a>(plan: &'a PlanNode, name: &str) -> Option<&'a PlanNode> {
    if plan.name.starts_with(name) {
        return Some(plan);
    }
    plan.inputs.iter().find_map(|input| find(input, name))
}

/// A join says only when it is dropped how long it took as a whole; its plan is described before that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_has_its_time_in_its_own_node() {
    let home = with_table().await;
    let sql = "SELECT count(*) FROM generate_series(1, 400000) AS a(v) JOIN generate_series(1, 400000) AS b(w) \
               ON a.v % 1000 = b.w AND a.v > b.w";
    let id = {
        let rows = rows_of(&home.long, sql).await;
        let id = rows.query_id();
        rows.collect().await.unwrap();
        id
    };
    let (_, plan) = home.engine.queries().plan(id).unwrap();
    let join = find(&plan, "HashJoinExec").unwrap_or_else(|| panic!("{plan:?}"));
    let part = |name: &str| join.metrics.iter().find(|m| m.name == name).map_or(0, |m| m.value);
    let (build, probe) = (part("build_time"), part("join_time"));
    assert!(build > 0 && probe > 0, "{join:?}");
    assert!(join.compute_ns >= Some(build + probe), "{join:?}");
    // The operator above counts groups only: what the join took is not in it.
    let rows: u64 = plan.rows.unwrap_or_default();
    assert_eq!(rows, 1, "{plan:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_session_may_kill_a_statement() {
    let home = with_table().await;
    let rows = rows_of(&home.long, LONG).await;
    let kill = format!("KILL QUERY {}", rows.query_id());
    home.run(&kill).await;
    assert_eq!(rows.collect().await.unwrap_err().sqlstate(), "57014");
    assert_eq!(code(&home.short, &kill).await, "42704");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_nobody_takes_end_their_statement() {
    let home = with_table().await;
    let rows = rows_of(&home.long, LONG).await;
    let id = rows.query_id();
    drop(rows);
    assert_eq!(home.engine.queries().running_count(), 0);
    assert_eq!(ended(&home, id).len(), 1);
    // Its slot is free again, and its threads.
    until("the slots are free", || home.engine.admission_status().running == 0).await;
    assert_eq!(answer(&home.long, "SELECT count(*) FROM t", &[], true).await, ["3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_differ_in_literals_are_one_shape() {
    let home = with_table().await;
    for value in 1..=5 {
        let sql = format!("SELECT upper(s) FROM t WHERE a = {value} AND s <> 'none'");
        answer(&home.long, &sql, &[], false).await;
    }
    let shapes = home.engine.queries().shapes();
    let of_form = |sql: &str| sql.starts_with("SELECT upper(s) FROM t WHERE a = ");
    let found: Vec<_> = shapes.iter().filter(|shape| of_form(&shape.sql)).collect();
    let [shape] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((shape.queries, shape.failed, shape.rows), (5, 0, 3));
    assert_eq!(shape.latency.iter().sum::<u64>(), 5);
    assert!(shape.max_us <= shape.total_us);
    assert!(!shape.sql.contains("none"), "{}", shape.sql);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_are_in_no_list() {
    let home = with_table().await;
    home.run("CREATE ROLE ann LOGIN PASSWORD 'a pencil'").await;
    assert_eq!(code(&home.long, "CREATE ROLE ann PASSWORD 'a pencil'").await, "42710");
    assert_eq!(code(&home.long, "CREATE ROLE PASSWORD 'a pencil' nonsense").await, "42601");
    let queries = home.engine.queries();
    for info in queries.recent() {
        assert!(!info.sql.contains("pencil"), "{}", info.sql);
        assert!(!info.error.unwrap_or_default().contains("pencil"), "{}", info.sql);
    }
    assert!(queries.shapes().iter().all(|shape| !shape.sql.contains("pencil")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_given_again_until_its_table_changes() {
    let home = with_table().await;
    let sql = "SELECT upper(s) FROM t ORDER BY 1";
    let first = answer(&home.short, sql, &[], true).await;
    let reused = home.engine.results_reused();
    assert_eq!(answer(&home.short, sql, &[], true).await, first);
    assert_eq!(home.engine.results_reused(), reused + 1);
    // A session that does not want it computes.
    assert_eq!(answer(&home.long, sql, &[], true).await, first);
    assert_eq!(home.engine.results_reused(), reused + 1);

    home.run("INSERT INTO t VALUES (4, 'aa')").await;
    assert_eq!(answer(&home.short, sql, &[], true).await, ["AA", "ONE", "TWO", "X"]);
    assert_eq!(home.engine.results_reused(), reused + 1);
    home.run("DELETE FROM t WHERE a > 1").await;
    assert_eq!(answer(&home.short, sql, &[], true).await, ["ONE"]);
    assert_eq!(home.engine.results_reused(), reused + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_answer_otherwise_is_always_computed() {
    let home = with_table().await;
    for sql in [
        "SELECT upper(s), random() FROM t",
        "SELECT upper(s), now() FROM t",
        "SELECT count(*) FROM system.tables",
    ] {
        answer(&home.short, sql, &[], false).await;
        let reused = home.engine.results_reused();
        answer(&home.short, sql, &[], false).await;
        assert_eq!(home.engine.results_reused(), reused, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_used_again_with_other_values() {
    let home = with_table().await;
    let ask = async |session: &Arc<Session>, value: i64| {
        answer(session, &format!("SELECT upper(s) FROM t WHERE a = {value}"), &[], false).await
    };
    assert_eq!(ask(&home.templated, 1).await, ["ONE"]);
    assert_eq!(ask(&home.templated, 2).await, ["TWO"]);
    let used = home.engine.plan_templates_used();
    assert_eq!(ask(&home.templated, 3).await, ["X"]);
    let used_again = home.engine.plan_templates_used();
    assert!(used_again > used, "{used_again}");
    assert!(home.engine.plan_templates_known() >= 1);
    assert_eq!(ask(&home.long, 1).await, ["ONE"]);
    assert_eq!(home.engine.plan_templates_used(), used_again);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_slots_are_given_back() {
    let home = with_table().await;
    let before = home.engine.memory_used_bytes();
    let sql = "SELECT value % 1000 AS k, count(*), array_agg(value) FROM generate_series(1, 50000) AS s(value) \
               GROUP BY 1 ORDER BY 1 LIMIT 3";
    assert_eq!(answer(&home.long, sql, &[], true).await.len(), 3);
    until("memory is given back", || home.engine.memory_used_bytes() <= before).await;
    until("the slots are free", || home.engine.admission_status().running == 0).await;
    for pool in home.engine.pools_status() {
        assert_eq!((pool.admission.waiting, pool.ended), (0, 0), "{}", pool.name);
    }
    assert_eq!(home.engine.statements_overdue(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_hot_is_a_note_that_may_be_missing_or_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let note = directory.path().join("hot.json");
    let warehouse = directory.path().join("warehouse");
    std::fs::create_dir(&warehouse).unwrap();
    for garbage in [None, Some("{not json"), Some("17"), Some("")] {
        if let Some(text) = garbage {
            std::fs::write(&note, text).unwrap();
        }
        let warehouse = url::Url::from_directory_path(&warehouse).unwrap();
        let options =
            EngineOptions { hot_list: Some(note.clone()), ..EngineOptions::new(warehouse) };
        let engine = Engine::open(options).await.unwrap();
        let session = engine.session(SessionOptions::default());
        assert_eq!(answer(&session, "SELECT 1 AS n", &[], true).await, ["1"]);
        drop(session);
        engine.shutdown(Duration::from_secs(10)).await;
        // It is written anew as a whole.
        let written = std::fs::read_to_string(&note).unwrap();
        assert!(written.starts_with(['{', '[']), "{written}");
        assert_ne!(Some(written.as_str()), garbage);
    }
}
