//! Two daemons over one catalog, each with a log of its own: what one has acknowledged, both show.
//!
//! The oracle is the writers' own ledger: each writes numbers in order, now to one daemon, now to the
//! other, so a reader that misses a row of one log but sees a later one of the other shows a gap.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use common::{by_hand, ids, open_warehouse, rows};
use futures::future::BoxFuture;
use stoa_commitlog::{CommitLog, local_storage};
use stoa_error::ErrorKind;
use stoa_ingest::{Durability, Ingest, IngestOptions, LogPart, OtherHold, Others, TableRows, Turn};
use stoa_table::Table;

const WRITERS: usize = 4;
const APPENDS: i64 = 120;
const SPAN: i64 = 1 << 24;

/// Opens a daemon of its own: a catalog connection, a log.
async fn daemon(directory: &std::path::Path, name: &str) -> Ingest {
    let warehouse = open_warehouse(directory).await;
    let storage = local_storage(&directory.join(name)).unwrap();
    let log = CommitLog::open(storage, common::log_options()).await.unwrap();
    let options = IngestOptions { ships: true, ..by_hand() };
    Ingest::with_log(warehouse, log, options).await.unwrap().0
}

/// Sends what `from` has to `to` until `done`, one record or all at a time, some parts twice and some never
/// the first time.
async fn send(from: Ingest, to: Ingest, done: Arc<AtomicBool>) {
    let shipping = from.shipping().unwrap();
    let (mut told, mut round) = (0_u64, 0_u64);
    while !done.load(Ordering::SeqCst) || shipping.last() > told {
        round += 1;
        let base = shipping.in_files();
        let first = told.max(base) + 1;
        // As if what came before had been lost, or was sent twice.
        let first = match round % 5 {
            1 => first.saturating_sub(2).max(base + 1),
            2 => first + 1,
            _ => first,
        };
        let bytes_max = if round.is_multiple_of(3) { 1 } else { usize::MAX };
        let (last, durable) = (shipping.last(), shipping.durable());
        let records = shipping.records(first, last, bytes_max);
        let tables = shipping.tables();
        let log = from.log_id().to_owned();
        let part = LogPart { log, base, from: first, records, durable, tables };
        let shown = to.receive(part).await.unwrap().shown;
        assert!(shown >= told, "what is shown went back from {told} to {shown}");
        told = shown;
        shipping.acknowledge(told);
        tokio::task::yield_now().await;
    }
}

#[derive(Default)]
struct Progress {
    acknowledged: [AtomicI64; WRITERS],
    done: AtomicBool,
    looks: AtomicU64,
    from_copies: AtomicU64,
}

impl Progress {
    fn check(&self, found: &[i64], before: &[i64]) {
        for (writer, acknowledged) in before.iter().enumerate() {
            let own = found.iter().filter(|id| **id / SPAN == writer as i64).map(|id| id % SPAN);
            let own = common::sorted(own);
            assert_eq!(own, (0..own.len() as i64).collect::<Vec<_>>(), "writer {writer}");
            assert!(own.len() as i64 >= *acknowledged, "writer {writer}");
        }
        self.looks.fetch_add(1, Ordering::SeqCst);
    }

    fn acknowledged(&self) -> Vec<i64> {
        self.acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }
}

async fn write(daemons: [Ingest; 2], table: Table, progress: Arc<Progress>, writer: usize) {
    let mut next = 0;
    for append in 0..APPENDS {
        let (first, count) = (writer as i64 * SPAN + next, 1 + append % 30);
        let daemon = &daemons[(append as usize + writer) % 2];
        daemon.append(&table, rows(first..first + count), Durability::Table).await.unwrap();
        next += count;
        progress.acknowledged[writer].store(next, Ordering::SeqCst);
    }
}

async fn read(daemon: Ingest, progress: Arc<Progress>) {
    while !progress.done.load(Ordering::SeqCst) {
        let before = progress.acknowledged();
        progress.check(&ids(&daemon, "t").await, &before);
        let (rows, _) = daemon.copied();
        progress.from_copies.fetch_add(u64::from(rows > 0), Ordering::SeqCst);
        // A task that never waits keeps those from their turn that have waited on its thread.
        tokio::task::yield_now().await;
    }
}

async fn flush(daemon: Ingest, table: Table, progress: Arc<Progress>) {
    while !progress.done.load(Ordering::SeqCst) {
        let before = progress.looks.load(Ordering::SeqCst);
        daemon.flush_now(&table).await.unwrap();
        while progress.looks.load(Ordering::SeqCst) < before + 3
            && !progress.done.load(Ordering::SeqCst)
        {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_show_what_either_has_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let daemons = [daemon(home.path(), "log0").await, daemon(home.path(), "log1").await];
    let warehouse = open_warehouse(home.path()).await;
    let table = warehouse.create_table(&common::ident("t"), common::spec()).await.unwrap();
    let progress = Arc::new(Progress::default());
    let spawn = stoa_env::task::spawn::<BoxFuture<'static, ()>>;
    let done = Arc::new(AtomicBool::new(false));
    let [one, other] = daemons.clone();
    let senders = [
        spawn(Box::pin(send(one.clone(), other.clone(), done.clone()))),
        spawn(Box::pin(send(other.clone(), one.clone(), done.clone()))),
    ];
    let writers = (0..WRITERS).map(|writer| {
        spawn(Box::pin(write(daemons.clone(), table.clone(), progress.clone(), writer)))
    });
    let writers: Vec<_> = writers.collect();
    let others = [
        spawn(Box::pin(read(one.clone(), progress.clone()))),
        spawn(Box::pin(read(other.clone(), progress.clone()))),
        spawn(Box::pin(flush(one.clone(), table.clone(), progress.clone()))),
        spawn(Box::pin(flush(other.clone(), table.clone(), progress.clone()))),
    ];
    for writer in writers {
        writer.await.unwrap();
    }
    progress.done.store(true, Ordering::SeqCst);
    for other in others {
        other.await.unwrap();
    }
    let all: i64 = (0..APPENDS).map(|append| 1 + append % 30).sum();
    for daemon in &daemons {
        assert_eq!(ids(daemon, "t").await.len() as i64, all * WRITERS as i64);
    }
    assert!(progress.from_copies.load(Ordering::SeqCst) > 0, "no look met a copy");
    done.store(true, Ordering::SeqCst);
    for sender in senders {
        sender.await.unwrap();
    }
}

#[tokio::test]
async fn an_append_waits_until_the_others_show_it() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = [daemon(home.path(), "log0").await, daemon(home.path(), "log1").await];
    let warehouse = open_warehouse(home.path()).await;
    let table = warehouse.create_table(&common::ident("t"), common::spec()).await.unwrap();
    let shipping = one.shipping().unwrap();
    let mut append = Box::pin(one.append(&table, rows(0..3), Durability::Synced));
    while shipping.durable() < 1 {
        assert!(futures::poll!(&mut append).is_pending(), "acknowledged before anybody was told");
        tokio::task::yield_now().await;
    }
    let part = |durable| LogPart {
        log: one.log_id().to_owned(),
        base: shipping.in_files(),
        from: 1,
        records: shipping.records(1, shipping.last(), usize::MAX),
        durable,
        tables: shipping.tables(),
    };
    assert_eq!(other.receive(part(0)).await.unwrap().shown, 0);
    assert_eq!(ids(&other, "t").await, [0_i64; 0], "shown before it is durable");
    assert_eq!(other.receive(part(1)).await.unwrap().shown, 1);
    assert!(futures::poll!(&mut append).is_pending());
    assert_eq!(ids(&other, "t").await, [0, 1, 2]);
    shipping.acknowledge(1);
    append.await.unwrap();
    // The copy goes once the rows are in files, and a late part brings nothing back.
    one.flush_now(&table).await.unwrap();
    assert_eq!((shipping.in_files(), shipping.bytes()), (1, 0));
    let late = LogPart { from: 2, records: Vec::new(), ..part(1) };
    assert_eq!(other.receive(late).await.unwrap().shown, 1);
    assert_eq!(other.copied(), (0, 0));
    assert_eq!(ids(&other, "t").await, [0, 1, 2]);
    let under_way = LogPart { base: 0, ..part(1) };
    other.forget_copy(one.log_id());
    assert_eq!(ids(&other, "t").await, [0, 1, 2]);
    // What its owner still sends begins nothing.
    assert_eq!(other.receive(under_way).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(ids(&other, "t").await, [0, 1, 2]);
}

/// Rows of a log that is forgotten are in files, of which a reader of an older version knows nothing.
#[tokio::test]
async fn readers_of_older_versions_are_sent_back_when_a_log_is_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = [daemon(home.path(), "log0").await, daemon(home.path(), "log1").await];
    let warehouse = open_warehouse(home.path()).await;
    let table = warehouse.create_table(&common::ident("t"), common::spec()).await.unwrap();
    let shipping = one.shipping().unwrap();
    shipping.acknowledge(u64::MAX);
    for id in 0..3 {
        one.append(&table, rows(id..id + 1), Durability::Synced).await.unwrap();
    }
    // The last record is not durable as far as this one knows, and it may not be in the log that is taken over.
    let part = LogPart {
        log: one.log_id().to_owned(),
        base: 0,
        from: 1,
        records: shipping.records(1, 3, usize::MAX),
        durable: 2,
        tables: shipping.tables(),
    };
    assert_eq!(other.receive(part).await.unwrap().shown, 2);
    assert_eq!(other.fresh_for(&table).unwrap().unwrap().rows(), 2);
    one.flush_now(&table).await.unwrap();
    other.forget_copy(one.log_id());
    assert!(other.fresh_for(&table).unwrap().is_none());
    assert_eq!(other.copied(), (0, 0));
    assert_eq!(ids(&other, "t").await, [0, 1, 2]);
}

/// A record with rows of two tables, of which one cannot be read at first: it comes in as a whole, later.
#[tokio::test]
async fn a_record_that_fails_half_way_comes_in_once() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = [daemon(home.path(), "log0").await, daemon(home.path(), "log1").await];
    let warehouse = open_warehouse(home.path()).await;
    let mut tables = Vec::new();
    for name in ["t", "u"] {
        let ident = common::ident(name);
        tables.push(warehouse.create_table(&ident, common::spec()).await.unwrap());
    }
    let shipping = one.shipping().unwrap();
    shipping.acknowledge(u64::MAX);
    let both =
        tables.iter().map(|table| TableRows { table: table.clone(), batch: rows(0..3) }).collect();
    one.append_all(both, Durability::Synced).await.unwrap();
    // Rows of the first table are looked at first.
    tables.sort_by_key(|table| table.uuid());
    let metadata = tables[1].metadata_location().parse::<url::Url>().unwrap();
    let metadata = metadata.to_file_path().unwrap();
    let away = metadata.with_extension("away");
    std::fs::rename(&metadata, &away).unwrap();
    let part = || LogPart {
        log: one.log_id().to_owned(),
        base: 0,
        from: 1,
        records: shipping.records(1, shipping.last(), usize::MAX),
        durable: shipping.durable(),
        tables: shipping.tables(),
    };
    other.receive(part()).await.unwrap_err();
    other.receive(part()).await.unwrap_err();
    std::fs::rename(&away, &metadata).unwrap();
    assert_eq!(other.receive(part()).await.unwrap().shown, 1);
    for name in ["t", "u"] {
        assert_eq!(ids(&other, name).await, [0, 1, 2]);
    }
}

/// A statement on a held table alone does not wait for a moment without rows of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_held_table_is_read_while_others_write_all_the_time() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = [daemon(home.path(), "log0").await, daemon(home.path(), "log1").await];
    one.set_others(Arc::new(Neighbour { ingest: other.clone(), turn: Turn::After }));
    let warehouse = open_warehouse(home.path()).await;
    let table = warehouse.create_table(&common::ident("t"), common::spec()).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let spawn = stoa_env::task::spawn::<BoxFuture<'static, ()>>;
    let sender = spawn(Box::pin(send(other.clone(), one.clone(), done.clone())));
    let written = Arc::new(AtomicI64::new(0));
    let writer = spawn(Box::pin({
        let (other, table, done, written) =
            (other.clone(), table.clone(), done.clone(), written.clone());
        async move {
            while !done.load(Ordering::SeqCst) {
                let next = written.load(Ordering::SeqCst);
                other.append(&table, rows(next..next + 1), Durability::Synced).await.unwrap();
                written.store(next + 1, Ordering::SeqCst);
            }
        }
    }));
    while one.copied().0 == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..5 {
        let mut hold = one.hold_flush(&table).await.unwrap();
        let before = written.load(Ordering::SeqCst);
        hold.read_with(&[]).await.unwrap();
        let stored = common::sorted(common::stored_ids(hold.table()).await);
        assert!(stored.len() as i64 >= before);
        assert_eq!(stored, (0..stored.len() as i64).collect::<Vec<_>>());
    }
    done.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    sender.await.unwrap();
}

/// A daemon that joins late has what is in files from there, and the rest from its owner; a gap shows nothing.
#[tokio::test]
async fn a_late_copy_begins_where_files_end() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = [daemon(home.path(), "log0").await, daemon(home.path(), "log1").await];
    let warehouse = open_warehouse(home.path()).await;
    let table = warehouse.create_table(&common::ident("t"), common::spec()).await.unwrap();
    let shipping = one.shipping().unwrap();
    shipping.acknowledge(u64::MAX);
    one.append(&table, rows(0..3), Durability::Synced).await.unwrap();
    one.flush_now(&table).await.unwrap();
    for id in 3..6 {
        one.append(&table, rows(id..id + 1), Durability::Synced).await.unwrap();
    }
    let part = |from| LogPart {
        log: one.log_id().to_owned(),
        base: shipping.in_files(),
        from,
        records: shipping.records(from, shipping.last(), usize::MAX),
        durable: shipping.durable(),
        tables: shipping.tables(),
    };
    assert_eq!(other.receive(part(4)).await.unwrap().shown, 0, "records 2 and 3 are missing");
    assert_eq!(ids(&other, "t").await, [0, 1, 2]);
    assert_eq!(other.receive(part(2)).await.unwrap().shown, 4);
    assert_eq!(ids(&other, "t").await, [0, 1, 2, 3, 4, 5]);
    // Rows of a table that was dropped show nowhere, and disturb nothing.
    warehouse.drop_table(&common::ident("t"), false).await.unwrap();
    let again = warehouse.create_table(&common::ident("t"), common::spec()).await.unwrap();
    one.append(&again, rows(7..8), Durability::Synced).await.unwrap();
    assert_eq!(other.receive(part(5)).await.unwrap().shown, 5);
    assert_eq!(ids(&other, "t").await, [7]);
}

/// The other daemon, called directly.
struct Neighbour {
    ingest: Ingest,
    turn: Turn,
}

struct NeighbourHold(stoa_ingest::FlushHold);

impl Others for Neighbour {
    fn epoch(&self) -> BoxFuture<'_, stoa_error::Result<u64>> {
        Box::pin(async { Ok(1) })
    }

    fn hold<'a>(
        &'a self,
        table: &'a Table,
        turn: Turn,
    ) -> BoxFuture<'a, stoa_error::Result<Vec<Box<dyn OtherHold>>>> {
        Box::pin(async move {
            if turn != self.turn {
                return Ok(Vec::new());
            }
            let hold = self.ingest.hold_own(table).await?;
            Ok(vec![Box::new(NeighbourHold(hold)) as Box<dyn OtherHold>])
        })
    }
}

impl OtherHold for NeighbourHold {
    fn settled(&self) -> Option<i64> {
        None
    }

    fn flush(&mut self) -> BoxFuture<'_, stoa_error::Result<()>> {
        Box::pin(self.0.flush())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_held_table_has_the_rows_of_all_daemons_in_files() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = [daemon(home.path(), "log0").await, daemon(home.path(), "log1").await];
    one.set_others(Arc::new(Neighbour { ingest: other.clone(), turn: Turn::After }));
    other.set_others(Arc::new(Neighbour { ingest: one.clone(), turn: Turn::Before }));
    let warehouse = open_warehouse(home.path()).await;
    let table = warehouse.create_table(&common::ident("t"), common::spec()).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let spawn = stoa_env::task::spawn::<BoxFuture<'static, ()>>;
    let senders = [
        spawn(Box::pin(send(one.clone(), other.clone(), done.clone()))),
        spawn(Box::pin(send(other.clone(), one.clone(), done.clone()))),
    ];
    one.append(&table, rows(0..3), Durability::Synced).await.unwrap();
    other.append(&table, rows(3..6), Durability::Synced).await.unwrap();
    for daemon in [&one, &other] {
        let mut hold = daemon.hold_flush(&table).await.unwrap();
        // Rows that come in meanwhile are seen by the statement, from whichever daemon they come.
        let first = ids(daemon, "t").await.len() as i64;
        one.append(&table, rows(first..first + 1), Durability::Synced).await.unwrap();
        other.append(&table, rows(first + 1..first + 2), Durability::Synced).await.unwrap();
        hold.read_with(&[]).await.unwrap();
        let stored = common::sorted(common::stored_ids(hold.table()).await);
        assert_eq!(stored, (0..first + 2).collect::<Vec<_>>());
    }
    // Both at once, over and over: neither waits for the other for ever.
    let holding = [&one, &other].map(|daemon| {
        let (daemon, table) = (daemon.clone(), table.clone());
        spawn(Box::pin(async move {
            for _ in 0..20 {
                drop(daemon.hold_flush(&table).await.unwrap());
            }
        }))
    });
    for holding in holding {
        holding.await.unwrap();
    }
    done.store(true, Ordering::SeqCst);
    for sender in senders {
        sender.await.unwrap();
    }
}
