//! Rights: what was not granted is not read, written or given again, on whatever path.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::util::pretty::pretty_format_batches;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stoa_query::{Engine, EngineOptions, Outcome, ScalarValue, Session, SessionOptions};
use url::Url;

/// Columns of the table, of which `ann` may read the first three.
const COLUMNS: [&str; 5] = ["account", "day", "clicks", "cost", "note"];

/// An engine that asks who somebody is, and somebody who may do everything.
struct Home {
    engine: Arc<Engine>,
    root: Arc<Session>,
    directory: tempfile::TempDir,
}

impl Home {
    /// With rows in a file and fresh ones, and roles that have no rights yet.
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(&directory, "log").await;
        let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
        let home = Self { engine, root, directory };
        home.run("CREATE TABLE visits (account bigint, day date, clicks int, cost decimal(9,2), note text)")
            .await;
        for (part, note) in ["old", "new"].iter().enumerate() {
            let row = |n: usize| {
                format!("({}, DATE '2026-01-{:02}', {n}, {n}.25, '{note}')", n % 5, 1 + n % 9)
            };
            let rows: Vec<String> = (part * 50..part * 50 + 50).map(row).collect();
            home.run(&format!("INSERT INTO visits VALUES {}", rows.join(", "))).await;
            if part == 0 {
                home.run("FLUSH TABLE visits").await;
            }
        }
        home.run("CREATE TABLE copies (n bigint)").await;
        for role in ["ann", "bob"] {
            home.run(&format!("CREATE USER {role} PASSWORD 'pencil'")).await;
        }
        home
    }

    async fn run(&self, sql: &str) {
        said(&self.root, sql).await.unwrap_or_else(|code| panic!("{sql}: {code}"));
    }

    fn session_of(&self, role: &str) -> Arc<Session> {
        session_of(&self.engine, role)
    }
}

async fn open(directory: &tempfile::TempDir, log: &str) -> Arc<Engine> {
    let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
    let options = EngineOptions {
        logs: Some(url(log)),
        access_control: true,
        ..EngineOptions::new(url("warehouse"))
    };
    Engine::open(options).await.unwrap()
}

fn session_of(engine: &Arc<Engine>, role: &str) -> Arc<Session> {
    engine.session(SessionOptions { user: role.to_owned(), ..SessionOptions::default() })
}

/// The rows as text, or the SQLSTATE.
async fn said(session: &Session, sql: &str) -> Result<String, &'static str> {
    let rows = match session.sql(sql).await.map_err(|error| error.sqlstate())? {
        Outcome::Rows(rows) => rows.collect().await.map_err(|error| error.sqlstate())?,
        _ => Vec::new(),
    };
    Ok(pretty_format_batches(&rows).unwrap().to_string())
}

async fn code(session: &Session, sql: &str) -> &'static str {
    said(session, sql).await.err().unwrap_or("ok")
}

/// Statements that need a column.
fn statements_with(column: &str) -> Vec<String> {
    let c = column;
    vec![
        format!("SELECT {c} FROM visits WHERE account = 3"),
        format!("SELECT day, max({c}) FROM visits WHERE account = 3 GROUP BY day ORDER BY day"),
        format!("SELECT count(*) FROM visits WHERE {c} IS NOT NULL"),
        format!("SELECT account FROM visits ORDER BY {c}, account LIMIT 3"),
        format!(
            "SELECT account + 1 AS a FROM visits GROUP BY account HAVING count({c}) > 1 ORDER BY 1"
        ),
        format!("SELECT a.account FROM visits a JOIN visits b ON a.{c} = b.{c} ORDER BY 1"),
        format!(
            "SELECT account FROM visits WHERE clicks IN (SELECT 1 FROM visits x WHERE x.{c} IS NOT NULL)"
        ),
        format!("SELECT CASE WHEN {c} IS NULL THEN 1 ELSE 2 END AS e FROM visits"),
        format!("WITH w AS (SELECT {c} AS x FROM visits) SELECT count(x) FROM w"),
        format!("SELECT row_number() OVER (ORDER BY {c}) AS n FROM visits"),
        format!("SELECT DISTINCT {c} FROM visits UNION ALL SELECT {c} FROM visits ORDER BY 1"),
        format!("COPY (SELECT {c} FROM visits) TO STDOUT"),
        format!("EXPLAIN ANALYZE SELECT day, max({c}) FROM visits WHERE account = 3 GROUP BY day"),
        format!("EXPLAIN SELECT {c} FROM visits WHERE account = 3 AND clicks > 2"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_was_not_granted_is_read_on_no_path() {
    let home = Home::new().await;
    home.run("GRANT SELECT (account, day, clicks) ON visits TO ann").await;
    home.run("GRANT INSERT ON copies TO ann").await;
    let ann = home.session_of("ann");
    let also = [
        "SELECT * FROM visits",
        "COPY visits TO STDOUT",
        "INSERT INTO copies SELECT cost FROM visits",
        "SELECT visits FROM visits",
        "SELECT visits.* FROM visits",
        "SELECT v.* FROM public.visits v",
        "SELECT row_to_json(visits) FROM visits",
        "SELECT row_to_json(v) FROM visits v",
        "SELECT to_jsonb(v) ->> 'account' FROM visits v",
        "SELECT json_agg(v) FROM visits v",
        "SELECT ARRAY(SELECT cost FROM visits)",
        "SELECT ARRAY(SELECT v.cost FROM (SELECT 1 AS one) q WHERE v.account = one) FROM visits v",
        "SELECT x.c FROM visits v, LATERAL (SELECT v.cost AS c) x",
        "SELECT x.c FROM visits v, LATERAL (SELECT w.cost AS c FROM visits w WHERE w.day = v.day LIMIT 1) x",
        "SELECT x.n FROM visits v, LATERAL (SELECT count(*) AS n FROM copies WHERE n > v.cost) x",
        // Aliases that are columns of the query within.
        "SELECT n.account FROM visits n WHERE EXISTS (SELECT 1 FROM copies WHERE n.cost > 1)",
        "SELECT account FROM visits WHERE cost IS NOT DISTINCT FROM cost",
        "SELECT v.account FROM visits v WHERE (v.account, v.cost) IN (SELECT w.account, w.cost FROM visits w)",
        "WITH RECURSIVE w AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM w JOIN visits ON cost > i WHERE i < 3) SELECT * FROM w",
        "SELECT z.n FROM visits, generate_series(1, cost::int) WITH ORDINALITY AS z (g, n)",
        "SELECT account FROM visits GROUP BY account, cost",
        "SELECT max(account) FILTER (WHERE cost > 1) FROM visits",
        "SELECT string_agg(note, ',' ORDER BY account) FROM visits",
        "SELECT account FROM visits JOIN (SELECT account, cost FROM visits) w USING (account, cost)",
        "SELECT account FROM visits NATURAL JOIN visits w",
        "SELECT pg_sleep(0) FROM visits WHERE cost > 1",
        "CREATE TEMP TABLE t AS SELECT cost FROM visits",
        "TABLE visits",
    ];
    let mut forbidden: Vec<String> = statements_with("cost");
    forbidden.extend(statements_with("note"));
    forbidden.extend(also.map(str::to_owned));
    for sql in &forbidden {
        // Twice before and after somebody else was answered: templates and answers are known then.
        for turn in 0..4 {
            let code = code(&ann, sql).await;
            // Some are no statements that anybody could run.
            let is_refused = sql.starts_with("SELECT visits") || sql.contains("NATURAL");
            assert!(code == "42501" || is_refused && code != "ok", "{sql}: {code}");
            if turn == 1 {
                let _ = said(&home.root, sql).await;
                let _ = said(&home.root, sql).await;
            }
        }
    }
    // A view of her own reads with her rights.
    assert_eq!(code(&ann, "CREATE TEMP VIEW hers AS SELECT account, cost FROM visits").await, "ok");
    assert_eq!(code(&ann, "SELECT cost FROM hers").await, "42501");
    assert_eq!(code(&ann, "SELECT * FROM hers").await, "42501");
    for column in ["day", "clicks"] {
        for sql in statements_with(column) {
            for _ in 0..3 {
                let (hers, all) = (said(&ann, &sql).await, said(&home.root, &sql).await);
                match sql.starts_with("EXPLAIN") {
                    true => assert!(hers.is_ok(), "{sql}: {hers:?}"),
                    false => assert_eq!(hers, all, "{sql}"),
                }
            }
        }
    }
    assert_eq!(code(&ann, "SELECT count(*) FROM visits").await, "ok");
    // Who has no right at all does not even learn how many rows there are.
    let bob = home.session_of("bob");
    for sql in
        ["SELECT count(*) FROM visits", "SELECT 1 FROM visits LIMIT 1", "SHOW FILES FROM visits"]
    {
        assert_eq!(code(&bob, sql).await, "42501", "{sql}");
    }
    assert_eq!(code(&home.session_of("nobody"), "SELECT count(*) FROM visits").await, "42501");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_others_are_ended_by_superusers_only() {
    let home = Home::new().await;
    let (ann, other, bob) =
        (home.session_of("ann"), home.session_of("ann"), home.session_of("bob"));
    let number = |said: String| {
        let digits: String = said.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<i64>().unwrap()
    };
    let mut ids = Vec::new();
    for session in [&ann, &other, &bob, &home.root] {
        ids.push(number(said(session, "SELECT pg_backend_pid() AS p").await.unwrap()));
    }
    let [_, of_other, of_bob, of_root] = ids[..] else { panic!("{ids:?}") };
    for end in ["pg_cancel_backend", "pg_terminate_backend"] {
        for id in [of_bob, of_root] {
            assert_eq!(code(&ann, &format!("SELECT {end}({id}) AS e")).await, "42501", "{end}");
        }
        assert_eq!(code(&ann, &format!("SELECT {end}(0) AS e")).await, "ok", "{end}");
        assert_eq!(code(&ann, &format!("SELECT {end}({of_other}) AS e")).await, "ok", "{end}");
        assert_eq!(code(&home.root, &format!("SELECT {end}({of_bob}) AS e")).await, "ok", "{end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_grants_hold_for_the_next_report() {
    let home = Home::new().await;
    // Another server on the same catalog.
    let other = open(&home.directory, "log2").await;
    let report = "SELECT day, sum(clicks) FROM visits WHERE account = $1 GROUP BY day ORDER BY day";
    let planned = "SELECT day, sum(clicks) + 0 FROM visits WHERE account = $1 GROUP BY day";
    for engine in [&home.engine, &other] {
        let ann = session_of(engine, "ann");
        let mut prepared = Vec::new();
        // Whoever may not know of the table is told nothing of the columns that they would get.
        home.run("GRANT SELECT ON visits TO ann").await;
        for sql in [report, planned] {
            let statement = ann.parse(sql).await.unwrap().swap_remove(0);
            prepared.push(ann.prepare(statement, Vec::new()).await.unwrap());
        }
        home.run("REVOKE SELECT ON visits FROM ann").await;
        let codes = async || {
            let mut codes = Vec::new();
            for prepared in &prepared {
                let three = vec![ScalarValue::Int64(Some(3))];
                let outcome = match ann.execute(prepared, three).await {
                    Ok(Outcome::Rows(rows)) => rows.collect().await.map(drop),
                    outcome => outcome.map(drop),
                };
                codes.push(outcome.err().map_or("ok", |error| error.sqlstate()));
            }
            codes.dedup();
            codes
        };
        for _ in 0..2 {
            assert_eq!(codes().await, ["42501"]);
            home.run("GRANT SELECT ON visits TO ann").await;
            assert_eq!(codes().await, ["ok"]);
            home.run("REVOKE SELECT ON visits FROM ann").await;
            assert_eq!(codes().await, ["42501"]);
            home.run("GRANT SELECT (day, clicks) ON visits TO ann").await;
            assert_eq!(codes().await, ["42501"]);
            home.run("GRANT SELECT (account) ON visits TO ann").await;
            assert_eq!(codes().await, ["ok"]);
            home.run("REVOKE SELECT (clicks) ON visits FROM ann").await;
            assert_eq!(codes().await, ["42501"]);
            home.run("REVOKE ALL ON visits FROM ann").await;
            // By way of a role, a schema, and everybody.
            for (give, take) in [
                ("GRANT SELECT ON visits TO readers", "REVOKE SELECT ON visits FROM readers"),
                ("GRANT SELECT ON SCHEMA public TO ann", "REVOKE SELECT ON SCHEMA public FROM ann"),
                ("GRANT SELECT ON visits TO public", "REVOKE SELECT ON visits FROM public"),
                ("ALTER ROLE ann SUPERUSER", "ALTER ROLE ann NOSUPERUSER"),
            ] {
                if give.ends_with("readers") {
                    home.run("CREATE ROLE readers").await;
                    home.run("GRANT readers TO ann").await;
                }
                assert_eq!(codes().await, ["42501"], "before {give}");
                home.run(give).await;
                assert_eq!(codes().await, ["ok"], "{give}");
                home.run(take).await;
                assert_eq!(codes().await, ["42501"], "{take}");
                if give.ends_with("readers") {
                    home.run("DROP ROLE readers").await;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_needs_its_own_rights() {
    let home = Home::new().await;
    let ann = home.session_of("ann");
    let insert = "INSERT INTO copies VALUES (1)";
    let steps = [
        ("INSERT", insert),
        ("UPDATE", "UPDATE copies SET n = 2 WHERE n = 1"),
        ("DELETE", "DELETE FROM copies WHERE n = 2"),
    ];
    for (privilege, sql) in steps {
        home.run("REVOKE ALL ON copies FROM ann").await;
        home.run("GRANT SELECT ON copies TO ann").await;
        for (other, _) in steps.iter().filter(|(other, _)| *other != privilege) {
            home.run(&format!("GRANT {other} ON copies TO ann")).await;
        }
        assert_eq!(code(&ann, sql).await, "42501", "{sql}");
        home.run(&format!("GRANT {privilege} ON copies TO ann")).await;
        assert_eq!(code(&ann, sql).await, "ok", "{sql}");
    }
    home.run("GRANT INSERT, UPDATE, DELETE ON copies TO ann").await;
    let merge = "MERGE INTO copies USING (SELECT 7 AS m) s ON n = m WHEN NOT MATCHED THEN INSERT (n) VALUES (m)";
    assert_eq!(code(&ann, merge).await, "ok");
    home.run("REVOKE DELETE ON copies FROM ann").await;
    // A MERGE needs what its clauses do.
    assert_eq!(code(&ann, merge).await, "ok");
    let merge = "MERGE INTO copies USING (SELECT 7 AS m) s ON n = m WHEN MATCHED THEN DELETE";
    let using = "DELETE FROM copies USING (SELECT 7 AS m) s WHERE n = m";
    for sql in [merge, using, "TRUNCATE TABLE copies", "INSERT OVERWRITE copies SELECT 1"] {
        assert_eq!(code(&ann, sql).await, "42501", "{sql}");
    }
    let from = "UPDATE copies SET n = m + 1 FROM (SELECT 7 AS m) s WHERE n = m";
    assert_eq!(code(&ann, from).await, "ok");
    home.run("REVOKE UPDATE ON copies FROM ann").await;
    home.run("GRANT DELETE ON copies TO ann").await;
    assert_eq!(code(&ann, from).await, "42501");
    assert_eq!(code(&ann, using).await, "ok");
    for sql in [
        "CREATE TABLE mine (n int)",
        "CREATE TABLE mine AS SELECT 1 AS n",
        "CREATE SCHEMA mine",
        "DROP SCHEMA public CASCADE",
        "DROP TABLE copies",
        "ALTER TABLE copies ADD COLUMN m int",
        "ALTER TABLE copies RENAME TO mine",
        "ALTER TABLE copies OWNER TO ann",
        "COMPACT TABLE copies",
        "EXPIRE SNAPSHOTS FROM copies",
        "CACHE TABLE copies",
        "PURGE CACHE",
        "COPY copies FROM '/etc/passwd'",
        "CREATE ROLE eve",
        "DROP ROLE bob",
        "ALTER ROLE bob PASSWORD 'x'",
        "ALTER ROLE ann SUPERUSER",
        "GRANT SELECT ON visits TO ann",
        "GRANT SELECT ON SCHEMA public TO ann",
        "GRANT bob TO ann",
        "SELECT * FROM system.query_shapes",
    ] {
        assert_eq!(code(&ann, sql).await, "42501", "{sql}");
    }
    // The owner may, and may pass rights on.
    home.run("ALTER TABLE copies OWNER TO ann").await;
    for sql in [
        "ALTER TABLE copies ADD COLUMN m int",
        "GRANT SELECT (n) ON copies TO bob",
        "COMPACT TABLE copies",
        "TRUNCATE TABLE copies",
    ] {
        assert_eq!(code(&ann, sql).await, "ok", "{sql}");
    }
    assert_eq!(code(&home.session_of("bob"), "SELECT n FROM copies").await, "ok");
    assert_eq!(code(&home.session_of("bob"), "SELECT m FROM copies").await, "42501");
    // A table of the same name is another one.
    assert_eq!(code(&ann, "DROP TABLE copies").await, "ok");
    home.run("CREATE TABLE copies (n bigint)").await;
    assert_eq!(code(&home.session_of("bob"), "SELECT n FROM copies").await, "42501");
    home.run("DROP ROLE bob").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_that_other_processes_change_log_in_as_they_are_now() {
    let home = Home::new().await;
    let other = open(&home.directory, "log2").await;
    home.run("CREATE USER eve PASSWORD 'pencil'").await;
    assert!(other.login_secret("eve").await.unwrap().1);
    assert!(other.log_in("eve", "pencil").await.is_ok());
    home.run("ALTER USER eve PASSWORD 'brush'").await;
    assert!(other.log_in("eve", "pencil").await.is_err());
    assert!(other.log_in("eve", "brush").await.is_ok());
    home.run("ALTER ROLE eve NOLOGIN").await;
    assert!(other.log_in("eve", "brush").await.is_err());
    assert!(!other.login_secret("eve").await.unwrap().1);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_told_who_they_are_and_not_who_others_are() {
    let home = Home::new().await;
    home.run("GRANT SELECT, DELETE ON visits TO public").await;
    for sql in
        ["SELECT current_user", "SELECT session_user, count(*) FROM visits WHERE account < 99"]
    {
        for _ in 0..3 {
            for role in ["ann", "bob"] {
                let seen = said(&home.session_of(role), sql).await.unwrap();
                assert!(seen.contains(role), "{sql}: {seen}");
            }
        }
    }
    // Partitions show values; removing all rows reads none.
    home.run("CREATE TABLE parts (n int, secret text) PARTITIONED BY (secret)").await;
    home.run("INSERT INTO parts VALUES (1, 'gold')").await;
    home.run("FLUSH TABLE parts").await;
    home.run("GRANT SELECT (n), DELETE ON parts TO ann").await;
    let ann = home.session_of("ann");
    for sql in
        ["SHOW PARTITIONS FROM parts", "SHOW FILES FROM parts", "DELETE FROM parts WHERE n = 1"]
    {
        assert_eq!(code(&ann, sql).await, "42501", "{sql}");
    }
    assert_eq!(code(&ann, "DELETE FROM parts").await, "ok");
    assert_eq!(code(&ann, "TRUNCATE TABLE parts").await, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_checked_and_never_shown() {
    let home = Home::new().await;
    let engine = &home.engine;
    assert!(engine.log_in("ann", "pencil").await.is_ok());
    for (role, password) in [("ann", "pen"), ("ann", ""), ("eve", "pencil")] {
        for _ in 0..2 {
            assert_eq!(engine.log_in(role, password).await.unwrap_err().sqlstate(), "28P01");
        }
    }
    assert!(!engine.login_secret("eve").await.unwrap().1);
    let ann = home.session_of("ann");
    assert_eq!(code(&ann, "ALTER USER ann PASSWORD 'brush'").await, "ok");
    assert!(engine.log_in("ann", "pencil").await.is_err());
    assert!(engine.log_in("ann", "brush").await.is_ok());
    home.run("ALTER ROLE ann NOLOGIN").await;
    assert!(engine.log_in("ann", "brush").await.is_err());
    assert_eq!(code(&home.root, "CREATE ROLE x PASSWORD 'pencil' AND").await, "42601");
    let seen = said(&home.root, "SELECT sql FROM system.queries").await.unwrap();
    assert!(seen.contains("PASSWORD"), "{seen}");
    for secret in ["pencil", "brush"] {
        assert!(!seen.contains(secret), "{seen}");
    }
    // Everybody sees what they run themselves, and the tables that they may read.
    let tables = "SELECT name FROM system.tables";
    assert!(!said(&ann, tables).await.unwrap().contains("visits"));
    home.run("GRANT SELECT (day) ON visits TO ann").await;
    let seen = said(&ann, tables).await.unwrap();
    assert!(seen.contains("visits") && !seen.contains("copies"), "{seen}");
    let hers = said(&ann, "SELECT DISTINCT \"user\" FROM system.queries").await.unwrap();
    assert!(hers.contains("ann") && !hers.contains("stoa"), "{hers}");
}

/// Whatever was granted: a statement is answered where all its columns are among it, and only there.
#[test]
fn exactly_what_was_granted_is_read() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let home = runtime.block_on(Home::new());
    let columns = || prop::sample::subsequence(COLUMNS.to_vec(), 1..5);
    let grants = prop::collection::vec((columns(), 0_usize..4), 0..4);
    let asked = prop::collection::vec((columns(), any::<bool>()), 1..4);
    let mut runner =
        TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    let result = runner.run(&(grants, asked), |(grants, asked)| {
        runtime.block_on(async {
            home.run("REVOKE ALL ON visits FROM ann, bob, public").await;
            home.run("GRANT bob TO ann").await;
            let mut allowed = BTreeSet::new();
            for (columns, to) in grants {
                let to = ["ann", "bob", "public", "nobody_of_hers"][to];
                if to == "nobody_of_hers" {
                    continue;
                }
                home.run(&format!("GRANT SELECT ({}) ON visits TO {to}", columns.join(", "))).await;
                allowed.extend(columns);
            }
            let ann = home.session_of("ann");
            for (columns, groups) in asked {
                let sql = match (groups, columns.split_last()) {
                    (true, Some((last, keys))) if !keys.is_empty() => {
                        let keys = keys.join(", ");
                        format!("SELECT {keys}, max({last}) FROM visits GROUP BY {keys}")
                    }
                    _ => format!(
                        "SELECT {} FROM visits WHERE {} IS NOT NULL",
                        columns.join(", "),
                        columns[0]
                    ),
                };
                let may = columns.iter().all(|column| allowed.contains(column));
                let expected = if may { "ok" } else { "42501" };
                for _ in 0..3 {
                    prop_assert_eq!(code(&ann, &sql).await, expected, "{} with {:?}", sql, allowed);
                }
            }
            Ok(())
        })
    });
    result.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_shows_what_was_granted_on_it_and_no_more() {
    let home = Home::new().await;
    home.run("CREATE VIEW seen AS SELECT account, day, clicks, cost, note FROM visits").await;
    home.run("CREATE VIEW outer_seen AS SELECT * FROM seen WHERE clicks >= 0").await;
    let ann = home.session_of("ann");
    assert_eq!(code(&ann, "SELECT count(*) FROM seen").await, "42501");
    home.run("GRANT SELECT (account, day, clicks) ON seen TO ann").await;
    home.run("GRANT SELECT (account, day, clicks) ON outer_seen TO ann").await;
    home.run("GRANT INSERT ON copies TO ann").await;
    for view in ["seen", "outer_seen"] {
        let of_view = |sql: &str| sql.replace("visits", view);
        // Not on the table: the view reads with the rights of its owner.
        assert_eq!(code(&ann, "SELECT account FROM visits").await, "42501");
        for column in ["cost", "note"] {
            for sql in statements_with(column) {
                for _ in 0..3 {
                    assert_eq!(code(&ann, &of_view(&sql)).await, "42501", "{sql}");
                    let _ = said(&home.root, &of_view(&sql)).await;
                }
            }
        }
        for sql in ["SELECT * FROM visits", "INSERT INTO copies SELECT cost FROM visits"] {
            assert_eq!(code(&ann, &of_view(sql)).await, "42501", "{sql}");
        }
        for column in ["day", "clicks"] {
            for sql in statements_with(column) {
                let (hers, all) = (said(&ann, &of_view(&sql)).await, said(&home.root, &sql).await);
                let lines = |said: &Result<String, _>| {
                    // Without the names of columns, which name the view.
                    let rows = said.as_ref().unwrap().lines().skip(3);
                    let cells =
                        |row: &str| row.split('|').map(str::trim).collect::<Vec<_>>().join("|");
                    let mut lines: Vec<String> =
                        rows.filter(|row| row.starts_with('|')).map(cells).collect();
                    lines.sort();
                    lines
                };
                match sql.starts_with("EXPLAIN") {
                    true => assert!(hers.is_ok(), "{sql}: {hers:?}"),
                    false => assert_eq!(lines(&hers), lines(&all), "{sql}"),
                }
            }
        }
        assert_eq!(code(&ann, &format!("SELECT count(*) FROM {view}")).await, "ok");
    }
    let bob = home.session_of("bob");
    for sql in [
        "SELECT count(*) FROM seen",
        "SELECT 1 FROM seen WHERE false",
        "DROP VIEW seen",
        "CREATE OR REPLACE VIEW seen AS SELECT * FROM visits",
        "ALTER VIEW seen OWNER TO bob",
        "ALTER VIEW seen RENAME TO mine",
        "ALTER VIEW seen SET (security_invoker = true)",
        "GRANT SELECT ON seen TO bob",
        "CREATE VIEW mine AS SELECT * FROM visits",
    ] {
        assert_eq!(code(&bob, sql).await, "42501", "{sql}");
    }
    // What is not to be known is not listed, and neither is what it is made of.
    let listed = "SELECT table_name FROM information_schema.tables WHERE table_type = 'VIEW' AND table_schema = 'public'";
    assert!(!said(&bob, listed).await.unwrap().contains("seen"));
    assert!(said(&ann, listed).await.unwrap().contains("seen"));
    let definitions =
        "SELECT definition FROM information_schema.views WHERE table_schema = 'public'";
    assert!(!said(&ann, definitions).await.unwrap().contains("visits"));
    assert!(said(&home.root, definitions).await.unwrap().contains("visits"));
    let definitions = "SELECT definition FROM pg_views";
    assert!(!said(&ann, definitions).await.unwrap().contains("FROM visits"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_reads_with_the_rights_of_its_owner_or_of_who_asks() {
    let home = Home::new().await;
    home.run("CREATE VIEW owned AS SELECT account, clicks FROM visits").await;
    home.run(
        "CREATE VIEW asked WITH (security_invoker = true) AS SELECT account, clicks FROM visits",
    )
    .await;
    home.run("CREATE VIEW over_asked AS SELECT account FROM asked").await;
    for view in ["owned", "asked", "over_asked"] {
        home.run(&format!("GRANT SELECT ON {view} TO ann")).await;
    }
    let ann = home.session_of("ann");
    let query = |view: &str| format!("SELECT count(account) FROM {view}");
    let statement = ann.parse(&query("owned")).await.unwrap().swap_remove(0);
    let prepared = ann.prepare(statement, Vec::new()).await.unwrap();
    let executed = async || match ann.execute(&prepared, Vec::new()).await {
        Ok(Outcome::Rows(rows)) => rows.collect().await.map(drop).err().map(|e| e.sqlstate()),
        Ok(_) => None,
        Err(error) => Some(error.sqlstate()),
    };
    assert_eq!(executed().await, None);
    assert_eq!(code(&ann, &query("owned")).await, "ok");
    assert_eq!(code(&ann, &query("asked")).await, "42501");
    // The view between reads with the rights of its owner, a superuser.
    assert_eq!(code(&ann, &query("over_asked")).await, "ok");
    home.run("ALTER VIEW owned OWNER TO bob").await;
    home.run("ALTER VIEW over_asked OWNER TO bob").await;
    assert_eq!(executed().await, Some("42501"));
    assert_eq!(code(&ann, &query("owned")).await, "42501");
    home.run("GRANT SELECT (account, clicks) ON visits TO bob").await;
    assert_eq!(executed().await, None);
    assert_eq!(code(&ann, &query("owned")).await, "ok");
    // bob may not read the view between.
    assert_eq!(code(&ann, &query("over_asked")).await, "42501");
    home.run("GRANT SELECT ON asked TO bob").await;
    assert_eq!(code(&ann, &query("over_asked")).await, "ok");
    home.run("REVOKE SELECT ON owned FROM ann").await;
    assert_eq!(executed().await, Some("42501"));
    home.run("GRANT SELECT (account) ON visits TO ann").await;
    assert_eq!(code(&ann, &query("asked")).await, "ok");
    assert_eq!(code(&ann, "SELECT sum(clicks) FROM asked").await, "42501");
    // An owner looks after its view; what it cannot read, it cannot show.
    let bob = home.session_of("bob");
    assert_eq!(
        code(&bob, "CREATE OR REPLACE VIEW owned AS SELECT account, clicks, note FROM visits")
            .await,
        "ok"
    );
    assert_eq!(code(&bob, "SELECT note FROM owned").await, "42501");
    assert_eq!(code(&bob, "GRANT SELECT ON owned TO ann").await, "ok");
    assert_eq!(executed().await, None);
    assert_eq!(code(&ann, "SELECT note FROM owned").await, "42501");
    assert_eq!(code(&bob, "DROP VIEW owned").await, "ok");
    assert_eq!(executed().await, Some("42P01"));
    // A view of the same name is another one.
    home.run("CREATE VIEW owned AS SELECT account FROM visits").await;
    assert_eq!(executed().await, Some("42501"));
}
