//! Every statement reads one state of all its tables, and what was acknowledged stays.
//!
//! Sessions write and change tables at the same time; what they were told is kept beside, in a
//! ledger, and compared with what the tables hold. `STOA_ONE_STATE_ROUNDS` multiplies the work.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arrow::array::{Array, Int64Array};
use arrow::datatypes::DataType;
use stoa_error::{Error, ErrorKind};
use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};

/// How much more than by default.
fn rounds() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the size of a test is no setting")]
    let rounds = std::env::var("STOA_ONE_STATE_ROUNDS");
    rounds.ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A warehouse and an engine on it that writes through a log.
struct Home {
    engine: Arc<Engine>,
    folder: tempfile::TempDir,
}

impl Home {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(&folder).await;
        Self { engine, folder }
    }

    /// One more server on the same warehouse.
    async fn another(&self) -> Arc<Engine> {
        open(&self.folder).await
    }

    fn session(&self) -> Arc<Session> {
        self.engine.session(SessionOptions::default())
    }

    async fn run(&self, sql: &str) {
        done(&self.session(), sql).await;
    }

    async fn numbers(&self, sql: &str) -> Vec<i64> {
        numbers(&self.session(), sql).await
    }
}

async fn open(folder: &tempfile::TempDir) -> Arc<Engine> {
    let url = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        url::Url::from_directory_path(path).unwrap()
    };
    let options = EngineOptions {
        logs: Some(url("log")),
        memory_limit_bytes: 512 << 20,
        threads: 2,
        query_slots: 32,
        ..EngineOptions::new(url("warehouse"))
    };
    Engine::open(options).await.unwrap()
}

/// The rows that a statement changed; an error that says nothing was done is given back.
async fn run(session: &Session, sql: &str) -> Result<u64, Error> {
    match session.sql(sql).await? {
        Outcome::Done(done) => Ok(done.rows),
        Outcome::Rows(rows) => Ok(rows.collect().await?.iter().map(|b| b.num_rows() as u64).sum()),
        Outcome::CopyIn(_) => unreachable!(),
    }
}

/// Runs a statement again for as long as others come first.
async fn done(session: &Session, sql: &str) -> u64 {
    loop {
        match run(session, sql).await {
            Ok(rows) => return rows,
            Err(error) if error.kind() == ErrorKind::Conflict => {
                assert_eq!(error.sqlstate(), "40001")
            }
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }
}

/// The first column of an answer, in order.
async fn numbers(session: &Session, sql: &str) -> Vec<i64> {
    let Outcome::Rows(rows) = session.sql(sql).await.unwrap() else { panic!("{sql}") };
    let mut numbers = Vec::new();
    for batch in rows.collect().await.unwrap() {
        let column = arrow::compute::cast(batch.column(0), &DataType::Int64).unwrap();
        let column = column.as_any().downcast_ref::<Int64Array>().unwrap();
        assert_eq!(column.null_count(), 0);
        numbers.extend(column.values().iter().copied());
    }
    numbers.sort_unstable();
    numbers
}

/// Sessions that insert keys into tables, one after the other, until told to stop.
struct Writers {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<Vec<i64>>>,
}

impl Writers {
    /// Each key goes into all of `tables`, in their order.
    fn start(home: &Home, sessions: usize, tables: &[&'static str]) -> Self {
        let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(1)));
        let tables: Arc<[&'static str]> = tables.into();
        let task = |_| {
            let (stop, next, session) = (Arc::clone(&stop), Arc::clone(&next), home.session());
            let tables = Arc::clone(&tables);
            stoa_env::task::spawn(async move {
                let mut acknowledged = Vec::new();
                while !stop.load(Ordering::Acquire) {
                    let key = next.fetch_add(1, Ordering::Relaxed);
                    for table in tables.iter() {
                        let sql = format!("INSERT INTO {table} VALUES ({key}, {key})");
                        assert_eq!(run(&session, &sql).await.unwrap(), 1);
                    }
                    acknowledged.push(key);
                }
                acknowledged
            })
        };
        let tasks = (0..sessions).map(task).collect();
        Self { stop, tasks }
    }

    /// All keys that were acknowledged, in order.
    async fn end(self) -> Vec<i64> {
        self.stop.store(true, Ordering::Release);
        let mut all = Vec::new();
        for task in self.tasks {
            all.extend(task.await.unwrap());
        }
        all.sort_unstable();
        all
    }
}

/// Runs `changes`, each in a session of its own, `times` times beside writers of `tables`; gives
/// back the keys that were acknowledged.
async fn beside_writers(
    home: &Home,
    tables: &[&'static str],
    changes: &[&str],
    times: i64,
) -> Vec<i64> {
    let writers = Writers::start(home, 4, tables);
    let tasks: Vec<_> = changes
        .iter()
        .map(|sql| {
            let (session, sql) = (home.session(), (*sql).to_owned());
            stoa_env::task::spawn(async move {
                for _ in 0..times * rounds() {
                    done(&session, &sql).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    writers.end().await
}

/// Changes that must leave every row of `t` there.
async fn nothing_is_lost(changes: &[&str]) {
    let home = Home::new().await;
    home.run("CREATE TABLE t (k bigint, v bigint)").await;
    let acknowledged = beside_writers(&home, &["t"], changes, 12).await;
    assert!(acknowledged.len() > 10, "{}", acknowledged.len());
    assert_eq!(home.numbers("SELECT k FROM t").await, acknowledged);
    home.run("FLUSH TABLE t").await;
    assert_eq!(home.numbers("SELECT k FROM t").await, acknowledged);
}

#[tokio::test(flavor = "multi_thread")]
async fn overwriting_a_table_with_itself_loses_no_row() {
    nothing_is_lost(&["INSERT OVERWRITE t SELECT k, v FROM t"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overwriting_a_table_with_itself_beside_updates_loses_no_row() {
    let changes =
        ["INSERT OVERWRITE t SELECT k, v FROM t", "UPDATE t SET v = v + 1 WHERE k % 3 = 0"];
    nothing_is_lost(&changes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_of_rows_that_the_table_does_not_have_deletes_none() {
    nothing_is_lost(&["DELETE FROM t WHERE k NOT IN (SELECT k FROM t)"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_of_a_table_with_itself_finds_every_row() {
    let merge = "MERGE INTO t USING (SELECT k AS s, v FROM t) AS x ON t.k = x.s \
                 WHEN NOT MATCHED BY SOURCE THEN DELETE";
    nothing_is_lost(&[merge]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_came_after_another_is_not_seen_without_it() {
    let home = Home::new().await;
    home.run("CREATE TABLE parent (k bigint, v bigint)").await;
    home.run("CREATE TABLE child (k bigint, v bigint)").await;
    let orphans = home.session();
    let stop = Arc::new(AtomicBool::new(false));
    let reader = stoa_env::task::spawn({
        let stop = Arc::clone(&stop);
        async move {
            while !stop.load(Ordering::Acquire) {
                let sql = "SELECT k FROM child WHERE k NOT IN (SELECT k FROM parent)";
                assert_eq!(numbers(&orphans, sql).await, [0_i64; 0]);
            }
        }
    });
    let changes = ["DELETE FROM child WHERE k NOT IN (SELECT k FROM parent)", "FLUSH TABLE parent"];
    let acknowledged = beside_writers(&home, &["parent", "child"], &changes, 12).await;
    stop.store(true, Ordering::Release);
    reader.await.unwrap();
    assert_eq!(home.numbers("SELECT k FROM child").await, acknowledged);
}

#[tokio::test(flavor = "multi_thread")]
async fn relaxed_rows_are_not_seen_without_those_before_them() {
    let home = Home::new().await;
    for table in ["parent", "child"] {
        home.run(&format!(
            "CREATE TABLE {table} (k bigint, v bigint) \
             TBLPROPERTIES ('stoa.log-sync' = 'off')"
        ))
        .await;
    }
    let changes = [
        "DELETE FROM child WHERE k NOT IN (SELECT k FROM parent)",
        "MERGE INTO parent USING child ON parent.k = child.k \
         WHEN NOT MATCHED THEN INSERT VALUES (child.k, -1)",
    ];
    let acknowledged = beside_writers(&home, &["parent", "child"], &changes, 12).await;
    assert_eq!(home.numbers("SELECT k FROM child").await, acknowledged);
    assert_eq!(home.numbers("SELECT k FROM parent").await, acknowledged);
}

/// Sessions of `engines` add one, so many times; every addition that was acknowledged counts.
async fn increments_add_up(engines: &[Arc<Engine>], sql: &str) {
    let first = engines[0].session(SessionOptions::default());
    done(&first, "CREATE TABLE c (id bigint, v bigint)").await;
    done(&first, "INSERT INTO c VALUES (1, 0)").await;
    done(&first, "FLUSH TABLE c").await;
    let (each, sessions) = (5 * rounds(), 4);
    let tasks: Vec<_> = (0..sessions)
        .map(|nth| {
            let engine = &engines[nth % engines.len()];
            let (session, sql) = (engine.session(SessionOptions::default()), sql.to_owned());
            stoa_env::task::spawn(async move {
                for _ in 0..each {
                    assert_eq!(done(&session, &sql).await, 1);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(numbers(&first, "SELECT v FROM c").await, [each * sessions as i64]);
}

const INCREMENT: &str = "MERGE INTO c USING (SELECT id AS i, v + 1 AS n FROM c) AS s ON c.id = s.i \
                         WHEN MATCHED THEN UPDATE SET v = s.n";

#[tokio::test(flavor = "multi_thread")]
async fn increments_by_a_merge_from_the_table_itself_are_all_there() {
    let home = Home::new().await;
    increments_add_up(&[Arc::clone(&home.engine)], INCREMENT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn increments_on_two_servers_are_all_there() {
    let home = Home::new().await;
    let engines = [Arc::clone(&home.engine), home.another().await];
    increments_add_up(&engines, INCREMENT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inserts_of_the_next_number_give_each_number_once() {
    let home = Home::new().await;
    home.run("CREATE TABLE n (k bigint)").await;
    let each = 5 * rounds();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let session = home.session();
            stoa_env::task::spawn(async move {
                for _ in 0..each {
                    done(&session, "INSERT INTO n SELECT coalesce(max(k), 0) + 1 FROM n").await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(home.numbers("SELECT k FROM n").await, (1..=4 * each).collect::<Vec<_>>());
}

/// Two statements at the same time, each of which reads what the other changes, on tables with one
/// row each (or none): one of them must have seen what the other did.
async fn one_of_two_comes_first(
    engines: &[Arc<Engine>],
    filled: bool,
    statements: [&str; 2],
    left: i64,
) {
    let first = engines[0].session(SessionOptions::default());
    for table in ["a", "b"] {
        done(&first, &format!("CREATE TABLE {table} (k bigint)")).await;
    }
    for _ in 0..12 * rounds() {
        for table in ["a", "b"] {
            done(&first, &format!("TRUNCATE TABLE {table}")).await;
            if filled {
                done(&first, &format!("INSERT INTO {table} VALUES (1)")).await;
            }
            done(&first, &format!("FLUSH TABLE {table}")).await;
        }
        let tasks: Vec<_> = statements
            .iter()
            .enumerate()
            .map(|(nth, sql)| {
                let engine = &engines[nth % engines.len()];
                let (session, sql) = (engine.session(SessionOptions::default()), (*sql).to_owned());
                stoa_env::task::spawn(async move { done(&session, &sql).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let rows = numbers(&first, "SELECT k FROM a UNION ALL SELECT k FROM b").await;
        assert_eq!(rows.len() as i64, left, "{statements:?}");
    }
}

const DELETES: [&str; 2] =
    ["DELETE FROM a WHERE k IN (SELECT k FROM b)", "DELETE FROM b WHERE k IN (SELECT k FROM a)"];

#[tokio::test(flavor = "multi_thread")]
async fn of_two_deletes_one_sees_the_other() {
    let home = Home::new().await;
    one_of_two_comes_first(&[Arc::clone(&home.engine)], true, DELETES, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_deletes_on_two_servers_one_sees_the_other() {
    let home = Home::new().await;
    let engines = [Arc::clone(&home.engine), home.another().await];
    one_of_two_comes_first(&engines, true, DELETES, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_inserts_one_sees_the_other() {
    let home = Home::new().await;
    let inserts = [
        "INSERT INTO a SELECT count(*) FROM b HAVING count(*) = 0",
        "INSERT INTO b SELECT count(*) FROM a HAVING count(*) = 0",
    ];
    one_of_two_comes_first(&[Arc::clone(&home.engine)], false, inserts, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_insert_and_a_delete_one_sees_the_other() {
    let home = Home::new().await;
    let statements =
        ["DELETE FROM a WHERE k + 1 NOT IN (SELECT k FROM b)", "INSERT INTO b SELECT k + 1 FROM a"];
    let engines = [Arc::clone(&home.engine)];
    let session = home.session();
    for table in ["a", "b"] {
        home.run(&format!("CREATE TABLE {table} (k bigint)")).await;
    }
    for _ in 0..12 * rounds() {
        home.run("TRUNCATE TABLE a").await;
        home.run("TRUNCATE TABLE b").await;
        home.run("INSERT INTO a VALUES (1)").await;
        let tasks = statements.map(|sql| {
            let session = engines[0].session(SessionOptions::default());
            stoa_env::task::spawn(async move { done(&session, sql).await })
        });
        for task in tasks {
            task.await.unwrap();
        }
        // The delete first: a and b are empty. The insert first: a has its row and b the copy.
        let (a, b) = (
            numbers(&session, "SELECT k FROM a").await,
            numbers(&session, "SELECT k FROM b").await,
        );
        assert!((a.len(), b.len()) == (0, 0) || (a.len(), b.len()) == (1, 1), "{a:?} {b:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_no_state_that_never_was() {
    let home = Home::new().await;
    home.run("CREATE TABLE s (k bigint)").await;
    home.run("INSERT INTO s VALUES (0)").await;
    let (stop, session) = (Arc::new(AtomicBool::new(false)), home.session());
    let reader = stoa_env::task::spawn({
        let stop = Arc::clone(&stop);
        async move {
            let mut seen = BTreeSet::new();
            while !stop.load(Ordering::Acquire) {
                let rows = numbers(&session, "SELECT k FROM s").await;
                assert!(rows.len() < 2, "{rows:?}");
                seen.extend(rows);
            }
            seen
        }
    });
    let writer = home.session();
    for k in 1..30 * rounds() {
        done(&writer, "DELETE FROM s").await;
        done(&writer, &format!("INSERT INTO s VALUES ({k})")).await;
    }
    stop.store(true, Ordering::Release);
    assert!(!reader.await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_another_server_has_not_brought_into_files_are_not_changed() {
    let home = Home::new().await;
    let other = home.another().await.session(SessionOptions::default());
    home.run("CREATE TABLE t (k bigint)").await;
    home.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(done(&other, "INSERT INTO t VALUES (2)").await, 1);
    assert_eq!(home.numbers("SELECT k FROM t").await, [1]);
    assert_eq!(done(&home.session(), "DELETE FROM t WHERE k > 0").await, 1);
    assert_eq!(numbers(&other, "SELECT k FROM t").await, [2]);
    done(&other, "FLUSH TABLE t").await;
    assert_eq!(home.numbers("SELECT k FROM t").await, [2]);
    assert_eq!(done(&home.session(), "DELETE FROM t WHERE k > 0").await, 1);
    assert_eq!(numbers(&other, "SELECT k FROM t").await, [0_i64; 0]);
}
