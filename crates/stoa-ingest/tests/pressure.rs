//! Memory stays under its bound: appends wait, and then fail, retryably.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Home, by_hand, ids, rows};
use futures::FutureExt;
use stoa_ingest::{Durability, FlushLimits, IngestOptions};

fn small() -> IngestOptions {
    IngestOptions {
        fresh_bytes_max: 1 << 20,
        room_wait_max: Duration::from_millis(50),
        ..by_hand()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_fail_while_nothing_can_be_flushed_and_succeed_after() {
    let home = Home::new().await;
    let (ingest, _) = home.open(small()).await;
    let table = home.table("t").await;
    let hold = ingest.hold_flush(&table).await.unwrap();
    let mut next = 0;
    let error = loop {
        let batch = rows(next..next + 1000);
        match ingest.append(&table, batch, Durability::Synced).await {
            Ok(_) => next += 1000,
            Err(error) => break error,
        }
        assert!(ingest.status().fresh_bytes <= 1 << 20);
    };
    assert_eq!(error.sqlstate(), "53200");
    assert!(error.kind().is_retryable());
    assert!(error.hint().unwrap().contains("retry"), "{error:?}");
    assert!(next >= 20_000, "{next}");

    // Other tables are flushed to make room, this one once it may be.
    drop(hold);
    let ack = loop {
        match ingest.append(&table, rows(next..next + 1000), Durability::Synced).await {
            Ok(ack) => break ack,
            Err(error) => assert_eq!(error.sqlstate(), "53200"),
        }
    };
    assert_eq!(ack.rows, 1000);
    assert_eq!(ids(&ingest, "t").await, (0..next + 1000).collect::<Vec<_>>());
    assert!(ingest.status().tables[0].flushes > 0);

    let huge = ingest.append(&table, rows(0..100_000), Durability::Synced).await.unwrap_err();
    assert_eq!(huge.sqlstate(), "54000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_faster_than_flushes_wait_for_them() {
    const WRITERS: i64 = 8;
    const BATCHES: i64 = 40;
    let home = Home::new().await;
    let wait = IngestOptions { room_wait_max: Duration::from_secs(600), ..small() };
    let (ingest, _) = home.open(wait).await;
    let table = home.table("t").await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (ingest, table) = (ingest.clone(), table.clone());
            stoa_env::task::spawn(async move {
                for batch in 0..BATCHES {
                    let first = (writer * BATCHES + batch) * 1000;
                    let batch = rows(first..first + 1000);
                    ingest.append(&table, batch, Durability::Synced).await.unwrap();
                    assert!(ingest.status().fresh_bytes <= 1 << 20);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let all: Vec<i64> = (0..WRITERS * BATCHES * 1000).collect();
    assert_eq!(ids(&ingest, "t").await, all);
    // What was not flushed fits in memory, also after a start with less of it.
    ingest.close(false).await.unwrap();
    let less = IngestOptions { fresh_bytes_max: 64 << 10, ..small() };
    let (ingest, report) = home.open(less).await;
    assert_eq!(ids(&ingest, "t").await, all);
    assert!(report.rows < 100_000);
    ingest.close(true).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_flushed_by_rows_and_by_age() {
    let home = Home::new().await;
    let by_rows = FlushLimits { rows: 100, ..by_hand().flush };
    let (ingest, _) = home.open(IngestOptions { flush: by_rows, ..by_hand() }).await;
    let (busy, aged) = (home.table("busy").await, home.table("aged").await);
    ingest.append(&busy, rows(0..99), Durability::Synced).await.unwrap();
    assert_eq!(ingest.status().tables[0].flushes, 0);
    ingest.append(&busy, rows(99..100), Durability::Synced).await.unwrap();
    until_flushed(&ingest, "busy").await;

    let soon = [(stoa_ingest::FLUSH_AGE_MS.to_owned(), "1".to_owned())].into();
    let aged = aged.alter(vec![stoa_table::TableChange::SetProperties(soon)]).await.unwrap();
    ingest.append(&aged, rows(0..1), Durability::Relaxed).await.unwrap();
    until_flushed(&ingest, "aged").await;
    assert_eq!(ids(&ingest, "aged").await, [0]);
}

async fn until_flushed(ingest: &stoa_ingest::Ingest, name: &str) {
    let is_flushed = || {
        let status = ingest.status();
        status.tables.iter().any(|table| table.table.name == name && table.flushes > 0)
    };
    while !is_flushed() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_failed_is_seen_and_tried_again() {
    let home = Home::new().await;
    let by_rows = FlushLimits { rows: 1000, ..by_hand().flush };
    let (ingest, _) = home.open(IngestOptions { flush: by_rows, ..by_hand() }).await;
    let table = home.table("t").await;
    ingest.append(&table, rows(0..999), Durability::Synced).await.unwrap();
    let points = stoa_env::failpoint::Failpoints::new();
    points.arm("flush.before_commit", stoa_env::failpoint::Action::Error);
    let error = points.scope(ingest.flush_now(&table)).await.unwrap_err();
    assert!(error.message().contains("flush.before_commit"), "{error:?}");
    let status = ingest.status().tables.remove(0);
    assert_eq!((status.failures, status.flushes, status.fresh_rows), (1, 0, 999));
    assert!(status.last_error.unwrap().contains("flush.before_commit"));
    assert_eq!(ids(&ingest, "t").await.len(), 999);
    // Nobody names the files that it had written.
    let orphans = table.check().await.unwrap().orphans;
    assert!(orphans.iter().all(|orphan| !orphan.location.ends_with(".orc")), "{orphans:?}");

    ingest.append(&table, rows(999..1000), Durability::Synced).await.unwrap();
    until_flushed(&ingest, "t").await;
    let status = ingest.status().tables.remove(0);
    assert_eq!((status.failures, status.flushed_rows, status.last_error), (0, 1000, None));
}

#[tokio::test]
async fn one_flush_at_a_time_and_none_while_held() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    ingest.append(&table, rows(0..10), Durability::Relaxed).await.unwrap();
    let hold = ingest.hold_flush(&table).await.unwrap();
    assert_eq!(hold.table().row_count(), Some(10));
    ingest.append(&table, rows(10..20), Durability::Synced).await.unwrap();
    let mut waiting = Box::pin(ingest.flush_now(&table));
    assert!((&mut waiting).now_or_never().is_none());
    assert!(ingest.status().tables[0].busy);
    let mut rewrite = hold.table().rewrite(stoa_table::RewriteOptions::default()).unwrap();
    rewrite.truncate().unwrap();
    rewrite.commit().await.unwrap().committed().unwrap();
    assert_eq!(ids(&ingest, "t").await, (10..20).collect::<Vec<_>>());
    drop(hold);
    assert_eq!(waiting.await.unwrap().row_count(), Some(10));
    assert_eq!(ids(&ingest, "t").await, (10..20).collect::<Vec<_>>());
}
