//! Starts that find something wrong.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Home, by_hand, ident, ids, log_options, open_ingest, open_warehouse, rows};
use stoa_commitlog::{CommitLog, Durability as LogDurability, local_storage};
use stoa_ingest::{Durability, Ingest};
use stoa_table::Table;

fn path(location: &str) -> PathBuf {
    let url = url::Url::parse(location).map(|url| url.to_file_path().unwrap());
    url.unwrap_or_else(|_| location.into())
}

/// A table that cannot be read now may be read again later: its rows must wait for that.
#[tokio::test]
async fn rows_of_a_table_that_cannot_be_read_stay_in_the_log() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let (good, bad) = (home.table("good").await, home.table("bad").await);
    ingest.append(&bad, rows(0..10), Durability::Synced).await.unwrap();
    for first in (0..1000).step_by(100) {
        ingest.append(&good, rows(first..first + 100), Durability::Synced).await.unwrap();
    }
    ingest.close(false).await.unwrap();
    let metadata = path(bad.metadata_location());
    let content = std::fs::read(&metadata).unwrap();
    std::fs::write(&metadata, "{").unwrap();

    let warehouse = open_warehouse(home.directory.path()).await;
    let (ingest, report) = open_ingest(home.directory.path(), &warehouse, by_hand()).await;
    assert_eq!((report.rows, report.records_unresolved, report.records_dropped), (1000, 1, 0));
    ingest.flush_now(&warehouse.table(&ident("good")).await.unwrap()).await.unwrap();
    assert_eq!(ids(&ingest, "good").await.len(), 1000);
    assert_eq!(ingest.status().log.released.sequence, 0);
    ingest.close(true).await.unwrap();

    std::fs::write(&metadata, content).unwrap();
    let warehouse = open_warehouse(home.directory.path()).await;
    let (ingest, report) = open_ingest(home.directory.path(), &warehouse, by_hand()).await;
    assert_eq!((report.rows, report.records_unresolved, report.records_flushed), (10, 0, 10));
    assert_eq!(ids(&ingest, "bad").await, (0..10).collect::<Vec<_>>());
    assert_eq!(ids(&ingest, "good").await.len(), 1000);
}

#[tokio::test]
async fn a_log_that_is_older_than_a_table_takes_no_rows_for_it() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    ingest.append(&table, rows(0..10), Durability::Synced).await.unwrap();
    ingest.close(true).await.unwrap();
    let (log, backup) = (home.directory.path().join("log"), home.directory.path().join("backup"));
    copy(&log, &backup);
    let (ingest, _) = home.open(by_hand()).await;
    ingest.append(&table, rows(10..20), Durability::Synced).await.unwrap();
    ingest.close(true).await.unwrap();

    std::fs::remove_dir_all(&log).unwrap();
    copy(&backup, &log);
    let (ingest, report) = home.open(by_hand()).await;
    assert_eq!((report.tables_ahead, report.logs_gone), (1, 0), "it is said at the start");
    let table = table.reload().await.unwrap();
    let error = ingest.append(&table, rows(20..30), Durability::Synced).await.unwrap_err();
    assert_eq!(error.sqlstate(), "XX001");
    assert!(error.message().contains("public.t is at position"), "{error:?}");
    assert_eq!(ids(&ingest, "t").await, (0..20).collect::<Vec<_>>());
    // Other tables can be written.
    let other = home.table("other").await;
    ingest.append(&other, rows(0..1), Durability::Synced).await.unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Whether its rows were in files or not, a log that is gone is missed, once.
#[tokio::test]
async fn a_log_that_is_gone_is_missed() {
    for flushed in [true, false] {
        let home = Home::new().await;
        let (ingest, report) = home.open(by_hand()).await;
        assert_eq!(report, stoa_ingest::RecoveryReport::default());
        let table = home.table("t").await;
        ingest.append(&table, rows(0..10), Durability::Synced).await.unwrap();
        ingest.close(flushed).await.unwrap();
        let known = home.warehouse.catalog().known_logs().await.unwrap();
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].closed_at.is_some(), flushed);
        std::fs::remove_dir_all(home.directory.path().join("log")).unwrap();
        let (ingest, report) = home.open(by_hand()).await;
        assert_eq!((report.logs_gone, report.tables_ahead), (1, 0));
        assert_eq!(ids(&ingest, "t").await.len(), if flushed { 10 } else { 0 });
        ingest.close(true).await.unwrap();
        let (ingest, report) = home.open(by_hand()).await;
        assert_eq!(report.logs_gone, 0, "it was said");
        ingest.close(true).await.unwrap();
    }
}

/// The end of a log cut off below what tables have, byte by byte and by whole segments.
#[tokio::test]
async fn a_cut_tail_is_missed() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    for first in 0..5 {
        ingest.append(&table, rows(first..first + 1), Durability::Synced).await.unwrap();
    }
    ingest.flush_now(&table).await.unwrap();
    ingest.close(true).await.unwrap();
    let log = home.directory.path().join("log");
    let newest = || {
        let names = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|end| end == "log")).max().unwrap()
    };
    let file = std::fs::OpenOptions::new().write(true).open(newest()).unwrap();
    // The header, and nothing else.
    file.set_len(64).unwrap();
    let (_ingest, report) = home.open(by_hand()).await;
    assert_eq!((report.tables_ahead, report.logs_gone), (1, 0));
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_refused_with_its_place() {
    let home = Home::new().await;
    let storage = local_storage(&home.directory.path().join("log")).unwrap();
    let log = CommitLog::open(storage, log_options()).await.unwrap();
    log.0
        .append(&[&[3, 0, 0, 0]], LogDurability::Sync)
        .await
        .unwrap()
        .acknowledged()
        .await
        .unwrap();
    log.0.close().await.unwrap();
    drop(log);
    let error = try_open(&home).await.err().unwrap();
    assert_eq!(error.sqlstate(), "0A000");
    assert!(error.message().contains("position") && error.message().contains("version 3"));
    assert!(error.hint().is_some());
}

async fn try_open(home: &Home) -> stoa_error::Result<Ingest> {
    let storage = local_storage(&home.directory.path().join("log")).unwrap();
    let log = loop {
        match CommitLog::open(storage.clone(), log_options()).await {
            Err(error) if error.sqlstate() == "55006" => tokio::task::yield_now().await,
            log => break log?,
        }
    };
    Ok(Ingest::with_log(home.warehouse.clone(), log, by_hand()).await?.0)
}

#[tokio::test]
async fn a_log_that_has_stopped_says_so_and_what_it_has_is_still_read_and_flushed() {
    let home = Home::new().await;
    let disk = stoa_commitlog::sim::SimDisk::new(1);
    let log = CommitLog::open(disk.storage(), log_options()).await.unwrap();
    let opened = Ingest::with_log(home.warehouse.clone(), log, by_hand()).await.unwrap();
    let ingest = opened.0;
    let table: Table = home.table("t").await;
    ingest.append(&table, rows(0..10), Durability::Synced).await.unwrap();
    disk.inject(disk.operations().len(), stoa_commitlog::sim::Fault::Error);
    for first in [10, 20] {
        let append = ingest.append(&table, rows(first..first + 10), Durability::Synced);
        assert_eq!(append.await.unwrap_err().kind(), stoa_error::ErrorKind::Unavailable);
    }
    assert!(ingest.status().log.poisoned.is_some());
    assert_eq!(ids(&ingest, "t").await, (0..10).collect::<Vec<_>>());
    // The flush fails, as there are rows that it cannot make durable, but takes along what it can.
    assert!(ingest.flush_now(&table).await.is_err());
    let stored = common::stored_ids(&table.reload().await.unwrap()).await;
    assert_eq!(common::sorted(stored), (0..10).collect::<Vec<_>>());
    assert_eq!(ids(&ingest, "t").await, (0..10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_engines_with_a_log_each_write_to_one_table() {
    let home = Home::new().await;
    let table = home.table("t").await;
    let other = tempfile::tempdir().unwrap();
    let (one, _) = home.open(by_hand()).await;
    let (two, _) = open_ingest(other.path(), &home.warehouse, by_hand()).await;
    let engines = [Arc::new(one), Arc::new(two)];
    for round in 0..4 {
        let appends = engines.iter().zip(0..).map(|(engine, number)| {
            let first = (round * 2 + number) * 10;
            engine.append(&table, rows(first..first + 10), Durability::Synced)
        });
        futures::future::try_join_all(appends).await.unwrap();
        let flushes = engines.iter().map(|engine| engine.flush_now(&table));
        futures::future::try_join_all(flushes).await.unwrap();
    }
    for engine in &engines {
        assert_eq!(ids(engine, "t").await, (0..80).collect::<Vec<_>>());
    }
    assert_eq!(table.reload().await.unwrap().log_positions().unwrap().len(), 2);
}
