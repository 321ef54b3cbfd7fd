//! Files of the machine: statements write none, and read those that `file_access` names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use futures::StreamExt;
use stoa_query::{
    AppendTarget, Engine, EngineOptions, FileAccess, Outcome, Session, SessionOptions,
};
use url::Url;

/// A warehouse, and a folder beside it with files that are nobody's business.
struct Home {
    engine: Arc<Engine>,
    directory: tempfile::TempDir,
}

impl Home {
    async fn new(access_control: bool, file_access: FileAccess) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = Self::open(directory, access_control, file_access).await;
        let root = home.session("stoa", true);
        run(&root, "CREATE TABLE t (n bigint)").await;
        run(&root, "INSERT INTO t VALUES (7)").await;
        home
    }

    async fn open(
        directory: tempfile::TempDir,
        access_control: bool,
        file_access: FileAccess,
    ) -> Self {
        let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
        let options = EngineOptions {
            logs: Some(url("log")),
            access_control,
            file_access,
            ..EngineOptions::new(url("warehouse"))
        };
        Self { engine: Engine::open(options).await.unwrap(), directory }
    }

    fn session(&self, user: &str, is_trusted: bool) -> Arc<Session> {
        let user = user.to_owned();
        self.engine.session(SessionOptions { user, is_trusted, ..SessionOptions::default() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What is beside warehouse and log.
    fn files(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

async fn run(session: &Session, sql: &str) {
    let code = code(session, sql).await;
    assert_eq!(code, "ok", "{sql}");
}

/// The SQLSTATE of a statement, rows that it asks for included.
async fn code(session: &Session, sql: &str) -> &'static str {
    let ended = match session.sql(sql).await {
        Ok(Outcome::Rows(rows)) => rows.collect().await.map(drop),
        Ok(Outcome::CopyIn(copy)) => copy.finish().await.map(drop),
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    ended.err().map_or("ok", |error| error.sqlstate())
}

async fn numbers(session: &Session) -> Vec<i64> {
    let Outcome::Rows(rows) = session.sql("SELECT n FROM t ORDER BY n").await.unwrap() else {
        panic!("a query without rows");
    };
    let batches = rows.collect().await.unwrap();
    let column =
        |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    batches.iter().flat_map(column).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_statement_writes_a_file() {
    for access_control in [false, true] {
        let home = Home::new(access_control, FileAccess::Everything).await;
        let session = home.session("nobody", false);
        let before = home.files();
        let target = home.path("stolen.csv").display().to_string();
        let copies = [
            format!("COPY (SELECT 1 AS a) TO '{target}' STORED AS CSV"),
            format!("COPY (SELECT 1 AS a) TO '{target}' STORED AS JSON"),
            format!("COPY (SELECT 1 AS a) TO '{target}'"),
            format!("COPY (SELECT 1 AS a) TO 'file://{target}' STORED AS CSV"),
            format!("COPY t TO '{target}' STORED AS CSV"),
            format!("CREATE EXTERNAL TABLE x (a int) STORED AS CSV LOCATION '{target}'"),
            "CREATE TABLE x AS SELECT 1 AS a".to_owned(),
            "CREATE TABLE x (a int)".to_owned(),
            "CREATE VIEW x AS SELECT 1 AS a".to_owned(),
            "CREATE SCHEMA x".to_owned(),
            "DROP TABLE t".to_owned(),
            "DELETE FROM t".to_owned(),
            "UPDATE t SET n = 1".to_owned(),
            "TRUNCATE TABLE t".to_owned(),
            "SET search_path = 'x'".to_owned(),
            "DESCRIBE t".to_owned(),
            "EXPLAIN SELECT 1".to_owned(),
        ];
        for inner in &copies {
            for explain in
                ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE", "EXPLAIN ANALYZE VERBOSE"]
            {
                let sql = format!("{explain} {inner}");
                assert_ne!(code(&session, &sql).await, "ok", "{sql}");
                assert_eq!(home.files(), before, "{sql}");
            }
            let sql = format!("PREPARE p AS {inner}");
            assert_ne!(code(&session, &sql).await, "ok", "{sql}");
        }
        for copy in &copies[..5] {
            assert_ne!(code(&session, copy).await, "ok", "{copy}");
        }
        assert_eq!(home.files(), before);
        assert_eq!(numbers(&home.session("stoa", true)).await, [7]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_and_inserts_are_explained() {
    let home = Home::new(false, FileAccess::Off).await;
    let session = home.session("ann", false);
    for sql in [
        "EXPLAIN SELECT n FROM t WHERE n IN (SELECT n + 1 FROM t)",
        "EXPLAIN ANALYZE WITH w AS (SELECT n FROM t) SELECT count(*) FROM w GROUP BY n",
        "EXPLAIN VALUES (1), (2)",
        "EXPLAIN INSERT INTO t VALUES (8)",
        "EXPLAIN INSERT INTO t SELECT n + 1 FROM t",
    ] {
        run(&session, sql).await;
    }
    assert_eq!(numbers(&session).await, [7]);
    run(&session, "EXPLAIN ANALYZE INSERT INTO t VALUES (9)").await;
    assert_eq!(numbers(&session).await, [7, 9]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_in_named_folders_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("in/deep")).unwrap();
    std::fs::create_dir_all(path("into")).unwrap();
    for (file, row) in [("in/a.csv", 1), ("in/deep/b.csv", 2), ("into/c.csv", 3), ("d.csv", 4)] {
        std::fs::write(path(file), format!("n\n{row}\n")).unwrap();
    }
    std::os::unix::fs::symlink(path("d.csv"), path("in/link.csv")).unwrap();
    let named = FileAccess::Folders(vec![path("in")]);
    let root = directory.path().to_owned();
    let copy = |files: &[&str]| {
        let quoted = |file: &&str| format!("'{}'", root.join(file).display());
        let files: Vec<String> = files.iter().map(quoted).collect();
        format!("COPY t FROM {}", files.join(", "))
    };
    let home = Home::open(directory, true, named).await;
    let superuser = home.session("stoa", true);
    run(&superuser, "CREATE TABLE t (n bigint)").await;
    run(&superuser, "CREATE USER ann PASSWORD 'pencil'").await;
    run(&superuser, "GRANT INSERT ON t TO ann").await;

    run(&superuser, &copy(&["in/a.csv", "in/deep/b.csv"])).await;
    assert_eq!(numbers(&superuser).await, [1, 2]);
    for refused in [
        copy(&["into/c.csv"]),
        copy(&["d.csv"]),
        copy(&["in/../d.csv"]),
        copy(&["in/link.csv"]),
        copy(&["in/a.csv", "d.csv"]),
        copy(&["missing.csv"]),
        "COPY t FROM '/etc/passwd'".to_owned(),
    ] {
        assert_eq!(code(&superuser, &refused).await, "42501", "{refused}");
    }
    assert_eq!(code(&superuser, &copy(&["in/missing.csv"])).await, "58P01");
    assert_eq!(code(&home.session("ann", false), &copy(&["in/a.csv"])).await, "42501");
    assert_eq!(numbers(&superuser).await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_where_it_is_off() {
    let home =
        Home::new(false, EngineOptions::new(Url::parse("file:///x").unwrap()).file_access).await;
    let file = home.path("rows.csv");
    std::fs::write(&file, "n\n1\n").unwrap();
    let session = home.session("ann", false);
    let copy = format!("COPY t FROM '{}'", file.display());
    assert_eq!(code(&session, &copy).await, "42501");
    assert_eq!(code(&session, "COPY t FROM '/etc/passwd'").await, "42501");
    assert_eq!(numbers(&session).await, [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_client_leave_no_reject_file() {
    let home = Home::new(false, FileAccess::Everything).await;
    let session = home.session("ann", false);
    let precious = home.path("precious");
    std::fs::write(&precious, "kept").unwrap();
    let before = home.files();
    for file in [precious.clone(), home.path("new")] {
        let options = format!("(max_errors '9', reject_file '{}')", file.display());
        let copy = format!("COPY t FROM STDIN WITH {options}");
        assert_eq!(code(&session, &copy).await, "0A000", "{copy}");
        let options = [("max_errors", "9"), ("reject_file", file.to_str().unwrap())];
        let target = AppendTarget {
            table: "t".to_owned(),
            options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            ..AppendTarget::default()
        };
        let schema = Arc::new(arrow::datatypes::Schema::empty());
        let none = futures::stream::empty().boxed();
        let error = session.append(&target, schema, none).await.unwrap_err();
        assert_eq!(error.sqlstate(), "0A000");
    }
    assert_eq!(code(&session, "COPY t FROM STDIN WITH (max_errors '9')").await, "0A000");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    assert_eq!(home.files(), before);
    // Without such options rows come as ever.
    let Outcome::CopyIn(mut copy) = session.sql("COPY t FROM STDIN").await.unwrap() else {
        panic!("COPY wants rows");
    };
    copy.send(Bytes::from_static(b"8\n")).await.unwrap();
    copy.finish().await.unwrap();
    assert_eq!(numbers(&session).await, [7, 8]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reject_file_is_new_and_in_a_named_folder() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("in")).unwrap();
    std::fs::write(path("in/rows.csv"), "n\n1\nx\n").unwrap();
    std::fs::write(path("in/precious"), "kept").unwrap();
    std::os::unix::fs::symlink(path("outside"), path("in/link")).unwrap();
    let (root, named) = (directory.path().to_owned(), FileAccess::Folders(vec![path("in")]));
    let home = Home::open(directory, false, named).await;
    let session = home.session("ann", false);
    run(&session, "CREATE TABLE t (n bigint)").await;
    let copy = |file: &Path| {
        let rows = root.join("in/rows.csv");
        let (rows, file) = (rows.display(), file.display());
        format!("COPY t FROM '{rows}' WITH (max_errors '1', reject_file '{file}')")
    };
    for (file, expected) in [
        ("outside", "42501"),
        ("in/../outside", "42501"),
        ("in/precious", "58P02"),
        ("in/link", "58P02"),
    ] {
        assert_eq!(code(&session, &copy(&root.join(file))).await, expected, "{file}");
    }
    assert_eq!(std::fs::read_to_string(root.join("in/precious")).unwrap(), "kept");
    assert!(!root.join("outside").exists());
    assert!(numbers(&session).await.is_empty());
    run(&session, &copy(&root.join("in/bad.csv"))).await;
    assert_eq!(numbers(&session).await, [1]);
    let rejected = std::fs::read_to_string(root.join("in/bad.csv")).unwrap();
    assert!(rejected.ends_with("\nx\n"), "{rejected}");
}
