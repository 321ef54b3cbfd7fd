//! Old snapshots, old rows and old metadata files go; nothing else does.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use chrono::{DateTime, Utc};
use common::{Home, append, assert_sound, ident, read, report_rows, report_spec, rows, sorted};
use stoa_env::failpoint::{Action, Failpoints};
use stoa_orc::Predicate;
use stoa_table::{
    CompactionOptions, CompactionWork, ExpireOptions, PartitionTerm, RewriteOptions, Table,
    TableChange, TableSpec, Transform,
};

/// 2015-01-01 in days.
const NEW_YEAR_2015: i32 = 16_436;

/// Everything but the current snapshot goes.
fn at_once() -> ExpireOptions {
    let now = Duration::ZERO;
    ExpireOptions { age_max: Some(now), retain_last: None, age_min: now, crowd_age_min: now }
}

async fn new_table(home: &Home) -> Table {
    home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap()
}

async fn appended(table: &Table, times: i32) -> Table {
    let mut table = table.clone();
    for number in 0..times {
        table = append(&table, sorted(&report_rows(NEW_YEAR_2015 + number, 20))).await;
    }
    table
}

async fn compacted(table: &Table) -> Table {
    let options = CompactionOptions { full: true, ..CompactionOptions::default() };
    table.compact(&options, &CompactionWork::default()).await.unwrap().table
}

async fn set(table: &Table, key: &str, value: &str) -> Table {
    let set = [(key.to_owned(), value.to_owned())].into();
    table.alter(vec![TableChange::SetProperties(set)]).await.unwrap()
}

#[tokio::test]
async fn what_only_old_snapshots_need_is_deleted() {
    let home = Home::new().await;
    let table = compacted(&appended(&new_table(&home).await, 5).await).await;
    let table = append(&table, sorted(&report_rows(NEW_YEAR_2015, 3))).await;
    let before = rows(&table).await;
    let outcome = table.expire_snapshots(&at_once()).await.unwrap();
    // Five appends and the compaction are gone; the five files that it replaced with them.
    assert_eq!((outcome.snapshots, outcome.data_files), (6, 5));
    // Six manifest lists, the manifests of the five appends, and theirs rewritten by the
    // compaction to say that their files are deleted.
    assert_eq!(outcome.metadata_files, 16);
    let table = outcome.table;
    assert_eq!(rows(&table).await, before);
    let report = assert_sound(&table).await;
    assert_eq!((report.snapshots, report.data_files, report.orphans), (1, 2, vec![]));
    assert_eq!(table.expire_snapshots(&at_once()).await.unwrap().snapshots, 0);
}

#[tokio::test]
async fn files_that_moved_to_another_manifest_stay() {
    let home = Home::new().await;
    // Four files in one manifest, of which one is removed.
    let table = append(&new_table(&home).await, report_rows(NEW_YEAR_2015, 100)).await;
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    let mut rewrite = table.rewrite(RewriteOptions::default()).unwrap();
    rewrite.remove(&files[..1]).unwrap();
    let table = rewrite.commit().await.unwrap().committed().unwrap().table;
    let before = rows(&table).await;
    let outcome = table.expire_snapshots(&at_once()).await.unwrap();
    assert_eq!((outcome.snapshots, outcome.data_files), (1, 1));
    assert_eq!(rows(&outcome.table).await, before);
    assert_eq!(assert_sound(&outcome.table).await.orphans, []);
}

#[tokio::test]
async fn history_is_kept_by_number_and_by_age() {
    let home = Home::new().await;
    let table = appended(&new_table(&home).await, 6).await;
    // Five days by default.
    assert_eq!(table.expire_snapshots(&ExpireOptions::default()).await.unwrap().snapshots, 0);
    let three = ExpireOptions { retain_last: Some(3), ..at_once() };
    let table = table.expire_snapshots(&three).await.unwrap().table;
    assert_eq!(table.snapshots().len(), 3);
    let table = set(&table, "history.expire.min-snapshots-to-keep", "2").await;
    let table = table.expire_snapshots(&at_once()).await.unwrap().table;
    assert_eq!(table.snapshots().len(), 2);
    let young =
        ExpireOptions { age_min: Duration::from_secs(3600), retain_last: Some(1), ..at_once() };
    assert_eq!(table.expire_snapshots(&young).await.unwrap().snapshots, 0);
    let soon = [("history.expire.max-snapshot-age-ms".to_owned(), "soon".to_owned())].into();
    let error = table.alter(vec![TableChange::SetProperties(soon)]).await.unwrap_err();
    assert_eq!(error.sqlstate(), "22023");
    let table = set(&table, "gc.enabled", "false").await;
    assert_eq!(table.expire_snapshots(&at_once()).await.unwrap_err().sqlstate(), "0A000");
    assert_eq!(table.remove_orphans(Duration::ZERO).await.unwrap_err().sqlstate(), "0A000");
    assert_sound(&table).await;
}

#[tokio::test]
async fn a_commit_meanwhile_loses_nothing() {
    let home = Home::new().await;
    let table = compacted(&appended(&new_table(&home).await, 4).await).await;
    let points = Failpoints::new();
    points.arm("expire.committed", Action::Pause);
    let (paused, expiring) = (points.clone(), table.clone());
    let expiry = stoa_env::task::spawn(async move {
        paused.scope(expiring.expire_snapshots(&at_once())).await.unwrap()
    });
    points.reached("expire.committed").await;
    let table = compacted(&appended(&table, 3).await).await;
    let before = rows(&table).await;
    points.release("expire.committed");
    assert_eq!(expiry.await.unwrap().data_files, 4);
    assert_eq!(rows(&table).await, before);
    let report = assert_sound(&table.reload().await.unwrap()).await;
    assert_eq!(report.orphans, []);
}

#[tokio::test]
async fn old_metadata_files_are_deleted_unless_told_otherwise() {
    let home = Home::new().await;
    let count = || {
        let files = std::fs::read_dir(home.directory.path().join("public/t/metadata")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".metadata.json")).count()
    };
    let table = set(&new_table(&home).await, "write.metadata.previous-versions-max", "3").await;
    let table = appended(&table, 8).await;
    assert_eq!(count(), 4);
    assert_eq!(assert_sound(&table).await.orphans, []);
    let table = set(&table, "write.metadata.delete-after-commit.enabled", "false").await;
    appended(&table, 3).await;
    // The version that says so, and three more.
    assert_eq!(count(), 8);
}

#[tokio::test]
async fn partitions_that_are_too_old_go_unread() {
    let home = Home::new().await;
    let table = append(&new_table(&home).await, report_rows(NEW_YEAR_2015, 100)).await;
    // Nothing is read: the files could as well be gone.
    for file in table.plan_scan(&Predicate::always()).await.unwrap().files {
        std::fs::write(format!("/{}", file.path), b"").unwrap();
    }
    let moment = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let none = table.remove_partitions_before(moment("2015-01-31T23:59:59Z")).await.unwrap();
    assert_eq!((none.removed_files, none.table.snapshots().len()), (0, 1));
    let two = table.remove_partitions_before(moment("2015-03-05T00:00:00Z")).await.unwrap();
    assert_eq!((two.removed_files, two.removed_rows), (2, 59));
    assert_eq!(two.table.current_snapshot().unwrap().operation, "delete");
    assert_eq!(two.table.row_count(), Some(41));
    let march = two.table.plan_scan(&Predicate::always()).await.unwrap().files;
    assert_eq!(march.len(), 2);

    assert!(table.apply_retention().await.unwrap().is_none());
    let table = set(&two.table, "stoa.retention", "13 months").await;
    assert_eq!(table.apply_retention().await.unwrap().unwrap().removed_rows, 41);
    let wrong = [("stoa.retention".to_owned(), "13".to_owned())].into();
    let error = table.alter(vec![TableChange::SetProperties(wrong)]).await.unwrap_err();
    assert_eq!(error.sqlstate(), "22023");
}

#[tokio::test]
async fn retention_needs_partitions_by_time() {
    let home = Home::new().await;
    let mut spec = TableSpec::new(common::report_schema());
    spec.partition_by = vec![PartitionTerm::new("account", Transform::Identity)];
    spec.properties.insert("stoa.retention".to_owned(), "1 day".to_owned());
    let table = home.warehouse.create_table(&ident("t"), spec).await.unwrap();
    let error = table.apply_retention().await.unwrap_err();
    assert_eq!((error.sqlstate(), error.hint().is_some()), ("22023", true));
}

/// Bytes of what is in the table's metadata directory, and of the newest metadata file.
fn metadata_bytes(table: &Table) -> (u64, u64) {
    let path = |location: &str| url::Url::parse(location).unwrap().to_file_path().unwrap();
    let directory = path(&format!("{}/metadata", table.location()));
    let size = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().len();
    let files = std::fs::read_dir(directory).unwrap();
    (files.map(|file| size(file.unwrap().path())).sum(), size(path(table.metadata_location())))
}

/// Replaces the one file of the table by another, as an UPDATE of a small table does.
async fn updated(table: &Table) -> Table {
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    let mut rewrite = table.rewrite(RewriteOptions::default()).unwrap();
    rewrite.remove(&files).unwrap();
    for file in &files {
        for batch in read(table, file).await {
            rewrite.write(batch).await.unwrap();
        }
    }
    rewrite.commit().await.unwrap().committed().unwrap().table
}

/// What is kept beside the rows is bounded by the number of snapshots that are kept, however many
/// commits there are.
#[tokio::test]
async fn metadata_does_not_grow_with_the_number_of_commits() {
    const KEPT: usize = 20;
    let crowded = ExpireOptions { crowd_age_min: Duration::ZERO, ..ExpireOptions::default() };
    let home = Home::new().await;
    let mut table = append(&new_table(&home).await, sorted(&report_rows(NEW_YEAR_2015, 20))).await;
    table = set(&table, "stoa.history.snapshots-max", &KEPT.to_string()).await;
    let before = rows(&table).await;
    let (mut sizes, mut newest) = (Vec::new(), Vec::new());
    for number in 1..=320 {
        table = updated(&table).await;
        if table.has_many_snapshots().unwrap() {
            let outcome = table.expire_snapshots(&crowded).await.unwrap();
            table = outcome.table;
            assert!(outcome.snapshots > 0 && outcome.metadata_files > 0);
            assert!(table.snapshots().len() <= KEPT);
        }
        if number % 80 == 0 {
            let (all, last) = metadata_bytes(&table);
            sizes.push(all);
            newest.push(last);
        }
    }
    eprintln!("metadata after 80, 160, … commits: {sizes:?}, of the newest file: {newest:?}");
    // The list of a hundred earlier files is full after the first eighty; then nothing grows.
    let (second, last) = (sizes[1], sizes[3]);
    assert!(last < second + second / 4, "{sizes:?}");
    assert!(newest[3] < newest[1] + newest[1] / 4, "{newest:?}");
    assert_eq!(rows(&table).await, before);
    let report = assert_sound(&table).await;
    assert_eq!(report.orphans, []);
    assert!(report.snapshots <= KEPT + KEPT / 4 + 1);
}

/// A scan that runs, and those that other engines began minutes ago, find their files.
#[tokio::test]
async fn snapshots_in_use_and_young_ones_are_not_too_many() {
    let home = Home::new().await;
    let mut first = append(&new_table(&home).await, sorted(&report_rows(NEW_YEAR_2015, 20))).await;
    first = set(&first, "stoa.history.snapshots-max", "3").await;
    let mut table = first.clone();
    for _ in 0..12 {
        table = updated(&table).await;
    }
    // All of them were current within the last five minutes.
    assert!(table.has_many_snapshots().unwrap());
    assert_eq!(table.expire_snapshots(&ExpireOptions::default()).await.unwrap().snapshots, 0);
    let crowded = ExpireOptions { crowd_age_min: Duration::ZERO, ..ExpireOptions::default() };
    let outcome = table.expire_snapshots(&crowded).await.unwrap();
    assert_eq!(outcome.snapshots, 13 - 3 - 1);
    table = outcome.table;
    // The first one is in hand here, although nothing leads to it any more.
    let before = rows(&first).await;
    assert_eq!(before, rows(&table).await);
    table = updated(&table).await;
    table = table.expire_snapshots(&crowded).await.unwrap().table;
    assert_eq!(rows(&first).await, before);
    drop(first);
    // Nobody needs it now.
    table = updated(&table).await;
    table = table.expire_snapshots(&crowded).await.unwrap().table;
    assert_eq!(table.snapshots().len(), 3);
    assert_eq!(assert_sound(&table).await.orphans, []);
    // Whoever says how old snapshots may get, and nothing of their number, keeps all of them.
    let mut table = set(&table, "history.expire.max-snapshot-age-ms", "3600000").await;
    for _ in 0..12 {
        table = updated(&table).await;
    }
    let unset = TableChange::UnsetProperties(vec!["stoa.history.snapshots-max".to_owned()]);
    let table = table.alter(vec![unset]).await.unwrap();
    assert_eq!(table.expire_snapshots(&crowded).await.unwrap().snapshots, 0);
}

/// Large metadata files are kept in smaller number, unless the table says how many.
#[tokio::test]
async fn earlier_metadata_files_are_bounded_by_their_bytes() {
    let home = Home::new().await;
    let large = "x".repeat(1 << 20);
    let mut table = set(&new_table(&home).await, "note", &large).await;
    for number in 0..40 {
        table = set(&table, "number", &number.to_string()).await;
    }
    let (all, one) = metadata_bytes(&table);
    assert!(one > 1 << 20);
    assert!(all < 22 * one, "{all} bytes in files of {one}");
    assert_eq!(table.property("write.metadata.previous-versions-max"), None);
    assert_eq!(assert_sound(&table).await.orphans, []);
    let mut table = set(&table, "write.metadata.previous-versions-max", "30").await;
    for number in 0..20 {
        table = set(&table, "number", &number.to_string()).await;
    }
    assert_eq!(metadata_bytes(&table).0 / one, 31);
}
