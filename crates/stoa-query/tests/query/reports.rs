//! The short path of reports against the planner: the same answers, whatever the statement.

use std::fmt::Write;

use crate::statements::{Home, answer, literal};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stoa_query::{Engine, EngineOptions, ScalarValue, SessionOptions};

fn condition() -> impl Strategy<Value = String> {
    let columns = vec!["account", "account", "day", "region", "clicks", "cost", "at", "added"];
    prop::sample::select(columns).prop_flat_map(|column| {
        let value = || literal(column);
        prop_oneof![
            3 => value().prop_map(move |v| format!("{column} = {v}")),
            1 => value().prop_map(move |v| format!("{v} <= {column}")),
            1 => value().prop_map(move |v| format!("events.{column} < {v}")),
            1 => value().prop_map(move |v| format!("{column} <> {v}")),
            3 => (value(), value()).prop_map(move |(a, b)| format!("{column} BETWEEN {a} AND {b}")),
            1 => prop::collection::vec(value(), 1..4)
                .prop_map(move |list| format!("{column} IN ({})", list.join(", "))),
            1 => Just(format!("{column} IS NULL")),
            1 => Just(format!("{column} IS NOT NULL")),
        ]
    })
}

#[derive(Clone, Debug)]
struct Query {
    sql: String,
    ordered: bool,
}

fn query() -> impl Strategy<Value = Query> {
    let keys = prop::sample::subsequence(vec!["account", "day", "region", "added"], 0..3);
    let aggregates = prop::sample::subsequence(
        vec![
            "count(*)",
            "count(clicks)",
            "count(1)",
            "sum(clicks)",
            "sum(cost)",
            "sum(large) AS clicks",
            "min(day)",
            "max(region)",
            "min(cost)",
            "avg(clicks)",
            "sum(rate)",
            "max(at)",
            "sum(account)",
        ],
        0..5,
    );
    let conditions = prop::collection::vec(condition(), 0..4);
    (keys, aggregates, conditions, 0_u8..4, prop::option::of(0_u32..20)).prop_map(
        |(keys, aggregates, conditions, order, limit)| {
            let mut items = keys.iter().chain(&aggregates).copied().collect::<Vec<_>>().join(", ");
            if items.is_empty() {
                items = "account, day, cost, region".to_owned();
            }
            let mut sql = format!("SELECT {items} FROM events");
            if !conditions.is_empty() {
                let _ = write!(sql, " WHERE {}", conditions.join(" AND "));
            }
            let grouped = !keys.is_empty();
            if grouped {
                let _ = write!(sql, " GROUP BY {}", keys.join(", "));
            }
            // Only an order by all keys is one.
            let ordered = grouped && order > 0;
            if ordered {
                let direction = ["", " DESC", " DESC NULLS LAST"][usize::from(order) - 1];
                let by: Vec<String> = keys.iter().map(|key| format!("{key}{direction}")).collect();
                let _ = write!(sql, " ORDER BY {}", by.join(", "));
                if let Some(limit) = limit {
                    let _ = write!(sql, " LIMIT {limit} OFFSET 1");
                }
            }
            Query { sql, ordered }
        },
    )
}

#[test]
fn reports_answer_as_the_planner_does() {
    let (runtime, home) = Home::filled();
    let mut runner = TestRunner::new(Config { cases: 600, ..Config::default() });
    runner
        .run(&query(), |query| {
            let (short, long) = runtime.block_on(async {
                let short = answer(&home.short, &query.sql, &[], query.ordered).await;
                (short, answer(&home.long, &query.sql, &[], query.ordered).await)
            });
            prop_assert_eq!(short, long, "{}", query.sql);
            Ok(())
        })
        .unwrap();
    // Nearly all of them were reports; some, like a large number for an int, are the planner's.
    assert!(home.engine.reports_answered() > 450, "{}", home.engine.reports_answered());
    let status = home.engine.cache_status();
    assert!(status.chunk_hits > status.chunk_misses, "{status:?}");
}

#[tokio::test]
async fn parameters_are_bound_without_planning() {
    let home = Home::new().await;
    home.fill().await;
    let sql = "SELECT day, sum(cost) FROM events WHERE account = $1 AND day >= $2 GROUP BY day ORDER BY 1";
    for account in 0..20 {
        let parameters =
            [ScalarValue::Int64(Some(account)), ScalarValue::Date32(Some(20_460 + account as i32))];
        let short = answer(&home.short, sql, &parameters, true).await;
        assert_eq!(short, answer(&home.long, sql, &parameters, true).await);
        assert!(!short.is_empty());
    }
    let none = [ScalarValue::Int64(None), ScalarValue::Date32(None)];
    assert!(answer(&home.short, sql, &none, true).await.is_empty());
    assert_eq!(home.engine.reports_answered(), 21);
}

#[tokio::test]
async fn casts_to_the_type_that_is_compared_change_nothing() {
    let home = Home::new().await;
    home.fill().await;
    let texts = [
        "SELECT sum(clicks) FROM events WHERE account = 7::int8 AND day >= '2026-01-05'::date",
        "SELECT sum(clicks) FROM events WHERE clicks < 5::bigint AND region = 'eu'::text",
        "SELECT sum(clicks) FROM events WHERE at <= CAST('2026-01-02 09:00:00' AS timestamp)",
        "SELECT sum(clicks) FROM events WHERE clicks BETWEEN -5 AND CAST(9 AS bigint)",
    ];
    for sql in texts {
        let answers =
            [answer(&home.short, sql, &[], true).await, answer(&home.long, sql, &[], true).await];
        assert_eq!(answers[0], answers[1], "{sql}");
    }
    assert_eq!(home.engine.reports_answered(), texts.len() as u64);
    let sql = "SELECT count(*) FROM events WHERE account = $1::int8 AND day = $2::date \
               AND clicks > $3::bigint";
    let parameters = [
        ScalarValue::Int64(Some(7)),
        ScalarValue::Date32(Some(20_467)),
        ScalarValue::Int64(Some(-5_000_000_000)),
    ];
    let short = answer(&home.short, sql, &parameters, true).await;
    assert_eq!(short, answer(&home.long, sql, &parameters, true).await);
    assert_eq!(short, answer(&home.templated, sql, &parameters, true).await);
    assert_eq!(home.engine.reports_answered(), texts.len() as u64 + 1);
    // Casts that change values are the planner's.
    for sql in [
        "SELECT count(*) FROM events WHERE account = 7.4::int",
        "SELECT count(*) FROM events WHERE region = 'eu'::varchar(1)",
        "SELECT count(*) FROM events WHERE at > '2026-01-02'::date",
    ] {
        let answers =
            [answer(&home.short, sql, &[], true).await, answer(&home.long, sql, &[], true).await];
        assert_eq!(answers[0], answers[1], "{sql}");
    }
    assert_eq!(home.engine.reports_answered(), texts.len() as u64 + 1);
}

#[tokio::test]
async fn a_report_sees_what_changed_since_the_last() {
    let home = Home::new().await;
    let sql = "SELECT sum(n), count(*) FROM t WHERE k = 7";
    let check = async |expected: &str| {
        for session in [&home.short, &home.templated, &home.long] {
            assert_eq!(answer(session, sql, &[], false).await, [expected]);
        }
    };
    home.run("CREATE TABLE t (k int, n bigint)").await;
    check("NULL|0").await;
    home.run("INSERT INTO t VALUES (7, 1), (8, 100)").await;
    check("1|1").await;
    home.run("FLUSH TABLE t").await;
    check("1|1").await;
    home.run("UPDATE t SET n = 5 WHERE k = 7").await;
    check("5|1").await;
    home.run("INSERT INTO t VALUES (7, 2)").await;
    check("7|2").await;
    home.run("COMPACT TABLE t FULL").await;
    check("7|2").await;
    home.run("ALTER TABLE t RENAME COLUMN n TO m").await;
    assert!(home.short.sql(sql).await.is_err());
    home.run("ALTER TABLE t RENAME COLUMN m TO n").await;
    check("7|2").await;
    home.run("DELETE FROM t WHERE n = 2").await;
    check("5|1").await;
    home.run("DROP TABLE t").await;
    assert_eq!(home.short.sql(sql).await.err().unwrap().sqlstate(), "42P01");
    home.run("CREATE TABLE t (n bigint, k bigint)").await;
    check("NULL|0").await;
    home.run("INSERT INTO t VALUES (7, 1), (3, 7)").await;
    check("3|1").await;
}

#[tokio::test]
async fn another_process_is_noticed_at_once() {
    let home = Home::new().await;
    home.run("CREATE TABLE t (k int, n bigint)").await;
    home.run("INSERT INTO t VALUES (7, 1)").await;
    home.run("FLUSH TABLE t").await;
    let sql = "SELECT sum(n) FROM t WHERE k = 7";
    assert_eq!(answer(&home.short, sql, &[], false).await, ["1"]);
    let other = EngineOptions::new(home.engine.options().warehouse.clone());
    let other = Engine::open(other).await.unwrap();
    let other = other.session(SessionOptions::default());
    for n in 1..20 {
        other.sql("INSERT INTO t VALUES (7, 1)").await.unwrap();
        assert_eq!(answer(&home.short, sql, &[], false).await, [(n + 1).to_string()]);
    }
}

#[tokio::test]
async fn explain_shows_how_a_report_is_answered() {
    let home = Home::new().await;
    home.fill().await;
    let sql = "SELECT day, sum(cost) FROM events WHERE account = 7 GROUP BY day";
    let rows = answer(&home.short, sql, &[], false).await;
    let explain = async |session, sql: String| answer(session, &sql, &[], false).await.join("\n");
    let plain = explain(&home.short, format!("EXPLAIN {sql}")).await;
    assert!(plain.contains("ReportExec: table=public.events, short_path=yes"), "{plain}");
    assert!(plain.contains("conditions=[account], group_by=[day], aggregates=1"), "{plain}");
    let analysed = explain(&home.short, format!("explain analyze {sql}")).await;
    let number = |name: &str| -> u64 {
        let (_, rest) =
            analysed.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("{analysed}"));
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
        rest[..end].parse().unwrap()
    };
    assert_eq!(number("output_rows"), rows.len() as u64);
    assert!(number("files_total") > number("files_pruned"), "{analysed}");
    assert!(number("files_pruned") > 0, "{analysed}");
    assert!(number("rows_read") > number("rows_selected"), "{analysed}");
    assert_eq!((number("chunk_misses"), number("read_requests")), (0, 0), "{analysed}");
    let sql = "EXPLAIN ANALYZE SELECT day, sum(cost) FROM events WHERE account = $1 GROUP BY day";
    let seven = [ScalarValue::Int64(Some(7))];
    let with_parameter = answer(&home.short, sql, &seven, false).await.join("\n");
    assert!(with_parameter.contains(&format!("output_rows={}", rows.len())), "{with_parameter}");
    // What the planner does, and other kinds of EXPLAIN, are shown as ever.
    let sql = "SELECT day, sum(cost) FROM events WHERE account = 7 GROUP BY day";
    let long = explain(&home.long, format!("EXPLAIN ANALYZE {sql}")).await;
    assert!(long.contains("OrcScanExec") && !long.contains("ReportExec"), "{long}");
    let other = explain(&home.short, "EXPLAIN SELECT upper(region) FROM events".to_owned()).await;
    assert!(other.contains("OrcScanExec"), "{other}");
}

#[tokio::test]
async fn what_was_hot_is_in_memory_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let warehouse = url::Url::from_directory_path(home.path().join("warehouse")).unwrap();
    let file = home.path().join("hot.json");
    let options = EngineOptions { hot_list: Some(file.clone()), ..EngineOptions::new(warehouse) };
    let sql = "SELECT sum(n) FROM t WHERE k = 7";
    {
        let engine = Engine::open(options.clone()).await.unwrap();
        let session = engine.session(SessionOptions::default());
        session.sql("CREATE TABLE t (k int, n bigint)").await.unwrap();
        session.sql("INSERT INTO t VALUES (7, 1), (8, 2)").await.unwrap();
        for _ in 0..3 {
            assert_eq!(answer(&session, sql, &[], false).await, ["1"]);
        }
        engine.shutdown(std::time::Duration::ZERO).await;
    }
    assert!(file.exists());
    let engine = Engine::open(options.clone()).await.unwrap();
    while engine.cache_status().entries < 3 {
        tokio::task::yield_now().await;
    }
    let session = engine.session(SessionOptions::default());
    assert_eq!(answer(&session, sql, &[], false).await, ["1"]);
    let asked = engine.queries().recent().swap_remove(0);
    assert_eq!((asked.requests, asked.bytes_read), (0, 0));
    drop((session, engine));
    // A list that nobody can read costs nothing but the warmth.
    std::fs::write(&file, "{").unwrap();
    let engine = Engine::open(options).await.unwrap();
    let session = engine.session(SessionOptions::default());
    assert_eq!(answer(&session, sql, &[], false).await, ["1"]);
}
