//! Readers beside writers and flushes: every acknowledged row, once, at any moment.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use common::{Home, by_hand, ids, rows};
use stoa_ingest::{Durability, Ingest};
use stoa_table::Table;

const WRITERS: usize = 4;
const APPENDS: i64 = 150;

/// Ids of writer w are w * SPAN, w * SPAN + 1, …
const SPAN: i64 = 1 << 24;

#[derive(Default)]
struct Progress {
    /// How many rows of each writer are acknowledged.
    acknowledged: [AtomicI64; WRITERS],
    done: AtomicBool,
    looks: AtomicU64,
    /// How often a reader's version was too old.
    sent_back: AtomicU64,
}

async fn write(ingest: Ingest, table: Table, progress: Arc<Progress>, writer: usize) {
    let mut next = 0;
    for append in 0..APPENDS {
        let (first, count) = (writer as i64 * SPAN + next, 1 + append % 40);
        ingest.append(&table, rows(first..first + count), Durability::Table).await.unwrap();
        next += count;
        progress.acknowledged[writer].store(next, Ordering::SeqCst);
    }
}

impl Progress {
    fn acknowledged(&self) -> Vec<i64> {
        self.acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }

    /// No gap, nothing twice, and at least what was acknowledged before the look.
    fn check(&self, found: &[i64], before: &[i64]) {
        for (writer, acknowledged) in before.iter().enumerate() {
            let own = found.iter().filter(|id| **id / SPAN == writer as i64).map(|id| id % SPAN);
            let own = common::sorted(own);
            assert_eq!(own, (0..own.len() as i64).collect::<Vec<_>>(), "writer {writer}");
            assert!(own.len() as i64 >= *acknowledged, "writer {writer}");
        }
        self.looks.fetch_add(1, Ordering::SeqCst);
    }
}

/// Looks at the newest version.
async fn read(ingest: Ingest, progress: Arc<Progress>) {
    while !progress.is_done() {
        let before = progress.acknowledged();
        progress.check(&ids(&ingest, "t").await, &before);
    }
}

/// Loads the table, is slow, and asks for the rows of that version then.
async fn read_slowly(ingest: Ingest, table: Table, progress: Arc<Progress>) {
    while !progress.is_done() {
        let table = table.reload().await.unwrap();
        let looks = progress.looks.load(Ordering::SeqCst);
        while progress.looks.load(Ordering::SeqCst) == looks && !progress.is_done() {
            tokio::task::yield_now().await;
        }
        let before = progress.acknowledged();
        let Some(fresh) = ingest.fresh_for(&table).unwrap() else {
            progress.sent_back.fetch_add(1, Ordering::SeqCst);
            continue;
        };
        let mut found = common::fresh_ids(&fresh);
        found.extend(common::stored_ids(&table).await);
        progress.check(&found, &before);
    }
}

async fn flush(ingest: Ingest, table: Table, progress: Arc<Progress>) {
    while !progress.is_done() {
        let before = progress.looks.load(Ordering::SeqCst);
        let acknowledged = progress.acknowledged();
        let flushed = ingest.flush_now(&table).await.unwrap();
        progress.check(&common::stored_ids(&flushed).await, &acknowledged);
        // Readers shall meet flushes at any stage, and still get a turn on a small machine.
        while progress.looks.load(Ordering::SeqCst) == before
            && !progress.done.load(Ordering::SeqCst)
        {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_see_each_row_once_while_flushes_commit() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    let progress = Arc::new(Progress::default());
    let spawn = stoa_env::task::spawn::<futures::future::BoxFuture<'static, ()>>;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            spawn(Box::pin(write(ingest.clone(), table.clone(), progress.clone(), writer)))
        })
        .collect();
    let others = [
        spawn(Box::pin(read(ingest.clone(), progress.clone()))),
        spawn(Box::pin(read_slowly(ingest.clone(), table.clone(), progress.clone()))),
        spawn(Box::pin(read_slowly(ingest.clone(), table.clone(), progress.clone()))),
        spawn(Box::pin(flush(ingest.clone(), table.clone(), progress.clone()))),
    ];
    for writer in writers {
        writer.await.unwrap();
    }
    progress.done.store(true, Ordering::SeqCst);
    for other in others {
        other.await.unwrap();
    }
    let rows: i64 = (0..APPENDS).map(|append| 1 + append % 40).sum();
    assert_eq!(ids(&ingest, "t").await.len() as i64, rows * WRITERS as i64);
    assert!(progress.looks.load(Ordering::SeqCst) > 0);
    assert!(progress.sent_back.load(Ordering::SeqCst) > 0);
    assert!(ingest.status().tables[0].flushes > 0);
}
