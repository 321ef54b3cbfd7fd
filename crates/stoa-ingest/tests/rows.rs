//! Rows from the append to the data file: what readers see, and when.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use common::{Home, by_hand, fresh_ids, ident, ids, rows, stored, stored_ids};
use stoa_commitlog::sim::SimDisk;
use stoa_commitlog::{CommitLog, LogOptions, object_storage};
use stoa_ingest::{Durability, Ingest, LOG_SYNC};
use stoa_table::{ColumnPosition, TableChange};

#[tokio::test]
async fn rows_are_fresh_then_stored_then_still_there_after_a_restart() {
    let home = Home::new().await;
    let (ingest, report) = home.open(by_hand()).await;
    assert_eq!(report.records, 0);
    let table = home.table("t").await;
    let ack = ingest.append(&table, rows(0..100), Durability::Synced).await.unwrap();
    assert_eq!((ack.rows, ack.position), (100, 1));
    assert_eq!(fresh_ids(&ingest.fresh_for(&table).unwrap().unwrap()).len(), 100);
    assert_eq!(ids(&ingest, "t").await, (0..100).collect::<Vec<_>>());

    let flushed = ingest.flush_now(&table).await.unwrap();
    assert_eq!(stored_ids(&flushed).await.len(), 100);
    assert!(ingest.fresh_for(&table).unwrap().is_none(), "the old version lacks the rows");
    assert!(ingest.fresh_for(&flushed).unwrap().unwrap().is_empty());

    // Through a handle of the old version, which is what a statement may still have.
    ingest.append(&table, rows(100..150), Durability::Synced).await.unwrap();
    assert_eq!(ids(&ingest, "t").await, (0..150).collect::<Vec<_>>());
    ingest.close(false).await.unwrap();
    let refused = ingest.append(&table, rows(0..1), Durability::Synced).await.unwrap_err();
    assert_eq!(refused.sqlstate(), "57P03");

    let (ingest, report) = home.open(by_hand()).await;
    assert_eq!((report.records, report.rows, report.tables, report.records_flushed), (2, 50, 1, 1));
    assert_eq!(ids(&ingest, "t").await, (0..150).collect::<Vec<_>>());
    ingest.close(true).await.unwrap();
    assert_eq!(stored_ids(&table.reload().await.unwrap()).await.len(), 150);
}

/// What a table is at, the log must have: else it would give the position to other rows.
#[tokio::test]
async fn relaxed_rows_are_flushed_only_when_the_log_is_durable() {
    for seed in 0..12 {
        let home = Home::new().await;
        let table = home.table("t").await;
        let disk = SimDisk::new(seed);
        for life in 0..3 {
            let log = CommitLog::open(disk.storage(), common::log_options()).await.unwrap();
            let opened = Ingest::with_log(home.warehouse.clone(), log, by_hand()).await.unwrap();
            let ingest = opened.0;
            let first = life * 20;
            ingest.append(&table, rows(first..first + 10), Durability::Relaxed).await.unwrap();
            ingest.flush_now(&table).await.unwrap();
            ingest.append(&table, rows(first + 10..first + 20), Durability::Synced).await.unwrap();
            assert_eq!(ids(&ingest, "t").await, (0..first + 20).collect::<Vec<_>>());
            disk.power_cut();
        }
    }
}

#[tokio::test]
async fn the_log_lets_go_of_what_is_flushed_and_of_nothing_else() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let (one, other) = (home.table("one").await, home.table("other").await);
    for first in (0..1000).step_by(100) {
        ingest.append(&one, rows(first..first + 100), Durability::Synced).await.unwrap();
    }
    let full = ingest.status().log.segments;
    assert!(full > 5, "{full}");
    ingest.append(&other, rows(0..1), Durability::Synced).await.unwrap();
    ingest.flush_now(&one).await.unwrap();
    let last = ingest.status().log;
    assert!(last.segments <= 2 && last.released.sequence == 10, "{last:?}");
    ingest.append(&one, rows(1000..2000), Durability::Synced).await.unwrap();
    ingest.flush_now(&one).await.unwrap();
    assert_eq!(ingest.status().log.released.sequence, 10, "a row of the other table is behind it");
    ingest.flush_now(&other).await.unwrap();
    assert_eq!(ingest.status().log.released.sequence, 12);
    ingest.close(false).await.unwrap();
    let (_, report) = home.open(by_hand()).await;
    assert_eq!(report.rows, 0);
}

#[tokio::test]
async fn data_files_are_partitioned_and_sorted() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    for ids in [0..700, 700..701, 701..20_000] {
        ingest.append(&table, rows(ids), Durability::Synced).await.unwrap();
    }
    let table = ingest.flush_now(&table).await.unwrap();
    let plan = table.plan_scan(&stoa_orc::Predicate::always()).await.unwrap();
    assert_eq!(plan.files.len(), 2, "one per bucket");
    let batches = stored(&table).await;
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 20_000);
    for batch in &batches {
        let n = batch.column(1).as_any().downcast_ref::<Int32Array>().unwrap().values();
        assert!(n.is_sorted());
    }
}

#[tokio::test]
async fn rows_that_do_not_fit_are_refused() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    let check = |columns: Vec<ArrayRef>, code: &'static str| {
        let names = ["id", "n", "more"];
        let batch = RecordBatch::try_from_iter_with_nullable(
            names.into_iter().zip(columns).map(|(name, column)| (name, column, true)),
        );
        let (ingest, table) = (ingest.clone(), table.clone());
        async move {
            let error = ingest.append(&table, batch.unwrap(), Durability::Table).await.unwrap_err();
            assert_eq!(error.sqlstate(), code, "{error:?}");
            error
        }
    };
    let int = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let error = check(vec![int(vec![None]), int(vec![Some(1)])], "23502").await;
    assert!(
        error.message().contains("\"id\"") && error.message().contains("public.t"),
        "{error:?}"
    );
    check(vec![int(vec![Some(1)]), int(vec![Some(1 << 40)])], "22003").await;
    check(vec![int(vec![Some(1)])], "42601").await;
    let text = Arc::new(StringArray::from(vec!["x"])) as ArrayRef;
    check(vec![text, int(vec![None])], "22003").await;
    assert!(ids(&ingest, "t").await.is_empty());

    home.warehouse.drop_table(table.ident(), false).await.unwrap();
    let error = ingest.append(&table, rows(0..3), Durability::Table).await.unwrap_err();
    assert_eq!(error.sqlstate(), "42P01");
    let error = ingest.flush_now(&table).await.unwrap_err();
    assert_eq!(error.sqlstate(), "42P01");
}

#[tokio::test]
async fn rows_of_older_schemas_fit_the_current_one() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    ingest.append(&table, rows(0..5), Durability::Synced).await.unwrap();
    let note = TableChange::AddColumn {
        field: Field::new("note", DataType::Utf8, true),
        position: ColumnPosition::First,
    };
    let widen = TableChange::ChangeType {
        column: "n".to_owned(),
        data_type: DataType::Int64,
        declared: None,
    };
    let rename = TableChange::RenameColumn { from: "n".to_owned(), to: "m".to_owned() };
    let newer = table.alter(vec![note, widen, rename]).await.unwrap();
    let batch = RecordBatch::try_new(
        Arc::new(Schema::new(vec![
            Field::new("note", DataType::Utf8, true),
            Field::new("id", DataType::Int64, true),
            Field::new("m", DataType::Int64, true),
        ])),
        vec![
            Arc::new(StringArray::from(vec!["new"])),
            Arc::new(Int64Array::from(vec![5])),
            Arc::new(Int64Array::from(vec![1 << 40])),
        ],
    );
    ingest.append(&newer, batch.unwrap(), Durability::Synced).await.unwrap();
    ingest.close(false).await.unwrap();

    let (ingest, _) = home.open(by_hand()).await;
    for _ in 0..2 {
        let snapshot = ingest.snapshot(&ident("t")).await.unwrap();
        let mut batches: Vec<RecordBatch> =
            snapshot.fresh.batches().collect::<Result<_, _>>().unwrap();
        batches.extend(stored(&snapshot.table).await);
        let count = |is: fn(&RecordBatch, usize) -> usize| {
            batches.iter().map(|batch| is(batch, batch.num_rows())).sum::<usize>()
        };
        assert_eq!(count(|_, rows| rows), 6);
        assert_eq!(count(|batch, _| batch.column_by_name("note").unwrap().null_count()), 5);
        let wide = |batch: &RecordBatch| batch.column_by_name("m").unwrap().data_type().clone();
        assert!(batches.iter().all(|batch| wide(batch) == DataType::Int64));
        assert_eq!(ids(&ingest, "t").await, (0..6).collect::<Vec<_>>());
        ingest.flush_now(&newer).await.unwrap();
    }
}

#[tokio::test]
async fn a_version_older_than_the_schema_of_a_row_is_too_old() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let old = home.table("t").await;
    ingest.append(&old, rows(0..3), Durability::Synced).await.unwrap();
    let widen = TableChange::ChangeType {
        column: "n".to_owned(),
        data_type: DataType::Int64,
        declared: None,
    };
    let new = old.alter(vec![widen]).await.unwrap();
    assert_eq!(ingest.fresh_for(&old).unwrap().unwrap().rows(), 3);
    let wide = RecordBatch::try_new(
        new.schema(),
        vec![Arc::new(Int64Array::from(vec![3])), Arc::new(Int64Array::from(vec![1 << 40]))],
    );
    ingest.append(&new, wide.unwrap(), Durability::Synced).await.unwrap();
    assert!(ingest.fresh_for(&old).unwrap().is_none());
    assert_eq!(ingest.fresh_for(&new).unwrap().unwrap().rows(), 4);
    assert_eq!(ids(&ingest, "t").await, [0, 1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_may_be_in_an_object_store() {
    let home = Home::new().await;
    let table = home.table("t").await;
    let store: Arc<dyn object_store::ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    for life in 0..3 {
        let (store, runtime) = (store.clone(), tokio::runtime::Handle::current());
        let storage = object_storage(store, "log".into(), runtime, std::time::Duration::ZERO);
        let mut options = LogOptions::for_kind(storage.kind());
        options.sync_interval_min = std::time::Duration::ZERO;
        let log = CommitLog::open(storage, options).await.unwrap();
        let opened = Ingest::with_log(home.warehouse.clone(), log, by_hand()).await.unwrap();
        let (ingest, report) = opened;
        assert_eq!(report.rows, life.min(1) * 10, "what was not flushed the life before");
        let first = life as i64 * 20;
        assert_eq!(ids(&ingest, "t").await, (0..first).collect::<Vec<_>>());
        ingest.append(&table, rows(first..first + 10), Durability::Synced).await.unwrap();
        ingest.flush_now(&table).await.unwrap();
        ingest.append(&table, rows(first + 10..first + 20), Durability::Synced).await.unwrap();
        ingest.close(false).await.unwrap();
    }
}

#[tokio::test]
async fn a_renamed_table_keeps_its_rows_and_a_dropped_one_loses_them() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let (kept, gone) = (home.table("kept").await, home.table("gone").await);
    for table in [&kept, &gone] {
        ingest.append(table, rows(0..10), Durability::Synced).await.unwrap();
    }
    home.warehouse.rename_table(kept.ident(), &ident("renamed")).await.unwrap();
    home.warehouse.drop_table(gone.ident(), true).await.unwrap();
    // A table of the same name is another table.
    home.table("gone").await;
    assert_eq!(ids(&ingest, "renamed").await.len(), 10);
    assert!(ids(&ingest, "gone").await.is_empty());
    ingest.close(false).await.unwrap();

    let (ingest, report) = home.open(by_hand()).await;
    assert_eq!((report.rows, report.records_dropped), (10, 1));
    assert_eq!(ids(&ingest, "renamed").await.len(), 10);
    assert_eq!(stored_ids(&ingest.flush_now(&kept).await.unwrap()).await.len(), 10);
    assert!(ids(&ingest, "gone").await.is_empty());
}

#[tokio::test]
async fn a_table_with_relaxed_durability_shows_rows_and_flushes_them() {
    let home = Home::new().await;
    let (ingest, _) = home.open(by_hand()).await;
    let table = home.table("t").await;
    let off = BTreeMap::from([(LOG_SYNC.to_owned(), "off".to_owned())]);
    let table = table.alter(vec![TableChange::SetProperties(off)]).await.unwrap();
    ingest.append(&table, rows(0..10), Durability::Table).await.unwrap();
    assert_eq!(ids(&ingest, "t").await.len(), 10);
    let flushed = ingest.flush_now(&table).await.unwrap();
    assert_eq!(stored_ids(&flushed).await.len(), 10);
    assert_eq!(ids(&ingest, "t").await.len(), 10);

    let wrong = BTreeMap::from([(LOG_SYNC.to_owned(), "maybe".to_owned())]);
    let table = table.alter(vec![TableChange::SetProperties(wrong)]).await.unwrap();
    let error = ingest.append(&table, rows(0..1), Durability::Table).await.unwrap_err();
    assert!(error.message().contains("stoa.log-sync = \"maybe\""), "{error:?}");
}
