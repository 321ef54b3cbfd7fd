//! Tables that other engines write: delete files of every kind, data files of every format.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use common::foreign::{self, FORMATS, commit, count, equality, exists, positions, rows, write};
use common::{Home, append, assert_sound, ident};
use stoa_env::random;
use stoa_error::ErrorKind;
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};
use stoa_table::{
    CompactionOptions, CompactionWork, DeleteKind, ExpireOptions, FileFormat, Isolation,
    RewriteOptions, RewriteOutcome, Table, TableSpec,
};

/// id, name, value
async fn table(home: &Home, name: &str) -> Table {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
        Field::new("value", DataType::Float64, true),
    ]));
    home.warehouse.create_table(&ident(name), TableSpec::new(schema)).await.unwrap()
}

/// Rows with these ids.
fn batch(table: &Table, ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let names = ids.iter().map(|id| (id % 3 != 0).then(|| format!("name {}", id % 5)));
    let values = ids.iter().map(|id| match id % 4 {
        0 => None,
        1 => Some(f64::NAN),
        2 => Some(-0.0),
        _ => Some(*id as f64),
    });
    let columns: Vec<arrow_array::ArrayRef> = vec![
        Arc::new(Int64Array::from(ids.clone())),
        Arc::new(StringArray::from_iter(names)),
        Arc::new(Float64Array::from_iter(values)),
    ];
    RecordBatch::try_new(table.schema(), columns).unwrap()
}

/// What [`rows`] gives for these ids.
fn texts(table: &Table, ids: impl IntoIterator<Item = i64>) -> Vec<String> {
    common::sorted_texts(&[batch(table, ids)])
}

async fn only_file(table: &Table) -> String {
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    assert_eq!(files.len(), 1);
    files[0].location.clone()
}

/// The columns `fields` of `batch`, as equality deletes hold them.
fn columns(batch: &RecordBatch, fields: &[usize]) -> RecordBatch {
    batch.project(fields).unwrap()
}

async fn check(table: &Table, ids: impl IntoIterator<Item = i64> + Clone) {
    let expected = texts(table, ids);
    assert_eq!(rows(table).await, expected);
    assert_eq!(count(table).await, expected.len() as u64);
    assert_eq!(table.row_count(), None, "delete files make the summary's count inexact");
    // Columns that deletes need and nobody asked for.
    let names = Arc::new(table.schema().project(&[1]).unwrap());
    let some = foreign::rows_of(table, names, Predicate::always()).await;
    assert_eq!(some.len(), expected.len());
    assert_sound(table).await;
}

#[tokio::test]
async fn position_deletes_of_every_format_leave_rows_out_of_every_format() {
    let home = Home::new().await;
    for data in FORMATS {
        for deletes in FORMATS {
            let name = format!("{}_{}", data.name(), deletes.name());
            let table = table(&home, &name).await;
            let file = write(&table, data, &batch(&table, 0..40)).build().unwrap();
            let path = file.file_path().to_owned();
            let table = commit(&table, vec![file]).await;
            assert_eq!(rows(&table).await, texts(&table, 0..40), "{name}");
            let gone = [0, 9, 10, 11, 39];
            let named: Vec<_> = gone.iter().map(|row| (path.as_str(), *row)).collect();
            let other = [("file:///elsewhere/a.parquet", 3), ("file:///elsewhere/b.parquet", 4)];
            let named = [&other[..1], &named, &other[1..]].concat();
            let delete = positions(&table, deletes, &named).build().unwrap();
            let table = commit(&table, vec![delete]).await;
            check(&table, (0..40).filter(|id| !gone.contains(id))).await;
            // A second delete file of the same rows and another one.
            let named = [(path.as_str(), 39), (path.as_str(), 20)];
            let delete = positions(&table, deletes, &named).build().unwrap();
            let table = commit(&table, vec![delete]).await;
            check(&table, (0..40).filter(|id| *id != 20 && !gone.contains(id))).await;
        }
    }
}

#[tokio::test]
async fn rows_keep_their_numbers_where_row_groups_are_left_out() {
    let home = Home::new().await;
    for data in FORMATS {
        let table = table(&home, data.name()).await;
        let file = write(&table, data, &batch(&table, 0..100)).build().unwrap();
        let path = file.file_path().to_owned();
        let delete = positions(&table, FileFormat::Parquet, &[(&path, 90), (&path, 5)]);
        let table = commit(&table, vec![file, delete.build().unwrap()]).await;
        let late = Predicate::Compare {
            column: ColumnRef::Field(1),
            op: CompareOp::GtEq,
            value: Literal::Int(85),
        };
        let found = foreign::rows_of(&table, table.schema(), late).await;
        let expected = texts(&table, (85..100).filter(|id| *id != 90));
        assert!(expected.iter().all(|row| found.contains(row)), "{data:?}: {found:?}");
        assert!(!found.iter().any(|row| row.starts_with("90|") || row.starts_with("5|")));
        if data != FileFormat::Avro {
            assert!(found.len() < 50, "{data:?} reads {} rows", found.len());
        }
    }
}

#[tokio::test]
async fn equality_deletes_reach_older_rows_only() {
    let home = Home::new().await;
    for format in FORMATS {
        let table = table(&home, format.name()).await;
        let table = append(&table, batch(&table, 0..20)).await;
        // id = 3 or 4, together with rows that the same commit adds: 3 again, and 30.
        let delete = equality(&table, format, &columns(&batch(&table, [3, 4]), &[0]));
        let again = write(&table, format, &batch(&table, [3, 30])).build().unwrap();
        let table = commit(&table, vec![delete.build().unwrap(), again]).await;
        check(&table, (0..20).filter(|id| *id != 4).chain([30])).await;
        // NULL equals NULL, NaN equals NaN, and both columns count.
        let some = batch(&table, [0, 5, 30, 7]);
        let delete = equality(&table, format, &columns(&some, &[1, 2]));
        let table = commit(&table, vec![delete.build().unwrap()]).await;
        let key = |id: i64| {
            let row = texts(&table, [id]).remove(0);
            row.split_once('|').unwrap().1.to_owned()
        };
        let gone: Vec<String> = [0, 5, 30, 7].map(key).into();
        let left = (0..20).filter(|id| *id != 4).chain([30]).filter(|id| !gone.contains(&key(*id)));
        let left: Vec<i64> = left.collect();
        assert!(!left.contains(&12) && left.contains(&9), "{left:?}");
        check(&table, left.clone()).await;
        // Rows added later stay.
        let table = append(&table, batch(&table, [4, 5])).await;
        check(&table, left.into_iter().chain([4, 5])).await;
    }
}

#[tokio::test]
async fn zeros_of_different_sign_are_different_values() {
    let home = Home::new().await;
    let table = table(&home, "t").await;
    let table = append(&table, batch(&table, [2, 6])).await;
    let zero = Arc::new(Float64Array::from(vec![0.0]));
    let schema = Arc::new(table.schema().project(&[2]).unwrap());
    let zero = RecordBatch::try_new(schema, vec![zero]).unwrap();
    let table =
        commit(&table, vec![equality(&table, FileFormat::Orc, &zero).build().unwrap()]).await;
    // Iceberg's Java compares as Double.compare does; the rows hold -0.0.
    check(&table, [2, 6]).await;
}

#[tokio::test]
async fn deletion_vectors_of_version_3() {
    let home = Home::new().await;
    for format in FORMATS {
        let table = foreign::upgrade(&table(&home, format.name()).await).await;
        let first = write(&table, format, &batch(&table, 0..30)).build().unwrap();
        let second = write(&table, format, &batch(&table, 30..60)).build().unwrap();
        let paths = [first.file_path().to_owned(), second.file_path().to_owned()];
        let table = commit(&table, vec![first, second]).await;
        assert_eq!(table.format_version(), 3);
        let named = [(paths[0].as_str(), vec![0, 1, 29]), (paths[1].as_str(), vec![7])];
        let table = commit(&table, foreign::vectors(&table, &named)).await;
        check(&table, (2..60).filter(|id| *id != 29 && *id != 37)).await;
        let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
        assert!(files.iter().all(|file| file.deletes.len() == 1 && !file.is_plain()));
        assert!(matches!(files[0].deletes[0].kind, DeleteKind::Vector { .. }));
        // Writing would have to keep the lineage of rows.
        let error = table.rewrite(RewriteOptions::default()).unwrap_err();
        assert_eq!(error.sqlstate(), "0A000");
    }
}

#[tokio::test]
async fn a_damaged_deletion_vector_is_an_error() {
    let home = Home::new().await;
    let table = foreign::upgrade(&table(&home, "t").await).await;
    let file = write(&table, FileFormat::Parquet, &batch(&table, 0..30)).build().unwrap();
    let path = file.file_path().to_owned();
    let vectors = foreign::vectors(&table, &[(&path, vec![1, 2, 3])]);
    let puffin = vectors[0].file_path().strip_prefix("file://").unwrap().to_owned();
    let table = commit(&table, [vec![file], vectors].concat()).await;
    let mut bytes = std::fs::read(&puffin).unwrap();
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    std::fs::write(&puffin, bytes).unwrap();
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    let options = stoa_table::RowOptions::of(table.schema());
    let error = table.read_rows(&files[0], options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("deletion vector"), "{error:?}");
}

#[tokio::test]
async fn compaction_applies_deletes_and_drops_them() {
    let home = Home::new().await;
    let table = table(&home, "t").await;
    let mut files = Vec::new();
    for (number, format) in FORMATS.into_iter().enumerate() {
        let ids = number as i64 * 20..number as i64 * 20 + 20;
        files.push(write(&table, format, &batch(&table, ids)).build().unwrap());
    }
    let paths: Vec<String> = files.iter().map(|file| file.file_path().to_owned()).collect();
    let table = commit(&table, files).await;
    let named = [(paths[0].as_str(), 1), (paths[1].as_str(), 2), (paths[2].as_str(), 3)];
    let by_number = positions(&table, FileFormat::Orc, &named).build().unwrap();
    let keys = columns(&batch(&table, [10, 50]), &[0]);
    let by_value = equality(&table, FileFormat::Parquet, &keys).build().unwrap();
    let deletes = [by_number.file_path().to_owned(), by_value.file_path().to_owned()];
    let table = commit(&table, vec![by_number, by_value]).await;
    let gone = [1, 22, 43, 10, 50];
    let left = || (0..60).filter(|id| !gone.contains(id));
    check(&table, left()).await;

    // Who deletes without rewriting is not disturbed at once.
    let hour = std::time::Duration::from_secs(3600);
    let later = CompactionOptions { foreign_age_min: hour, ..CompactionOptions::default() };
    assert!(table.plan_compaction(&later).await.unwrap().groups.is_empty());
    let work = CompactionWork::default();
    let outcome = table.compact(&CompactionOptions::default(), &work).await.unwrap();
    assert_eq!((outcome.files_removed, outcome.rows), (3, 55));
    let table = outcome.table;
    assert_eq!(common::rows(&table).await, texts(&table, left()));
    let snapshot = table.current_snapshot().unwrap();
    assert_eq!(snapshot.operation, "replace");
    assert_eq!(snapshot.summary["removed-delete-files"], "2");
    assert_eq!(snapshot.summary["removed-position-deletes"], "3");
    assert_eq!(snapshot.summary["removed-equality-deletes"], "2");
    assert_sound(&table).await;
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    assert!(files.iter().all(|file| file.is_plain()));
    // There is nothing more to do.
    let again = table.compact(&CompactionOptions::default(), &work).await.unwrap();
    assert_eq!(again.files_removed, 0);

    for path in deletes.iter().chain(&paths) {
        assert!(exists(&table, path).await, "an older snapshot needs it");
    }
    let all = ExpireOptions {
        age_max: Some(std::time::Duration::ZERO),
        retain_last: Some(1),
        age_min: std::time::Duration::ZERO,
        ..ExpireOptions::default()
    };
    let table = table.expire_snapshots(&all).await.unwrap().table;
    for path in deletes.iter().chain(&paths) {
        assert!(!exists(&table, path).await, "{path}");
    }
    assert_eq!(common::rows(&table).await, texts(&table, left()));
    let report = assert_sound(&table).await;
    assert_eq!(report.orphans.iter().filter(|o| o.location.contains("/data/")).count(), 0);
}

#[tokio::test]
async fn delete_files_stay_while_a_data_file_needs_them() {
    let home = Home::new().await;
    let table = table(&home, "t").await;
    let table = append(&table, batch(&table, 0..10)).await;
    let first = only_file(&table).await;
    let table = append(&table, batch(&table, 10..20)).await;
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    let second = files.iter().find(|file| file.location != first).unwrap().location.clone();
    let both = positions(&table, FileFormat::Parquet, &[(&first, 1), (&second, 1)]);
    let mut one = positions(&table, FileFormat::Parquet, &[(&first, 2)]);
    let one = one.referenced_data_file(Some(first.clone())).build().unwrap();
    let keys = equality(&table, FileFormat::Orc, &columns(&batch(&table, [3, 13]), &[0]));
    let deletes = vec![both.build().unwrap(), one, keys.build().unwrap()];
    let table = commit(&table, deletes).await;
    check(&table, (0..20).filter(|id| ![1, 11, 2, 3, 13].contains(id))).await;

    // The first file is rewritten: what only it needed goes.
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    let file = files.into_iter().find(|file| file.location == first).unwrap();
    assert_eq!(file.deletes.len(), 3);
    let mut rewrite = table.rewrite(RewriteOptions::default()).unwrap();
    rewrite.remove([&file]).unwrap();
    rewrite.write(batch(&table, [0, 4, 5])).await.unwrap();
    let table = rewrite.commit().await.unwrap().committed().unwrap().table;
    check(&table, [0, 4, 5].into_iter().chain((10..20).filter(|id| ![11, 13].contains(id)))).await;
    let summary = table.current_snapshot().unwrap().summary;
    assert_eq!(summary["removed-delete-files"], "1");

    // An append leaves them alone, and TRUNCATE takes all.
    let table = append(&table, batch(&table, [3])).await;
    check(&table, [0, 3, 4, 5].into_iter().chain((10..20).filter(|id| ![11, 13].contains(id))))
        .await;
    let mut truncate = table.rewrite(RewriteOptions::default()).unwrap();
    truncate.truncate().unwrap();
    let table = truncate.commit().await.unwrap().committed().unwrap().table;
    assert_eq!((count(&table).await, table.row_count()), (0, Some(0)));
    assert_sound(&table).await;
}

#[tokio::test]
async fn deletes_that_others_commit_meanwhile_are_not_lost() {
    let home = Home::new().await;
    for isolation in [Isolation::Snapshot, Isolation::Serializable(Predicate::always())] {
        for by_value in [false, true] {
            let name = format!("t_{by_value}_{}", isolation == Isolation::Snapshot);
            let table = table(&home, &name).await;
            let seen = append(&table, batch(&table, 0..10)).await;
            let files = seen.plan_scan(&Predicate::always()).await.unwrap().files;
            let options = RewriteOptions { isolation: isolation.clone(), ..Default::default() };
            let mut rewrite = seen.rewrite(options).unwrap();
            rewrite.remove(&files).unwrap();
            rewrite.write(batch(&seen, 0..9)).await.unwrap();
            let delete = match by_value {
                true => equality(&seen, FileFormat::Avro, &columns(&batch(&seen, [3]), &[0])),
                false => positions(&seen, FileFormat::Avro, &[(&files[0].location, 3)]),
            };
            let now = commit(&seen, vec![delete.build().unwrap()]).await;
            let RewriteOutcome::Outdated(outdated) = rewrite.commit().await.unwrap() else {
                panic!("the delete of another engine was lost");
            };
            assert!(outdated.why.message().contains("deleted rows"), "{:?}", outdated.why);
            let left = (0..10).filter(|id| *id != 3);
            check(&now.reload().await.unwrap(), left).await;
        }
    }
}

#[tokio::test]
async fn partitioned_deletes_keep_to_their_partition() {
    let home = Home::new().await;
    let spec = TableSpec {
        partition_by: vec![stoa_table::PartitionTerm::new("name", stoa_table::Transform::Identity)],
        ..TableSpec::new(table(&home, "plain").await.schema())
    };
    let table = home.warehouse.create_table(&ident("t"), spec).await.unwrap();
    let table = append(&table, batch(&table, 0..30)).await;
    // value = NaN, in the partition `name 1` only.
    let nan = columns(&batch(&table, [1]), &[2]);
    let name = iceberg::spec::Literal::string("name 1");
    let mut delete = equality(&table, FileFormat::Parquet, &nan);
    delete.partition(iceberg::spec::Struct::from_iter([Some(name)]));
    let table = commit(&table, vec![delete.build().unwrap()]).await;
    let gone = |id: &i64| id % 4 == 1 && id % 5 == 1 && id % 3 != 0;
    assert!((0..30).any(|id| gone(&id)));
    check(&table, (0..30).filter(|id| !gone(id))).await;
}

#[tokio::test]
async fn random_deletes_answer_as_a_model() {
    let home = Home::new().await;
    for round in 0..6 {
        let mut table = table(&home, &format!("t{round}")).await;
        // Per data file: its rows, `None` for deleted ones.
        let mut files: BTreeMap<String, Vec<Option<i64>>> = BTreeMap::new();
        let mut next = 0;
        let pick = |below: usize| (random::u64() % below as u64) as usize;
        for _ in 0..12 {
            let format = FORMATS[pick(3)];
            let mut added = Vec::new();
            if pick(3) == 0 || files.is_empty() {
                let ids: Vec<i64> = (next..next + 1 + pick(40) as i64).collect();
                next += ids.len() as i64;
                let file = write(&table, format, &batch(&table, ids.clone())).build().unwrap();
                let rows = ids.into_iter().map(Some).collect();
                added.push((file, Some(rows)));
            }
            if pick(2) == 0 && !files.is_empty() {
                let mut named = Vec::new();
                for (path, rows) in &mut files {
                    for (number, row) in rows.iter_mut().enumerate() {
                        if pick(5) == 0 {
                            named.push((path.as_str(), number as i64));
                            *row = None;
                        }
                    }
                }
                added.push((positions(&table, format, &named).build().unwrap(), None));
            }
            if pick(2) == 0 && next > 0 {
                let fields = [&[0][..], &[1, 2], &[1]][pick(3)];
                let ids: Vec<i64> = (0..1 + pick(3)).map(|_| pick(next as usize) as i64).collect();
                let deletes = columns(&batch(&table, ids), fields);
                let keys = common::texts(&deletes);
                let key = |id: i64| common::texts(&columns(&batch(&table, [id]), fields)).remove(0);
                for row in files.values_mut().flatten() {
                    if row.is_some_and(|id| keys.contains(&key(id))) {
                        *row = None;
                    }
                }
                added.push((equality(&table, format, &deletes).build().unwrap(), None));
            }
            if added.is_empty() {
                continue;
            }
            let (written, rows): (Vec<_>, Vec<_>) = added.into_iter().unzip();
            let paths: Vec<_> = written.iter().map(|file| file.file_path().to_owned()).collect();
            table = commit(&table, written).await;
            files.extend(paths.into_iter().zip(rows).filter_map(|(p, rows)| Some((p, rows?))));
            let left: Vec<i64> = files.values().flatten().filter_map(|row| *row).collect();
            assert_eq!(rows_of(&table).await, texts(&table, left));
        }
        let left: Vec<i64> = files.values().flatten().filter_map(|row| *row).collect();
        let work = CompactionWork::default();
        let compacted = table.compact(&CompactionOptions::default(), &work).await.unwrap().table;
        assert_eq!(common::rows(&compacted).await, texts(&table, left));
        assert_sound(&compacted).await;
        let plan = compacted.plan_scan(&Predicate::always()).await.unwrap();
        assert!(plan.is_plain());
        assert_eq!(compacted.row_count(), None, "this engine's summaries are not to be trusted");
    }
}

async fn rows_of(table: &Table) -> Vec<String> {
    rows(table).await
}
