//! Flushes of a commit log: exactly once, whatever is repeated and whoever commits in between.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{Home, append, assert_sound, ident, report_rows, report_spec};
use stoa_env::failpoint::{Action, Failpoints};
use stoa_table::{
    CommitOptions, LogAdvance, RewriteOptions, Table, TableChange, WriteOptions, WrittenFiles,
};

const NEW_YEAR_2015: i32 = 16_436;

fn advance(log: &str, from: u64, to: u64) -> LogAdvance {
    LogAdvance { log: log.to_owned(), from: Some(from), to }
}

fn options(log: Vec<LogAdvance>) -> CommitOptions {
    CommitOptions { log, ..CommitOptions::default() }
}

async fn written(table: &Table, rows: usize) -> WrittenFiles {
    let mut writer = table.writer(WriteOptions::default()).unwrap();
    writer.write(report_rows(NEW_YEAR_2015, rows)).await.unwrap();
    writer.finish().await.unwrap()
}

async fn flush(table: &Table, rows: usize, advance: LogAdvance) -> stoa_error::Result<bool> {
    let options = options(vec![advance]);
    written(table, rows).await.commit(&options).await.map(|outcome| !outcome.already_committed)
}

fn positions(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
    pairs.iter().map(|(log, at)| ((*log).to_owned(), *at)).collect()
}

#[tokio::test]
async fn a_flush_repeated_is_there_once() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    assert!(flush(&table, 10, advance("a", 0, 100)).await.unwrap());
    // After a crash the same stretch is written anew.
    assert!(!flush(&table, 10, advance("a", 0, 100)).await.unwrap());
    assert!(flush(&table, 5, advance("a", 100, 105)).await.unwrap());
    assert!(flush(&table, 1, advance("b", 0, 7)).await.unwrap());
    assert!(!flush(&table, 1, LogAdvance { log: "b".into(), from: None, to: 7 }).await.unwrap());
    let table = table.reload().await.unwrap();
    assert_eq!(table.row_count(), Some(16));
    assert_eq!(table.log_positions().unwrap(), positions(&[("a", 105), ("b", 7)]));
    let summary = table.current_snapshot().unwrap().summary;
    assert_eq!((summary["stoa.log.a"].as_str(), summary["stoa.log.b"].as_str()), ("105", "7"));
    assert!(table.properties().keys().all(|key| !key.starts_with("stoa.log.")));
    assert_sound(&table).await;
}

#[tokio::test]
async fn gaps_and_overlaps_are_refused() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    assert!(flush(&table, 10, advance("a", 0, 100)).await.unwrap());
    let code = async |advance| flush(&table, 1, advance).await.unwrap_err().sqlstate();
    assert_eq!(code(advance("a", 101, 120)).await, "40001");
    assert_eq!(code(advance("a", 99, 120)).await, "40001");
    assert_eq!(code(advance("a", 100, 100)).await, "22023");
    assert_eq!(code(advance("a b", 0, 1)).await, "22023");
    let half = options(vec![advance("a", 0, 100), advance("b", 0, 1)]);
    let error = written(&table, 1).await.commit(&half).await.unwrap_err();
    assert_eq!(error.sqlstate(), "40001");
    assert_eq!(table.reload().await.unwrap().row_count(), Some(10));
}

#[tokio::test]
async fn other_commits_keep_positions() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    flush(&table, 10, advance("a", 0, 100)).await.unwrap();
    let table = append(&table, report_rows(NEW_YEAR_2015, 3)).await;
    assert_eq!(table.current_snapshot().unwrap().summary["stoa.log.a"], "100");
    let set = [("comment".to_owned(), "x".to_owned())].into();
    let table = table.alter(vec![TableChange::SetProperties(set)]).await.unwrap();
    assert_eq!(table.log_positions().unwrap(), positions(&[("a", 100)]));
    for change in [
        TableChange::UnsetProperties(vec!["stoa.log.a".to_owned()]),
        TableChange::SetProperties([("stoa.log.a".to_owned(), "1".to_owned())].into()),
    ] {
        assert_eq!(table.alter(vec![change]).await.unwrap_err().sqlstate(), "0A000");
    }
    let mut spec = report_spec();
    spec.properties.insert("stoa.log.a".to_owned(), "1".to_owned());
    let refused = home.warehouse.create_table(&ident("u"), spec).await.unwrap_err();
    assert_eq!(refused.sqlstate(), "0A000");
}

#[tokio::test]
async fn a_stretch_without_rows_moves_the_position_only() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let nothing = table.writer(WriteOptions::default()).unwrap().finish().await.unwrap();
    let outcome = nothing.commit(&options(vec![advance("a", 0, 9)])).await.unwrap();
    assert_eq!((outcome.rows, outcome.already_committed), (0, false));
    assert_eq!(outcome.table.log_positions().unwrap(), positions(&[("a", 9)]));
    assert!(outcome.table.current_snapshot().is_none());
}

#[tokio::test]
async fn a_truncate_covers_the_log_as_far_as_it_says() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let table = {
        flush(&table, 10, advance("a", 0, 100)).await.unwrap();
        table.reload().await.unwrap()
    };
    for (to, position) in [(150, 150), (120, 150)] {
        let log = vec![LogAdvance { log: "a".to_owned(), from: None, to }];
        let write = WriteOptions { log, ..WriteOptions::default() };
        let options = RewriteOptions { write, ..RewriteOptions::default() };
        append(&table, report_rows(NEW_YEAR_2015, 4)).await;
        let table = table.reload().await.unwrap();
        let mut truncate = table.rewrite(options).unwrap();
        truncate.truncate().unwrap();
        let outcome = truncate.commit().await.unwrap().committed().unwrap();
        assert!(!outcome.already_committed && outcome.removed_rows >= 4);
        assert_eq!(outcome.table.log_positions().unwrap(), positions(&[("a", position)]));
        assert_eq!(outcome.table.row_count(), Some(0));
        // What was acknowledged before does not come back.
        assert!(!flush(&table, 10, advance("a", 100, 110)).await.unwrap());
    }
}

#[tokio::test]
async fn the_answer_to_a_commit_may_be_lost() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let files = written(&table, 10).await;
    let lost = Failpoints::new();
    lost.arm("commit.swapped", Action::Error);
    let none = CommitOptions::default();
    lost.scope(files.commit(&none)).await.unwrap_err();
    // Somebody builds on it before the writer asks again.
    append(&table.reload().await.unwrap(), report_rows(NEW_YEAR_2015, 1)).await;
    assert!(files.commit(&none).await.unwrap().already_committed);
    assert!(files.commit(&none).await.unwrap().already_committed);
    let table = table.reload().await.unwrap();
    assert_eq!(table.row_count(), Some(11));
    assert_sound(&table).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_flushes_of_one_stretch_one_wins() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    for round in 0..5 {
        let (from, to) = (round * 10, round * 10 + 10);
        let both = (0..2).map(|_| {
            let log = vec![advance("a", from, to)];
            let options = WriteOptions { log, ..WriteOptions::default() };
            let mut writer = table.writer(options).unwrap();
            stoa_env::task::spawn(async move {
                writer.write(report_rows(NEW_YEAR_2015, 7)).await?;
                writer.commit().await
            })
        });
        let mut winners = 0;
        for flush in both.collect::<Vec<_>>() {
            winners += usize::from(!flush.await.unwrap().unwrap().already_committed);
        }
        assert_eq!(winners, 1);
    }
    let table = table.reload().await.unwrap();
    assert_eq!(table.row_count(), Some(35));
    let report = assert_sound(&table).await;
    // What the losers wrote is deleted.
    assert_eq!(report.orphans, []);
}
