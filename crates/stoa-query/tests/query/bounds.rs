//! What a statement may take: results of functions, texts, reports. Beyond a bound it is refused by its
//! SQLSTATE, within it answers as ever; afterwards nothing is taken.

use std::sync::Arc;

use crate::statements::{Home, answer};
use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};
use url::Url;

/// An engine with so much memory, and a session.
async fn engine(memory_limit_bytes: usize) -> (tempfile::TempDir, Arc<Engine>, Arc<Session>) {
    let directory = tempfile::tempdir().unwrap();
    let warehouse = Url::from_directory_path(directory.path().join("warehouse")).unwrap();
    let options = EngineOptions { memory_limit_bytes, ..EngineOptions::new(warehouse) };
    let engine = Engine::open(options).await.unwrap();
    let session = engine.session(SessionOptions::default());
    session.set("result_reuse", Some("off")).unwrap();
    (directory, engine, session)
}

/// Until nothing is taken any more: who computed an answer may end after its reader has it.
async fn given_back(engine: &Engine) {
    while engine.memory_used_bytes() > 0 {
        tokio::task::yield_now().await;
    }
}

/// The rows of a statement, or its SQLSTATE.
async fn ask(session: &Session, sql: &str) -> Result<Vec<String>, String> {
    let rows = async {
        match session.sql(sql).await? {
            Outcome::Rows(rows) => rows.collect().await,
            _ => Ok(Vec::new()),
        }
    };
    let batches = rows.await.map_err(|error| error.sqlstate().to_owned())?;
    let options = arrow::util::display::FormatOptions::default();
    let mut lines = Vec::new();
    for batch in &batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|c| arrow::util::display::ArrayFormatter::try_new(c, &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.value(row).to_string());
            lines.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    Ok(lines)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_are_too_large_are_refused() {
    let (_directory, engine, session) = engine(256 << 20).await;
    let texts = [
        "SELECT length(repeat('x', 1000000000))",
        "SELECT length(repeat(repeat('x', 10000), 100000))",
        "SELECT length(lpad('x', 2000000000, 'ab'))",
        "SELECT length(rpad('x', 2000000000))",
        "SELECT length(replace(repeat('a', 100000), 'a', repeat('b', 100000)))",
        "SELECT length(array_to_string(array_repeat('', 100000), repeat('b', 100000)))",
        "SELECT length(concat(repeat('a', 60000000), repeat('b', 60000000)))",
        "SELECT length(concat_ws(repeat('-', 30000000), 'a', 'b', 'c', 'd'))",
        "SELECT length(repeat('a', 60000000) || repeat('b', 60000000))",
        "SELECT array_length(array_repeat(1, 2000000000))",
        "SELECT array_length(array_repeat(array_repeat(1, 100000), 100000))",
        "SELECT array_length(range(0, 9000000000000))",
        "SELECT count(*) FROM (SELECT generate_series(1, 9000000000000)) AS s",
        "SELECT count(*) FROM (SELECT generate_series(DATE '1990-01-01', DATE '2200-01-01', INTERVAL '1 day') \
         FROM (VALUES (repeat('x', 1000000000))) AS v(x) WHERE x <> '') AS s",
        "SELECT array_length(array_resize(ARRAY[1], 2000000000))",
        "SELECT length(arrow_cast(NULL, 'FixedSizeBinary(2000000000)')::text)",
    ];
    for sql in texts {
        assert_eq!(ask(&session, sql).await, Err("54000".to_owned()), "{sql}");
        let from = format!("SELECT count(*) FROM ({sql}) AS q(n) WHERE n > 0");
        assert_eq!(ask(&session, &from).await, Err("54000".to_owned()), "{from}");
    }
    assert!(engine.refusals().too_large >= texts.len() as u64, "{:?}", engine.refusals());
    given_back(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doubling_ends_at_the_bound() {
    let (_directory, engine, session) = engine(256 << 20).await;
    for first in ["SELECT 'x' AS t", "SELECT x AS t FROM (VALUES ('x')) AS v(x)"] {
        let doubled = |times: u32| {
            let named =
                (1..=times).map(|n| format!(", q{n} AS (SELECT t || t AS t FROM q{})", n - 1));
            let named: String = named.collect();
            format!("WITH q0 AS ({first}){named} SELECT length(t) FROM q{times}")
        };
        assert_eq!(ask(&session, &doubled(20)).await, Ok(vec![(1 << 20).to_string()]), "{first}");
        assert_eq!(ask(&session, &doubled(40)).await, Err("54000".to_owned()), "{first}");
    }
    // Tables, too.
    let doubled = |times: u32| {
        let named =
            (1..=times).map(|n| format!(", q{n} AS (SELECT a.x FROM q{0} a, q{0} b)", n - 1));
        let named: String = named.collect();
        format!("WITH q0 AS (SELECT 1 AS x){named} SELECT x FROM q{times}")
    };
    assert_eq!(ask(&session, &doubled(4)).await, Ok(vec!["1".to_owned()]));
    assert_eq!(ask(&session, &doubled(40)).await, Err("54000".to_owned()));
    given_back(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fits_is_answered() {
    let (_directory, engine, session) = engine(512 << 20).await;
    let answers = [
        ("SELECT length(repeat('x', 60000000))", "60000000"),
        ("SELECT length(repeat('x', 5000)), repeat('ab', 3)", "5000|ababab"),
        ("SELECT lpad('x', 3, 'ab'), rpad('x', 3)||'|', repeat('x', -1)", "abx|x  ||"),
        ("SELECT length(replace(repeat('a', 10), 'a', 'bc'))", "20"),
        ("SELECT count(*) FROM (SELECT generate_series(1, 1000000)) AS s", "1000000"),
        (
            "SELECT string_agg(g::text, ',') FROM (SELECT generate_series(5, 1, -2) AS g) AS s",
            "5,3,1",
        ),
        ("SELECT 'a' || 1 || NULL, 'a' || 1 || true", "|a1true"),
        (
            "SELECT regexp_replace(repeat('ab', 100000), 'b', repeat('c', 3), 'g') LIKE 'accc%'",
            "true",
        ),
        // A constant for each of many rows, and rows of their own, in several slices.
        ("SELECT sum(length(repeat('x', 20000))) FROM generate_series(1, 3000)", "60000000"),
        (
            "SELECT sum(length(t)) FROM (SELECT repeat('x', 30000 + v.value) AS t \
          FROM generate_series(1, 3000) AS v(value)) AS s",
            "94501500",
        ),
        (
            "SELECT count(*), min(length(t)) FROM (SELECT repeat(chr(65 + (v.value % 20)::int), 20000) AS t \
          FROM generate_series(1, 2500) AS v(value) GROUP BY 1) AS s",
            "20|20000",
        ),
    ];
    for (sql, expected) in answers {
        assert_eq!(ask(&session, sql).await, Ok(vec![expected.to_owned()]), "{sql}");
    }
    given_back(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_come_out_of_the_memory_of_queries() {
    let (_directory, engine, session) = engine(32 << 20).await;
    // Each fits what a value may be, but not the memory.
    for sql in [
        "SELECT length(repeat('x', 60000000))",
        "SELECT sum(length(repeat('x', 40000 + v.value))) FROM generate_series(1, 5000) AS v(value)",
        "SELECT array_length(range(0, 8000000))",
    ] {
        assert_eq!(ask(&session, sql).await, Err("53200".to_owned()), "{sql}");
        given_back(&engine).await;
    }
    // A result counts while it is there.
    let Outcome::Rows(rows) = session.sql("SELECT repeat('x', 8000000)").await.unwrap() else {
        panic!("no rows");
    };
    let batches = rows.collect().await.unwrap();
    assert!(engine.memory_used_bytes() >= 8_000_000, "{}", engine.memory_used_bytes());
    drop(batches);
    given_back(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_windows_come_out_of_the_memory_of_queries() {
    let (_directory, engine, session) = engine(64 << 20).await;
    let from = "FROM generate_series(1, 20000) AS t(v)";
    for sql in [
        format!("SELECT array_agg(v) OVER (ORDER BY v) {from} LIMIT 3"),
        format!("SELECT array_agg(v) OVER () {from}"),
        format!("SELECT string_agg('some text', ',') OVER (ORDER BY v) {from} LIMIT 3"),
        format!("SELECT max(CASE WHEN v < 3 THEN repeat('x', 100000) END) OVER () {from}"),
        format!(
            "SELECT array_agg(v) OVER (ORDER BY v ROWS BETWEEN 5000 PRECEDING AND CURRENT ROW) {from}"
        ),
    ] {
        assert_eq!(ask(&session, &sql).await, Err("53200".to_owned()), "{sql}");
        given_back(&engine).await;
    }
    let sql = "SELECT sum(array_length(a)) FROM (SELECT array_agg(v) OVER (ORDER BY v) AS a \
               FROM generate_series(1, 500) AS t(v)) AS q";
    assert_eq!(ask(&session, sql).await, Ok(vec!["125250".to_owned()]));
    given_back(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_does_not_grow_by_what_is_constant() {
    let (_directory, engine, session) = engine(64 << 20).await;
    // Constants of 60 MB each: the plan has the calls, not their results.
    let large = (0..200).map(|n| format!("repeat('x', {})", 60_000_000 + n));
    let sql = format!("EXPLAIN SELECT {}", large.collect::<Vec<_>>().join(", "));
    let plan = ask(&session, &sql).await.unwrap().join("\n");
    assert!(plan.len() < 100_000, "{}", plan.len());
    // Small ones are computed once.
    let plan = ask(&session, "EXPLAIN SELECT repeat('ab', 3)").await.unwrap().join("\n");
    assert!(plan.contains("ababab"), "{plan}");
    let rows = |length: u32, count: usize| {
        let row = format!("(length(repeat('x', {length})))");
        format!("SELECT sum(column1) FROM (VALUES {}) AS v", vec![row; count].join(", "))
    };
    assert_eq!(ask(&session, &rows(5000, 100)).await, Ok(vec!["500000".to_owned()]));
    assert_eq!(ask(&session, &rows(50_000, 3)).await, Ok(vec!["150000".to_owned()]));
    assert_eq!(ask(&session, &rows(50_000, 30)).await, Err("54000".to_owned()));
    given_back(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_lists_of_values_count() {
    let (_directory, engine, session) = engine(64 << 20).await;
    ask(&session, "CREATE TABLE t (n int)").await.unwrap();
    let insert = |rows: usize| format!("INSERT INTO t VALUES {}", vec!["(1)"; rows].join(", "));
    // 250,000 values take more than there is, whatever they are for.
    assert_eq!(ask(&session, &insert(250_000)).await, Err("53200".to_owned()));
    let list = vec!["1"; 600_000].join(",");
    let sql = format!("SELECT count(*) FROM t WHERE n IN ({list})");
    assert_eq!(ask(&session, &sql).await, Err("53200".to_owned()));
    // One long text does not.
    let text = format!("SELECT length('{}')", "x".repeat(2 << 20));
    assert_eq!(ask(&session, &text).await, Ok(vec![(2 << 20).to_string()]));
    assert_eq!(ask(&session, &insert(1000)).await, Ok(Vec::new()));
    assert_eq!(ask(&session, "SELECT count(*) FROM t").await, Ok(vec!["1000".to_owned()]));
    given_back(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_rows_are_those_of_the_planner() {
    let home = Home::new().await;
    home.fill().await;
    let orders =
        ["cost DESC", "region, clicks DESC, at", "at NULLS FIRST, cost", "large DESC NULLS LAST"];
    let mut asked = 0;
    for order in orders {
        for limit in ["LIMIT 10", "LIMIT 7 OFFSET 30", "LIMIT 0", "LIMIT 100000", ""] {
            // What is shown is what it is ordered by, so that equal rows may stand in any order.
            let columns: Vec<&str> =
                order.split(", ").filter_map(|key| key.split(' ').next()).collect();
            let columns = columns.join(", ");
            for filter in ["", "WHERE account < 60 AND clicks > -900"] {
                let sql = format!("SELECT {columns} FROM events {filter} ORDER BY {order} {limit}");
                let expected = answer(&home.long, &sql, &[], true).await;
                for _ in 0..2 {
                    assert_eq!(answer(&home.short, &sql, &[], true).await, expected, "{sql}");
                }
                // A limit beyond the bound is the planner's.
                asked += u64::from(limit != "LIMIT 100000");
            }
        }
    }
    assert!(home.engine.reports_answered() >= asked, "{}", home.engine.reports_answered());
    given_back(&home.engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_beyond_a_bound_is_the_planners() {
    let (_directory, engine, session) = engine(256 << 20).await;
    ask(&session, "CREATE TABLE t (k int, n bigint)").await.unwrap();
    let rows =
        "INSERT INTO t SELECT v.value % 40000, v.value FROM generate_series(1, 60000) AS v(value)";
    ask(&session, rows).await.unwrap();
    let long = engine.session(SessionOptions::default());
    long.set("short_path", Some("off")).unwrap();
    long.set("result_reuse", Some("off")).unwrap();
    session.set("result_reuse", Some("off")).unwrap();
    let statements = [
        // 40,000 groups and 60,000 rows are too many, 100 of each are not.
        ("SELECT k, sum(n) FROM t WHERE n >= 1 GROUP BY k ORDER BY k", false),
        ("SELECT k, n FROM t WHERE n >= 2 ORDER BY n", false),
        ("SELECT k, sum(n) FROM t WHERE n <= 100 GROUP BY k ORDER BY k", true),
        ("SELECT k, n FROM t WHERE n > 0 ORDER BY k DESC, n DESC LIMIT 100", true),
    ];
    for (sql, is_short) in statements {
        let expected = ask(&long, sql).await.unwrap();
        // The first one is planned, and learnt.
        assert_eq!(ask(&session, sql).await.unwrap(), expected, "{sql}");
        let before = engine.reports_answered();
        assert_eq!(ask(&session, sql).await.unwrap(), expected, "{sql}");
        assert_eq!(engine.reports_answered() - before, u64::from(is_short), "{sql}");
        given_back(&engine).await;
    }
}
