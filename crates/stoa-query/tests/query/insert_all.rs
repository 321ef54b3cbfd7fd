//! `INSERT ALL`: one source for several tables, in one commit.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::util::display::array_value_to_string;
use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};
use url::Url;

/// An engine that asks for rights, somebody who may do everything, and `ann`.
struct Home {
    engine: Arc<Engine>,
    root: Arc<Session>,
    directory: tempfile::TempDir,
}

impl Home {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
        let spill_dir = Some(directory.path().join("spill"));
        let options = EngineOptions {
            logs: Some(url("log")),
            access_control: true,
            spill_dir,
            ..EngineOptions::new(url("warehouse"))
        };
        let engine = Engine::open(options).await.unwrap();
        let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
        let home = Self { engine, root, directory };
        home.run("CREATE USER ann").await;
        home
    }

    fn ann(&self) -> Arc<Session> {
        self.engine.session(SessionOptions { user: "ann".to_owned(), ..SessionOptions::default() })
    }

    async fn run(&self, sql: &str) -> Vec<String> {
        rows(&self.root, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

/// Rows as texts; the tag of a statement without rows.
async fn rows(session: &Session, sql: &str) -> stoa_error::Result<Vec<String>> {
    let batches = match session.sql(sql).await? {
        Outcome::Rows(rows) => rows.collect().await?,
        Outcome::Done(done) => return Ok(vec![done.tag]),
        Outcome::CopyIn(_) => panic!("{sql}"),
    };
    let mut all = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| array_value_to_string(column, row).unwrap();
            all.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" "));
        }
    }
    Ok(all)
}

async fn code(session: &Session, sql: &str) -> &'static str {
    rows(session, sql).await.err().map_or("ok", |error| error.sqlstate())
}

/// Random numbers are others each time that they are read.
#[tokio::test]
async fn the_source_is_read_once() {
    let home = Home::new().await;
    home.run("CREATE TABLE a (r double precision); CREATE TABLE b (r double precision)").await;
    home.run("CREATE TABLE src (n int); INSERT INTO src SELECT * FROM generate_series(1, 1000)")
        .await;
    let source = "(SELECT random() AS r, n FROM src) AS q";
    let sql = format!(
        "INSERT ALL (INSERT INTO a SELECT r FROM {source} WHERE n <= 600) (INSERT INTO b SELECT r FROM {source} WHERE n > 500)"
    );
    assert_eq!(home.run(&sql).await, ["INSERT 0 1100"]);
    assert_eq!(home.run("SELECT count(*) FROM a JOIN b USING (r)").await, ["100"]);
    // What differs is read by each.
    let sql = "INSERT ALL (INSERT INTO a SELECT 2 FROM generate_series(1, 3)) (INSERT INTO b SELECT 2 FROM generate_series(1, 4))";
    assert_eq!(home.run(sql).await, ["INSERT 0 7"]);
}

/// More rows than are kept in memory.
#[tokio::test]
async fn many_rows_are_kept_in_a_file() {
    let home = Home::new().await;
    home.run("CREATE TABLE src (n bigint, t text)").await;
    home.run("INSERT INTO src SELECT n, repeat(md5(n::text), 20) FROM generate_series(1, 200000) AS g(n)").await;
    home.run("CREATE TABLE a (n bigint, t text); CREATE TABLE b (k bigint, c bigint, l bigint)")
        .await;
    home.run(
        "INSERT ALL (INSERT INTO a SELECT n, t FROM src WHERE n % 2 = 0) \
         (INSERT INTO b SELECT n % 10, count(*), sum(length(t)) FROM src WHERE n > 0 GROUP BY n % 10)",
    )
    .await;
    assert_eq!(
        home.run("SELECT count(*), sum(n), sum(length(t)) FROM a").await,
        ["100000 10000100000 64000000"]
    );
    assert_eq!(home.run("SELECT count(*) FROM a WHERE t <> repeat(md5(n::text), 20)").await, ["0"]);
    assert_eq!(home.run("SELECT count(*), sum(c), sum(l) FROM b").await, ["10 200000 128000000"]);
    let mut left = walk(&home.directory.path().join("spill"));
    // That of the engine's folder.
    left.retain(|path| !path.ends_with("lock"));
    assert!(left.is_empty(), "{left:?}");
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[tokio::test]
async fn all_of_it_takes_effect_or_nothing() {
    let home = Home::new().await;
    home.run("CREATE TABLE src (n int); CREATE TABLE a (n int); CREATE TABLE b (n int)").await;
    home.run("INSERT INTO src VALUES (1), (2), (3); INSERT INTO b VALUES (7)").await;
    let fails = "INSERT ALL (INSERT INTO a SELECT n FROM src) (INSERT OVERWRITE TABLE b SELECT 1 / (n - 3) FROM src)";
    assert_eq!(code(&home.root, fails).await, "22012");
    assert_eq!(home.run("SELECT count(*) FROM a").await, ["0"]);
    assert_eq!(home.run("SELECT n FROM b").await, ["7"]);
    // In a transaction of the session, it is a part of it.
    let both = "INSERT ALL (INSERT INTO a SELECT n FROM src) (INSERT INTO b SELECT n FROM src WHERE n > 1)";
    home.run("BEGIN").await;
    home.run(both).await;
    assert_eq!(
        home.run("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)").await,
        ["3 3"]
    );
    home.run("ROLLBACK").await;
    assert_eq!(
        home.run("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)").await,
        ["0 1"]
    );
    home.run(both).await;
    assert_eq!(
        home.run("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)").await,
        ["3 3"]
    );
    home.run("SET default_transaction_read_only = on").await;
    assert_eq!(code(&home.root, both).await, "25006");
}

/// Rights are those of each INSERT, on the columns that it reads.
#[tokio::test]
async fn rights_are_those_of_each_insert() {
    let home = Home::new().await;
    home.run(
        "CREATE TABLE src (n int, hidden int); CREATE TABLE a (n int); CREATE TABLE b (n int)",
    )
    .await;
    home.run("INSERT INTO src VALUES (1, 2)").await;
    home.run("GRANT SELECT (n) ON src TO ann; GRANT INSERT ON a TO ann").await;
    let both = |column: &str, condition: &str| {
        format!(
            "INSERT ALL (INSERT INTO a SELECT n FROM src) (INSERT INTO b SELECT {column} FROM src{condition})"
        )
    };
    let ann = home.ann();
    assert_eq!(code(&ann, &both("n", "")).await, "42501");
    home.run("GRANT INSERT ON b TO ann").await;
    assert_eq!(code(&ann, &both("n", "")).await, "ok");
    assert_eq!(code(&ann, &both("hidden", "")).await, "42501");
    assert_eq!(code(&ann, &both("n", " WHERE hidden > 0")).await, "42501");
    assert_eq!(
        home.run("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)").await,
        ["1 1"]
    );
    home.run("REVOKE SELECT (n) ON src FROM ann").await;
    assert_eq!(code(&ann, &both("n", "")).await, "42501");
}

/// A view is read with the rights of its owner, the table below it with those of the reader.
#[tokio::test]
async fn views_lend_their_rights_to_nobody_else() {
    let home = Home::new().await;
    home.run("CREATE TABLE src (n int); CREATE TABLE a (n int); CREATE TABLE b (n int)").await;
    home.run("INSERT INTO src VALUES (1), (2); CREATE VIEW v AS SELECT n FROM src").await;
    home.run("GRANT SELECT ON v TO ann; GRANT INSERT ON a TO ann; GRANT INSERT ON b TO ann").await;
    let ann = home.ann();
    for [one, other] in [["v", "src"], ["src", "v"]] {
        let sql = format!(
            "INSERT ALL (INSERT INTO a SELECT n FROM {one}) (INSERT INTO b SELECT n FROM {other})"
        );
        assert_eq!(code(&ann, &sql).await, "42501", "{sql}");
    }
    let views =
        "INSERT ALL (INSERT INTO a SELECT n FROM v) (INSERT INTO b SELECT n FROM v WHERE n > 1)";
    assert_eq!(rows(&ann, views).await.unwrap(), ["INSERT 0 3"]);
}

/// Partitions are dropped by those who may delete their rows, and named to those who may read them.
#[tokio::test]
async fn partitions_need_the_rights_of_their_rows() {
    let home = Home::new().await;
    home.run("CREATE TABLE p (n int, day text) PARTITIONED BY (day)").await;
    home.run("INSERT INTO p VALUES (1, 'x'), (2, 'y')").await;
    let ann = home.ann();
    let drop = "ALTER TABLE p DROP PARTITION (day = 'x')";
    let add = "ALTER TABLE p ADD PARTITION (day = 'z')";
    let names = "SHOW PARTITION NAMES FROM p";
    for sql in [drop, add, names] {
        assert_ne!(code(&ann, sql).await, "ok", "{sql}");
    }
    home.run("GRANT DELETE ON p TO ann").await;
    assert_eq!(code(&ann, drop).await, "42501");
    assert_eq!(code(&ann, "ALTER TABLE p TRUNCATE PARTITION (day = 'x')").await, "42501");
    home.run("GRANT SELECT ON p TO ann").await;
    assert_eq!(rows(&ann, names).await.unwrap(), ["day=x", "day=y"]);
    assert_eq!(code(&ann, add).await, "42501");
    assert_eq!(code(&ann, drop).await, "ok");
    assert_eq!(rows(&ann, names).await.unwrap(), ["day=y"]);
    // In files as before they were.
    home.run("FLUSH TABLE p").await;
    assert_eq!(rows(&ann, names).await.unwrap(), ["day=y"]);
    home.run("BEGIN").await;
    home.run("ALTER TABLE p DROP PARTITION (day = 'y')").await;
    home.run("ROLLBACK").await;
    assert_eq!(home.run("SELECT n FROM p").await, ["2"]);
}

/// Hive's statements about roles, by users who are asked for their rights.
#[tokio::test]
async fn roles_are_shown_as_hive_shows_them() {
    let home = Home::new().await;
    home.run("CREATE TABLE t (n int, m int); CREATE ROLE analysts; CREATE ROLE bosses").await;
    home.root.set("dialect", Some("hive")).unwrap();
    let ann = home.ann();
    ann.set("dialect", Some("hive")).unwrap();
    assert_eq!(rows(&ann, "SHOW CURRENT ROLES").await.unwrap(), ["public"]);
    assert_eq!(code(&ann, "SET ROLE analysts").await, "42501");
    assert_eq!(code(&ann, "SET ROLE nosuch").await, "42704");
    assert_eq!(code(&ann, "SET ROLE admin").await, "42501");
    assert_eq!(code(&ann, "GRANT ROLE analysts TO USER ann").await, "42501");
    home.run("GRANT analysts TO USER ann").await;
    home.run("GRANT ROLE bosses TO ROLE analysts").await;
    assert_eq!(rows(&ann, "SHOW CURRENT ROLES").await.unwrap(), ["analysts", "bosses", "public"]);
    for role in ["analysts", "bosses", "public", "all"] {
        assert_eq!(code(&ann, &format!("SET ROLE {role}")).await, "ok", "{role}");
    }
    assert_eq!(rows(&ann, "SHOW GRANT").await.unwrap(), [] as [&str; 0]);
    home.run("GRANT SELECT (n) ON TABLE t TO ROLE analysts").await;
    assert_eq!(rows(&ann, "SELECT n FROM t").await.unwrap(), [] as [&str; 0]);
    assert_eq!(code(&ann, "SELECT m FROM t").await, "42501");
    assert_eq!(
        rows(&ann, "SHOW GRANT ON TABLE t").await.unwrap(),
        ["default t  n analysts ROLE SELECT false  "]
    );
    home.run("GRANT admin TO USER ann").await;
    assert_eq!(code(&ann, "SELECT m FROM t").await, "ok");
    assert_eq!(code(&ann, "SET ROLE admin").await, "ok");
    assert_eq!(
        rows(&ann, "SHOW CURRENT ROLES").await.unwrap(),
        ["admin", "analysts", "bosses", "public"]
    );
    home.run("REVOKE admin FROM USER ann").await;
    home.run("REVOKE ROLE analysts FROM USER ann").await;
    assert_eq!(code(&ann, "SELECT n FROM t").await, "42501");
}
