//! External tables: files in Hive's layout, read where they lie and written back, with the rights of any table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::hiveql;
use arrow::array::ArrayRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use stoa_query::{Engine, EngineOptions, FileAccess, Outcome, Session, SessionOptions};
use url::Url;

struct Home {
    engine: Arc<Engine>,
    session: Arc<Session>,
    directory: tempfile::TempDir,
}

async fn open(directory: &Path, log: &str) -> Arc<Engine> {
    let url = |name: &str| Url::from_directory_path(directory.join(name)).unwrap();
    let options = EngineOptions {
        logs: Some(url(log)),
        access_control: true,
        file_access: FileAccess::Folders(vec![directory.join("files")]),
        ..EngineOptions::new(url("warehouse"))
    };
    Engine::open(options).await.unwrap()
}

impl Home {
    /// Statements of HiveQL, by a superuser; files may be in `files`.
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["files", "elsewhere"] {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
        }
        let engine = open(directory.path(), "log").await;
        let trusted = SessionOptions { is_trusted: true, ..SessionOptions::default() };
        let session = engine.session(trusted);
        session.sql("CREATE USER ann").await.unwrap();
        session.set("dialect", Some("hive")).unwrap();
        Self { engine, session, directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("files").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    async fn run(&self, sql: &str) -> Vec<String> {
        rows(&self.session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    async fn code(&self, sql: &str) -> &'static str {
        rows(&self.session, sql).await.err().map_or("ok", |error| error.sqlstate())
    }

    /// `CREATE EXTERNAL TABLE name (columns) rest LOCATION 'files/name'`.
    async fn create(&self, name: &str, columns: &str, rest: &str) {
        let path = self.path(name);
        self.run(&format!(
            "CREATE EXTERNAL TABLE {name} ({columns}) {rest} LOCATION '{}'",
            path.display()
        ))
        .await;
    }

    /// Names of files and directories below a directory, hidden ones too.
    fn names(&self, name: &str) -> Vec<String> {
        fn walk(path: &Path, all: &mut Vec<String>) {
            for entry in std::fs::read_dir(path).unwrap() {
                let path = entry.unwrap().path();
                all.push(path.file_name().unwrap().to_string_lossy().into_owned());
                if path.is_dir() {
                    walk(&path, all);
                }
            }
        }
        let mut all = Vec::new();
        walk(&self.path(name), &mut all);
        all.sort();
        all
    }
}

async fn rows(session: &Session, sql: &str) -> stoa_error::Result<Vec<String>> {
    let Outcome::Rows(stream) = session.sql(sql).await? else { return Ok(Vec::new()) };
    let options = FormatOptions::default().with_null("NULL");
    let mut all = Vec::new();
    for batch in stream.collect().await? {
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| {
                ArrayFormatter::try_new(column, &options).unwrap().value(row).to_string()
            };
            all.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join("|"));
        }
    }
    Ok(all)
}

#[tokio::test]
async fn texts_are_read_where_they_lie() {
    let home = Home::new().await;
    home.write("visits/day=2024-05-01/a", "1\u{1}Ann\n2\u{1}\\N\n");
    home.write("visits/day=2024-05-02/a", "3\u{1}Bob\nx\u{1}Cid\u{1}more\n");
    home.write("visits/day=__HIVE_DEFAULT_PARTITION__/a", "9\n");
    home.write("visits/day=2024-05-02/_SUCCESS", "no\n");
    home.write("visits/_tmp/a", "no\n");
    home.write("visits/other/a", "no\n");
    home.create("visits", "id int, name string", "PARTITIONED BY (day date)").await;
    let all = "SELECT * FROM visits ORDER BY day, id";
    assert_eq!(
        home.run(all).await,
        [
            "9|NULL|NULL",
            "1|Ann|2024-05-01",
            "2|NULL|2024-05-01",
            "NULL|Cid|2024-05-02",
            "3|Bob|2024-05-02"
        ]
    );
    assert_eq!(home.run("SELECT count(*) FROM visits").await, ["5"]);
    assert_eq!(
        home.run("SELECT count(*), max(day) FROM visits WHERE day > '2024-05-01'").await,
        ["2|2024-05-02"]
    );
    let plan = home
        .run("EXPLAIN SELECT name FROM visits WHERE day = '2024-05-02' AND id > 0")
        .await
        .join("\n");
    assert!(plan.contains("partitions=1/3, files=1"), "{plan}");
    // What is new is there for the next statement.
    home.write("visits/day=2024-05-03/a", "4\u{1}Dan\n");
    home.write("visits/day=2024-05-01/b", "5\u{1}Eve\n");
    assert_eq!(home.run("SELECT sum(id) FROM visits").await, ["24"]);
    assert_eq!(
        home.run("SHOW PARTITIONS visits").await,
        ["day=2024-05-01", "day=2024-05-02", "day=2024-05-03", "day=__HIVE_DEFAULT_PARTITION__"]
    );
    assert_eq!(home.run("SHOW TABLES").await, ["visits"]);
}

#[tokio::test]
async fn partitions_are_added_dropped_and_repaired() {
    let home = Home::new().await;
    home.create("t", "a int", "PARTITIONED BY (p string, q int)").await;
    home.run("ALTER TABLE t ADD PARTITION (p='x/y', q=1)").await;
    assert!(home.path("t/p=x%2Fy/q=1").is_dir());
    assert_eq!(home.code("ALTER TABLE t ADD PARTITION (p='x/y', q=1)").await, "42710");
    assert_eq!(home.code("ALTER TABLE t ADD IF NOT EXISTS PARTITION (p='x/y', q=1)").await, "ok");
    home.write("t/p=x%2Fy/q=1/f", "1\n");
    home.write("t/p=z/q=07/f", "2\n");
    assert_eq!(home.run("SELECT * FROM t ORDER BY a").await, ["1|x/y|1", "2|z|7"]);
    home.run("ALTER TABLE t DROP PARTITION (q > 5)").await;
    assert_eq!(home.run("SELECT * FROM t").await, ["1|x/y|1"]);
    assert!(home.path("t/p=z/q=07/f").exists());
    // Rows that come into it take it in again, with those that were there.
    home.run("INSERT INTO t PARTITION (p='z', q=7) SELECT 3").await;
    assert_eq!(home.run("SELECT * FROM t ORDER BY a").await, ["1|x/y|1", "3|z|7"]);
    home.run("ALTER TABLE t DROP PARTITION (p='z')").await;
    assert_eq!(home.run("SELECT count(*) FROM t").await, ["1"]);
    home.run("INSERT INTO t PARTITION (p='z', q=7) SELECT 4").await;
    assert_eq!(home.run("SELECT a FROM t ORDER BY a").await, ["1", "3", "4"]);
    home.run("MSCK REPAIR TABLE t").await;
    assert_eq!(home.run("SELECT count(*) FROM t").await, ["4"]);
    assert_eq!(home.code("TRUNCATE TABLE t").await, "0A000");
    assert_eq!(home.code("TRUNCATE TABLE t PARTITION (q=1)").await, "0A000");
}

#[tokio::test]
async fn rows_are_written_in_hives_layout() {
    let home = Home::new().await;
    for format in ["TEXTFILE", "ORC", "PARQUET", "SEQUENCEFILE"] {
        let name = format.to_lowercase();
        home.create(&name, "id bigint, name string, m decimal(9,2), t timestamp, l array<int>, k map<string,int>, s struct<a:int,b:string>",
            &format!("PARTITIONED BY (p string) STORED AS {format}")).await;
        home.run(&format!(
            "INSERT INTO {name} PARTITION (p='a/b') SELECT 1, 'it\\'s', CAST(1.5 AS decimal(9,2)), CAST('2024-05-01 10:00:00.5' AS timestamp), \
             array(1,2), map('x', 1), named_struct('a', 7, 'b', 'seven')"
        )).await;
        home.run(&format!(
            "INSERT INTO {name} PARTITION (p) SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, CAST(NULL AS string)"
        )).await;
        let expected = [
            "1|it's|1.50|2024-05-01T10:00:00.500|[1, 2]|{x: 1}|{a: 7, b: seven}|a/b",
            "2|NULL|NULL|NULL|NULL|NULL|NULL|NULL",
        ];
        assert_eq!(
            home.run(&format!("SELECT * FROM {name} ORDER BY id")).await,
            expected,
            "{format}"
        );
        let names = home.names(&name);
        assert!(names.contains(&"p=a%2Fb".to_owned()), "{names:?}");
        assert!(names.iter().all(|name| !name.starts_with('.')), "{names:?}");
        // Only partitions into which rows come are replaced, and a static one also by nothing.
        home.run(&format!("INSERT OVERWRITE TABLE {name} PARTITION (p='a/b') SELECT id + 10, name, m, t, l, k, s FROM {name} WHERE p = 'a/b'")).await;
        assert_eq!(
            home.run(&format!("SELECT id, p FROM {name} ORDER BY id")).await,
            ["2|NULL", "11|a/b"]
        );
        home.run(&format!("INSERT OVERWRITE TABLE {name} PARTITION (p='a/b') SELECT id, name, m, t, l, k, s FROM {name} WHERE false")).await;
        assert_eq!(home.run(&format!("SELECT id, p FROM {name} ORDER BY id")).await, ["2|NULL"]);
        for refused in ["DELETE FROM", "DELETE FROM {} WHERE id = 1", "UPDATE {} SET id = 1"] {
            let sql = match refused.contains("{}") {
                true => refused.replace("{}", &name),
                false => format!("{refused} {name}"),
            };
            assert_eq!(home.code(&sql).await, "0A000", "{sql}");
        }
    }
}

#[tokio::test]
async fn a_statement_that_fails_leaves_nothing() {
    let home = Home::new().await;
    home.create("t", "a string", "").await;
    home.run("INSERT INTO t VALUES ('one')").await;
    let before = home.names("t");
    assert_eq!(home.code("INSERT OVERWRITE TABLE t SELECT concat(a, '\\n') FROM t").await, "22P04");
    assert_eq!(home.names("t"), before);
    assert_eq!(home.run("SELECT * FROM t").await, ["one"]);
    rows(&home.session, "BEGIN").await.unwrap();
    assert_eq!(home.code("INSERT INTO t SELECT 'two'").await, "25001");
    rows(&home.session, "ROLLBACK").await.unwrap();
    assert_eq!(home.names("t"), before);
}

#[tokio::test]
async fn rights_are_those_of_any_table() {
    let home = Home::new().await;
    home.write("t/p=1/f", "1\u{1}secret\n");
    home.create("t", "a int, b string", "PARTITIONED BY (p int)").await;
    home.session.set("dialect", Some("postgres")).unwrap();
    let ann =
        home.engine.session(SessionOptions { user: "ann".to_owned(), ..SessionOptions::default() });
    let code = async |sql: &str| rows(&ann, sql).await.err().map_or("ok", |error| error.sqlstate());
    assert_eq!(code("SELECT a FROM t").await, "42501");
    home.run("GRANT SELECT (a) ON t TO ann").await;
    assert_eq!(rows(&ann, "SELECT a FROM t").await.unwrap(), ["1"]);
    for refused in [
        "SELECT b FROM t",
        "SELECT a FROM t WHERE b = 'x'",
        "SELECT a FROM t WHERE p = 1",
        "SELECT * FROM t",
        "INSERT INTO t VALUES (1, 'x', 1)",
        "DROP TABLE t",
        "CREATE EXTERNAL TABLE u (a int) LOCATION '/tmp'",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1",
        "ALTER TABLE t ADD PARTITION (p = 2)",
    ] {
        assert_eq!(code(refused).await, "42501", "{refused}");
    }
    home.run("GRANT INSERT ON t TO ann").await;
    assert_eq!(code("INSERT INTO t VALUES (2, 'x', 1)").await, "ok");
    assert_eq!(code("INSERT OVERWRITE TABLE t PARTITION (p = 1) SELECT 2, 'x'").await, "42501");
    // Views are read with the rights of their owners.
    home.run("CREATE VIEW v AS SELECT b FROM t WHERE a = 1").await;
    home.run("GRANT SELECT ON v TO ann").await;
    assert_eq!(rows(&ann, "SELECT * FROM v").await.unwrap(), ["secret"]);
}

#[tokio::test]
async fn files_are_those_that_statements_may_use() {
    let home = Home::new().await;
    let root = home.directory.path();
    let create =
        |path: &Path| format!("CREATE EXTERNAL TABLE x (a string) LOCATION '{}'", path.display());
    assert_eq!(home.code(&create(&root.join("elsewhere"))).await, "42501");
    assert_eq!(home.code(&create(&root.join("files/../elsewhere"))).await, "42501");
    assert_eq!(home.code(&create(&root.join("warehouse"))).await, "42501");
    let directory =
        |path: &Path| format!("INSERT OVERWRITE DIRECTORY '{}' SELECT 1", path.display());
    assert_eq!(home.code(&directory(&root.join("elsewhere/x"))).await, "42501");
    // A link in the table's directory that leads out of the folder is not followed.
    std::fs::write(root.join("elsewhere/secret"), "no\n").unwrap();
    home.write("t/f", "yes\n");
    home.create("t", "a string", "").await;
    assert_eq!(home.run("SELECT * FROM t").await, ["yes"]);
    std::os::unix::fs::symlink(root.join("elsewhere/secret"), home.path("t/link")).unwrap();
    assert_eq!(home.code("SELECT * FROM t").await, "42501");
    // Nor is what an ordinary table is made like.
    home.session.set("dialect", Some("postgres")).unwrap();
    home.run("CREATE TABLE u (LIKE t)").await;
    home.run("INSERT INTO u VALUES ('own')").await;
    assert_eq!(home.run("SELECT * FROM u").await, ["own"]);
    assert_eq!(
        home.code(
            "CREATE TABLE w (a int) TBLPROPERTIES ('stoa.external.location' = 'file:///etc')"
        )
        .await,
        "22023"
    );
}

#[tokio::test]
async fn definitions_are_durable_and_shown() {
    let home = Home::new().await;
    home.write("t/p=1/f", "head\n1,x\\,y\n");
    home.run(&format!(
        "CREATE EXTERNAL TABLE IF NOT EXISTS t (a int COMMENT 'a number', b string) COMMENT 'texts' PARTITIONED BY (p int) \
         ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\\\' STORED AS TEXTFILE LOCATION '{}' \
         TBLPROPERTIES ('skip.header.line.count'='1')",
        home.path("t").display()
    )).await;
    assert_eq!(home.run("SELECT * FROM t").await, ["1|x,y|1"]);
    home.session.set("dialect", Some("postgres")).unwrap();
    let shown = home.run("DESCRIBE EXTENDED t").await.join("\n");
    assert!(
        shown.contains(&format!(
            "# location|file://{}",
            home.path("t").canonicalize().unwrap().display()
        )),
        "{shown}"
    );
    assert!(shown.contains("external, textfile"), "{shown}");
    let create = home.run("SHOW CREATE TABLE t").await.join("\n");
    assert!(create.starts_with("CREATE EXTERNAL TABLE"), "{create}");
    home.run("ALTER TABLE t RENAME TO t_2").await;
    home.run(&create).await;
    assert_eq!(home.run("SHOW CREATE TABLE t").await.join("\n"), create);
    assert_eq!(home.run("SELECT * FROM t").await, ["1|x,y|1"]);
    // Another process sees both; dropping leaves the files.
    let other = open(home.directory.path(), "log2").await;
    let other = other.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
    assert_eq!(rows(&other, "SELECT * FROM t_2").await.unwrap(), ["1|x,y|1"]);
    rows(&other, "DROP TABLE t_2 PURGE").await.unwrap();
    assert_eq!(home.code("SELECT * FROM t_2").await, "42P01");
    assert_eq!(home.run("SELECT * FROM t").await, ["1|x,y|1"]);
    home.run("ALTER TABLE t ADD COLUMN c int").await;
    assert_eq!(home.run("SELECT * FROM t").await, ["1|x,y|1|NULL"]);
    assert_eq!(home.code("ALTER TABLE t RENAME COLUMN p TO q").await, "0A000");
}

/// The statements of docs/hiveql.md run.
#[tokio::test]
async fn the_statements_of_the_page_run() {
    let home = Home::new().await;
    let page = std::fs::read_to_string("../../docs/hiveql.md").unwrap();
    let page = page.replace("/srv/exports", &home.path("page").display().to_string());
    let mut last = Vec::new();
    for heading in ["## External tables", "## INSERT OVERWRITE DIRECTORY"] {
        let section = page.split(heading).nth(1).unwrap();
        let block = section.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
        for statement in stoa_hiveql::split(block).unwrap() {
            last.push(home.run(statement).await);
        }
    }
    assert_eq!(last[2], ["2024-05-01|1"]);
    assert_eq!(home.names("page/out").len(), 1);
}

#[tokio::test]
async fn directories_are_written() {
    let home = Home::new().await;
    home.write("out/old", "old\n");
    home.run(&format!(
        "INSERT OVERWRITE LOCAL DIRECTORY '{}' ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' SELECT 1, 'x', NULL UNION ALL SELECT 2, 'y', 3",
        home.path("out").display()
    )).await;
    let names = home.names("out");
    assert_eq!(names.len(), 1, "{names:?}");
    let text = std::fs::read_to_string(home.path("out").join(&names[0])).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["1,x,\\N", "2,y,3"]);
    home.run(&format!(
        "INSERT OVERWRITE DIRECTORY '{}' STORED AS ORC SELECT 5 AS a",
        home.path("orc").display()
    ))
    .await;
    home.create("orc", "a int", "STORED AS ORC").await;
    assert_eq!(home.run("SELECT * FROM orc").await, ["5"]);
}

/// Wrong answers of the statements of a corpus on the files in a folder.
async fn wrong_answers(home: &Home, text: &str, folder: &str) -> Vec<String> {
    let text = text.replace("@DIR@", &home.path(folder).display().to_string());
    let mut wrong = Vec::new();
    for block in hiveql::blocks(&text) {
        let found = hiveql::rows(&home.session, &block.statement).await;
        let plain = |rows: &[String]| rows.iter().map(|row| hiveql::plain(row)).collect::<Vec<_>>();
        match found {
            Ok(rows) if plain(&rows) == plain(&block.rows) => {}
            found => wrong
                .push(format!("{}\n   here {found:?}\n   want {:?}", block.statement, block.rows)),
        }
    }
    wrong
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        match from.is_dir() {
            true => copy_all(&from, &to),
            false => std::fs::copy(&from, &to).map(drop).unwrap(),
        }
    }
}

#[tokio::test]
async fn files_of_hive_have_the_rows_that_hive_reads() {
    let home = Home::new().await;
    copy_all(Path::new("tests/hiveql/files/external"), &home.path("hive"));
    let text = std::fs::read_to_string("tests/hiveql/external.txt").unwrap();
    let wrong = wrong_answers(&home, &text, "hive").await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_stoa_writes_it_reads_as_hive_reads_what_hive_writes() {
    let home = Home::new().await;
    for files in ["raw", "escaped"] {
        copy_all(
            &Path::new("tests/hiveql/files/external").join(files),
            &home.path("own").join(files),
        );
    }
    let text = std::fs::read_to_string("tests/hiveql/external.txt").unwrap();
    // Hive's own CSV files lose backslashes when they are read.
    let text = text.replace("\nW ", "\nQ ").replace("\tbackslash", "\tback\\slash");
    let wrong = wrong_answers(&home, &text, "own").await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn csv_and_bad_files() {
    let home = Home::new().await;
    home.write("c/f", "id,name\n1,\"Ann, \"\"A\"\"\"\n2,\n3\n");
    home.create(
        "c",
        "id int, name string",
        "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' STORED AS TEXTFILE",
    )
    .await;
    home.run("ALTER TABLE c SET TBLPROPERTIES ('skip.header.line.count'='1')").await;
    assert_eq!(home.run("SELECT * FROM c ORDER BY id").await, ["1|Ann, \"A\"", "2|", "3|NULL"]);
    home.run("INSERT INTO c VALUES ('4', 'say \"x\"')").await;
    // The first line of each file is its header.
    assert_eq!(home.run("SELECT count(*) FROM c").await, ["3"]);
    home.write("o/f", "no ORC file\n");
    home.create("o", "a int", "STORED AS ORC").await;
    let error = rows(&home.session, "SELECT * FROM o").await.unwrap_err();
    assert!(error.to_string().contains("files/o/f"), "{error}");
    for (sql, code) in [
        ("CREATE EXTERNAL TABLE x (a int) STORED AS AVRO LOCATION '/x'", "42501"),
        ("CREATE EXTERNAL TABLE x (a int) STORED AS AVRO LOCATION '{}'", "0A000"),
        (
            "CREATE EXTERNAL TABLE x (a int) ROW FORMAT DELIMITED STORED AS ORC LOCATION '{}'",
            "42601",
        ),
        ("CREATE EXTERNAL TABLE x (a int) ROW FORMAT SERDE 'x.RegexSerDe' LOCATION '{}'", "0A000"),
        (
            "CREATE EXTERNAL TABLE x (a int) ROW FORMAT DELIMITED FIELDS TERMINATED BY 'ab' LOCATION '{}'",
            "22023",
        ),
        (
            "CREATE EXTERNAL TABLE x (a int) LOCATION '{}' TBLPROPERTIES ('skip.header.line.count'='x')",
            "22023",
        ),
        ("CREATE EXTERNAL TABLE x (a int) LOCATION 'gs://bucket/x'", "0A000"),
        (
            "CREATE EXTERNAL TABLE x (a int) LOCATION '{}' TBLPROPERTIES ('skip.footer.line.count'='2')",
            "0A000",
        ),
    ] {
        let sql = sql.replace("{}", &home.path("x").display().to_string());
        assert_eq!(home.code(&sql).await, code, "{sql}");
    }
}
