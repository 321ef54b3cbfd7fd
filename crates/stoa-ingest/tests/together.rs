//! Rows for several tables that come and stay together.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Home, by_hand, ident, ids, rows};
use stoa_ingest::{Durability, TableRows};

#[tokio::test]
async fn rows_of_several_tables_are_replayed_together() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let (one, other) = (home.table("one").await, home.table("other").await);
    for first in [0, 10] {
        let of = |table: &stoa_table::Table, first| TableRows {
            table: table.clone(),
            batch: rows(first..first + 5),
        };
        let both = vec![of(&other, first + 100), of(&one, first)];
        assert_eq!(ingest.append_all(both, Durability::Synced).await.unwrap(), 10);
    }
    let expected: Vec<i64> = (0..5).chain(10..15).collect();
    assert_eq!(ids(&ingest, "one").await, expected);
    // One of the tables has them in files already, the other has not.
    ingest.flush_now(&one).await.unwrap();
    ingest.close(false).await.unwrap();
    let (ingest, report) = home.open(by_hand()).await;
    assert_eq!((report.records, report.rows), (2, 10));
    assert_eq!(ids(&ingest, "one").await, expected);
    let other: Vec<i64> = expected.iter().map(|id| id + 100).collect();
    assert_eq!(ids(&ingest, "other").await, other);
}

#[tokio::test]
async fn readers_of_several_tables_see_all_of_them_or_none() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let (one, other) = (home.table("one").await, home.table("other").await);
    let writer = {
        let ingest = ingest.clone();
        stoa_env::task::spawn(async move {
            for id in 0..200 {
                let both = [&one, &other]
                    .map(|table| TableRows { table: table.clone(), batch: rows(id..id + 1) });
                ingest.append_all(both.into(), Durability::Synced).await.unwrap();
                if id % 50 == 0 {
                    ingest.flush_now(&one).await.unwrap();
                }
            }
        })
    };
    let idents = [ident("one"), ident("other")];
    while !writer.is_finished() {
        let seen = ingest.snapshots(&idents).await.unwrap();
        let rows = |nth: usize| seen[nth].table.row_count().unwrap() + seen[nth].fresh.rows();
        assert_eq!(rows(0), rows(1));
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    assert_eq!(ids(&ingest, "one").await, ids(&ingest, "other").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_holds_one_of_them_sees_all_of_them_or_none() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let (one, other) = (home.table("one").await, home.table("other").await);
    let writer = {
        let (ingest, one, other) = (ingest.clone(), one.clone(), other.clone());
        stoa_env::task::spawn(async move {
            for id in 0..300 {
                let both = [&one, &other]
                    .map(|table| TableRows { table: table.clone(), batch: rows(id..id + 1) });
                ingest.append_all(both.into(), Durability::Synced).await.unwrap();
            }
        })
    };
    while !writer.is_finished() {
        let mut held = ingest.hold_flush(&one).await.unwrap();
        // Rows that the log is about to make durable come in between.
        for _ in 0..5 {
            let seen = held.read_with(&[ident("other")]).await.unwrap();
            let beside = seen[0].table.row_count().unwrap() + seen[0].fresh.rows();
            assert_eq!(held.table().row_count().unwrap(), beside);
        }
    }
    writer.await.unwrap();
    assert_eq!(ids(&ingest, "one").await, ids(&ingest, "other").await);
}
