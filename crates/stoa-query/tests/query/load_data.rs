//! `LOAD DATA` of files that Hive 4.0.1 wrote (`INSERT OVERWRITE LOCAL DIRECTORY … STORED AS ORC`), and of others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::util::display::array_value_to_string;
use stoa_query::{Engine, EngineOptions, FileAccess, Outcome, Session, SessionOptions};
use url::Url;

struct Home {
    session: Arc<Session>,
    engine: Arc<Engine>,
    directory: tempfile::TempDir,
}

impl Home {
    /// Files may be read that are in `files`, where those of Hive are.
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["typed", "pair"] {
            let to = directory.path().join("files").join(folder);
            std::fs::create_dir_all(&to).unwrap();
            let from = Path::new("tests/hiveql/files").join(folder).join("000000_0");
            std::fs::copy(from, to.join("000000_0")).unwrap();
            // What Hive does not see.
            std::fs::write(to.join("_SUCCESS"), "").unwrap();
            std::fs::write(to.join(".000000_0.crc"), "crc").unwrap();
        }
        std::fs::create_dir(directory.path().join("elsewhere")).unwrap();
        let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
        let options = EngineOptions {
            logs: Some(url("log")),
            access_control: true,
            file_access: FileAccess::Folders(vec![directory.path().join("files")]),
            ..EngineOptions::new(url("warehouse"))
        };
        let engine = Engine::open(options).await.unwrap();
        let trusted = SessionOptions { is_trusted: true, ..SessionOptions::default() };
        let session = engine.session(trusted);
        session.sql("CREATE USER ann").await.unwrap();
        session.set("dialect", Some("hive")).unwrap();
        Self { session, engine, directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("files").join(name)
    }

    async fn run(&self, sql: &str) -> Vec<String> {
        rows(&self.session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    async fn load(&self, name: &str, into: &str) -> &'static str {
        let path = self.path(name);
        let sql = format!("LOAD DATA LOCAL INPATH '{}' {into}", path.display());
        rows(&self.session, &sql).await.err().map_or("ok", |error| error.sqlstate())
    }
}

async fn rows(session: &Session, sql: &str) -> stoa_error::Result<Vec<String>> {
    let Outcome::Rows(stream) = session.sql(sql).await? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for batch in stream.collect().await? {
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| array_value_to_string(column, row).unwrap();
            all.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join("|"));
        }
    }
    Ok(all)
}

#[tokio::test]
async fn values_are_those_that_hive_wrote() {
    let home = Home::new().await;
    home.run("CREATE TABLE x (id int, name string, d double, m decimal(10,2), day date, ts timestamp, ok boolean)")
        .await;
    assert_eq!(home.load("typed", "INTO TABLE x").await, "ok");
    let expected = [
        "1|Ann|1.5|2.25|2024-05-01|2024-05-01T10:00:00.500|true",
        "2||||||",
        "3|ü|-0.5|-1.00|1969-12-31|1969-12-31T23:59:59|false",
    ];
    assert_eq!(home.run("SELECT * FROM x ORDER BY id").await, expected);
    // The files stay, and can be loaded again.
    assert_eq!(home.load("typed/000000_0", "OVERWRITE INTO TABLE x").await, "ok");
    assert_eq!(home.run("SELECT * FROM x ORDER BY id").await, expected);
    let uri = format!("LOAD DATA INPATH 'file://{}' INTO TABLE x", home.path("typed").display());
    home.run(&uri).await;
    assert_eq!(home.run("SELECT count(*) FROM x").await, ["6"]);
}

#[tokio::test]
async fn partitions_get_their_values() {
    let home = Home::new().await;
    home.run("CREATE TABLE t (id int, name string) PARTITIONED BY (day date, hour int)").await;
    let of = |day: &str| format!("INTO TABLE t PARTITION (day='{day}', hour=1)");
    assert_eq!(home.load("pair", &of("2024-05-01")).await, "ok");
    assert_eq!(home.load("pair", &of("2024-05-02")).await, "ok");
    assert_eq!(home.load("pair", &of("2024-05-02")).await, "ok");
    assert_eq!(home.load("pair", &format!("OVERWRITE {}", of("2024-05-02"))).await, "ok");
    let rows = home.run("SELECT * FROM t ORDER BY day, id").await;
    let row = |day: &str, rest: &str| format!("{rest}|{day}|1");
    let expected: Vec<String> = ["2024-05-01", "2024-05-02"]
        .iter()
        .flat_map(|day| ["1|Ann", "2|", "3|ü"].map(|rest| row(day, rest)))
        .collect();
    assert_eq!(rows, expected);
    assert_eq!(
        home.run("SHOW PARTITIONS t").await,
        ["day=2024-05-01/hour=1", "day=2024-05-02/hour=1"]
    );
    for (into, code) in [
        ("INTO TABLE t", "42703"),
        ("INTO TABLE t PARTITION (day='2024-05-01')", "42601"),
        ("INTO TABLE t PARTITION (day='x', hour=1)", "22P02"),
        ("INTO TABLE t PARTITION (id=1)", "42703"),
        ("INTO TABLE nosuch", "42P01"),
    ] {
        assert_eq!(home.load("pair", into).await, code, "{into}");
    }
    assert_eq!(home.run("SELECT count(*) FROM t").await, ["6"]);
}

#[tokio::test]
async fn a_load_that_fails_changes_nothing() {
    let home = Home::new().await;
    home.run("CREATE TABLE t (id int, name string)").await;
    assert_eq!(home.load("pair", "INTO TABLE t").await, "ok");
    std::fs::write(home.path("pair/zzz.csv"), "id,name\n7,x\nseven,x\n").unwrap();
    assert_eq!(home.load("pair", "OVERWRITE INTO TABLE t").await, "22P02");
    assert_eq!(home.run("SELECT id FROM t ORDER BY id").await, ["1", "2", "3"]);
    std::fs::write(home.path("pair/zzz.csv"), "id,name\n7,x\n").unwrap();
    assert_eq!(home.load("pair", "OVERWRITE INTO TABLE t").await, "ok");
    assert_eq!(home.run("SELECT id FROM t ORDER BY id").await, ["1", "2", "3", "7"]);
}

#[tokio::test]
async fn only_files_that_may_be_named_are_read() {
    let home = Home::new().await;
    home.run("CREATE TABLE t (id int, name string)").await;
    assert_eq!(home.load("nosuch", "INTO TABLE t").await, "58P01");
    assert_eq!(home.load("../elsewhere", "INTO TABLE t").await, "42501");
    assert_eq!(home.load("../nosuch", "INTO TABLE t").await, "42501");
    std::fs::create_dir(home.path("empty")).unwrap();
    assert_eq!(home.load("empty", "INTO TABLE t").await, "58P01");
    let s3 = rows(&home.session, "LOAD DATA INPATH 's3://b/x' INTO TABLE t").await.unwrap_err();
    assert_eq!((s3.sqlstate(), s3.hint().is_some()), ("0A000", true));
    home.run("GRANT ALL ON TABLE t TO USER ann").await;
    let user = "ann".to_owned();
    let ann = home.engine.session(SessionOptions { user, ..SessionOptions::default() });
    for overwrite in ["", "OVERWRITE "] {
        let path = home.path("pair");
        let sql = format!("LOAD DATA INPATH '{}' {overwrite}INTO TABLE t", path.display());
        assert_eq!(rows(&ann, &sql).await.unwrap_err().sqlstate(), "42501");
    }
    assert_eq!(home.run("SELECT count(*) FROM t").await, ["0"]);
}
