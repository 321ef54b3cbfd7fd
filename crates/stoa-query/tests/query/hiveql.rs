//! Statements of HiveQL, with the answers that Hive 4.0.1 gave to them.
//!
//! The files in `tests/hiveql` have blocks: `Q` is a statement, `R` a row of its answer (columns between tabs, as Hive's
//! driver writes them), `X` the SQLSTATE with which it is refused here. A block with `D` differs from Hive: `D` says
//! how, `H` lines are Hive's own rows. `expressions` and `queries` come from Hive (`hive.default.nulls.last=false`,
//! zone UTC), `refused` from its language manual.

use std::fmt::Write as _;

use crate::statements::Home;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Date32Type, Float32Type, Float64Type, TimestampMicrosecondType};
use stoa_error::Result;
use stoa_hiveql::pack::value::{Value, double_text, timestamp_text};
use stoa_query::{Outcome, Session, SessionOptions};

#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) statement: String,
    pub(crate) rows: Vec<String>,
    sqlstate: Option<String>,
}

pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    for line in text.lines() {
        let (mark, rest) = line.split_at(line.len().min(2));
        match mark.trim() {
            "Q" => all.push(Block { statement: rest.to_owned(), ..Block::default() }),
            "R" => all.last_mut().unwrap().rows.push(rest.to_owned()),
            "X" => all.last_mut().unwrap().sqlstate = Some(rest.to_owned()),
            "" | "#" | "D" | "H" | "S" | "W" | "M" => {}
            // A row whose text has line breaks.
            _ => {
                let row = all.last_mut().unwrap().rows.last_mut().unwrap();
                row.push('\n');
                row.push_str(line);
            }
        }
    }
    all
}

/// A cell as Hive's driver writes it; texts within arrays have quotes.
fn cell(column: &ArrayRef, row: usize, is_inner: bool) -> String {
    if column.is_null(row) || column.data_type().is_null() {
        return if is_inner { "null" } else { "NULL" }.to_owned();
    }
    match column.data_type() {
        DataType::Float32 => format!("{}", column.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => double_text(column.as_primitive::<Float64Type>().value(row)),
        DataType::Date32 => {
            Value::Date(column.as_primitive::<Date32Type>().value(row)).text().unwrap().unwrap()
        }
        DataType::Timestamp(..) => {
            timestamp_text(column.as_primitive::<TimestampMicrosecondType>().value(row)).unwrap()
        }
        DataType::Binary => String::from_utf8_lossy(column.as_binary::<i32>().value(row)).into(),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            let items: Vec<String> = (0..items.len()).map(|at| cell(&items, at, true)).collect();
            format!("[{}]", items.join(","))
        }
        DataType::Map(..) => {
            let pairs = column.as_map().value(row);
            let pair = |at: usize| {
                let (key, value) = (pairs.column(0), pairs.column(1));
                format!("{}:{}", cell(key, at, true), cell(value, at, true))
            };
            let pairs: Vec<String> = (0..pairs.len()).map(pair).collect();
            format!("{{{}}}", pairs.join(","))
        }
        DataType::Struct(fields) => {
            let of = column.as_struct();
            let part =
                |at: usize| format!("\"{}\":{}", fields[at].name(), cell(of.column(at), row, true));
            let parts: Vec<String> = (0..fields.len()).map(part).collect();
            format!("{{{}}}", parts.join(","))
        }
        of => {
            let text = arrow::util::display::array_value_to_string(column, row).unwrap();
            if is_inner && of.is_string() { format!("\"{text}\"") } else { text }
        }
    }
}

pub(crate) async fn rows(session: &Session, sql: &str) -> Result<Vec<String>> {
    let Outcome::Rows(stream) = session.sql(sql).await? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for batch in stream.collect().await? {
        for row in 0..batch.num_rows() {
            let cells: Vec<String> =
                batch.columns().iter().map(|column| cell(column, row, false)).collect();
            all.push(cells.join("\t"));
        }
    }
    Ok(all)
}

/// Without the zeros at the end of decimals, and with floats in 12 digits.
pub(crate) fn plain(row: &str) -> String {
    let number = |cell: &str| {
        let is_decimal = cell.contains('.')
            && cell.trim_start_matches('-').chars().all(|c| c.is_ascii_digit() || c == '.')
            && cell.matches('.').count() == 1;
        let cell = match is_decimal {
            true => cell.trim_end_matches('0').trim_end_matches('.'),
            false => cell,
        };
        match cell.parse::<f64>() {
            Ok(value) if cell.contains('E') || cell.len() > 15 => format!("{value:.10e}"),
            _ => cell.to_owned(),
        }
    };
    row.split('\t').map(number).collect::<Vec<_>>().join("\t")
}

async fn check(file: &str, fewest: usize) {
    check_after("", file, fewest).await;
}

/// As [`check`], after statements of Stoa's SQL.
async fn check_after(setup: &str, file: &str, fewest: usize) {
    let home = Home::new().await;
    let session = home.engine.session(SessionOptions::default());
    session.sql(setup).await.unwrap();
    session.set("dialect", Some("hive")).unwrap();
    let text = std::fs::read_to_string(format!("tests/hiveql/{file}")).unwrap();
    let (mut wrong, mut count) = (String::new(), 0);
    for block in blocks(&text) {
        count += 1;
        let found = rows(&session, &block.statement).await;
        let is_right = match (&found, &block.sqlstate) {
            (Ok(_), Some(_)) => false,
            (Ok(rows), None) => {
                let plain = |rows: &[String]| rows.iter().map(|row| plain(row)).collect::<Vec<_>>();
                plain(rows) == plain(&block.rows)
            }
            (Err(error), Some(sqlstate)) => {
                // What is not supported says what to use instead.
                error.sqlstate() == sqlstate && (sqlstate != "0A000" || error.hint().is_some())
            }
            (Err(_), None) => false,
        };
        if !is_right {
            let found = match found {
                Ok(rows) => format!("{rows:?}"),
                Err(error) => format!("{} {}", error.sqlstate(), error.message_with_sources()),
            };
            let _ = writeln!(
                wrong,
                "{}\n   here {found}\n   want {:?} {:?}",
                block.statement, block.rows, block.sqlstate
            );
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} are wrong:\n{wrong}",
        wrong.matches("   here").count()
    );
    assert!(count >= fewest, "{file} has {count} statements");
}

#[tokio::test]
async fn expressions_have_the_values_of_hive() {
    check("expressions.txt", 400).await;
}

#[tokio::test]
async fn queries_have_the_rows_of_hive() {
    check("queries.txt", 100).await;
}

#[tokio::test]
async fn inserts_have_the_effects_of_hive() {
    check("inserts.txt", 40).await;
}

#[tokio::test]
async fn partitions_are_those_of_hive() {
    check("partitions.txt", 60).await;
}

#[tokio::test]
async fn roles_and_rights_are_those_of_hive() {
    check_after("CREATE USER ann; CREATE USER ben", "rights.txt", 40).await;
}

#[tokio::test]
async fn resource_plans_are_those_of_hive() {
    check("resource_plans.txt", 160).await;
}

#[tokio::test]
async fn what_is_refused_says_what_to_use_instead() {
    check("refused.txt", 60).await;
}

/// The language is the session's; the other one is a statement away.
#[tokio::test]
async fn a_session_changes_its_language() {
    let home = Home::new().await;
    let session = home.engine.session(SessionOptions::default());
    assert_eq!(rows(&session, "SELECT 7 / 2").await.unwrap(), ["3"]);
    session.sql("SET dialect = hive").await.unwrap();
    assert_eq!(rows(&session, "SELECT 7 / 2, \"x\"").await.unwrap(), ["3.5\tx"]);
    assert_eq!(rows(&session, "SHOW dialect").await.unwrap(), ["hive"]);
    let other = home.engine.session(SessionOptions::default());
    assert_eq!(rows(&other, "SELECT 7 / 2").await.unwrap(), ["3"]);
    session.sql("SET stoa.dialect = postgres").await.unwrap();
    assert_eq!(rows(&session, "SELECT 7 / 2").await.unwrap(), ["3"]);
    assert_eq!(session.set("dialect", Some("latin")).unwrap_err().sqlstate(), "22023");
}

/// Several statements of a text are translated each; long chains of operators are refused.
#[tokio::test]
async fn texts_of_any_shape_are_read() {
    let home = Home::new().await;
    let session = home.engine.session(SessionOptions::default());
    session.set("dialect", Some("hive")).unwrap();
    let text = "CREATE TABLE t (a string); INSERT INTO t VALUES ('x;y'), (\"it's\"); SELECT a FROM t ORDER BY a;";
    assert_eq!(rows(&session, text).await.unwrap(), ["it's", "x;y"]);
    let chain = format!("SELECT {}1", "1 + ".repeat(30));
    assert_eq!(rows(&session, &chain).await.unwrap(), ["31"]);
    let long = format!("SELECT {}1", "1 + ".repeat(20_000));
    assert_eq!(rows(&session, &long).await.unwrap_err().sqlstate(), "54001");
    let deep = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(rows(&session, &deep).await.unwrap_err().sqlstate(), "54001");
    for broken in [
        "SELECT 'a",
        "SELECT `a",
        "SELECT ${x}",
        "FOO",
        "SELECT 1; SELECT 'b",
        "SELECT (",
        "INSERT INTO",
    ] {
        assert_eq!(rows(&session, broken).await.unwrap_err().sqlstate(), "42601", "{broken}");
    }
}

/// The statements of the page do what it says.
#[tokio::test]
async fn the_statements_of_the_page_run() {
    let home = Home::new().await;
    let session = home.engine.session(SessionOptions::default());
    session.set("dialect", Some("hive")).unwrap();
    let page = std::fs::read_to_string("../../docs/hiveql.md").unwrap();
    let block = page.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    let mut found = Vec::new();
    for statement in stoa_hiveql::split(block).unwrap() {
        found.push(rows(&session, statement).await.unwrap_or_else(|e| panic!("{statement}: {e}")));
    }
    assert_eq!(found[2], ["a\t1", "b\t2"]);
    assert_eq!(found[3].len(), 1);
    assert_eq!(plain(&found[3][0]), "Ann\t0.75");
    assert_eq!(found[4].len(), 4);
    assert!(found[4][0].ends_with("\t3"), "{:?}", found[4]);
    assert_eq!(found[5], ["01.05.2024\t2024-05-04"]);
}

/// Reports are recognised in HiveQL as in Stoa's SQL.
#[tokio::test]
async fn reports_take_the_short_path() {
    let home = Home::new().await;
    let session = home.engine.session(SessionOptions::default());
    session.set("dialect", Some("hive")).unwrap();
    session.set("result_reuse", Some("off")).unwrap();
    rows(&session, "CREATE TABLE ads (account BIGINT, day DATE, clicks BIGINT)").await.unwrap();
    rows(
        &session,
        "INSERT INTO ads VALUES (1, '2024-01-01', 5), (1, '2024-01-02', 6), (2, '2024-01-01', 7)",
    )
    .await
    .unwrap();
    for (account, sum) in [(1, "11"), (2, "7"), (1, "11")] {
        let sql = format!(
            "SELECT day, SUM(clicks) AS `c` FROM ads WHERE account = {account} GROUP BY day"
        );
        let found = rows(&session, &sql).await.unwrap();
        let total: i64 =
            found.iter().map(|row| row.split('\t').nth(1).unwrap().parse::<i64>().unwrap()).sum();
        assert_eq!(total.to_string(), sum);
    }
    assert!(home.engine.reports_answered() >= 2, "{}", home.engine.reports_answered());
}
