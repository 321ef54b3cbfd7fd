//! Compaction: the same rows in fewer files, whoever else is at work.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use common::{
    Home, append, assert_sorted, assert_sound, ident, report_rows, report_spec, rows, sorted,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_env::failpoint::{Action, Failpoints};
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};
use stoa_table::{
    CompactionGroup, CompactionOptions, CompactionOutcome, CompactionWork, ExpireOptions,
    LogAdvance, MergeHook, MergeHooks, PartitionTerm, RewriteOptions, SortTerm, Table, TableChange,
    TableRewrite, TableSpec, TableVersion, Throttle, Transform, WriteOptions,
};

/// 2015-01-01 in days.
const NEW_YEAR_2015: i32 = 16_436;

async fn new_table(home: &Home) -> Table {
    home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap()
}

/// `count` files of `days` rows each in January, sorted, all of the same accounts.
async fn small_files(table: &Table, count: i32, days: usize) -> Table {
    let mut table = table.clone();
    for number in 0..count {
        table = append(&table, sorted(&report_rows(NEW_YEAR_2015 + number, days))).await;
    }
    table
}

async fn compact(table: &Table) -> CompactionOutcome {
    table.compact(&CompactionOptions::default(), &CompactionWork::default()).await.unwrap()
}

async fn compact_fully(table: &Table) -> CompactionOutcome {
    let options = CompactionOptions { full: true, ..CompactionOptions::default() };
    table.compact(&options, &CompactionWork::default()).await.unwrap()
}

#[tokio::test]
async fn small_files_become_one_sorted_file() {
    let home = Home::new().await;
    let table = new_table(&home).await;
    let log = vec![LogAdvance { log: "a".to_owned(), from: None, to: 7 }];
    let mut writer = table.writer(WriteOptions { log, ..WriteOptions::default() }).unwrap();
    writer.write(sorted(&report_rows(NEW_YEAR_2015, 20))).await.unwrap();
    let table = small_files(&writer.commit().await.unwrap().table, 7, 20).await;
    let before = rows(&table).await;
    let plan = table.plan_compaction(&CompactionOptions::default()).await.unwrap();
    assert_eq!((plan.files_total, plan.groups.len()), (8, 1));
    let group = &plan.groups[0];
    assert_eq!((group.rows(), group.files().count(), group.whole_partition), (160, 8, true));
    assert_eq!((group.partition_text.as_str(), group.sorts), ("day_month=2015-01", false));

    let work = CompactionWork::default();
    let outcome = table.compact(&CompactionOptions::default(), &work).await.unwrap();
    assert_eq!((outcome.groups, outcome.files_removed, outcome.files_added), (1, 8, 1));
    assert_eq!(
        (outcome.rows, work.progress.rows_read(), work.progress.rows_written()),
        (160, 160, 160)
    );
    assert_eq!((work.progress.groups_planned(), work.progress.groups_done()), (1, 1));
    assert_eq!(work.progress.files_read(), 8);
    let table = outcome.table;
    let snapshot = table.current_snapshot().unwrap();
    assert_eq!(snapshot.operation, "replace");
    assert_eq!(snapshot.summary["total-records"], "160");
    assert_eq!(snapshot.summary["stoa.log.a"], "7");
    assert_eq!(assert_sorted(&table).await, 1);
    assert_eq!(rows(&table).await, before);
    assert_sound(&table).await;
    // There is nothing more to do.
    assert_eq!(compact_fully(&table).await.groups, 0);
}

#[tokio::test]
async fn files_in_no_order_are_sorted_and_then_merged() {
    let home = Home::new().await;
    let mut table = new_table(&home).await;
    for number in 0..6 {
        table = append(&table, report_rows(NEW_YEAR_2015 + number, 25)).await;
    }
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    assert!(files.iter().all(|file| file.sort_order_id == Some(0)));
    let before = rows(&table).await;
    // So little memory that each stretch is one batch.
    let work = CompactionWork { memory_max_bytes: 1, ..CompactionWork::default() };
    let options = CompactionOptions { full: true, ..CompactionOptions::default() };
    let table = table.compact(&options, &work).await.unwrap().table;
    assert_eq!(assert_sorted(&table).await, 1);
    assert_eq!(rows(&table).await, before);
    assert_sound(&table).await;
}

#[tokio::test]
async fn a_run_of_several_files_stays_a_run() {
    let home = Home::new().await;
    let table = new_table(&home).await;
    let set = [("write.target-file-size-bytes", "4096"), ("write.orc.stripe-size-bytes", "65536")];
    let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let table = table.alter(vec![TableChange::SetProperties(set)]).await.unwrap();
    let mut table = table;
    for number in 0..5 {
        let accounts =
            (0..20_000).map(|n| format!("account {:07}", (n * 7919 + number) % 1_000_003));
        let batch = random_month(accounts);
        table = append(&table, sorted(&batch)).await;
    }
    let before = rows(&table).await;
    let outcome = compact_fully(&table).await;
    let table = outcome.table;
    assert!(outcome.files_added > 1);
    assert_eq!(u64::try_from(assert_sorted(&table).await).unwrap(), outcome.files_added);
    assert_eq!(rows(&table).await, before);
    assert_eq!(compact_fully(&table).await.groups, 0);
    assert_sound(&table).await;
}

/// One row per account, all on the first days of January.
fn random_month(accounts: impl Iterator<Item = String>) -> RecordBatch {
    let accounts: StringArray = accounts.map(Some).collect();
    let rows = i64::try_from(accounts.len()).unwrap();
    let days: ArrayRef = Arc::new(arrow_array::Date32Array::from_iter_values(
        (0..rows).map(|row| NEW_YEAR_2015 + i32::try_from(row % 20).unwrap()),
    ));
    let clicks: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let cost: ArrayRef =
        Arc::new(arrow_array::Float64Array::from_iter_values((0..rows).map(|row| row as f64)));
    let columns = vec![days, Arc::new(accounts), clicks, cost];
    RecordBatch::try_new(common::report_schema(), columns).unwrap()
}

#[tokio::test]
async fn appends_meanwhile_are_kept() {
    let home = Home::new().await;
    let table = small_files(&new_table(&home).await, 5, 20).await;
    let points = Failpoints::new();
    points.arm("write.files_written", Action::Pause);
    let (paused, compacted) = (points.clone(), table.clone());
    let compaction = stoa_env::task::spawn(async move { paused.scope(compact(&compacted)).await });
    points.reached("write.files_written").await;
    let appended = append(&table, sorted(&report_rows(NEW_YEAR_2015, 9))).await;
    let before = rows(&appended).await;
    points.release("write.files_written");
    let outcome = compaction.await.unwrap();
    assert_eq!((outcome.groups, outcome.overtaken), (1, 0));
    assert_eq!(rows(&outcome.table).await, before);
    let report = assert_sound(&outcome.table).await;
    assert_eq!((report.rows, report.orphans), (109, vec![]));
}

#[tokio::test]
async fn who_deletes_meanwhile_wins() {
    let home = Home::new().await;
    let table = small_files(&new_table(&home).await, 5, 20).await;
    let points = Failpoints::new();
    points.arm("write.files_written", Action::Pause);
    let (paused, compacted) = (points.clone(), table.clone());
    let compaction = stoa_env::task::spawn(async move { paused.scope(compact(&compacted)).await });
    points.reached("write.files_written").await;
    let victim = table.plan_scan(&Predicate::always()).await.unwrap().files;
    let mut delete = table.rewrite(RewriteOptions::default()).unwrap();
    delete.remove(&victim[..1]).unwrap();
    let deleted = delete.commit().await.unwrap().committed().unwrap().table;
    let after = rows(&deleted).await;
    points.release("write.files_written");
    let outcome = compaction.await.unwrap();
    assert_eq!((outcome.groups, outcome.overtaken), (0, 1));
    assert_eq!(rows(&outcome.table).await, after);
    assert_eq!(assert_sound(&outcome.table).await.orphans, []);
}

#[tokio::test]
async fn a_delete_of_files_that_were_compacted_is_decided_anew() {
    let home = Home::new().await;
    let table = small_files(&new_table(&home).await, 5, 20).await;
    let always = Predicate::always();
    let mut delete = serializable(&table);
    delete.remove(&table.plan_scan(&always).await.unwrap().files[..1]).unwrap();
    let compacted = compact(&table).await.table;
    let error = delete.commit().await.unwrap().committed().unwrap_err();
    assert_eq!(error.sqlstate(), "40001");
    assert!(error.detail().unwrap().contains("(replace by stoa"));

    // A change of other files does not mind that the same rows are in new ones.
    let march = append(&compacted, sorted(&report_rows(NEW_YEAR_2015 + 62, 5))).await;
    let file = march.plan_scan(&day(CompareOp::GtEq, NEW_YEAR_2015 + 60)).await.unwrap().files;
    let mut delete = serializable(&march);
    delete.remove(&file).unwrap();
    let options = CompactionOptions { full: true, ..CompactionOptions::default() };
    let again = append(&march, sorted(&report_rows(NEW_YEAR_2015, 5))).await;
    let refused = delete.commit().await.unwrap().committed();
    assert_eq!(refused.unwrap_err().sqlstate(), "40001");
    let mut delete = serializable(&again);
    delete.remove(&file).unwrap();
    let done = again.compact(&options, &CompactionWork::default()).await.unwrap();
    assert_eq!(done.groups, 1);
    let table = delete.commit().await.unwrap().committed().unwrap().table;
    assert_eq!(assert_sound(&table).await.rows, 105);
}

#[tokio::test]
async fn a_change_notices_a_rollback() {
    let home = Home::new().await;
    let table = small_files(&new_table(&home).await, 5, 20).await;
    let compacted = compact(&table).await.table;
    let held = rows(&compacted).await;
    let version = TableVersion::Snapshot(compacted.current_snapshot().unwrap().id);
    let mut removal = compacted.rewrite(RewriteOptions::default()).unwrap();
    removal.truncate().unwrap();
    let emptied = removal.commit().await.unwrap().committed().unwrap().table;
    let march = append(&emptied, sorted(&report_rows(NEW_YEAR_2015 + 62, 5))).await;
    // The file that comes back is one of a compaction, but its rows are not there meanwhile.
    let mut delete = serializable(&march);
    delete.write(sorted(&report_rows(NEW_YEAR_2015 + 62, 1))).await.unwrap();
    let back = march.roll_back(&version).await.unwrap();
    assert_eq!(rows(&back).await, held);
    assert_eq!(back.row_count(), compacted.row_count());
    let error = delete.commit().await.unwrap().committed().unwrap_err();
    assert_eq!(error.sqlstate(), "40001");
    // A file that the rollback took away is gone for whoever read it.
    let mut delete = march.rewrite(RewriteOptions::default()).unwrap();
    delete.remove(&march.plan_scan(&Predicate::always()).await.unwrap().files).unwrap();
    assert_eq!(delete.commit().await.unwrap().committed().unwrap_err().sqlstate(), "40001");
    // What is kept needs its files, whatever snapshot they came with.
    let options = ExpireOptions {
        age_max: Some(Duration::ZERO),
        age_min: Duration::ZERO,
        ..ExpireOptions::default()
    };
    let expired = back.expire_snapshots(&options).await.unwrap().table;
    assert_eq!((rows(&expired).await, expired.snapshots().len()), (held, 1));
    assert_eq!(assert_sound(&expired).await.orphans, []);
    assert_eq!(expired.roll_back(&version).await.unwrap_err().sqlstate(), "42704");
}

/// A DELETE of all rows, as far as isolation goes.
fn serializable(table: &Table) -> TableRewrite {
    let isolation = table.isolation("delete", Predicate::always()).unwrap();
    table.rewrite(RewriteOptions { isolation, ..RewriteOptions::default() }).unwrap()
}

fn day(op: CompareOp, day: i32) -> Predicate {
    Predicate::Compare { column: ColumnRef::Field(1), op, value: Literal::Date(day) }
}

#[tokio::test]
async fn files_of_an_earlier_partitioning_move_to_the_present_one() {
    let home = Home::new().await;
    let table = append(&new_table(&home).await, sorted(&report_rows(NEW_YEAR_2015, 100))).await;
    let year = vec![PartitionTerm::new("day", Transform::Year)];
    let table = table.alter(vec![TableChange::SetPartitioning(year)]).await.unwrap();
    let before = rows(&table).await;
    let mut overwrite = table.rewrite(RewriteOptions::default()).unwrap();
    overwrite.replace_written_partitions().unwrap();
    overwrite.write(report_rows(NEW_YEAR_2015, 1)).await.unwrap();
    assert_eq!(overwrite.commit().await.unwrap_err().sqlstate(), "0A000");

    let table = compact_fully(&table).await.table;
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].partition_text, "day_year=2015");
    assert_eq!(rows(&table).await, before);
    assert_eq!(assert_sorted(&table).await, 1);
    assert_sound(&table).await;
}

#[tokio::test]
async fn a_new_order_is_brought_to_old_files() {
    let home = Home::new().await;
    let mut spec = report_spec();
    spec.sort_by = vec![SortTerm { descending: true, ..SortTerm::ascending("clicks") }];
    let table = home.warehouse.create_table(&ident("t"), spec).await.unwrap();
    let table = append(&table, report_rows(NEW_YEAR_2015, 20)).await;
    let order = vec![SortTerm::ascending("account"), SortTerm::ascending("day")];
    let table = table.alter(vec![TableChange::SetSortOrder(order)]).await.unwrap();
    let before = rows(&table).await;
    let table = compact(&table).await.table;
    assert_eq!(assert_sorted(&table).await, 1);
    assert_eq!(rows(&table).await, before);
}

#[tokio::test]
async fn tables_without_order_keep_their_whole_files() {
    let home = Home::new().await;
    let spec = TableSpec::new(common::report_schema());
    let mut table = home.warehouse.create_table(&ident("t"), spec).await.unwrap();
    for number in 0..9 {
        table = append(&table, report_rows(NEW_YEAR_2015 + number, 25)).await;
    }
    let before = rows(&table).await;
    let outcome = compact(&table).await;
    assert_eq!((outcome.files_removed, outcome.files_added), (9, 1));
    assert_eq!(rows(&outcome.table).await, before);
    assert_sound(&outcome.table).await;
}

/// Keys in order, as text of equal length, so that files of the same rows have the same size.
fn keys(numbers: impl Iterator<Item = u64>) -> RecordBatch {
    let text = |n: u64| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let keys: StringArray = numbers.map(|n| Some(text(n))).collect();
    let schema = Schema::new(vec![Field::new("key", DataType::Utf8, false)]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(keys)]).unwrap()
}

fn sorted_keys(batch: &RecordBatch) -> RecordBatch {
    let order = arrow_ord::sort::sort_to_indices(batch.column(0), None, None).unwrap();
    arrow_select::take::take_record_batch(batch, &order).unwrap()
}

#[tokio::test]
async fn a_file_that_lies_about_its_order_is_sorted() {
    let home = Home::new().await;
    let mut spec = TableSpec::new(keys(0..1).schema());
    spec.properties.insert("write.orc.compression-codec".to_owned(), "none".to_owned());
    let unordered = home.warehouse.create_table(&ident("u"), spec.clone()).await.unwrap();
    spec.sort_by = vec![SortTerm::ascending("key")];
    let mut table = home.warehouse.create_table(&ident("t"), spec).await.unwrap();
    for number in 0..4 {
        table = append(&table, sorted_keys(&keys(number * 500..number * 500 + 500))).await;
    }
    let before = rows(&table).await;
    // The same rows in another order take the place of one of the files.
    let unordered = append(&unordered, keys(0..500)).await;
    let all = Predicate::always();
    let liar = unordered.plan_scan(&all).await.unwrap().files[0].clone();
    let files = table.plan_scan(&all).await.unwrap().files;
    let replaced = files.iter().find(|file| file.snapshot_id == Some(table.snapshots()[0].id));
    std::fs::copy(format!("/{}", liar.path), format!("/{}", replaced.unwrap().path)).unwrap();
    assert_sound(&table).await;

    let outcome = compact(&table).await;
    let table = outcome.table;
    assert_eq!(table.plan_scan(&all).await.unwrap().files.len(), 1, "{:?}", table.snapshots());
    assert_eq!(rows(&table).await, before);
    let file = &table.plan_scan(&all).await.unwrap().files[0];
    let stored: Vec<String> =
        common::read(&table, file).await.iter().flat_map(common::texts).collect();
    assert_eq!(stored, before);
    assert_eq!(assert_sound(&table).await.orphans, []);
}

/// Keeps the first of the rows of one account.
#[derive(Debug)]
struct FirstOfAccount;

struct FirstHook {
    last: Option<String>,
    dropped: u64,
    /// Rows that it says nothing about.
    lost: u64,
}

impl MergeHooks for FirstOfAccount {
    fn hook(
        &self,
        _: &Table,
        group: &CompactionGroup,
    ) -> stoa_error::Result<Option<Box<dyn MergeHook>>> {
        assert!(group.whole_partition);
        let lost = u64::from(group.rows() == 99);
        Ok(Some(Box::new(FirstHook { last: None, dropped: 0, lost })))
    }
}

impl MergeHook for FirstHook {
    fn merge(&mut self, batch: RecordBatch) -> stoa_error::Result<RecordBatch> {
        let mut kept = Vec::new();
        for row in 0..batch.num_rows() {
            let account =
                common::texts(&batch.slice(row, 1))[0].split('|').nth(1).map(str::to_owned);
            if account != self.last {
                kept.push(u32::try_from(row).unwrap());
            }
            self.last = account;
        }
        self.dropped += (batch.num_rows() - kept.len()) as u64;
        let kept = arrow_array::UInt32Array::from(kept);
        Ok(arrow_select::take::take_record_batch(&batch, &kept).unwrap())
    }

    fn finish(&mut self) -> stoa_error::Result<Option<RecordBatch>> {
        Ok(None)
    }

    fn dropped(&self) -> u64 {
        self.dropped - self.lost
    }
}

#[tokio::test]
async fn a_hook_may_drop_rows_if_it_says_so() {
    let home = Home::new().await;
    let table = small_files(&new_table(&home).await, 5, 20).await;
    let work =
        CompactionWork { hooks: Some(Arc::new(FirstOfAccount)), ..CompactionWork::default() };
    let options = CompactionOptions { full: true, ..CompactionOptions::default() };
    let outcome = table.compact(&options, &work).await.unwrap();
    // Five accounts and NULL.
    assert_eq!(outcome.rows, 6);
    assert_eq!(outcome.table.row_count(), Some(6));
    assert_eq!(outcome.table.current_snapshot().unwrap().operation, "overwrite");
    assert_sound(&outcome.table).await;

    // Rows that vanish without a word stop the compaction.
    let table = append(&outcome.table, sorted(&report_rows(NEW_YEAR_2015, 31))).await;
    let table = append(&table, sorted(&report_rows(NEW_YEAR_2015, 31))).await;
    let table = append(&table, sorted(&report_rows(NEW_YEAR_2015, 31))).await;
    assert_eq!(table.row_count(), Some(99));
    let error = table.compact(&options, &work).await.unwrap_err();
    assert_eq!(error.sqlstate(), "XX000");
    assert!(error.detail().unwrap().starts_with("99 rows in the files, 99 read"));
    assert_eq!(table.reload().await.unwrap().metadata_location(), table.metadata_location());
    assert_eq!(assert_sound(&table).await.orphans, []);
}

/// Counts what it is asked for, and cancels after so many bytes.
#[derive(Debug)]
struct Counting {
    asked: AtomicU64,
    most: u64,
    cancel: stoa_table::CancelToken,
}

impl Throttle for Counting {
    fn take(&self, bytes: u64) -> BoxFuture<'_, ()> {
        if self.asked.fetch_add(bytes, Ordering::Relaxed) + bytes > self.most {
            self.cancel.cancel();
        }
        std::future::ready(()).boxed()
    }
}

#[tokio::test]
async fn the_throttle_sees_all_reads_and_cancelling_leaves_nothing() {
    let home = Home::new().await;
    let table = small_files(&new_table(&home).await, 5, 20).await;
    for (most, finishes) in [(1, false), (3000, false), (u64::MAX, true)] {
        let work = CompactionWork::default();
        let cancel = work.cancel.clone();
        let throttle = Arc::new(Counting { asked: AtomicU64::new(0), most, cancel });
        let work = CompactionWork { throttle: Some(throttle.clone()), ..work };
        let compacted = table.compact(&CompactionOptions::default(), &work).await;
        assert_eq!(compacted.is_ok(), finishes);
        if let Err(error) = compacted {
            assert_eq!(error.sqlstate(), "57014");
            assert_eq!(table.reload().await.unwrap().snapshots().len(), 5);
        } else {
            assert_eq!(throttle.asked.load(Ordering::Relaxed), work.progress.bytes_read());
        }
        assert_eq!(assert_sound(&table).await.orphans, []);
    }
}
