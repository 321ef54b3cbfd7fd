//! Statements that compute on reports: on the short path they answer as the planner does, with the rights, the tables
//! and the errors of the moment. (`clients/oracle/shapes.py` compares them with PostgreSQL.)

use std::fmt::Write;

use crate::statements::{Home, answer, literal};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stoa_query::{QueryPath, ScalarValue, Session, SessionOptions};

/// So often a form is asked before it is sure to be on the short path.
const PLANNED_FIRST: usize = 2;

/// Statements with a place for an account and one for a day; each has an order.
const SHAPES: &[&str] = &[
    "SELECT region, sum(clicks)::float8 / nullif(count(*), 0) AS rate, coalesce(sum(cost), 0) * 2 \
     FROM events WHERE account = {a} AND day >= {d} GROUP BY region ORDER BY region",
    "SELECT day, sum(clicks) FROM events WHERE account = {a} AND day <= {d} GROUP BY day \
     HAVING sum(clicks) > 100 OR count(*) = 1 ORDER BY sum(clicks) * -1.5, day LIMIT 7 OFFSET 1",
    "SELECT date_trunc('week', day), sum(clicks), count(*), min(cost), max(region), sum(large) \
     FROM events WHERE account = {a} AND day >= {d} GROUP BY 1 ORDER BY 1",
    "SELECT region, sum(cost) FILTER (WHERE day > DATE '2026-01-10'), sum(CASE WHEN added IS NULL THEN clicks ELSE 0 END), \
     count(clicks) FILTER (WHERE region = 'eu'), count(DISTINCT day) FROM events WHERE account = {a} \
     AND day <> {d} GROUP BY region ORDER BY 1",
    "SELECT count(DISTINCT region), count(DISTINCT day), avg(clicks), sum(rate) FROM events \
     WHERE account = {a} AND (day >= {d} OR rate > 50.5)",
    "SELECT day, sum(sum(clicks)) OVER (ORDER BY day ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), \
     rank() OVER (ORDER BY sum(cost) DESC, day), lag(sum(clicks)) OVER (ORDER BY day) \
     FROM events WHERE account = {a} AND day >= {d} GROUP BY day ORDER BY day",
    "SELECT n.name, sum(e.clicks), count(*) FROM events e JOIN names n ON n.id = e.account \
     WHERE e.account IN ({a}, 7, 8) AND e.day >= {d} GROUP BY n.name ORDER BY 1",
    "SELECT n.name, e.region, sum(e.cost), min(e.day) FROM events e LEFT JOIN names n ON n.region = e.region \
     WHERE e.account = {a} AND e.day >= {d} GROUP BY 1, 2 ORDER BY 1, 2",
    "WITH one AS (SELECT region, sum(clicks) AS c FROM events WHERE account = {a} AND day >= {d} GROUP BY region), \
     two AS (SELECT region, sum(clicks) AS c FROM events WHERE account = 7 GROUP BY region) \
     SELECT coalesce(one.region, two.region), one.c, two.c - one.c FROM one FULL JOIN two ON one.region = two.region ORDER BY 1, 2",
    "SELECT 'a' AS part, sum(clicks) FROM events WHERE account = {a} UNION ALL \
     SELECT 'b', sum(clicks) FROM events WHERE day = {d} ORDER BY 1",
    "SELECT region, added, sum(clicks), count(*) FROM events WHERE account = {a} AND day >= {d} \
     GROUP BY ROLLUP (region, added) ORDER BY 1, 2, 3, 4",
    "SELECT * FROM (SELECT region, day, sum(clicks) AS c, row_number() OVER (PARTITION BY region ORDER BY sum(clicks) DESC, day) AS n \
     FROM events WHERE account = {a} AND day >= {d} GROUP BY region, day) t WHERE n <= 2 AND c > -400 ORDER BY region, n",
    "SELECT region, sum(clicks) * 100.0 / nullif((SELECT sum(clicks) FROM events WHERE day >= {d}), 0), \
     (SELECT max(cost) FROM events WHERE account = {a} AND clicks > 5000) FROM events WHERE account = {a} GROUP BY region ORDER BY 1",
    "SELECT day, sum(clicks) + (SELECT count(*) * 2 FROM names) FROM events WHERE account = {a} AND day >= {d} GROUP BY day \
     HAVING sum(clicks) > (SELECT avg(clicks) FROM events WHERE account = 7) ORDER BY day",
    "SELECT half, sum(twice), count(*) FROM shown WHERE account = {a} AND day >= {d} GROUP BY half ORDER BY half",
    "SELECT s.region, n.name, sum(s.twice) FROM shown s JOIN names n ON n.region = s.region WHERE s.account = {a} AND s.day <= {d} \
     GROUP BY s.region, n.name ORDER BY 1, 2",
];

fn with_values(shape: &str, account: &str, day: &str) -> String {
    shape.replace("{a}", account).replace("{d}", day)
}

async fn with_names(home: &Home) {
    home.run("CREATE TABLE names (id bigint, name text, region text)").await;
    let mut insert =
        "INSERT INTO names VALUES (NULL, 'nobody', NULL), (7, 'seven', 'eu')".to_owned();
    for id in 1..60 {
        let _ = write!(insert, ", ({id}, 'name {}', '{}')", id % 9, ["eu", "us", ""][id % 3]);
    }
    home.run(&insert).await;
    let view = "SELECT account, day, region, clicks * 2 AS twice, CASE WHEN cost > 2500 THEN 'upper' ELSE 'lower' END AS half FROM events";
    home.run(&format!("CREATE VIEW shown AS {view}")).await;
}

/// Whether the session's last statement was answered on the short path.
fn was_short(home: &Home) -> bool {
    home.engine.queries().recent().first().is_some_and(|asked| asked.path == QueryPath::Short)
}

#[test]
fn composed_reports_answer_as_plans_do() {
    let (runtime, home) = Home::filled();
    runtime.block_on(with_names(&home));
    for shape in SHAPES {
        let asked = std::cell::Cell::new(0);
        let mut runner = TestRunner::new(Config { cases: 8, ..Config::default() });
        let drawn = (0_u32..9, 1_u32..28).prop_map(|(account, day): (u32, u32)| {
            (account.to_string(), format!("DATE '2026-01-{day:02}'"))
        });
        runner
            .run(&drawn, |(account, day)| {
                let sql = with_values(shape, &account, &day);
                let (short, is_short, long) = runtime.block_on(async {
                    let short = answer(&home.short, &sql, &[], true).await;
                    let is_short = was_short(&home);
                    (short, is_short, answer(&home.long, &sql, &[], true).await)
                });
                prop_assert_eq!(short, long, "{}", sql);
                prop_assert!(is_short || asked.get() < PLANNED_FIRST, "planned: {}", sql);
                asked.set(asked.get() + 1);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn values_of_any_kind_are_compared_as_the_planner_compares() {
    let (runtime, home) = Home::filled();
    let columns = ["account", "day", "region", "clicks", "cost", "at", "added"];
    let drawn = prop::sample::select(columns.to_vec()).prop_flat_map(|column| {
        let operator = prop::sample::select(vec!["=", "<", ">=", "<>"]);
        (Just(column), operator, prop::collection::vec(literal(column), 4))
    });
    let mut runner = TestRunner::new(Config { cases: 40, ..Config::default() });
    runner
        .run(&drawn, |(column, operator, values)| {
            for value in values {
                let sql = format!(
                    "SELECT region, sum(clicks) + 1, count(*) FILTER (WHERE added IS NULL) FROM events \
                     WHERE {column} {operator} {value} OR {column} IS NULL AND clicks > 990 \
                     GROUP BY region ORDER BY region"
                );
                let (short, long) = runtime.block_on(async {
                    let short = answer(&home.short, &sql, &[], true).await;
                    (short, answer(&home.long, &sql, &[], true).await)
                });
                prop_assert_eq!(short, long, "{}", sql);
            }
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn prepared_statements_are_composed_reports_too() {
    let home = Home::new().await;
    home.fill().await;
    let sql = "SELECT day, sum(cost) / nullif(sum(clicks), 0) FROM events \
               WHERE account = $1 AND day >= $2 GROUP BY day ORDER BY 1";
    let statement = home.short.parse(sql).await.unwrap().swap_remove(0);
    let prepared = home.short.prepare(statement, Vec::new()).await.unwrap();
    for account in 0..6 {
        let parameters = [ScalarValue::Int64(Some(account)), ScalarValue::Date32(Some(20_465))];
        let outcome = home.short.execute(&prepared, parameters.to_vec()).await.unwrap();
        let stoa_query::Outcome::Rows(rows) = outcome else { panic!("no rows") };
        let batches = rows.collect().await.unwrap();
        let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
        assert!(was_short(&home) || account == 0, "planned for {account}");
        assert_eq!(rows, answer(&home.long, sql, &parameters, true).await.len());
    }
}

#[tokio::test]
async fn errors_are_those_of_the_planner() {
    let home = Home::new().await;
    home.run("CREATE TABLE t (k int, g text, n bigint, m bigint)").await;
    home.run(
        "INSERT INTO t VALUES (1, 'a', 9223372036854775807, 1), (1, 'b', 5, 0), (2, 'a', 7, 2)",
    )
    .await;
    let fails = async |sql: &str| {
        let mut codes = Vec::new();
        for session in [&home.short, &home.short, &home.short, &home.long] {
            codes.push(failure(session, sql).await);
        }
        assert!(
            codes[0].is_some() && codes.iter().all(|code| *code == codes[0]),
            "{sql}: {codes:?}"
        );
        codes.swap_remove(0).unwrap()
    };
    let divided = fails("SELECT g, sum(n) / sum(m) FROM t WHERE k = 1 GROUP BY g ORDER BY g").await;
    assert_eq!(divided, "22012");
    let summed = fails("SELECT sum(n) + 1 FROM t WHERE k = 1").await;
    assert_eq!(summed, "22003");
    // Rows that a condition leaves out are not computed on.
    for _ in 0..4 {
        let sql = "SELECT g, sum(n) / sum(m) FROM t WHERE k = 1 AND m > 0 GROUP BY g ORDER BY g";
        assert_eq!(answer(&home.short, sql, &[], true).await, ["a|9223372036854775807"]);
    }
    // Sums of groups overflow where the sum of all does not.
    home.run(
        "INSERT INTO t VALUES (3, 'a', 9223372036854775807, 1), (3, 'a', 1, 1), (3, 'b', -10, 1)",
    )
    .await;
    let sql = "SELECT sum(n) FILTER (WHERE g <> 'c') FROM t WHERE k = 3";
    for _ in 0..4 {
        let short = answer(&home.short, sql, &[], true).await;
        assert_eq!(short, answer(&home.long, sql, &[], true).await);
    }
}

async fn failure(session: &Session, sql: &str) -> Option<String> {
    match session.sql(sql).await {
        Err(error) => Some(error.sqlstate().to_owned()),
        Ok(stoa_query::Outcome::Rows(rows)) => {
            rows.collect().await.err().map(|error| error.sqlstate().to_owned())
        }
        Ok(_) => None,
    }
}

#[tokio::test]
async fn a_composed_report_sees_what_changed_since_the_last() {
    let home = Home::new().await;
    home.run("CREATE TABLE t (k int, c int, n bigint)").await;
    home.run("CREATE TABLE names (c int, name text)").await;
    let sql = "SELECT name, sum(n) * 2 FROM t JOIN names ON names.c = t.c WHERE k = 7 GROUP BY name ORDER BY name";
    let check = async |expected: &[&str]| {
        for session in [&home.short, &home.short, &home.short, &home.long] {
            assert_eq!(answer(session, sql, &[], true).await, expected);
        }
    };
    check(&[]).await;
    home.run("INSERT INTO t VALUES (7, 1, 1), (7, 2, 10), (8, 1, 100)").await;
    check(&[]).await;
    home.run("INSERT INTO names VALUES (1, 'one')").await;
    check(&["one|2"]).await;
    assert!(was_short_before_last(&home));
    home.run("FLUSH TABLE names").await;
    check(&["one|2"]).await;
    home.run("INSERT INTO names VALUES (2, 'two'), (2, 'zwei')").await;
    check(&["one|2", "two|20", "zwei|20"]).await;
    home.run("UPDATE names SET name = 'uno' WHERE c = 1").await;
    check(&["two|20", "uno|2", "zwei|20"]).await;
    home.run("COMPACT TABLE names FULL").await;
    check(&["two|20", "uno|2", "zwei|20"]).await;
    home.run("DELETE FROM names WHERE name = 'two'").await;
    check(&["uno|2", "zwei|20"]).await;
    home.run("ALTER TABLE names RENAME COLUMN name TO called").await;
    assert_eq!(failure(&home.short, sql).await.unwrap(), "42703");
    home.run("DROP TABLE names").await;
    assert_eq!(failure(&home.short, sql).await.unwrap(), "42P01");
    home.run("CREATE TABLE names (name text, c bigint)").await;
    home.run("INSERT INTO names VALUES ('new', 2)").await;
    check(&["new|20"]).await;
}

/// Of the session `short`, when the session `long` was asked last.
fn was_short_before_last(home: &Home) -> bool {
    home.engine.queries().recent().get(1).is_some_and(|asked| asked.path == QueryPath::Short)
}

#[tokio::test]
async fn explain_shows_the_reports_as_leaves() {
    let home = Home::new().await;
    home.fill().await;
    with_names(&home).await;
    let sql = "SELECT n.name, sum(e.cost) * 2 FROM events e JOIN names n ON n.id = e.account \
               WHERE e.account = 7 AND e.day >= DATE '2026-01-05' GROUP BY n.name ORDER BY 2 DESC LIMIT 3";
    let explain =
        async |session: &Session, sql: String| answer(session, &sql, &[], true).await.join("\n");
    let plain = explain(&home.short, format!("EXPLAIN {sql}")).await;
    for shown in [
        "SortExec: TopK(fetch=3)",
        "AggregateExec: ",
        "HashJoinExec: ",
        "ReportExec: table=public.events, short_path=yes",
        "ReportExec: table=public.names, short_path=yes",
        "group_by=[account]",
    ] {
        assert!(plain.contains(shown), "{shown} is not in {plain}");
    }
    let analysed = explain(&home.short, format!("EXPLAIN ANALYZE {sql}")).await;
    assert!(analysed.contains("rows_selected=") && analysed.contains("chunk_hits="), "{analysed}");
    for off in [&home.long, &home.templated] {
        let planned = explain(off, format!("EXPLAIN {sql}")).await;
        assert!(planned.contains("OrcScanExec") && !planned.contains("ReportExec"), "{planned}");
    }
    home.short.set("short_path", Some("off")).unwrap();
    for _ in 0..3 {
        answer(&home.short, sql, &[], true).await;
        assert!(!was_short(&home));
    }
    home.short.set("short_path", None).unwrap();
}

#[tokio::test]
async fn a_composed_report_asks_for_the_rights_of_now() {
    let directory = tempfile::tempdir().unwrap();
    let url = |name: &str| url::Url::from_directory_path(directory.path().join(name)).unwrap();
    let options = stoa_query::EngineOptions {
        logs: Some(url("log")),
        access_control: true,
        ..stoa_query::EngineOptions::new(url("warehouse"))
    };
    let engine = stoa_query::Engine::open(options).await.unwrap();
    let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
    for sql in [
        "CREATE TABLE t (k int, c int, n bigint, secret bigint)",
        "CREATE TABLE names (c int, name text, secret text)",
        "INSERT INTO t VALUES (7, 1, 1, 1), (7, 2, 10, 2)",
        "INSERT INTO names VALUES (1, 'one', 'x'), (2, 'two', 'y')",
        "CREATE USER ann PASSWORD 'pencil'",
        "GRANT SELECT (k, c, n) ON t TO ann",
        "GRANT SELECT (c, name) ON names TO ann",
    ] {
        root.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let ann =
        engine.session(SessionOptions { user: "ann".to_owned(), ..SessionOptions::default() });
    let allowed = "SELECT name, sum(n) * 2 FROM t JOIN names ON names.c = t.c WHERE k = 7 GROUP BY name ORDER BY name";
    let secret = [
        "SELECT name, sum(t.secret) * 2 FROM t JOIN names ON names.c = t.c WHERE k = 7 GROUP BY name ORDER BY name",
        "SELECT sum(n) * 2 FROM t JOIN names ON names.c = t.c WHERE k = 7 AND names.secret = 'x'",
        "SELECT k, sum(n) FILTER (WHERE secret = 1) FROM t WHERE k = 7 GROUP BY k",
    ];
    for _ in 0..4 {
        assert_eq!(answer(&ann, allowed, &[], true).await, ["one|2", "two|20"]);
        for sql in secret {
            assert_eq!(failure(&ann, sql).await.as_deref(), Some("42501"), "{sql}");
            assert_eq!(failure(&root, sql).await, None, "{sql}");
        }
    }
    root.sql("REVOKE SELECT (name) ON names FROM ann").await.unwrap();
    assert_eq!(failure(&ann, allowed).await.as_deref(), Some("42501"));
    root.sql("GRANT SELECT ON names TO ann").await.unwrap();
    assert_eq!(answer(&ann, allowed, &[], true).await, ["one|2", "two|20"]);
}

/// What was made of a view asks for the rights on it, and for those of its owner, with each use; and is not used any
/// more once the view is another one.
#[tokio::test]
async fn a_composed_report_on_a_view_asks_for_the_rights_of_now() {
    let directory = tempfile::tempdir().unwrap();
    let url = |name: &str| url::Url::from_directory_path(directory.path().join(name)).unwrap();
    let options = stoa_query::EngineOptions {
        logs: Some(url("log")),
        access_control: true,
        ..stoa_query::EngineOptions::new(url("warehouse"))
    };
    let engine = stoa_query::Engine::open(options).await.unwrap();
    let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
    for sql in [
        "CREATE TABLE t (k int, n bigint, secret bigint)",
        "INSERT INTO t VALUES (7, 1, 1), (7, 10, 2), (8, 100, 3)",
        "CREATE USER ann PASSWORD 'pencil'",
        "CREATE USER bob PASSWORD 'pencil'",
        "CREATE VIEW v AS SELECT k, n * 2 AS twice, secret FROM t WHERE n < 100",
        "CREATE VIEW as_asked WITH (security_invoker = true) AS SELECT k, n * 2 AS twice, secret FROM t",
        "GRANT SELECT (k, twice) ON v TO ann",
        "GRANT SELECT ON as_asked TO ann",
        "GRANT SELECT (k, n) ON t TO ann",
    ] {
        root.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let session = |user: &str| {
        engine.session(SessionOptions { user: user.to_owned(), ..SessionOptions::default() })
    };
    let (ann, bob) = (session("ann"), session("bob"));
    let asked = |what: &str, view: &str, k: i32| {
        format!("SELECT sum({what}) + 0 FROM {view} WHERE k = {k}")
    };
    let is_short =
        || engine.queries().recent().first().is_some_and(|asked| asked.path == QueryPath::Short);
    for view in ["v", "as_asked"] {
        for k in [7, 8, 9, 7] {
            let allowed = asked("twice", view, k);
            // The superuser's statement comes first: what is kept of it is what the others find.
            for (user, code) in [(&root, None), (&ann, None), (&bob, Some("42501"))] {
                assert_eq!(failure(user, &allowed).await.as_deref(), code, "{allowed}");
            }
            let secret = asked("secret", view, k);
            for (user, code) in [(&root, None), (&ann, Some("42501")), (&bob, Some("42501"))] {
                assert_eq!(failure(user, &secret).await.as_deref(), code, "{secret}");
            }
        }
        assert_eq!(answer(&ann, &asked("twice", view, 7), &[], true).await, ["22"]);
        assert!(is_short(), "{view}");
    }
    // Of a view with the rights of who asks, those on its table count; of another one those of its owner.
    root.sql("REVOKE SELECT (n) ON t FROM ann").await.unwrap();
    assert_eq!(failure(&ann, &asked("twice", "as_asked", 7)).await.as_deref(), Some("42501"));
    assert_eq!(answer(&ann, &asked("twice", "v", 7), &[], true).await, ["22"]);
    root.sql("CREATE OR REPLACE VIEW v AS SELECT k, n * 3 AS twice, secret FROM t").await.unwrap();
    assert_eq!(answer(&ann, &asked("twice", "v", 7), &[], true).await, ["33"]);
    root.sql("REVOKE SELECT ON v FROM ann").await.unwrap();
    assert_eq!(failure(&ann, &asked("twice", "v", 7)).await.as_deref(), Some("42501"));
    root.sql("DROP VIEW v").await.unwrap();
    assert_eq!(failure(&root, &asked("twice", "v", 7)).await.as_deref(), Some("42P01"));
}

#[tokio::test]
async fn results_of_a_view_are_not_those_of_its_next_version() {
    let home = Home::new().await;
    home.fill().await;
    let sql = "SELECT sum(twice) + 0 FROM shown WHERE account = 7";
    for factor in 2..6 {
        home.run(&format!(
            "CREATE OR REPLACE VIEW shown AS SELECT account, clicks * {factor} AS twice FROM events"
        ))
        .await;
        for _ in 0..3 {
            let short = answer(&home.short, sql, &[], true).await;
            assert_eq!(short, answer(&home.long, sql, &[], true).await);
            let sql = sql.replace("account = 7", "account = 8 AND twice <> 0");
            home.short.set("short_path", Some("off")).unwrap();
            let kept = answer(&home.short, &sql, &[], true).await;
            home.short.set("short_path", None).unwrap();
            assert_eq!(kept, answer(&home.long, &sql, &[], true).await);
        }
    }
}

#[tokio::test]
async fn a_subquery_of_several_rows_is_an_error_each_time() {
    let home = Home::new().await;
    home.fill().await;
    for account in 0..5 {
        let sql = format!(
            "SELECT region, sum(clicks) + (SELECT clicks FROM events WHERE account = {account}) FROM events \
             WHERE account = {account} GROUP BY region ORDER BY 1"
        );
        assert_eq!(failure(&home.short, &sql).await.as_deref(), Some("21000"), "{sql}");
        let none = sql.replace("events WHERE account", "events WHERE account > 9000 AND account");
        assert_eq!(
            answer(&home.short, &none, &[], true).await,
            answer(&home.long, &none, &[], true).await
        );
    }
}
