//! What docs/transactions.md says of transaction blocks.

use std::sync::Arc;

use arrow::array::{Array, Int64Array};
use arrow::datatypes::DataType;
use stoa_error::Error;
use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};
use tempfile::TempDir;

async fn open(folder: &TempDir, log: bool) -> Arc<Engine> {
    let url = |name: &str| url::Url::from_directory_path(folder.path().join(name)).unwrap();
    let logs = log.then(|| url("log"));
    let options = EngineOptions { logs, threads: 2, ..EngineOptions::new(url("warehouse")) };
    Engine::open(options).await.unwrap()
}

struct Home {
    engine: Arc<Engine>,
    /// Whose transactions are looked at.
    session: Arc<Session>,
    other: Arc<Session>,
    _folder: TempDir,
}

impl Home {
    async fn new(log: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(&folder, log).await;
        let (session, other) =
            (engine.session(SessionOptions::default()), engine.session(SessionOptions::default()));
        for table in ["t", "u"] {
            run(&other, &format!("CREATE TABLE {table} (k bigint)")).await.unwrap();
        }
        Self { engine, session, other, _folder: folder }
    }

    async fn run(&self, sql: &str) {
        run(&self.session, sql).await.unwrap();
    }

    async fn fails(&self, sql: &str) -> String {
        run(&self.session, sql).await.unwrap_err().sqlstate().to_owned()
    }

    /// What the transaction and what others see of `t` and of `u`.
    async fn see(&self) -> [Vec<i64>; 4] {
        let mut seen = [vec![], vec![], vec![], vec![]];
        for (nth, session) in [&self.session, &self.other].into_iter().enumerate() {
            for (table, name) in ["t", "u"].into_iter().enumerate() {
                seen[2 * nth + table] = keys(session, name).await;
            }
        }
        seen
    }
}

/// The tag.
async fn run(session: &Session, sql: &str) -> Result<String, Error> {
    match session.sql(sql).await? {
        Outcome::Done(done) => Ok(done.tag),
        Outcome::Rows(rows) => rows.collect().await.map(|_| "SELECT".to_owned()),
        Outcome::CopyIn(_) => unreachable!(),
    }
}

async fn keys(session: &Session, table: &str) -> Vec<i64> {
    let Outcome::Rows(rows) = session.sql(&format!("SELECT k FROM {table}")).await.unwrap() else {
        panic!("{table}")
    };
    let mut keys = Vec::new();
    for batch in rows.collect().await.unwrap() {
        let column = arrow::compute::cast(batch.column(0), &DataType::Int64).unwrap();
        keys.extend(column.as_any().downcast_ref::<Int64Array>().unwrap().iter().flatten());
    }
    keys.sort_unstable();
    keys
}

async fn count(session: &Session, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    let Outcome::Rows(rows) = session.sql(&sql).await.unwrap() else { panic!("{table}") };
    let batches = rows.collect().await.unwrap();
    let column = arrow::compute::cast(batches[0].column(0), &DataType::Int64).unwrap();
    column.as_any().downcast_ref::<Int64Array>().unwrap().value(0)
}

#[tokio::test]
async fn rows_are_ones_own_until_commit() {
    let home = Home::new(true).await;
    home.run("BEGIN").await;
    home.run("INSERT INTO t VALUES (1), (2)").await;
    home.run("INSERT INTO u SELECT k + 10 FROM t").await;
    home.run("INSERT INTO t VALUES (3)").await;
    assert_eq!(home.see().await, [vec![1, 2, 3], vec![11, 12], vec![], vec![]]);
    assert_eq!(count(&home.session, "t").await, 3);
    home.run("COMMIT").await;
    let all = [vec![1, 2, 3], vec![11, 12], vec![1, 2, 3], vec![11, 12]];
    assert_eq!(home.see().await, all);
    home.run("FLUSH TABLE t").await;
    home.run("FLUSH TABLE u").await;
    assert_eq!(home.see().await, all);
}

#[tokio::test]
async fn a_rollback_undoes_all() {
    for log in [true, false] {
        let home = Home::new(log).await;
        home.run("INSERT INTO t VALUES (1)").await;
        home.run("BEGIN").await;
        home.run("INSERT INTO u VALUES (2)").await;
        home.run("ROLLBACK").await;
        for change in [
            "DELETE FROM t",
            "DELETE FROM t WHERE k = 1",
            "UPDATE t SET k = 7",
            "TRUNCATE TABLE t",
            "INSERT OVERWRITE t SELECT 8",
            "MERGE INTO t USING (SELECT 1 AS s) AS x ON k = s WHEN MATCHED THEN DELETE",
        ] {
            home.run("BEGIN").await;
            home.run(change).await;
            assert_eq!(keys(&home.other, "t").await, [1], "{change}");
            home.run("ROLLBACK").await;
            assert_eq!(home.see().await, [vec![1], vec![], vec![1], vec![]], "{change}");
        }
    }
}

#[tokio::test]
async fn a_change_is_made_at_commit() {
    for log in [true, false] {
        let home = Home::new(log).await;
        home.run("INSERT INTO t VALUES (1), (2)").await;
        home.run("BEGIN").await;
        assert_eq!(run(&home.session, "UPDATE t SET k = 5 WHERE k = 1").await.unwrap(), "UPDATE 1");
        assert_eq!(keys(&home.other, "t").await, [1, 2]);
        // Rows that come meanwhile stay.
        run(&home.other, "INSERT INTO t VALUES (3)").await.unwrap();
        assert_eq!(run(&home.session, "COMMIT").await.unwrap(), "COMMIT");
        assert_eq!(keys(&home.other, "t").await, [2, 3, 5]);
    }
}

#[tokio::test]
async fn of_two_changes_of_the_same_rows_the_first_to_commit_counts() {
    let home = Home::new(true).await;
    home.run("INSERT INTO t VALUES (1)").await;
    home.run("BEGIN").await;
    home.run("UPDATE t SET k = k + 1").await;
    run(&home.other, "UPDATE t SET k = k + 10").await.unwrap();
    assert_eq!(home.fails("COMMIT").await, "40001");
    assert_eq!(home.see().await[0], [11]);
    // The transaction has ended.
    assert_eq!(run(&home.session, "UPDATE t SET k = 0").await.unwrap(), "UPDATE 1");
    assert_eq!(keys(&home.other, "t").await, [0]);
}

#[tokio::test]
async fn changes_of_several_tables_are_made_together() {
    for log in [true, false] {
        let home = Home::new(log).await;
        for table in ["t", "u"] {
            home.run(&format!("INSERT INTO {table} VALUES (1), (2)")).await;
        }
        home.run("BEGIN; DELETE FROM t WHERE k = 1; INSERT INTO t VALUES (7)").await;
        home.run("UPDATE u SET k = k + 10").await;
        home.run("SAVEPOINT a; INSERT INTO t VALUES (8); ROLLBACK TO a").await;
        assert_eq!(
            (keys(&home.other, "t").await, keys(&home.other, "u").await),
            (vec![1, 2], vec![1, 2])
        );
        home.run("COMMIT").await;
        let all = [vec![2, 7], vec![11, 12], vec![2, 7], vec![11, 12]];
        assert_eq!(home.see().await, all, "log: {log}");
        // One conflict undoes all.
        home.run("BEGIN; DELETE FROM t; INSERT INTO t VALUES (9); DELETE FROM u WHERE k = 11")
            .await;
        run(&home.other, "UPDATE u SET k = 13 WHERE k = 11").await.unwrap();
        assert_eq!(home.fails("COMMIT").await, "40001");
        assert_eq!(home.see().await[..2], [vec![2, 7], vec![12, 13]], "log: {log}");
    }
}

#[tokio::test]
async fn a_table_that_is_gone_fails_the_commit() {
    for log in [true, false] {
        for (change, sqlstate) in
            [("DROP TABLE u", "42P01"), ("DROP TABLE u; CREATE TABLE u (k bigint)", "40001")]
        {
            for write in ["INSERT INTO u VALUES (2)", "DELETE FROM u WHERE k = 5"] {
                let home = Home::new(log).await;
                run(&home.other, "INSERT INTO u VALUES (5)").await.unwrap();
                home.run("BEGIN; INSERT INTO t VALUES (1)").await;
                home.run(write).await;
                run(&home.other, change).await.unwrap();
                assert_eq!(home.fails("COMMIT").await, sqlstate, "{log}: {write}; {change}");
                assert_eq!(keys(&home.other, "t").await, [0_i64; 0], "{log}: {write}; {change}");
            }
        }
    }
}

#[tokio::test]
async fn what_takes_effect_at_once_comes_before_writes() {
    let home = Home::new(true).await;
    let done = |outcome| match outcome {
        Outcome::Done(done) => done,
        _ => panic!(),
    };
    home.run("BEGIN; SELECT * FROM t").await;
    let made = done(home.session.sql("CREATE TABLE x (k bigint)").await.unwrap());
    assert!(made.notices[0].contains("ROLLBACK"), "{made:?}");
    home.run("CREATE TABLE y AS SELECT 1 AS k").await;
    home.run("INSERT INTO x VALUES (1)").await;
    let ended = done(home.session.sql("ROLLBACK").await.unwrap());
    assert!(ended.notices[0].contains("CREATE TABLE, CREATE TABLE"), "{ended:?}");
    assert_eq!((keys(&home.other, "x").await, keys(&home.other, "y").await), (vec![], vec![1]));
    for statement in [
        "CREATE TABLE z (k bigint)",
        "CREATE TABLE z AS SELECT 1 AS k",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN c int",
        "ALTER TABLE t RENAME TO v",
        "CREATE SCHEMA s",
        "DROP SCHEMA public CASCADE",
        "FLUSH TABLE t",
        "COMPACT TABLE t",
    ] {
        for begin in [
            "BEGIN; INSERT INTO u VALUES (1)",
            "BEGIN; TRUNCATE TABLE u",
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM t",
        ] {
            home.run(begin).await;
            assert_eq!(home.fails(statement).await, "0A000", "{begin}; {statement}");
            assert_eq!(home.fails("SELECT 1").await, "25P02", "{begin}; {statement}");
            let ended = run(&home.session, "COMMIT").await.unwrap();
            assert_eq!(ended, "ROLLBACK", "{begin}; {statement}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_told_apart_is_refused() {
    let home = Home::new(true).await;
    for (first, second) in [
        ("DELETE FROM t WHERE k = 1", "SELECT * FROM t"),
        ("DELETE FROM t WHERE k = 1", "INSERT INTO u SELECT k FROM t"),
        ("DELETE FROM t WHERE k = 1", "DELETE FROM u WHERE k IN (SELECT k FROM t)"),
        ("DELETE FROM t WHERE k = 1", "UPDATE t SET k = 2"),
        ("INSERT INTO t VALUES (2)", "DELETE FROM t"),
    ] {
        run(&home.other, "TRUNCATE TABLE t").await.unwrap();
        run(&home.other, "INSERT INTO t VALUES (1)").await.unwrap();
        home.run("BEGIN").await;
        home.run(first).await;
        assert_eq!(home.fails(second).await, "0A000", "{first}; {second}");
        home.run("ROLLBACK").await;
        assert_eq!(home.see().await, [vec![1], vec![], vec![1], vec![]], "{first}; {second}");
    }
    for statement in [
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET default_transaction_isolation = 'serializable'",
    ] {
        assert_eq!(home.fails(statement).await, "0A000", "{statement}");
    }
    home.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert_eq!(home.fails("DELETE FROM t").await, "0A000");
    home.run("ROLLBACK").await;
    // Two phases: there is no such thing.
    assert_eq!(home.fails("COMMIT PREPARED 'x'").await, "42601");
}

#[tokio::test]
async fn many_rows_become_files_and_too_many_are_refused() {
    for log in [true, false] {
        let home = Home::new(log).await;
        let many = "SELECT value FROM generate_series(1, 2200000) AS s(value)";
        home.run(&format!("BEGIN; INSERT INTO t {many}; INSERT INTO t VALUES (0)")).await;
        assert_eq!(home.fails("SELECT * FROM t").await, "0A000");
        home.run("ROLLBACK").await;
        home.run(&format!("BEGIN; INSERT INTO u VALUES (1); INSERT INTO t {many}")).await;
        home.run(&format!("INSERT INTO t {many}; INSERT INTO t VALUES (0); COMMIT")).await;
        assert_eq!(count(&home.other, "t").await, 4_400_001, "log: {log}");
        assert_eq!(keys(&home.other, "u").await, [1], "log: {log}");
    }
    let home = Home::new(true).await;
    home.run("BEGIN").await;
    let some = "INSERT INTO t SELECT value FROM generate_series(1, 1500000) AS s(value)";
    let mut inserted = 0;
    let error = loop {
        match run(&home.session, some).await {
            Ok(_) => inserted += 1,
            Err(error) => break error,
        }
        assert!(inserted < 100);
    };
    assert_eq!(error.sqlstate(), "54000");
    assert!(inserted >= 2);
    home.run("ROLLBACK").await;
    let freed = async {
        while home.engine.memory_used_bytes() > 1 << 20 {
            tokio::task::yield_now().await;
        }
    };
    stoa_env::timer::timeout(std::time::Duration::from_secs(30), freed).await.unwrap();
    // What is too much for a record of the log becomes files, all at once.
    home.run(&format!("BEGIN; {some}; {some}; INSERT INTO u VALUES (1); COMMIT")).await;
    assert_eq!(count(&home.other, "t").await, 3_000_000);
    assert_eq!(keys(&home.other, "u").await, [1]);
}

#[tokio::test]
async fn reports_and_kept_results_show_ones_own_rows_to_nobody_else() {
    let home = Home::new(true).await;
    run(&home.other, "INSERT INTO t VALUES (1), (2)").await.unwrap();
    let ones = |session: Arc<Session>| async move {
        let sql = "SELECT k, count(*) AS n FROM t WHERE k = 1 GROUP BY k";
        let Outcome::Rows(rows) = session.sql(sql).await.unwrap() else { panic!() };
        let batches = rows.collect().await.unwrap();
        let counts = batches.iter().flat_map(|batch| {
            let column = arrow::compute::cast(batch.column(1), &DataType::Int64).unwrap();
            column
                .as_any()
                .downcast_ref::<Int64Array>()
                .unwrap()
                .iter()
                .flatten()
                .collect::<Vec<_>>()
        });
        counts.sum::<i64>()
    };
    for _ in 0..3 {
        assert_eq!(ones(Arc::clone(&home.other)).await, 1);
        home.run("BEGIN").await;
        assert_eq!(ones(Arc::clone(&home.session)).await, 1);
        home.run("INSERT INTO t VALUES (1)").await;
        assert_eq!(ones(Arc::clone(&home.session)).await, 2);
        assert_eq!(ones(Arc::clone(&home.session)).await, 2);
        assert_eq!(ones(Arc::clone(&home.other)).await, 1);
        home.run("ROLLBACK").await;
        assert_eq!(ones(Arc::clone(&home.session)).await, 1);
    }
}

#[tokio::test]
async fn savepoints_undo_a_part() {
    let home = Home::new(true).await;
    home.run("BEGIN").await;
    home.run("INSERT INTO t VALUES (1)").await;
    home.run("SAVEPOINT a").await;
    home.run("INSERT INTO t VALUES (2)").await;
    home.run("SAVEPOINT b").await;
    home.run("INSERT INTO u VALUES (3)").await;
    home.run("ROLLBACK TO SAVEPOINT b").await;
    assert_eq!(home.see().await, [vec![1, 2], vec![], vec![], vec![]]);
    assert_eq!(home.fails("SELECT * FROM nothing").await, "42P01");
    assert_eq!(home.fails("SELECT 1").await, "25P02");
    home.run("ROLLBACK TO a").await;
    assert_eq!(home.see().await, [vec![1], vec![], vec![], vec![]]);
    home.run("INSERT INTO t VALUES (4)").await;
    home.run("RELEASE SAVEPOINT a").await;
    assert_eq!(home.fails("ROLLBACK TO a").await, "3B001");
    home.run("ROLLBACK").await;
    assert_eq!(home.fails("SAVEPOINT a").await, "25P01");
    home.run("BEGIN; SAVEPOINT a; DELETE FROM t WHERE k > 0; ROLLBACK TO a").await;
    home.run("INSERT INTO t VALUES (5); COMMIT").await;
    assert_eq!(home.see().await, [vec![5], vec![], vec![5], vec![]]);
}

#[tokio::test]
async fn read_only_refuses_writes() {
    let home = Home::new(true).await;
    let begin = "BEGIN READ ONLY";
    let later = "BEGIN; SET TRANSACTION READ ONLY";
    let setting = "BEGIN; SET transaction_read_only = on";
    for read_only in [begin, later, setting] {
        for write in [
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t SELECT k FROM u",
            "DELETE FROM t",
            "UPDATE t SET k = 1",
            "TRUNCATE TABLE t",
            "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
            "COPY t FROM STDIN",
            "CREATE TABLE x (k bigint)",
            "DROP TABLE t",
        ] {
            home.run(read_only).await;
            home.run("SELECT * FROM t").await;
            assert_eq!(home.fails(write).await, "25006", "{read_only}: {write}");
            home.run("ROLLBACK").await;
        }
    }
    for (set, reset) in [
        ("SET default_transaction_read_only = on", "RESET default_transaction_read_only"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        ),
    ] {
        home.run(set).await;
        assert_eq!(home.fails("INSERT INTO t VALUES (1)").await, "25006", "{set}");
        home.run("BEGIN").await;
        assert_eq!(home.fails("INSERT INTO t VALUES (1)").await, "25006");
        home.run("ROLLBACK").await;
        home.run("BEGIN READ WRITE; INSERT INTO t VALUES (1); ROLLBACK").await;
        home.run(reset).await;
    }
    home.run("INSERT INTO t VALUES (9)").await;
    assert_eq!(home.see().await[2], [9]);
}

#[tokio::test]
async fn repeatable_read_reads_one_state() {
    let home = Home::new(true).await;
    run(&home.other, "INSERT INTO t VALUES (1)").await.unwrap();
    for (isolation, sees) in [
        ("", vec![1, 2]),
        ("ISOLATION LEVEL READ COMMITTED", vec![1, 2, 2]),
        ("ISOLATION LEVEL REPEATABLE READ", vec![1, 2, 2]),
    ] {
        home.run(&format!("BEGIN {isolation}")).await;
        let before = keys(&home.session, "t").await;
        run(&home.other, "INSERT INTO t VALUES (2)").await.unwrap();
        run(&home.other, "INSERT INTO u VALUES (2)").await.unwrap();
        run(&home.other, "FLUSH TABLE t").await.unwrap();
        let repeatable = isolation.contains("REPEATABLE");
        let expected = if repeatable { before } else { sees };
        assert_eq!(keys(&home.session, "t").await, expected, "{isolation}");
        assert_eq!(
            keys(&home.session, "u").await.len(),
            if repeatable { 2 } else { expected.len() - 1 }
        );
        home.run("COMMIT").await;
    }
    // One's own rows are seen all the same.
    home.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    home.run("INSERT INTO u VALUES (7)").await;
    run(&home.other, "INSERT INTO u VALUES (8)").await.unwrap();
    assert_eq!(keys(&home.session, "u").await, [2, 2, 2, 7]);
    home.run("COMMIT").await;
    assert_eq!(keys(&home.session, "u").await, [2, 2, 2, 7, 8]);
}

#[tokio::test]
async fn a_session_that_ends_commits_nothing() {
    let home = Home::new(true).await;
    let session = home.engine.session(SessionOptions::default());
    run(&session, "BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
    drop(session);
    assert_eq!(home.see().await[2], [0_i64; 0]);
}
