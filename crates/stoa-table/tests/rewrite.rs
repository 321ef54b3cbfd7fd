//! Commits that take files away, alone and against others.
#![allow(clippy::unwrap_used)]

mod common;

use common::{
    Home, append, assert_sound, entries, ident, report_rows, report_spec, rows, sorted_texts,
};
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};
use stoa_table::{Isolation, RewriteOptions, RewriteOutcome, Table, TableRewrite};

/// 2015-01-01 in days.
const NEW_YEAR_2015: i32 = 16_436;

fn day(op: CompareOp, day: i32) -> Predicate {
    Predicate::Compare { column: ColumnRef::Field(1), op, value: Literal::Date(day) }
}

/// 31 rows in January, 28 in February, 31 in March, 10 in April.
async fn hundred_days(home: &Home) -> Table {
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    append(&table, report_rows(NEW_YEAR_2015, 100)).await
}

fn begin(table: &Table) -> TableRewrite {
    table.rewrite(RewriteOptions::default()).unwrap()
}

fn summary(table: &Table, key: &str) -> Option<u64> {
    let summary = table.current_snapshot().unwrap().summary;
    summary.get(key).map(|text| text.parse().unwrap())
}

#[tokio::test]
async fn a_file_is_replaced_in_one_snapshot() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let february = day(CompareOp::Eq, NEW_YEAR_2015 + 40);
    let files = table.plan_scan(&february).await.unwrap().files;
    assert_eq!(files.len(), 1);
    let mut rewrite = begin(&table);
    rewrite.remove(&files).unwrap();
    rewrite.write(report_rows(NEW_YEAR_2015 + 31, 20)).await.unwrap();
    let outcome = rewrite.commit().await.unwrap().committed().unwrap();
    assert_eq!((outcome.rows, outcome.removed_rows, outcome.removed_files), (20, 28, 1));

    let table = outcome.table;
    let snapshot = table.current_snapshot().unwrap();
    assert_eq!(snapshot.operation, "overwrite");
    assert_eq!(summary(&table, "total-records"), Some(92));
    assert_eq!(summary(&table, "total-data-files"), Some(4));
    assert_eq!(summary(&table, "deleted-records"), Some(28));
    assert_eq!(summary(&table, "changed-partition-count"), Some(1));
    assert_eq!(assert_sound(&table).await.rows, 92);
    let expected = [
        report_rows(NEW_YEAR_2015, 100).slice(0, 31),
        report_rows(NEW_YEAR_2015 + 31, 20),
        report_rows(NEW_YEAR_2015, 100).slice(59, 41),
    ];
    assert_eq!(rows(&table).await, sorted_texts(&expected));
    let [first, second] = [table.snapshots()[0].id, snapshot.id].map(Some);
    let written = [
        // January, March and April are where they were.
        (0, first, Some(1), Some(1), 10),
        (0, first, Some(1), Some(1), 31),
        (0, first, Some(1), Some(1), 31),
        // The sequence number of what is new is that of the snapshot.
        (1, second, None, None, 20),
        (2, second, Some(1), Some(1), 28),
    ];
    assert_eq!(entries(&table).await, written);
    let table = append(&table, report_rows(NEW_YEAR_2015, 1)).await;
    assert_eq!(assert_sound(&table).await.rows, 93);
    // Manifests without anything alive are left out.
    let mut truncate = begin(&table);
    truncate.truncate().unwrap();
    let table = truncate.commit().await.unwrap().committed().unwrap().table;
    assert_eq!(entries(&table).await.len(), 5);
    let table = append(&table, report_rows(NEW_YEAR_2015, 1)).await;
    assert_eq!(entries(&table).await.len(), 1);
}

#[tokio::test]
async fn removing_alone_is_a_delete_and_nothing_is_nothing() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let before = day(CompareOp::Lt, NEW_YEAR_2015 + 40);
    let plan = table.plan_scan(&before).await.unwrap();
    let (covered, others) = table.split_covered(plan.files, &before);
    assert_eq!((covered.len(), others.len()), (1, 1));
    assert_eq!(covered[0].partition_text, "day_month=2015-01");
    let mut rewrite = begin(&table);
    rewrite.remove(&covered).unwrap();
    let table = rewrite.commit().await.unwrap().committed().unwrap().table;
    assert_eq!(table.current_snapshot().unwrap().operation, "delete");
    assert_eq!(assert_sound(&table).await.rows, 69);

    let nothing = begin(&table).commit().await.unwrap().committed().unwrap();
    assert_eq!(nothing.table.metadata_location(), table.metadata_location());
}

#[tokio::test]
async fn truncate_takes_what_was_there_when_it_began() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let mut rewrite = begin(&table);
    rewrite.truncate().unwrap();
    assert_eq!(rewrite.replace_written_partitions().unwrap_err().sqlstate(), "XX000");
    append(&table, report_rows(NEW_YEAR_2015, 9)).await;
    let outcome = rewrite.commit().await.unwrap().committed().unwrap();
    assert_eq!(outcome.removed_rows, 100);
    let table = outcome.table;
    assert_eq!(table.row_count(), Some(9));
    assert_eq!(assert_sound(&table).await.rows, 9);
    let mut rewrite = begin(&table);
    rewrite.truncate().unwrap();
    let table = rewrite.commit().await.unwrap().committed().unwrap().table;
    assert_eq!(table.row_count(), Some(0));
    assert_eq!(rows(&table).await, Vec::<String>::new());
    let table = append(&table, report_rows(NEW_YEAR_2015, 9)).await;
    assert_eq!(assert_sound(&table).await.rows, 9);
}

#[tokio::test]
async fn partitions_that_are_replaced_keep_what_came_meanwhile() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let mut dynamic = begin(&table);
    dynamic.replace_written_partitions().unwrap();
    // January and February, of which others add a day to January.
    dynamic.write(report_rows(NEW_YEAR_2015 + 30, 2)).await.unwrap();
    append(&table, report_rows(NEW_YEAR_2015, 1)).await;
    let table = dynamic.commit().await.unwrap().committed().unwrap().table;
    assert_eq!(assert_sound(&table).await.rows, 44);
}

#[tokio::test]
async fn a_change_is_outdated_by_changes_of_tables_that_it_has_read() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let read = home.warehouse.create_table(&ident("read"), report_spec()).await.unwrap();
    let read = append(&read, report_rows(NEW_YEAR_2015, 9)).await;
    let begin = |table: &Table, read: &Table| {
        let options = RewriteOptions { reads: vec![read.clone()], ..RewriteOptions::default() };
        let mut rewrite = table.rewrite(options).unwrap();
        rewrite.truncate().unwrap();
        rewrite
    };
    // Rows that were added do not count.
    let mut added = begin(&table, &read);
    let read = append(&read, report_rows(NEW_YEAR_2015, 1)).await;
    added.write(report_rows(NEW_YEAR_2015, 7)).await.unwrap();
    let table = added.commit().await.unwrap().committed().unwrap().table;
    let changed = begin(&table, &read);
    let mut truncate = read.rewrite(RewriteOptions::default()).unwrap();
    truncate.truncate().unwrap();
    truncate.commit().await.unwrap().committed().unwrap();
    let error = changed.commit().await.unwrap().committed().unwrap_err();
    assert_eq!(error.sqlstate(), "40001");
    assert_eq!(table.reload().await.unwrap().row_count(), Some(7));
}

#[tokio::test]
async fn partitions_are_replaced_by_what_is_written_or_by_name() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let mut dynamic = begin(&table);
    dynamic.replace_written_partitions().unwrap();
    // January and February.
    dynamic.write(report_rows(NEW_YEAR_2015 + 30, 2)).await.unwrap();
    let table = dynamic.commit().await.unwrap().committed().unwrap().table;
    assert_eq!(assert_sound(&table).await.rows, 43);

    let march = day(CompareOp::GtEq, NEW_YEAR_2015 + 59);
    let march = march.and(day(CompareOp::Lt, NEW_YEAR_2015 + 90));
    let mut fixed = begin(&table);
    fixed.replace_partitions(march.clone()).unwrap();
    fixed.write(report_rows(NEW_YEAR_2015 + 60, 4)).await.unwrap();
    let table = fixed.commit().await.unwrap().committed().unwrap().table;
    assert_eq!(assert_sound(&table).await.rows, 16);

    let mut outside = begin(&table);
    outside.replace_partitions(march).unwrap();
    outside.write(report_rows(NEW_YEAR_2015, 4)).await.unwrap();
    assert_eq!(outside.commit().await.unwrap_err().sqlstate(), "44000");

    let mut halves = begin(&table);
    halves.replace_partitions(day(CompareOp::Lt, NEW_YEAR_2015 + 62)).unwrap();
    let error = halves.commit().await.unwrap_err();
    assert_eq!((error.sqlstate(), error.hint().is_some()), ("22023", true));
    let table = table.reload().await.unwrap();
    assert_eq!(assert_sound(&table).await.orphans, []);
    assert_eq!(table.row_count(), Some(16));
}

#[tokio::test]
async fn who_removes_the_same_file_later_is_told_by_whom() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let february = table.plan_scan(&day(CompareOp::Eq, NEW_YEAR_2015 + 40)).await.unwrap().files;
    let remove = |table: &Table| {
        let mut rewrite = begin(table);
        rewrite.remove(&february).unwrap();
        rewrite
    };
    let (first, mut second) = (remove(&table), remove(&table));
    second.write(report_rows(NEW_YEAR_2015 + 31, 5)).await.unwrap();
    let winner = first.commit().await.unwrap().committed().unwrap().table;
    let RewriteOutcome::Outdated(outdated) = second.commit().await.unwrap() else {
        panic!("a file was removed twice");
    };
    assert_eq!(outdated.table.metadata_location(), winner.metadata_location());
    assert_eq!(outdated.why.sqlstate(), "40001");
    let detail = outdated.why.detail().unwrap();
    let snapshot = format!("snapshot {} (delete by stoa", winner.current_snapshot().unwrap().id);
    assert!(detail.contains(&snapshot), "{detail}");
    let report = assert_sound(&winner).await;
    assert_eq!((report.rows, report.orphans), (72, vec![]));
}

#[tokio::test]
async fn rows_added_meanwhile_matter_as_the_isolation_says() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let predicate = day(CompareOp::Eq, NEW_YEAR_2015 + 40);
    let february = table.plan_scan(&predicate).await.unwrap().files;
    let rewrite = |isolation: Isolation| {
        let options = RewriteOptions { isolation, ..RewriteOptions::default() };
        let mut rewrite = table.rewrite(options).unwrap();
        rewrite.remove(&february).unwrap();
        rewrite
    };
    let serializable = table.isolation("delete", predicate.clone()).unwrap();
    assert_eq!(serializable, Isolation::Serializable(predicate));

    let strict = rewrite(serializable);
    append(&table, report_rows(NEW_YEAR_2015 + 40, 1)).await;
    let RewriteOutcome::Outdated(outdated) = strict.commit().await.unwrap() else {
        panic!("rows were not seen");
    };
    assert!(outdated.why.detail().unwrap().contains("(append by stoa"));
    let lax = rewrite(Isolation::Snapshot).commit().await.unwrap().committed().unwrap();
    assert_eq!(lax.removed_rows, 28);
    assert_eq!(assert_sound(&lax.table).await.rows, 73);
}

#[tokio::test]
async fn rows_of_other_partitions_do_not_hold_up_a_serializable_change() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let predicate = day(CompareOp::Eq, NEW_YEAR_2015 + 40);
    let february = table.plan_scan(&predicate).await.unwrap().files;
    let isolation = Isolation::Serializable(predicate);
    let options = RewriteOptions { isolation, ..RewriteOptions::default() };
    let mut rewrite = table.rewrite(options).unwrap();
    rewrite.remove(&february).unwrap();
    append(&table, report_rows(NEW_YEAR_2015, 3)).await;
    let outcome = rewrite.commit().await.unwrap().committed().unwrap();
    assert_eq!(assert_sound(&outcome.table).await.rows, 75);
}

#[tokio::test]
async fn several_tables_change_together_or_not_at_all() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let other = home.warehouse.create_table(&ident("other"), report_spec()).await.unwrap();
    let other = append(&other, report_rows(NEW_YEAR_2015, 5)).await;
    let mut truncate = begin(&table);
    truncate.truncate().unwrap();
    let mut adds = begin(&other);
    adds.write(report_rows(NEW_YEAR_2015 + 5, 2)).await.unwrap();
    TableRewrite::commit_all(vec![truncate, adds]).await.unwrap();
    let (table, other) = (table.reload().await.unwrap(), other.reload().await.unwrap());
    assert_eq!((table.row_count(), other.row_count()), (Some(0), Some(7)));
    assert_eq!((assert_sound(&table).await.rows, assert_sound(&other).await.rows), (0, 7));

    // Somebody removes first what one of them is to remove.
    let files = other.plan_scan(&Predicate::always()).await.unwrap().files;
    let mut late = begin(&other);
    late.remove(&files).unwrap();
    let mut adds = begin(&table);
    adds.write(report_rows(NEW_YEAR_2015, 3)).await.unwrap();
    let mut first = begin(&other);
    first.truncate().unwrap();
    let _ = first.commit().await.unwrap().committed().unwrap();
    let error = TableRewrite::commit_all(vec![adds, late]).await.unwrap_err();
    assert_eq!(error.sqlstate(), "40001");
    let (table, other) = (table.reload().await.unwrap(), other.reload().await.unwrap());
    assert_eq!((table.row_count(), other.row_count()), (Some(0), Some(0)));
    assert_eq!(assert_sound(&table).await.orphans, []);

    // One of them is gone.
    let (mut gone, mut adds) = (begin(&other), begin(&table));
    for rewrite in [&mut gone, &mut adds] {
        rewrite.write(report_rows(NEW_YEAR_2015, 3)).await.unwrap();
    }
    home.warehouse.drop_table(&ident("other"), false).await.unwrap();
    let error = TableRewrite::commit_all(vec![adds, gone]).await.unwrap_err();
    assert_eq!(error.sqlstate(), "42P01");
    assert_eq!(table.reload().await.unwrap().row_count(), Some(0));
}

#[tokio::test]
async fn a_rewrite_takes_over_the_rows_of_another() {
    let home = Home::new().await;
    let table = hundred_days(&home).await;
    let mut truncate = begin(&table);
    truncate.truncate().unwrap();
    let mut adds = begin(&table);
    adds.write(report_rows(NEW_YEAR_2015, 40)).await.unwrap();
    adds.end_files().await.unwrap();
    truncate.take_over(adds).unwrap();
    truncate.write(report_rows(NEW_YEAR_2015 + 40, 2)).await.unwrap();
    let table = truncate.commit().await.unwrap().committed().unwrap().table;
    assert_eq!((table.row_count(), assert_sound(&table).await.rows), (Some(42), 42));
    let mut removes = begin(&table);
    removes.truncate().unwrap();
    assert_eq!(begin(&table).take_over(removes).unwrap_err().sqlstate(), "XX000");
}
