//! Tables from create to drop: rows, pruning, evolution, renaming, staging.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use common::{Home, append, ident, report_rows, report_spec, sorted};
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};
use stoa_table::{
    ColumnPosition, PartitionTerm, SortTerm, TableChange, TableSpec, Transform, WriteOptions,
};

/// 2015-01-01 in days.
const NEW_YEAR_2015: i32 = 16_436;

fn compare(field: i32, op: CompareOp, value: Literal) -> Predicate {
    Predicate::Compare { column: ColumnRef::Field(field), op, value }
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn rows_land_in_partitions_and_scans_prune_them() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("report"), report_spec()).await.unwrap();
    assert_eq!(table.row_count(), Some(0));
    let mut writer = table.writer(WriteOptions::default()).unwrap();
    assert_send(writer.write(sorted(&report_rows(NEW_YEAR_2015, 100)))).await.unwrap();
    let outcome = assert_send(writer.commit()).await.unwrap();
    assert_eq!((outcome.rows, outcome.files), (100, 4));
    let table = outcome.table;
    assert_eq!(table.row_count(), Some(100));
    assert_eq!(table.partition_terms(), [PartitionTerm::new("day", Transform::Month)]);
    assert_eq!(table.sort_terms().len(), 2);

    let all = assert_send(table.plan_scan(&Predicate::always())).await.unwrap();
    assert_eq!((all.files.len(), all.rows(), all.bytes()), (4, 100, outcome.bytes));
    let texts: Vec<_> = all.files.iter().map(|file| file.partition_text.as_str()).collect();
    assert_eq!(
        texts,
        ["day_month=2015-01", "day_month=2015-02", "day_month=2015-03", "day_month=2015-04"]
    );

    let february = compare(1, CompareOp::Eq, Literal::Date(NEW_YEAR_2015 + 40));
    let plan = table.plan_scan(&february).await.unwrap();
    assert_eq!((plan.files.len(), plan.files_total, plan.files_pruned_by_partition), (1, 4, 3));

    let few_clicks = compare(3, CompareOp::Lt, Literal::Int(10));
    let plan = table.plan_scan(&few_clicks).await.unwrap();
    assert_eq!((plan.files.len(), plan.files_pruned_by_statistics), (1, 3));

    let other_year = compare(1, CompareOp::Gt, Literal::Date(NEW_YEAR_2015 + 4000));
    let plan = table.plan_scan(&other_year).await.unwrap();
    assert_eq!((plan.manifests_pruned, plan.files_total), (1, 4));
    assert!(plan.files.is_empty());

    let file = &all.files[0];
    assert_eq!((file.rows, file.sort_order_id), (31, Some(1)));
    assert_eq!(file.value_counts[&2], 31);
    assert_eq!(file.lower_bounds[&1], Literal::Date(NEW_YEAR_2015));
    assert_eq!(file.upper_bounds[&1], Literal::Date(NEW_YEAR_2015 + 30));
    assert!(table.check().await.unwrap().is_sound());
}

#[tokio::test]
async fn a_second_opener_sees_the_same_table() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("report"), report_spec()).await.unwrap();
    append(&table, report_rows(NEW_YEAR_2015, 10)).await;
    append(&table, report_rows(NEW_YEAR_2015 + 100, 5)).await;
    let other = home.reopen().await.table(&ident("report")).await.unwrap();
    let plan = other.plan_scan(&Predicate::always()).await.unwrap();
    assert_eq!((plan.rows(), plan.manifests_total), (15, 2));
    assert_eq!(other.snapshots().len(), 2);
    let summary = other.current_snapshot().unwrap().summary;
    for (key, value) in [("added-records", "5"), ("total-records", "15"), ("engine-name", "stoa")] {
        assert_eq!(summary[key], value, "{key}");
    }
}

#[tokio::test]
async fn a_staged_table_appears_with_its_rows() {
    let home = Home::new().await;
    let staged = home.warehouse.stage_table(&ident("ctas"), report_spec()).await.unwrap();
    let mut writer = staged.writer(WriteOptions::default()).unwrap();
    writer.write(report_rows(NEW_YEAR_2015, 10)).await.unwrap();
    assert_eq!(home.warehouse.table(&ident("ctas")).await.unwrap_err().sqlstate(), "42P01");
    let table = writer.commit().await.unwrap().table;
    assert_eq!(table.row_count(), Some(10));
    assert!(table.check().await.unwrap().is_sound());
    let taken = home.warehouse.stage_table(&ident("ctas"), report_spec()).await.unwrap_err();
    assert_eq!(taken.sqlstate(), "42P07");
}

#[tokio::test]
async fn columns_change_by_field_id() {
    let home = Home::new().await;
    let schema = Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int32, false),
        Field::new("b", DataType::Utf8, true),
    ]));
    let table = home.warehouse.create_table(&ident("t"), TableSpec::new(schema)).await.unwrap();
    let changed = table
        .alter(vec![
            TableChange::AddColumn {
                field: Field::new("c", DataType::Float64, true),
                position: ColumnPosition::First,
            },
            TableChange::RenameColumn { from: "b".into(), to: "text".into() },
            TableChange::ChangeType {
                column: "a".into(),
                data_type: DataType::Int64,
                declared: None,
            },
            TableChange::SetNullable("a".into()),
            TableChange::SetColumnComment { column: "a".into(), comment: Some("number".into()) },
            TableChange::SetSortOrder(vec![SortTerm::ascending("a")]),
            TableChange::SetProperties(BTreeMap::from([("k".into(), "v".into())])),
        ])
        .await
        .unwrap();
    let fields: Vec<_> = changed
        .schema()
        .fields()
        .iter()
        .map(|f| (f.name().clone(), f.metadata()[stoa_table::FIELD_ID_KEY].clone()))
        .collect();
    let expected = [("c", "3"), ("a", "1"), ("text", "2")];
    assert_eq!(fields, expected.map(|(name, id)| (name.to_owned(), id.to_owned())));
    assert_eq!(changed.schema().field(1).data_type(), &DataType::Int64);
    assert!(changed.schema().field(1).is_nullable());
    assert_eq!(changed.property("k"), Some("v"));
    assert_eq!(changed.sort_terms(), [SortTerm::ascending("a")]);

    let dropped = changed.alter(vec![TableChange::DropColumn("text".into())]).await.unwrap();
    let again = dropped
        .alter(vec![TableChange::AddColumn {
            field: Field::new("text", DataType::Utf8, true),
            position: ColumnPosition::After("c".into()),
        }])
        .await
        .unwrap();
    let text = again.schema().field(1).clone();
    assert_eq!(text.metadata()[stoa_table::FIELD_ID_KEY], "4");

    let code = async |change| again.alter(vec![change]).await.unwrap_err().sqlstate();
    assert_eq!(code(TableChange::DropColumn("x".into())).await, "42703");
    assert_eq!(code(TableChange::DropColumn("a".into())).await, "2BP01");
    let rename = TableChange::RenameColumn { from: "a".into(), to: "c".into() };
    assert_eq!(code(rename).await, "42701");
    let narrow =
        TableChange::ChangeType { column: "a".into(), data_type: DataType::Int32, declared: None };
    assert_eq!(code(narrow).await, "42804");
}

#[tokio::test]
async fn renamed_tables_keep_their_files_and_names_can_be_used_again() {
    let home = Home::new().await;
    let first = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    append(&first, report_rows(NEW_YEAR_2015, 10)).await;
    home.warehouse.rename_table(&ident("t"), &ident("old")).await.unwrap();
    let second = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    assert_ne!(first.location(), second.location());
    append(&second, report_rows(NEW_YEAR_2015, 3)).await;
    let old = home.warehouse.table(&ident("old")).await.unwrap();
    assert_eq!(old.row_count(), Some(10));
    assert!(old.check().await.unwrap().orphans.is_empty());
    home.warehouse.drop_table(&ident("old"), true).await.unwrap();
    let plan = second.reload().await.unwrap().plan_scan(&Predicate::always()).await.unwrap();
    assert_eq!(plan.rows(), 3);
    assert!(second.check().await.unwrap().is_sound());
    home.warehouse.drop_table(&ident("t"), false).await.unwrap();
    home.warehouse.drop_namespace("public").await.unwrap();
}

#[tokio::test]
async fn rows_that_do_not_fit_are_refused() {
    let home = Home::new().await;
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, false)]));
    let table = home.warehouse.create_table(&ident("t"), TableSpec::new(schema)).await.unwrap();
    let rows = |values: Vec<Option<i64>>| {
        let array: ArrayRef = Arc::new(Int64Array::from(values));
        RecordBatch::try_from_iter_with_nullable([("a", array, true)]).unwrap()
    };
    let code = async |batch| {
        let mut writer = table.writer(WriteOptions::default()).unwrap();
        writer.write(batch).await.unwrap_err().sqlstate()
    };
    assert_eq!(code(rows(vec![Some(1), None])).await, "23502");
    assert_eq!(code(rows(vec![Some(1 << 40)])).await, "22003");
    let loaded = append(&table, rows(vec![Some(7)])).await;
    assert_eq!(loaded.row_count(), Some(1));
}

#[tokio::test]
async fn specifications_that_cannot_be_say_why() {
    let home = Home::new().await;
    let code = async |change: &dyn Fn(&mut TableSpec)| {
        let mut spec = report_spec();
        change(&mut spec);
        home.warehouse.create_table(&ident("t"), spec).await.unwrap_err().sqlstate()
    };
    let by = |column: &str, transform| vec![PartitionTerm::new(column, transform)];
    assert_eq!(code(&|s| s.partition_by = by("nothing", Transform::Day)).await, "42703");
    assert_eq!(code(&|s| s.partition_by = by("account", Transform::Day)).await, "42P17");
    assert_eq!(code(&|s| s.partition_by = by("account", Transform::Bucket(0))).await, "42P17");
    let property = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    for (key, value) in [
        ("write.orc.compression-codec", "rar"),
        ("write.target-file-size-bytes", "-1"),
        ("write.orc.bloom.filter.columns", "nothing"),
        ("stoa.orc.row-index-stride", "many"),
    ] {
        assert_eq!(code(&|s| s.properties = property(key, value)).await, "22023", "{key}");
    }
    let parquet = property("write.format.default", "parquet");
    assert_eq!(code(&|s| s.properties = parquet.clone()).await, "0A000");
}

#[tokio::test]
async fn many_small_appends_keep_few_manifests() {
    let home = Home::new().await;
    let mut spec = report_spec();
    spec.properties =
        BTreeMap::from([("commit.manifest.min-count-to-merge".to_owned(), "4".to_owned())]);
    let mut table = home.warehouse.create_table(&ident("t"), spec).await.unwrap();
    for number in 0..11 {
        table = append(&table, report_rows(NEW_YEAR_2015 + number, 2)).await;
    }
    let plan = table.plan_scan(&Predicate::always()).await.unwrap();
    assert!(plan.manifests_total <= 4, "{}", plan.manifests_total);
    assert_eq!((plan.files.len(), plan.rows()), (11, 22));
    let first = compare(1, CompareOp::Eq, Literal::Date(NEW_YEAR_2015));
    assert_eq!(table.plan_scan(&first).await.unwrap().files.len(), 1);
    let snapshots: std::collections::HashSet<_> =
        plan.files.iter().map(|file| file.snapshot_id).collect();
    assert_eq!(snapshots.len(), 11, "entries keep the snapshot that added them");
    let report = table.check().await.unwrap();
    assert_eq!((report.problems.as_slice(), report.orphans.len()), ([].as_slice(), 0));
    // Another opener, whose caches are empty, reads the same.
    let other = home.reopen().await.table(&ident("t")).await.unwrap();
    assert_eq!(other.plan_scan(&Predicate::always()).await.unwrap().rows(), 22);
}

#[tokio::test]
async fn partitioning_can_change() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let table = append(&table, report_rows(NEW_YEAR_2015, 60)).await;
    let by_account = vec![PartitionTerm::new("account", Transform::Identity)];
    let table = table.alter(vec![TableChange::SetPartitioning(by_account.clone())]).await.unwrap();
    assert_eq!(table.partition_terms(), by_account);
    let table = append(&table, report_rows(NEW_YEAR_2015, 60)).await;
    let plan = table.plan_scan(&Predicate::always()).await.unwrap();
    // Two or three months and five accounts or none.
    assert_eq!((plan.rows(), plan.files.len()), (120, 3 + 6));
    let account = compare(2, CompareOp::Eq, Literal::String("account 2".into()));
    let day = compare(1, CompareOp::Eq, Literal::Date(NEW_YEAR_2015 + 1));
    let plan = table.plan_scan(&account.and(day)).await.unwrap();
    assert_eq!(plan.files_total, 9);
    assert!(plan.files_pruned_by_partition >= 7, "{plan:?}");
    assert!(table.check().await.unwrap().is_sound());
}

#[tokio::test]
async fn files_roll_at_their_target_size() {
    let home = Home::new().await;
    let mut spec = TableSpec::new(common::report_schema());
    spec.properties = [
        ("write.target-file-size-bytes", "20000"),
        ("write.orc.stripe-size-bytes", "65536"),
        ("stoa.orc.row-index-stride", "1000"),
        ("write.orc.compression-codec", "none"),
        ("write.orc.bloom.filter.columns", "account"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    let table = home.warehouse.create_table(&ident("t"), spec).await.unwrap();
    let mut writer = table.writer(WriteOptions::default()).unwrap();
    for number in 0..20 {
        writer.write(report_rows(NEW_YEAR_2015 + number, 2000)).await.unwrap();
    }
    let outcome = writer.commit().await.unwrap();
    assert!(outcome.files > 4, "{} files", outcome.files);
    let plan = outcome.table.plan_scan(&Predicate::always()).await.unwrap();
    assert_eq!(plan.rows(), 40_000);
    assert!(outcome.table.check().await.unwrap().is_sound());
}

#[tokio::test]
async fn texts_have_dictionaries_as_the_table_says() {
    let home = Home::new().await;
    let mut bytes = BTreeMap::new();
    for choice in ["auto", "always", "never"] {
        let mut spec = TableSpec::new(common::report_schema());
        spec.properties =
            [("stoa.orc.dictionary", choice), ("write.orc.compression-codec", "none")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into();
        let table = home.warehouse.create_table(&ident(choice), spec).await.unwrap();
        let table = append(&table, report_rows(NEW_YEAR_2015, 20_000)).await;
        let plan = table.plan_scan(&Predicate::always()).await.unwrap();
        assert_eq!(plan.rows(), 20_000);
        assert!(table.check().await.unwrap().is_sound());
        bytes.insert(choice, plan.files.iter().map(|file| file.file_bytes).sum::<u64>());
    }
    // Five accounts: nine bytes for each row instead of a byte or less.
    assert_eq!(bytes["auto"], bytes["always"]);
    assert!(bytes["never"] > bytes["always"] + 20_000 * 7, "{bytes:?}");
}

#[tokio::test]
async fn a_change_may_require_a_property_to_be_what_it_was() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("report"), report_spec()).await.unwrap();
    let set = |value: &str| {
        TableChange::SetProperties(BTreeMap::from([("color".to_owned(), value.to_owned())]))
    };
    let require = |value: &str| TableChange::RequireProperty {
        key: "color".to_owned(),
        value: value.to_owned(),
    };
    table.alter(vec![set("red")]).await.unwrap();
    table.alter(vec![require("red"), set("blue")]).await.unwrap();
    let error = table.alter(vec![require("red"), set("green")]).await.unwrap_err();
    assert_eq!(error.kind(), stoa_error::ErrorKind::Conflict);
    assert_eq!(table.reload().await.unwrap().property("color"), Some("blue"));
}

#[tokio::test]
async fn files_of_several_writers_are_committed_together() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("report"), report_spec()).await.unwrap();
    let write = async |first_day: i32| {
        let options = WriteOptions { sorted: true, ..WriteOptions::default() };
        let mut writer = table.writer(options).unwrap();
        writer.write(sorted(&report_rows(first_day, 20))).await.unwrap();
        writer.finish().await.unwrap()
    };
    let mut written = write(NEW_YEAR_2015).await;
    written.join(write(NEW_YEAR_2015 + 5).await).unwrap();
    let committed = written.commit(&stoa_table::CommitOptions::default()).await.unwrap();
    assert_eq!((committed.rows, committed.table.snapshots().len()), (40, 1));
    assert_eq!(common::assert_sorted(&committed.table).await as u64, committed.files);

    let other = home.warehouse.create_table(&ident("other"), report_spec()).await.unwrap();
    let written_elsewhere = other.writer(WriteOptions::default()).unwrap().finish().await.unwrap();
    assert!(written.join(written_elsewhere).is_err());
}

#[tokio::test]
async fn values_that_would_stop_writers_are_refused_when_they_are_set() {
    let home = Home::new().await;
    let mut spec = report_spec();
    spec.properties.insert("write.orc.bloom.filter.columns".to_owned(), "account".to_owned());
    let table = home.warehouse.create_table(&ident("t"), spec).await.unwrap();
    let set = |key: &str, value: &str| {
        TableChange::SetProperties(BTreeMap::from([(key.to_owned(), value.to_owned())]))
    };
    let code = async |changes: Vec<TableChange>| {
        table.alter(changes).await.err().map_or("ok", |error| error.sqlstate())
    };
    for (key, value) in [
        ("write.orc.compression-codec", "rar"),
        ("stoa.orc.compression-level", "high"),
        ("stoa.orc.compression-level", "99"),
        ("stoa.orc.compression-block-bytes", "1"),
        ("stoa.orc.compression-block-bytes", "8388608"),
        ("stoa.orc.dictionary", "sometimes"),
        ("stoa.orc.row-index-stride", "0"),
        ("write.orc.stripe-size-bytes", "64 MiB"),
        ("write.orc.bloom.filter.columns", "account, nothing"),
        ("write.orc.bloom.filter.fpp", "1"),
        ("write.target-file-size-bytes", "0"),
        ("write.metadata.previous-versions-max", "many"),
        ("commit.retry.num-retries", "-1"),
        ("history.expire.min-snapshots-to-keep", "all"),
        ("gc.enabled", "no"),
        ("stoa.compaction.min-input-files", "0"),
        ("write.delete.isolation-level", "none"),
    ] {
        assert_eq!(code(vec![set(key, value)]).await, "22023", "{key} = {value}");
        let mut spec = report_spec();
        spec.properties.insert(key.to_owned(), value.to_owned());
        let made = home.warehouse.create_table(&ident("other"), spec).await;
        assert_eq!(made.unwrap_err().sqlstate(), "22023", "{key} = {value}");
    }
    let zlib = set("write.orc.compression-codec", "zlib");
    let high = set("stoa.orc.compression-level", "19");
    assert_eq!(code(vec![zlib, high]).await, "22023");
    // A column that a property names stays what it is.
    let renamed =
        TableChange::RenameColumn { from: "account".to_owned(), to: "customer".to_owned() };
    assert_eq!(code(vec![renamed.clone()]).await, "22023");
    let named_anew = set("write.orc.bloom.filter.columns", "customer");
    assert_eq!(code(vec![named_anew.clone()]).await, "22023");
    assert_eq!(code(vec![named_anew, renamed]).await, "ok");
}
