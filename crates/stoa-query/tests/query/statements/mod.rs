//! A table with something of everything, and ways to ask for it.

// Each suite uses some of it.
#![allow(dead_code)]

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use proptest::prelude::*;
use stoa_query::{Engine, EngineOptions, Outcome, ScalarValue, Session, SessionOptions};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// An engine and sessions that answer in different ways.
pub struct Home {
    pub engine: Arc<Engine>,
    /// Reports take the short path.
    pub short: Arc<Session>,
    /// All statements are planned, with templates.
    pub templated: Arc<Session>,
    /// Each statement is planned in full.
    pub long: Arc<Session>,
    _directory: tempfile::TempDir,
}

impl Home {
    /// An engine with a commit log.
    pub async fn new() -> Self {
        Self::with_cache(EngineOptions::new(Url::parse("file:///").unwrap()).cache_bytes_max).await
    }

    /// An engine with a commit log that keeps so many bytes of what it has read.
    pub async fn with_cache(cache_bytes_max: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
        let logs = Some(url("log"));
        let options = EngineOptions::new(url("warehouse"));
        let engine =
            Engine::open(EngineOptions { logs, cache_bytes_max, ..options }).await.unwrap();
        let session = |off: &[&str]| {
            let session = engine.session(SessionOptions::default());
            off.iter().for_each(|name| session.set(name, Some("off")).unwrap());
            session
        };
        let short = session(&[]);
        let templated = session(&["short_path", "result_reuse"]);
        let long = session(&["short_path", "result_reuse", "plan_templates"]);
        Self { engine, short, templated, long, _directory: directory }
    }

    /// With rows, and the runtime that it lives on.
    pub fn filled() -> (Runtime, Self) {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let home = runtime.block_on(async {
            let home = Self::new().await;
            home.fill().await;
            home
        });
        (runtime, home)
    }

    pub async fn run(&self, sql: &str) {
        if let Outcome::Rows(rows) = self.long.sql(sql).await.unwrap() {
            rows.collect().await.unwrap();
        }
    }

    /// Some files, some of them of an older schema, and fresh rows.
    pub async fn fill(&self) {
        self.run(
            "CREATE TABLE events (account bigint NOT NULL, day date, region text, clicks int, \
             cost decimal(12,2), rate double, at timestamp, large decimal(38,4)) \
             PARTITIONED BY (truncate(40, account)) ORDER BY (account, day) \
             TBLPROPERTIES ('stoa.orc.row-index-stride' = '1000')",
        )
        .await;
        for part in 0..4 {
            self.run(&insert(part)).await;
            if part < 3 {
                self.run("FLUSH TABLE events").await;
            }
            if part == 1 {
                self.run("ALTER TABLE events ADD COLUMN added int").await;
            }
        }
    }
}

fn insert(part: u64) -> String {
    let mut sql =
        "INSERT INTO events (account, day, region, clicks, cost, rate, at, large) VALUES "
            .to_owned();
    for row in 0..1500_u64 {
        let n = (part * 1500 + row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let null = |value: String, share: u64| match n % share {
            0 => "NULL".to_owned(),
            _ => value,
        };
        let region = ["'eu'", "'us'", "'apac'", "'Ünïted'", "''"][(n / 7 % 5) as usize].to_owned();
        let _ = write!(
            sql,
            "{}({}, {}, {}, {}, {}, {}, {}, {})",
            if row > 0 { ", " } else { "" },
            n % 97,
            null(format!("DATE '2026-01-{:02}'", 1 + n / 11 % 28), 13),
            null(region, 17),
            null((n as i64 % 2000 - 1000).to_string(), 19),
            null(format!("{}.{:02}", n % 5000, n / 3 % 100), 23),
            null(format!("{}.5", n % 100), 29),
            null(format!("TIMESTAMP '2026-01-02 {:02}:{:02}:00'", n / 5 % 24, n / 7 % 60), 31),
            null(format!("{}{}", n, "000000000000000.1234"), 37),
        );
    }
    sql
}

/// The rows of an answer as text; in order if `ordered`.
pub async fn answer(
    session: &Session,
    sql: &str,
    parameters: &[ScalarValue],
    ordered: bool,
) -> Vec<String> {
    let statement = session.parse(sql).await.unwrap().swap_remove(0);
    let prepared = session.prepare(statement, Vec::new()).await.unwrap();
    let schema = prepared.schema().unwrap();
    let Outcome::Rows(rows) = session.execute(&prepared, parameters.to_vec()).await.unwrap() else {
        panic!("{sql} gives no rows");
    };
    assert_eq!(rows.schema(), schema, "{sql}");
    let batches: Vec<RecordBatch> = rows.collect().await.unwrap();
    let mut lines = Vec::new();
    for batch in &batches {
        let options = FormatOptions::default().with_null("NULL");
        let columns: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            lines.push(
                columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join("|"),
            );
        }
    }
    if !ordered {
        lines.sort_unstable();
    }
    lines
}

/// A literal to compare a column with.
pub fn literal(column: &'static str) -> BoxedStrategy<String> {
    match column {
        "account" => (-3_i64..110).prop_map(|n| n.to_string()).boxed(),
        "clicks" => prop_oneof![
            9 => (-1100_i64..1100).prop_map(|n| n.to_string()),
            1 => Just("3000000000".to_owned()),
            1 => Just("1.5".to_owned()),
        ]
        .boxed(),
        "day" => prop_oneof![
            (1_u32..31).prop_map(|d| format!("DATE '2026-01-{d:02}'")),
            (1_u32..31).prop_map(|d| format!("'2026-01-{d:02}'")),
        ]
        .boxed(),
        "region" => prop_oneof![
            Just("'eu'".to_owned()),
            Just("'us'".to_owned()),
            Just("''".to_owned()),
            Just("'Ünïted'".to_owned()),
            Just("'o''x'".to_owned()),
            Just("'f'".to_owned()),
        ]
        .boxed(),
        "cost" => prop_oneof![
            (0_u32..5000).prop_map(|n| n.to_string()),
            (0_u32..5000, 0_u32..100).prop_map(|(n, c)| format!("{n}.{c:02}")),
            Just("12.345".to_owned()),
        ]
        .boxed(),
        "at" => (0_u32..24).prop_map(|h| format!("TIMESTAMP '2026-01-02 {h:02}:30:00'")).boxed(),
        _ => (0_i64..5).prop_map(|n| n.to_string()).boxed(),
    }
}
