//! Processes that die: at every fail point, and at any moment. The table is the old one or the new
//! one, never half of one, and what the dead left behind can be cleaned up.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Home, append, assert_sound, ident, report_rows, report_spec, rows, sorted};
use stoa_orc::Predicate;
use stoa_table::{
    CompactionOptions, CompactionWork, ExpireOptions, LogAdvance, RewriteOptions, Table,
    TableRewrite, Warehouse, WriteOptions,
};

/// 2015-01-01 in days.
const NEW_YEAR_2015: i32 = 16_436;

/// What a helper process is told: `WAREHOUSE DEED`, one per line.
const HELPER: &str = "STOA_TEST_HELPER";

/// Points that the processes of these tests are told to die at.
const FAILPOINTS: &str = "STOA_FAILPOINTS";

/// Starts this test binary once more, to run [`helper`] alone.
fn start(home: &Home, deed: &str, failpoints: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["helper", "--exact", "--nocapture"])
        .env(HELPER, format!("{}\n{deed}", home.directory.path().to_str().unwrap()))
        .env(FAILPOINTS, failpoints)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test but the process that [`start`] starts.
#[tokio::test]
#[allow(clippy::disallowed_methods)]
async fn helper() {
    let Ok(orders) = std::env::var(HELPER) else { return };
    stoa_env::failpoint::arm_process(&std::env::var(FAILPOINTS).unwrap()).unwrap();
    let (directory, deed) = orders.split_once('\n').unwrap();
    let warehouse = common::open(Path::new(directory)).await;
    match deed {
        "create" => create(&warehouse).await,
        "together" => together(&warehouse).await,
        "flush for ever" => flush_for_ever(&warehouse.table(&ident("t")).await.unwrap()).await,
        deed => act(&warehouse.table(&ident("t")).await.unwrap(), deed).await,
    }
}

async fn create(warehouse: &Warehouse) {
    let staged = warehouse.stage_table(&ident("new"), report_spec()).await.unwrap();
    append(&staged, report_rows(NEW_YEAR_2015, 10)).await;
}

/// Replaces all rows of one table and adds some to another, both at once.
async fn together(warehouse: &Warehouse) {
    let mut replaces = begin(warehouse, "t").await;
    replaces.truncate().unwrap();
    let adds = begin(warehouse, "other").await;
    let mut rewrites = vec![replaces, adds];
    for rewrite in &mut rewrites {
        rewrite.write(report_rows(NEW_YEAR_2015, 7)).await.unwrap();
    }
    TableRewrite::commit_all(rewrites).await.unwrap();
}

async fn begin(warehouse: &Warehouse, name: &str) -> TableRewrite {
    let table = warehouse.table(&ident(name)).await.unwrap();
    table.rewrite(RewriteOptions::default()).unwrap()
}

/// Does `deed` to a table of five files of January, of which the log `a` is at 5.
async fn act(table: &Table, deed: &str) {
    match deed {
        "flush" => {
            flush(table, 5).await;
        }
        "rewrite" => {
            let mut rewrite = table.rewrite(RewriteOptions::default()).unwrap();
            rewrite
                .remove(&table.plan_scan(&Predicate::always()).await.unwrap().files[..2])
                .unwrap();
            rewrite.write(report_rows(NEW_YEAR_2015, 7)).await.unwrap();
            rewrite.commit().await.unwrap().committed().unwrap();
        }
        "truncate" => {
            let mut rewrite = table.rewrite(RewriteOptions::default()).unwrap();
            rewrite.truncate().unwrap();
            rewrite.commit().await.unwrap().committed().unwrap();
        }
        "compact" => compact(table).await,
        "expire" => expire(table).await,
        other => panic!("{other}"),
    }
}

/// Brings the entry `position` of the log `a`: three rows whose clicks say so.
async fn flush(table: &Table, position: u64) -> Table {
    let log = vec![LogAdvance { log: "a".to_owned(), from: Some(position), to: position + 1 }];
    let mut writer = table.writer(WriteOptions { log, ..WriteOptions::default() }).unwrap();
    let day = NEW_YEAR_2015 + i32::try_from(position % 30).unwrap();
    writer.write(sorted(&report_rows(day, 3))).await.unwrap();
    writer.commit().await.unwrap().table
}

async fn compact(table: &Table) {
    let options = CompactionOptions { full: true, ..CompactionOptions::default() };
    table.compact(&options, &CompactionWork::default()).await.unwrap();
}

async fn expire(table: &Table) {
    let at_once = ExpireOptions {
        age_max: Some(Duration::ZERO),
        age_min: Duration::ZERO,
        ..Default::default()
    };
    table.expire_snapshots(&at_once).await.unwrap();
}

/// Flushes one entry after the other and says so, compacts and expires in between.
async fn flush_for_ever(table: &Table) {
    let mut table = table.clone();
    let mut position = table.log_positions().unwrap().get("a").copied().unwrap_or(0);
    loop {
        table = flush(&table, position).await;
        position += 1;
        println!("\nflushed {position}");
        match position % 7 {
            3 => compact(&table).await,
            5 => expire(&table).await,
            _ => {}
        }
    }
}

/// The table that [`act`] acts on.
async fn five_files(home: &Home) -> Table {
    let mut table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    for position in 0..5 {
        table = flush(&table, position).await;
    }
    table
}

/// Fails unless there is nothing to be found but the table, after a clean-up.
async fn assert_cleans_up(table: &Table) {
    let before = rows(table).await;
    table.remove_orphans(Duration::ZERO).await.unwrap();
    assert_eq!(assert_sound(table).await.orphans, []);
    assert_eq!(rows(table).await, before);
}

/// What every row of a table is, after `deed` was done to the end.
async fn rows_after(deed: &str) -> Vec<String> {
    let home = Home::new().await;
    let table = five_files(&home).await;
    act(&table, deed).await;
    rows(&table.reload().await.unwrap()).await
}

async fn check(deed: &str, points: &[(&str, bool)]) {
    let new = rows_after(deed).await;
    for (point, is_new) in points {
        let home = Home::new().await;
        let table = five_files(&home).await;
        let old = rows(&table).await;
        let status = start(&home, deed, &format!("{point}=abort")).wait().unwrap();
        assert!(!status.success(), "{deed} did not die at {point}");

        let table = table.reload().await.unwrap();
        let expected = if *is_new { &new } else { &old };
        assert_eq!(&rows(&table).await, expected, "{deed} at {point}");
        let report = assert_sound(&table).await;
        assert!(*is_new || deed == "expire" || !report.orphans.is_empty(), "{deed} at {point}");
        assert_cleans_up(&table).await;
        // Who does not know whether it was done does it again.
        act(&table, deed).await;
        let table = table.reload().await.unwrap();
        if matches!(deed, "flush" | "truncate" | "compact" | "expire") {
            assert_eq!(rows(&table).await, new, "{deed} again after {point}");
        }
        assert_cleans_up(&table).await;
    }
}

const COMMIT: [(&str, bool); 4] = [
    ("write.files_written", false),
    ("commit.manifests_written", false),
    ("commit.metadata_written", false),
    ("commit.swapped", true),
];

#[tokio::test]
async fn flushes_that_die() {
    check("flush", &COMMIT).await;
}

#[tokio::test]
async fn rewrites_that_die() {
    check("rewrite", &COMMIT).await;
}

#[tokio::test]
async fn truncates_that_die() {
    check("truncate", &COMMIT[1..]).await;
}

#[tokio::test]
async fn changes_of_several_tables_that_die() {
    for (point, is_new) in COMMIT {
        let home = Home::new().await;
        let table = five_files(&home).await;
        let other = home.warehouse.create_table(&ident("other"), report_spec()).await.unwrap();
        let status = start(&home, "together", &format!("{point}=abort")).wait().unwrap();
        assert!(!status.success(), "not at {point}");
        let expected = if is_new { (7, 7) } else { (15, 0) };
        let (table, other) = (table.reload().await.unwrap(), other.reload().await.unwrap());
        assert_eq!((rows(&table).await.len(), rows(&other).await.len()), expected, "{point}");
        assert_cleans_up(&table).await;
        assert_cleans_up(&other).await;
        together(&home.warehouse).await;
        let (table, other) = (table.reload().await.unwrap(), other.reload().await.unwrap());
        let added = if is_new { 14 } else { 7 };
        assert_eq!((rows(&table).await.len(), rows(&other).await.len()), (7, added), "{point}");
        assert_cleans_up(&table).await;
    }
}

#[tokio::test]
async fn compactions_that_die() {
    check("compact", &COMMIT).await;
}

#[tokio::test]
async fn expiries_that_die() {
    check("expire", &[("commit.metadata_written", false)]).await;
    check("expire", &[("commit.swapped", true), ("expire.committed", true)]).await;
}

#[tokio::test]
async fn tables_that_die_at_birth() {
    for (point, is_new) in COMMIT {
        let home = Home::new().await;
        let status = start(&home, "create", &format!("{point}=abort")).wait().unwrap();
        assert!(!status.success(), "not at {point}");
        match home.warehouse.table(&ident("new")).await {
            Ok(table) => {
                assert!(is_new, "{point}");
                assert_eq!(assert_sound(&table).await.rows, 10);
            }
            Err(error) => {
                assert_eq!((error.sqlstate(), is_new), ("42P01", false), "{point}");
                home.warehouse.remove_abandoned(Duration::ZERO).await.unwrap();
                create(&home.warehouse).await;
            }
        }
    }
}

#[tokio::test]
async fn killed_at_any_moment_every_flush_is_there_once() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let mut expected = Vec::new();
    let mut position = 0;
    for round in 0..8 {
        let mut child = start(&home, "flush for ever", "");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let flushed = lines.filter_map(|line| line.strip_prefix("flushed ")?.parse::<u64>().ok());
        let acknowledged = flushed.take(2 + round * 5 % 7).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();

        let table = table.reload().await.unwrap();
        let reached = table.log_positions().unwrap()["a"];
        assert!(reached >= acknowledged, "{acknowledged} was acknowledged, {reached} is there");
        for entry in position..reached {
            let day = NEW_YEAR_2015 + i32::try_from(entry % 30).unwrap();
            expected.extend(common::texts(&report_rows(day, 3)));
        }
        expected.sort_unstable();
        position = reached;
        assert_eq!(rows(&table).await, expected);
        assert_sound(&table).await;
    }
    assert_cleans_up(&table.reload().await.unwrap()).await;
}
