//! Statements that were prepared, and rows that were on their way, while their table was dropped, made
//! again, renamed or altered: they mean the table that has the name now, or they fail; nothing that
//! was acknowledged is missing. From the same engine and from another one on the same warehouse.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
use futures::StreamExt;
use stoa_error::Result;
use stoa_query::{
    AppendTarget, CopyIn, Engine, EngineOptions, IfExists, Outcome, Prepared, ScalarValue, Session,
    SessionOptions,
};
use url::Url;

/// Two engines on one warehouse, each with a log, and a session of each.
struct Home {
    here: Arc<Session>,
    there: Arc<Session>,
    engines: [Arc<Engine>; 2],
    _directory: tempfile::TempDir,
}

impl Home {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
        let open = || async {
            let logs = Some(url("log"));
            Engine::open(EngineOptions { logs, ..EngineOptions::new(url("warehouse")) }).await
        };
        let engines = [open().await.unwrap(), open().await.unwrap()];
        let [here, there] = engines.each_ref().map(|e| e.session(SessionOptions::default()));
        run(&here, "CREATE TABLE t (a INT, b TEXT)").await.unwrap();
        Self { here, there, engines, _directory: directory }
    }

    /// The session that changes tables while the other one holds on to what it has.
    fn changer(&self, elsewhere: bool) -> Arc<Session> {
        match elsewhere {
            true => Arc::clone(&self.there),
            false => self.engines[0].session(SessionOptions::default()),
        }
    }
}

/// Runs statements; gives back the rows of the last one, or its tag.
async fn run(session: &Session, sql: &str) -> Result<Vec<String>> {
    shown(session.sql(sql).await?).await
}

async fn shown(outcome: Outcome) -> Result<Vec<String>> {
    let rows = match outcome {
        Outcome::Done(completion) => return Ok(vec![completion.tag]),
        Outcome::CopyIn(_) => panic!("a COPY waits"),
        Outcome::Rows(rows) => rows,
    };
    let options = FormatOptions::default().with_null("NULL");
    let mut lines = Vec::new();
    for batch in rows.collect().await? {
        let columns: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        let line = |row| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>();
        lines.extend((0..batch.num_rows()).map(|row| line(row).join("|")));
    }
    lines.sort_unstable();
    Ok(lines)
}

async fn prepared(session: &Session, sql: &str) -> Prepared {
    let statement = session.parse(sql).await.unwrap().swap_remove(0);
    session.prepare(statement, Vec::new()).await.unwrap()
}

/// Executes; gives back rows or tag, or the SQLSTATE.
async fn execute(session: &Session, prepared: &Prepared, values: &[ScalarValue]) -> Vec<String> {
    match session.execute(prepared, values.to_vec()).await {
        Ok(outcome) => shown(outcome).await.unwrap_or_else(|e| vec![e.sqlstate().to_owned()]),
        Err(error) => vec![error.sqlstate().to_owned()],
    }
}

fn int(value: i32) -> ScalarValue {
    ScalarValue::Int32(Some(value))
}

fn text(value: &str) -> ScalarValue {
    ScalarValue::Utf8(Some(value.to_owned()))
}

/// Ways to say that (7, 'x') is to come into `t`.
const INSERTS: [(&str, bool); 4] = [
    ("INSERT INTO t VALUES (7, 'x')", false),
    ("INSERT INTO t (b, a) VALUES ($2, $1)", true),
    ("INSERT INTO t (a, b) SELECT $1::int, $2::text", true),
    ("INSERT INTO t (a, b) SELECT a + 7, 'x' FROM (SELECT 0 AS a) AS z", false),
];

#[tokio::test]
async fn a_prepared_insert_goes_to_the_table_that_has_the_name() {
    for elsewhere in [false, true] {
        let home = Home::new().await;
        let (here, changer) = (&home.here, home.changer(elsewhere));
        let mut statements = Vec::new();
        for (sql, has_parameters) in INSERTS {
            let values = if has_parameters { vec![int(7), text("x")] } else { Vec::new() };
            statements.push((prepared(here, sql).await, values));
        }
        let check = async |changes: &str, answer: &str, select: &str, row: &str| {
            for (statement, values) in &statements {
                run(&changer, changes).await.unwrap();
                let done = execute(here, statement, values).await;
                assert_eq!(done, [answer], "{changes}: {}", statement.statement().text());
                if !select.is_empty() {
                    for session in [here, &changer] {
                        // What the other engine has in its log is in no file yet.
                        if !(elsewhere && Arc::ptr_eq(session, &changer)) {
                            assert_eq!(run(session, select).await.unwrap(), [row], "{changes}");
                        }
                    }
                }
            }
        };
        let (all, ok) = ("SELECT * FROM t", "INSERT 0 1");
        check("TRUNCATE t", ok, "SELECT count(*) > 0 FROM t", "true").await;
        check("DROP TABLE t; CREATE TABLE t (a INT, b TEXT)", ok, all, "7|x").await;
        check("DROP TABLE IF EXISTS t", "42P01", "", "").await;
        check(
            "CREATE TABLE IF NOT EXISTS t (a INT, b TEXT)",
            ok,
            "SELECT DISTINCT a, b FROM t",
            "7|x",
        )
        .await;
        // Other columns, which the rows still fit.
        check("DROP TABLE t; CREATE TABLE t (a BIGINT, b TEXT)", ok, all, "7|x").await;
        let (statement, values) = &statements[1];
        run(&changer, "DROP TABLE t; CREATE TABLE t (b TEXT, more DATE, a BIGINT)").await.unwrap();
        assert_eq!(execute(here, statement, values).await, [ok]);
        assert_eq!(run(here, "SELECT a, b, more FROM t").await.unwrap(), ["7|x|NULL"]);
        run(&changer, "DROP TABLE t; CREATE TABLE t (a INT, b TEXT)").await.unwrap();
        let mut number = 0;
        for (statement, values) in &statements {
            number += 1;
            let changes =
                format!("ALTER TABLE t RENAME TO old{number}; CREATE TABLE t (a INT, b TEXT)");
            run(&changer, &changes).await.unwrap();
            assert_eq!(execute(here, statement, values).await, [ok]);
            assert_eq!(run(here, all).await.unwrap(), ["7|x"]);
            let before = run(here, &format!("SELECT count(*) FROM old{number}")).await.unwrap();
            assert_eq!(before, [if number == 1 { "0" } else { "1" }]);
        }
        run(&changer, "DROP TABLE t; CREATE TABLE t (a INT)").await.unwrap();
        let (statement, values) = &statements[1];
        assert_eq!(execute(here, statement, values).await, ["42703"]);
    }
}

#[tokio::test]
async fn a_table_that_cannot_take_the_rows_any_more_is_an_error() {
    let home = Home::new().await;
    let insert = prepared(&home.here, "INSERT INTO t (a, b) VALUES ($1, $2)").await;
    let values = [int(7), text("x")];
    run(&home.there, "DROP TABLE t; CREATE TABLE t (a INT, b TEXT, c INT NOT NULL)").await.unwrap();
    assert_eq!(execute(&home.here, &insert, &values).await, ["23502"]);
    run(&home.there, "DROP TABLE t; CREATE TABLE t (a TEXT, b TEXT)").await.unwrap();
    assert_eq!(execute(&home.here, &insert, &values).await, ["INSERT 0 1"]);
    assert_eq!(run(&home.here, "SELECT * FROM t").await.unwrap(), ["7|x"]);
}

#[tokio::test]
async fn a_prepared_query_reads_the_table_that_has_the_name() {
    for elsewhere in [false, true] {
        let home = Home::new().await;
        let (here, changer) = (&home.here, home.changer(elsewhere));
        let count = prepared(here, "SELECT count(*) FROM t WHERE a > $1").await;
        let rows = prepared(here, "SELECT * FROM t").await;
        let named = prepared(here, "SELECT b FROM t WHERE a = (SELECT max(a) FROM t)").await;
        for turn in 0..3 {
            run(&changer, "DROP TABLE t; CREATE TABLE t (a INT, b TEXT)").await.unwrap();
            run(&changer, &format!("INSERT INTO t VALUES ({turn}, 'y'); FLUSH TABLE t"))
                .await
                .unwrap();
            assert_eq!(execute(here, &count, &[int(-1)]).await, ["1"]);
            assert_eq!(execute(here, &rows, &[]).await, [format!("{turn}|y")]);
            assert_eq!(execute(here, &named, &[]).await, ["y"]);
        }
        // Columns that an answer does not show may change; those that it shows may not.
        run(&changer, "ALTER TABLE t ADD COLUMN c INT").await.unwrap();
        assert_eq!(execute(here, &count, &[int(-1)]).await, ["1"]);
        assert_eq!(execute(here, &named, &[]).await, ["y"]);
        assert_eq!(execute(here, &rows, &[]).await, ["0A000"]);
        run(&changer, "DROP TABLE t; CREATE TABLE t (b TEXT, c DATE, a BIGINT)").await.unwrap();
        assert_eq!(execute(here, &count, &[int(-1)]).await, ["0"]);
        run(&changer, "DROP TABLE t").await.unwrap();
        assert_eq!(execute(here, &count, &[int(-1)]).await, ["42P01"]);
        run(&changer, "CREATE TABLE t (a INT, b TEXT)").await.unwrap();
        assert_eq!(execute(here, &rows, &[]).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn prepared_changes_change_the_table_that_has_the_name() {
    for elsewhere in [false, true] {
        let home = Home::new().await;
        let (here, changer) = (&home.here, home.changer(elsewhere));
        let update = prepared(here, "UPDATE t SET b = $2 WHERE a = $1").await;
        let delete =
            prepared(here, "DELETE FROM t WHERE a IN (SELECT a FROM t WHERE b = $1)").await;
        let merge = prepared(
            here,
            "MERGE INTO t USING (SELECT 2 AS k) AS s ON t.a = s.k \
             WHEN MATCHED THEN UPDATE SET b = 'merged' \
             WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.k, 'new')",
        )
        .await;
        let overwrite = prepared(here, "INSERT OVERWRITE t SELECT a, 'over' FROM t").await;
        for form in ["(a INT, b TEXT)", "(c DATE, b TEXT, a BIGINT)", "(a INT, b TEXT)"] {
            let changes = format!(
                "DROP TABLE t; CREATE TABLE t {form}; \
                 INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'); FLUSH TABLE t"
            );
            run(&changer, &changes).await.unwrap();
            let all = "SELECT a, b FROM t";
            assert_eq!(execute(here, &update, &[int(1), text("z")]).await, ["UPDATE 1"]);
            assert_eq!(run(here, all).await.unwrap(), ["1|z", "2|y"]);
            assert_eq!(execute(here, &delete, &[text("z")]).await, ["DELETE 1"]);
            assert_eq!(execute(here, &merge, &[]).await, ["MERGE 1"]);
            assert_eq!(run(here, all).await.unwrap(), ["2|merged"]);
            match form.contains("DATE") {
                true => assert_eq!(execute(here, &overwrite, &[]).await.len(), 1),
                false => assert_eq!(execute(here, &overwrite, &[]).await, ["INSERT 0 1"]),
            }
        }
        assert_eq!(run(here, "SELECT a, b FROM t").await.unwrap(), ["2|over"]);
    }
}

#[tokio::test]
async fn a_name_means_what_it_means_in_the_sessions_namespace() {
    let home = Home::new().await;
    let here = &home.here;
    run(here, "CREATE SCHEMA other; CREATE TABLE other.t (a INT, b TEXT)").await.unwrap();
    let insert = prepared(here, "INSERT INTO t VALUES ($1, 'x')").await;
    let rows = prepared(here, "SELECT a FROM t").await;
    assert_eq!(execute(here, &insert, &[int(1)]).await, ["INSERT 0 1"]);
    assert_eq!(execute(here, &rows, &[]).await, ["1"]);
    run(here, "SET search_path = other").await.unwrap();
    assert_eq!(execute(here, &rows, &[]).await, Vec::<String>::new());
    assert_eq!(execute(here, &insert, &[int(2)]).await, ["INSERT 0 1"]);
    assert_eq!(execute(here, &rows, &[]).await, ["2"]);
    run(here, "SET search_path = public").await.unwrap();
    assert_eq!(execute(here, &rows, &[]).await, ["1"]);
}

async fn copy_in(session: &Session) -> CopyIn {
    match session.sql("COPY t FROM STDIN WITH (FORMAT csv)").await.unwrap() {
        Outcome::CopyIn(copy) => copy,
        _ => panic!("COPY wants no rows"),
    }
}

/// Rows as CSV: few, or so many that they become files.
fn lines(large: bool) -> Vec<Bytes> {
    let value = "x".repeat(if large { 1 << 20 } else { 1 });
    (0..20).map(|a| Bytes::from(format!("{a},{value}\n"))).collect()
}

#[tokio::test]
async fn a_copy_left_open_keeps_to_its_table_or_fails() {
    let create = "CREATE TABLE t (a INT, b TEXT)";
    for (large, elsewhere, sent_before) in
        [(false, false, 0), (false, true, 0), (false, false, 20), (true, true, 20)]
    {
        let home = Home::new().await;
        let (here, changer) = (&home.here, home.changer(elsewhere));
        let check = async |changes: &str, wanted: &[&str], rows: [(&str, &str); 2]| {
            let mut copy = copy_in(here).await;
            let lines = lines(large);
            let mut ended = Ok(());
            for line in &lines[..sent_before] {
                ended = ended.and(copy.send(line.clone()).await);
            }
            run(&changer, changes).await.unwrap();
            for line in &lines[sent_before..] {
                ended = ended.and(copy.send(line.clone()).await);
            }
            let code = match ended {
                Err(error) => error.sqlstate().to_owned(),
                Ok(()) => match copy.finish().await {
                    Ok(completion) => completion.tag,
                    Err(error) => error.sqlstate().to_owned(),
                },
            };
            let how = format!("{changes}, large: {large}, before: {sent_before}");
            assert!(wanted.contains(&code.as_str()), "{how}: {code}");
            for (table, count) in rows.into_iter().filter(|(table, _)| !table.is_empty()) {
                let found = run(here, &format!("SELECT count(*) FROM {table}")).await.unwrap();
                let count = if code.len() == 5 { "0" } else { count };
                assert_eq!(found, [count], "{how}: {code}");
            }
        };
        let none = ("", "");
        check("DROP TABLE t", &["42P01"], [none; 2]).await;
        run(&changer, create).await.unwrap();
        let again = format!("DROP TABLE t; {create}");
        check(&again, &["40001"], [("t", "0"), none]).await;
        let other = "DROP TABLE t; CREATE TABLE t (b DATE)";
        check(other, &["40001"], [("t", "0"), none]).await;
        run(&changer, &again).await.unwrap();
        // It keeps to its table under whatever name where rows are few.
        let renamed = if large { "42P01" } else { "COPY 20" };
        check("ALTER TABLE t RENAME TO u", &[renamed], [("u", "20"), none]).await;
        run(&changer, create).await.unwrap();
        let renamed = if large { "40001" } else { "COPY 20" };
        let changes = format!("ALTER TABLE t RENAME TO v; {create}");
        check(&changes, &[renamed], [("v", "20"), ("t", "0")]).await;
        check("TRUNCATE t", &["COPY 20"], [("t", "20"), none]).await;
    }
}

fn batch(rows: i32, bytes: usize) -> RecordBatch {
    let a: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows));
    let value = "x".repeat(bytes);
    let b: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|_| &value)));
    RecordBatch::try_from_iter_with_nullable([("a", a, true), ("b", b, true)]).unwrap()
}

#[tokio::test]
async fn batches_under_way_keep_to_their_table_or_fail() {
    for exists in [IfExists::Append, IfExists::Replace] {
        for (bytes, elsewhere) in [(1, false), (1, true), (1 << 20, true)] {
            let home = Home::new().await;
            let (here, changer) = (&home.here, home.changer(elsewhere));
            let check = async |changes: &'static str, wanted: &str| {
                let rows = batch(20, bytes);
                let schema = rows.schema();
                let changer = Arc::clone(&changer);
                let rows = futures::stream::once(async move {
                    run(&changer, changes).await.unwrap();
                    Ok(rows)
                });
                let target =
                    AppendTarget { table: "t".to_owned(), exists, ..AppendTarget::default() };
                let code = match here.append(&target, schema, rows.boxed()).await {
                    Ok(completion) => completion.tag,
                    Err(error) => error.sqlstate().to_owned(),
                };
                assert_eq!(code, wanted, "{changes}, {exists:?}, {bytes} bytes");
            };
            check("DROP TABLE t", "42P01").await;
            run(&changer, "CREATE TABLE t (a INT, b TEXT)").await.unwrap();
            check("DROP TABLE t; CREATE TABLE t (a INT, b TEXT)", "40001").await;
            assert_eq!(run(here, "SELECT count(*) FROM t").await.unwrap(), ["0"]);
            check("SELECT 1", "COPY 20").await;
            assert_eq!(run(here, "SELECT count(*) FROM t").await.unwrap(), ["20"]);
        }
    }
}

/// Whoever drops or renames a table means the table that it may drop, not one that takes its name in
/// between: rows of others are not forgotten with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drops_and_renames_that_meet_lose_no_rows() {
    let home = Home::new().await;
    let mut renamers = Vec::new();
    for turner in 0..2 {
        let session = home.engines[0].session(SessionOptions::default());
        renamers.push(stoa_env::task::spawn(async move {
            for turn in 0..40 {
                let to = format!("kept_{turner}_{turn}");
                let _ = run(&session, &format!("ALTER TABLE t RENAME TO {to}")).await;
                let _ = run(&session, "CREATE TABLE IF NOT EXISTS t (a INT, b TEXT)").await;
                let _ = run(&session, "DROP TABLE IF EXISTS t").await;
                let _ = run(&session, "CREATE TABLE IF NOT EXISTS t (a INT, b TEXT)").await;
            }
        }));
    }
    // Writers fill tables by the names that they had; those that were kept must have all rows of
    // each statement, and no statement's rows are in two of them.
    let mut acknowledged = 0;
    for number in 0..200 {
        let sql = format!("INSERT INTO t VALUES ({number}, 'x'), ({number}, 'y')");
        match run(&home.here, &sql).await {
            Ok(_) => acknowledged += 1,
            Err(error) => assert!(
                // 08007: names changed faster than they could be read.
                ["42P01", "40001", "08007"].contains(&error.sqlstate()),
                "{}: {}",
                error.sqlstate(),
                error.message()
            ),
        }
    }
    for renamer in renamers {
        renamer.await.unwrap();
    }
    assert!(acknowledged > 0);
    let mut seen = std::collections::BTreeMap::new();
    for table in home.engines[0].warehouse().tables("public").await.unwrap() {
        let select = format!("SELECT a, count(*) FROM {} GROUP BY a", table.name);
        for row in run(&home.here, &select).await.unwrap() {
            let (number, count) = row.split_once('|').unwrap();
            assert_eq!(count, "2", "statement {number} in {}", table.name);
            assert_eq!(seen.insert(number.to_owned(), table.name.clone()), None);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_read_views_as_they_are_now() {
    let home = Home::new().await;
    for elsewhere in [false, true] {
        let changer = home.changer(elsewhere);
        // Rows in the log of one engine are not known to another.
        run(&home.here, "FLUSH TABLE t").await.unwrap();
        run(&changer, "TRUNCATE t; INSERT INTO t VALUES (1, 'x'), (2, 'y'); FLUSH TABLE t")
            .await
            .unwrap();
        run(&changer, "CREATE VIEW v AS SELECT a, b FROM t").await.unwrap();
        let count = prepared(&home.here, "SELECT a, b FROM v WHERE a >= $1").await;
        let one = [ScalarValue::Int32(Some(1))];
        let asked = "SELECT a, b FROM v WHERE a >= 1";
        for _ in 0..3 {
            assert_eq!(execute(&home.here, &count, &one).await, ["1|x", "2|y"]);
            assert_eq!(run(&home.here, asked).await.unwrap(), ["1|x", "2|y"]);
        }
        run(&changer, "CREATE OR REPLACE VIEW v AS SELECT a * 10 AS a, b FROM t WHERE a > 1")
            .await
            .unwrap();
        assert_eq!(execute(&home.here, &count, &one).await, ["20|y"]);
        assert_eq!(run(&home.here, asked).await.unwrap(), ["20|y"]);
        run(&changer, "INSERT INTO t VALUES (3, 'z'); FLUSH TABLE t").await.unwrap();
        assert_eq!(run(&home.here, asked).await.unwrap(), ["20|y", "30|z"]);
        assert_eq!(execute(&home.here, &count, &one).await, ["20|y", "30|z"]);
        run(&changer, "ALTER VIEW v RENAME TO w").await.unwrap();
        assert_eq!(execute(&home.here, &count, &one).await, ["42P01"]);
        // A table of the name, and a view again.
        run(&changer, "CREATE TABLE v AS SELECT 7::int AS a, 'q' AS b").await.unwrap();
        assert_eq!(execute(&home.here, &count, &one).await, ["7|q"]);
        assert_eq!(run(&home.here, asked).await.unwrap(), ["7|q"]);
        run(&changer, "DROP TABLE v; ALTER VIEW w RENAME TO v").await.unwrap();
        assert_eq!(execute(&home.here, &count, &one).await, ["20|y", "30|z"]);
        run(&changer, "DROP VIEW v; CREATE VIEW v AS SELECT b AS a, a AS b FROM t").await.unwrap();
        assert_eq!(execute(&home.here, &count, &one).await.len(), 1);
        run(&changer, "DROP VIEW v").await.unwrap();
    }
}

#[tokio::test]
async fn defaults_are_those_of_the_moment() {
    for elsewhere in [false, true] {
        let home = Home::new().await;
        let (here, changer) = (&home.here, home.changer(elsewhere));
        let insert = prepared(here, "INSERT INTO t (a) VALUES ($1)").await;
        for (default, expected) in [("'one'", "one"), ("upper('two')", "TWO"), ("NULL", "NULL")] {
            run(&changer, &format!("ALTER TABLE t ALTER COLUMN b SET DEFAULT {default}"))
                .await
                .unwrap();
            assert_eq!(execute(here, &insert, &[int(1)]).await, ["INSERT 0 1"]);
            let Outcome::CopyIn(mut copy) = here.sql("COPY t (a) FROM STDIN").await.unwrap() else {
                panic!("COPY is no copy");
            };
            copy.send(Bytes::from("2\n3\n")).await.unwrap();
            copy.finish().await.unwrap();
            let rows = [1, 2, 3].map(|a| format!("{a}|{expected}"));
            assert_eq!(run(here, "SELECT a, b FROM t").await.unwrap(), rows, "{default}");
            run(here, "TRUNCATE t").await.unwrap();
        }
    }
}
