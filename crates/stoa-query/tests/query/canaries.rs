//! Random grants, random statements: what may not be read is in nothing that is said, and no file is
//! made elsewhere.
//!
//! Each column of each table holds values that are nowhere else. A role with some grants asks for
//! everything in every way; whatever it is told, of columns that it may not read no value is among it.
//! Answers, plans and templates of a superuser, who asks the same, are known to the server meanwhile.
//! `STOA_CANARY_CASES` makes it larger.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;

use crate::guarded::{Home, shown};
use arrow::util::pretty::pretty_format_batches;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use stoa_query::{Outcome, ScalarValue, Session};

/// The last one has table partitions.
const TABLES: [&str; 3] = ["public.orders", "vault.ledger", "vault.parts"];
const COLUMNS: [&str; 4] = ["id", "amount", "name", "secret"];
const ROWS: usize = 30;

/// What values of a column have in them, and nothing else has.
fn canary(table: usize, column: usize) -> String {
    match column {
        0 | 1 => format!("8317{table}4{column}29"),
        _ => format!("canary{table}x{column}y"),
    }
}

fn value(table: usize, column: usize, row: usize) -> String {
    match column {
        0 | 1 => format!("{}{row:03}", canary(table, column)),
        _ => format!("'{}{row:03}'", canary(table, column)),
    }
}

async fn home() -> Home {
    let home = Home::new(&[]).await;
    home.run("CREATE ROLE team").await;
    home.run("CREATE SCHEMA vault").await;
    for (number, table) in TABLES.iter().enumerate() {
        let partitioned = if number == 2 { "PARTITIONED BY (name)" } else { "" };
        home.run(&format!(
            "CREATE TABLE {table} (id bigint, amount bigint, name text, secret text) {partitioned}"
        ))
        .await;
        fill(&home, number, 0..ROWS / 2).await;
        home.run(&format!("FLUSH TABLE {table}")).await;
        // These stay in the log.
        fill(&home, number, ROWS / 2..ROWS).await;
    }
    home.run("CREATE TABLE heap (t text)").await;
    home.run("GRANT SELECT, INSERT ON heap TO team").await;
    home
}

async fn fill(home: &Home, table: usize, rows: std::ops::Range<usize>) {
    let row = |row: usize| {
        let values: Vec<String> = (0..4).map(|column| value(table, column, row)).collect();
        format!("({})", values.join(", "))
    };
    // Few partitions.
    let rows: Vec<String> = match table {
        2 => rows.map(|n| row(n).replace(&value(2, 2, n), &value(2, 2, 0))).collect(),
        _ => rows.map(row).collect(),
    };
    home.run(&format!("INSERT INTO {} VALUES {}", TABLES[table], rows.join(", "))).await;
}

/// One grant: a table, columns (none: all), to whom (the role that asks, if nobody else), and whether
/// privileges come with it that let nothing be read.
#[derive(Clone, Debug)]
struct Granted {
    table: usize,
    columns: BTreeSet<usize>,
    to: Option<&'static str>,
    writes: bool,
}

fn grants() -> impl Strategy<Value = Vec<Granted>> {
    let columns = prop::collection::btree_set(0_usize..4, 0..4);
    let to = select(vec![None, Some("team"), Some("public")]);
    let one = (0_usize..TABLES.len(), columns, to, any::<bool>(), 0_usize..6);
    let one = one.prop_map(|(table, columns, to, writes, kind)| {
        // A grant of the whole is rare, or nothing would be forbidden.
        let columns = match kind {
            0 => BTreeSet::new(),
            _ if columns.is_empty() => BTreeSet::from([0]),
            _ => columns,
        };
        Granted { table, columns, to, writes }
    });
    prop::collection::vec(one, 0..4)
}

/// A statement about column `c` of table `t`, with `o` another one of its columns, and `u` and `d` of
/// another table.
fn statements(t: &str, c: &str, o: &str, u: &str, d: &str, v: &str, outside: &Path) -> Vec<String> {
    let file = outside.display();
    vec![
        format!("SELECT {c} FROM {t}"),
        format!("SELECT * FROM {t}"),
        format!("SELECT {c}, {o} FROM {t} WHERE {o} >= {v}"),
        format!("SELECT {o} FROM {t} WHERE {c} IS NOT NULL ORDER BY {c} DESC LIMIT 2"),
        format!("SELECT {o}, max({c}) FROM {t} WHERE {o} >= {v} GROUP BY {o} ORDER BY {o}"),
        format!("SELECT {o}, count(*) FROM {t} GROUP BY {o}"),
        format!("SELECT DISTINCT {c} FROM {t} UNION ALL SELECT {d} FROM {u}"),
        format!("SELECT a.{o}, b.{d} FROM {t} a JOIN {u} b ON a.{c} = b.{d} OR a.{o} IS NOT NULL"),
        format!("SELECT (SELECT max(x.{d}) FROM {u} x) AS m, {o} FROM {t}"),
        format!("SELECT {o} FROM {t} WHERE EXISTS (SELECT 1 FROM {u} x WHERE x.{d} IS NOT NULL)"),
        format!("WITH w AS (SELECT {c} AS x FROM {t}) SELECT x, count(*) FROM w GROUP BY x"),
        format!("SELECT row_number() OVER (ORDER BY {c}) AS n, {o} FROM {t}"),
        format!("SELECT CAST({c} AS date) FROM {t}"),
        format!("SELECT CAST({c} AS text) || 'x' FROM {t} WHERE CAST({c} AS text) LIKE '%2%'"),
        format!("SELECT array_agg({c}) FROM {t}"),
        format!("SELECT t FROM {t} t"),
        format!("SELECT min({c}), max({c}), count({c}) FROM {t}"),
        format!("SELECT {c} FROM {t} WHERE false"),
        format!("SELECT 1 / (CAST({c} AS bigint) - CAST({c} AS bigint)) FROM {t}"),
        format!("EXPLAIN SELECT {c} FROM {t} WHERE {c} > {v}"),
        format!("EXPLAIN ANALYZE SELECT {o} FROM {t} WHERE {c} >= {v}"),
        format!("EXPLAIN VERBOSE SELECT max({c}) FROM {t}"),
        format!("COPY {t} TO STDOUT"),
        format!("COPY (SELECT {c} FROM {t}) TO STDOUT"),
        format!("COPY (SELECT {c} FROM {t}) TO '{file}/one.csv'"),
        format!("EXPLAIN ANALYZE COPY (SELECT {c} FROM {t}) TO '{file}/two.csv' STORED AS CSV"),
        format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{file}/three.csv'"),
        format!("COPY heap FROM '{file}/four.csv' WITH (reject_file '{file}/five.csv')"),
        format!("COPY heap FROM STDIN WITH (reject_file '{file}/six.csv')"),
        format!("INSERT INTO heap SELECT CAST({c} AS text) FROM {t}"),
        "SELECT * FROM heap".to_owned(),
        format!("CREATE TABLE copied AS SELECT {c} FROM {t}"),
        format!("DELETE FROM {t} WHERE {c} > {v} AND {c} < {v}"),
        format!("UPDATE {t} SET {o} = {o} WHERE {c} = {v}"),
        format!(
            "MERGE INTO {t} USING (SELECT {d} AS m FROM {u}) s ON {c} = m WHEN MATCHED THEN DELETE"
        ),
        format!("INSERT OVERWRITE {t} SELECT * FROM {t}"),
        format!("SHOW FILES FROM {t}"),
        format!("SHOW PARTITIONS FROM {t}"),
        format!("SHOW SNAPSHOTS FROM {t}"),
        format!("DESCRIBE EXTENDED {t}"),
        format!("SHOW CREATE TABLE {t}"),
        format!("ALTER TABLE {t} ADD COLUMN more int"),
        format!("ALTER TABLE {t} OWNER TO ann"),
        format!("GRANT SELECT ON {t} TO ann"),
        format!("CACHE TABLE {t}"),
        format!("SELECT has_column_privilege('{t}', '{c}', 'SELECT')"),
        "SELECT * FROM system.queries".to_owned(),
        "SELECT * FROM system.query_shapes".to_owned(),
        "SELECT * FROM system.tables".to_owned(),
        "SELECT * FROM information_schema.columns".to_owned(),
        "SELECT * FROM pg_stats".to_owned(),
        "SELECT * FROM pg_class".to_owned(),
        format!("SELECT {c} FROM \"{t}$cells\""),
        "ROLLBACK".to_owned(),
    ]
}

/// Number of a statement, table and columns that it is about, and another table and column.
type Asked = (usize, usize, usize, usize, usize, usize);

fn asked() -> impl Strategy<Value = Asked> {
    let columns = || 0_usize..COLUMNS.len();
    let tables = || 0_usize..TABLES.len();
    (0_usize..1000, tables(), columns(), columns(), tables(), columns())
}

fn text_of(asked: &Asked, outside: &Path) -> String {
    let (number, t, c, o, u, d) = *asked;
    // Below all values, and none of them: what a statement says itself must be no news.
    let v = if o < 2 { "5" } else { "'b'" };
    let (t, u) = (TABLES[t], TABLES[u]);
    let mut all = statements(t, COLUMNS[c], COLUMNS[o], u, COLUMNS[d], v, outside);
    let number = number % all.len();
    all.swap_remove(number)
}

/// What a client is told that prepares a statement with a value, asks for its columns, and runs it.
async fn prepared(session: &Session, t: &str, c: &str, o: &str) -> String {
    let sql = format!("SELECT {c} FROM {t} WHERE {o} > $1 ORDER BY {c}");
    let ran = async {
        let statement = session.parse(&sql).await?.swap_remove(0);
        let prepared = session.prepare(statement, Vec::new()).await?;
        let parameter = match o {
            "id" | "amount" => ScalarValue::Int64(Some(1)),
            _ => ScalarValue::Utf8(Some("b".to_owned())),
        };
        match session.execute(&prepared, vec![parameter]).await? {
            Outcome::Rows(rows) => rows.collect().await,
            _ => Ok(Vec::new()),
        }
    };
    match ran.await {
        Ok(rows) => pretty_format_batches(&rows).unwrap().to_string(),
        Err(error) => format!("{error:?}"),
    }
}

fn cases() -> u32 {
    std::env::var_os("STOA_CANARY_CASES")
        .and_then(|cases| cases.to_string_lossy().parse().ok())
        .unwrap_or(8)
}

#[test]
fn no_canary_is_in_anything_that_is_said() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let home = runtime.block_on(home());
    let input = (grants(), prop::collection::vec(asked(), 20));
    let roles = Cell::new(0_u32);
    let result = TestRunner::new(config).run(&input, |(grants, asked)| {
        // A new one each time: what a role was told once it may be told again.
        roles.set(roles.get() + 1);
        let role = format!("ann{}", roles.get());
        runtime.block_on(async {
            home.run(&format!("CREATE USER {role}")).await;
            home.run(&format!("GRANT team TO {role}")).await;
            for (number, table) in TABLES.iter().enumerate() {
                home.run(&format!("REVOKE ALL ON {table} FROM team, public")).await;
                // What the last case has deleted or changed.
                home.run(&format!("TRUNCATE TABLE {table}")).await;
                fill(&home, number, 0..ROWS / 2).await;
                home.run(&format!("FLUSH TABLE {table}")).await;
                fill(&home, number, ROWS / 2..ROWS).await;
            }
            home.run("TRUNCATE TABLE heap").await;
            let mut allowed = BTreeSet::new();
            for Granted { table, columns, to, writes } in &grants {
                let (name, to) = (TABLES[*table], to.unwrap_or(&role));
                let chosen: Vec<&str> = columns.iter().map(|column| COLUMNS[*column]).collect();
                let what = match chosen.is_empty() {
                    true => "SELECT".to_owned(),
                    false => format!("SELECT ({})", chosen.join(", ")),
                };
                home.run(&format!("GRANT {what} ON {name} TO {to}")).await;
                if *writes {
                    home.run(&format!("GRANT INSERT, UPDATE, DELETE ON {name} TO {to}")).await;
                }
                let all = (0..COLUMNS.len()).filter(|c| columns.is_empty() || columns.contains(c));
                allowed.extend(all.map(|column| (*table, column)));
            }
            let ann = home.session_of(&role);
            for one in &asked {
                let sql = text_of(one, outside.path());
                let (t, c, o) = (TABLES[one.1], COLUMNS[one.2], COLUMNS[one.3]);
                for turn in 0..3 {
                    let mut told = shown(&ann, &sql).await;
                    told.push_str(&prepared(&ann, t, c, o).await);
                    for table in 0..TABLES.len() {
                        for column in 0..COLUMNS.len() {
                            let canary = canary(table, column);
                            let is_told = told.contains(&canary);
                            prop_assert!(
                                !is_told || allowed.contains(&(table, column)),
                                "{} is told in spite of {:?} by {}: {}",
                                canary,
                                grants,
                                sql,
                                told
                            );
                        }
                    }
                    if turn == 0 && sql.starts_with("SELECT") {
                        let _ = shown(&home.root, &sql).await;
                        let _ = prepared(&home.root, t, c, o).await;
                    }
                }
            }
            let made: Vec<_> = std::fs::read_dir(outside.path()).unwrap().flatten().collect();
            prop_assert!(made.is_empty(), "{:?}", made);
            Ok(())
        })
    });
    result.unwrap();
}
