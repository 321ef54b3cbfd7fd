//! Backups that are taken, damaged, verified and restored.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use stoa_backup::{backups, restore, take, verify};
use stoa_error::ErrorKind;
use stoa_store::{Stores, literal_of, parse_location};
use stoa_table::{
    CompactionOptions, CompactionWork, ExpireOptions, TableIdent, TableSpec, Warehouse,
    WarehouseOptions,
};

fn quiet(_: stoa_backup::Progress) {}

struct Home {
    directory: tempfile::TempDir,
    warehouse: Warehouse,
}

impl Home {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = parse_location(directory.path().join("warehouse").to_str().unwrap()).unwrap();
        let warehouse = Warehouse::open(&url).await.unwrap();
        Self { directory, warehouse }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn literal(&self, name: &str) -> String {
        literal_of(&parse_location(self.path(name).to_str().unwrap()).unwrap()).unwrap()
    }

    fn options(&self, name: &str) -> WarehouseOptions {
        WarehouseOptions::new(parse_location(self.path(name).to_str().unwrap()).unwrap())
    }
}

fn ident() -> TableIdent {
    TableIdent::new("public", "visits")
}

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, false),
        Field::new("s", DataType::Utf8, true),
    ]))
}

async fn append(warehouse: &Warehouse, keys: std::ops::Range<i64>) {
    let table = warehouse.table(&ident()).await.unwrap();
    let texts: Vec<String> = keys.clone().map(|key| format!("value {key}")).collect();
    let columns: Vec<arrow_array::ArrayRef> =
        vec![Arc::new(Int64Array::from_iter_values(keys)), Arc::new(StringArray::from(texts))];
    let mut writer = table.writer(Default::default()).unwrap();
    writer.write(RecordBatch::try_new(schema(), columns).unwrap()).await.unwrap();
    writer.commit().await.unwrap();
}

async fn filled() -> Home {
    let home = Home::new().await;
    home.warehouse.create_table(&ident(), TableSpec::new(schema())).await.unwrap();
    append(&home.warehouse, 0..1000).await;
    append(&home.warehouse, 1000..1500).await;
    home
}

async fn rows(warehouse: &Warehouse) -> u64 {
    let table = warehouse.table(&ident()).await.unwrap();
    let report = table.check_data().await.unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert!(report.orphans.is_empty(), "{:?}", report.orphans);
    report.rows
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

#[tokio::test]
async fn a_backup_is_restored_elsewhere_as_it_was() {
    let home = filled().await;
    let to = home.literal("backup");
    let first = take(&home.warehouse, &to, &quiet).await.unwrap();
    assert_eq!(first.copied_files, first.backup.files.len());
    // Rows that come afterwards are not in it.
    append(&home.warehouse, 1500..2000).await;
    let restored = restore(&to, None, &home.options("elsewhere"), &quiet).await.unwrap();
    assert_eq!(restored.tables, 1);
    let elsewhere = Warehouse::open_with(&home.options("elsewhere")).await.unwrap();
    assert_eq!(rows(&elsewhere).await, 1500);
    // Nothing there names the old place, and the old place may go.
    let old = home.literal("warehouse");
    for file in files(&home.path("elsewhere"))
        .iter()
        .filter(|file| file.extension().is_some_and(|e| e == "json"))
    {
        assert!(!std::fs::read_to_string(file).unwrap().contains(&old), "{}", file.display());
    }
    std::fs::rename(home.path("warehouse"), home.path("gone")).unwrap();
    append(&elsewhere, 1500..1600).await;
    let again = Warehouse::open_with(&home.options("elsewhere")).await.unwrap();
    assert_eq!(rows(&again).await, 1600);
}

#[tokio::test]
async fn later_backups_copy_what_is_new() {
    let home = filled().await;
    let to = home.literal("backup");
    let first = take(&home.warehouse, &to, &quiet).await.unwrap();
    let same = take(&home.warehouse, &to, &quiet).await.unwrap();
    assert_eq!((same.copied_files, same.copied_bytes), (0, 0));
    assert_eq!(same.backup.files, first.backup.files);
    append(&home.warehouse, 1500..1700).await;
    let next = take(&home.warehouse, &to, &quiet).await.unwrap();
    // A data file, its manifest, the list and the metadata.
    assert_eq!(next.copied_files, 4);
    let ids = backups(&Stores::new(), &to).await.unwrap();
    assert_eq!(ids, [first.backup.id.clone(), same.backup.id, next.backup.id]);
    for (id, expected) in [(Some(first.backup.id.as_str()), 1500), (None, 1700)] {
        let place = format!("of {expected}");
        restore(&to, id, &home.options(&place), &quiet).await.unwrap();
        let restored = Warehouse::open_with(&home.options(&place)).await.unwrap();
        assert_eq!(rows(&restored).await, expected);
    }
}

#[tokio::test]
async fn a_backup_is_restored_to_where_it_was_byte_for_byte() {
    let home = filled().await;
    let to = home.literal("backup");
    take(&home.warehouse, &to, &quiet).await.unwrap();
    home.warehouse.catalog().close().await;
    std::fs::rename(home.path("warehouse"), home.path("old")).unwrap();
    restore(&to, None, &home.options("warehouse"), &quiet).await.unwrap();
    for file in files(&home.path("old/public")) {
        let path = file.strip_prefix(home.path("old")).unwrap();
        let restored = std::fs::read(home.path("warehouse").join(path)).unwrap();
        assert!(restored == std::fs::read(&file).unwrap(), "{}", path.display());
    }
    let warehouse = Warehouse::open_with(&home.options("warehouse")).await.unwrap();
    assert_eq!(rows(&warehouse).await, 1500);
}

#[tokio::test]
async fn each_damaged_byte_and_missing_file_is_found() {
    let home = filled().await;
    let to = home.literal("backup");
    take(&home.warehouse, &to, &quiet).await.unwrap();
    let verified = verify(&Stores::new(), &to, None, &quiet).await.unwrap();
    assert_eq!(verified.problems, Vec::<String>::new());
    for file in
        files(&home.path("backup/files")).into_iter().chain(files(&home.path("backup/catalogs")))
    {
        let whole = std::fs::read(&file).unwrap();
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        let name = file.file_name().unwrap().to_str().unwrap();
        std::fs::write(&file, &damaged).unwrap();
        let found = verify(&Stores::new(), &to, None, &quiet).await.unwrap().problems;
        assert!(matches!(found.as_slice(), [one] if one.contains(name)), "{name}: {found:?}");
        let failed = restore(&to, None, &home.options(name), &quiet).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Corrupt, "{name}: {failed}");
        assert!(!home.path(name).join("catalog.db").exists(), "{name}");
        std::fs::remove_file(&file).unwrap();
        let found = verify(&Stores::new(), &to, None, &quiet).await.unwrap().problems;
        assert!(matches!(found.as_slice(), [one] if one.contains("missing")), "{name}: {found:?}");
        std::fs::write(&file, &whole).unwrap();
    }
}

#[tokio::test]
async fn files_that_are_removed_meanwhile_end_a_backup() {
    let home = filled().await;
    let to = home.literal("backup");
    let data = files(&home.path("warehouse/public/visits/data"));
    std::fs::remove_file(&data[0]).unwrap();
    let failed = take(&home.warehouse, &to, &quiet).await.unwrap_err();
    assert_eq!((failed.kind(), failed.sqlstate()), (ErrorKind::Conflict, "40001"), "{failed}");
    assert_eq!(backups(&Stores::new(), &to).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn places_that_are_wrong_are_refused() {
    let home = filled().await;
    let kind = |error: stoa_error::Error| error.kind();
    let within = home.literal("warehouse/backup");
    assert_eq!(kind(take(&home.warehouse, &within, &quiet).await.unwrap_err()), ErrorKind::Invalid);
    let to = home.literal("backup");
    let none = restore(&to, None, &home.options("new"), &quiet).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound, "{none}");
    take(&home.warehouse, &to, &quiet).await.unwrap();
    let unknown = restore(&to, Some("2020"), &home.options("new"), &quiet).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound, "{unknown}");
    let used = restore(&to, None, &home.options("warehouse"), &quiet).await.unwrap_err();
    assert_eq!(used.kind(), ErrorKind::AlreadyExists, "{used}");
    let other = filled().await;
    let foreign = take(&other.warehouse, &to, &quiet).await.unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::Invalid, "{foreign}");
}

#[tokio::test]
async fn what_is_no_longer_needed_stays_in_earlier_backups() {
    let home = filled().await;
    let to = home.literal("backup");
    let first = take(&home.warehouse, &to, &quiet).await.unwrap();
    let table = home.warehouse.table(&ident()).await.unwrap();
    let options = CompactionOptions { full: true, ..CompactionOptions::default() };
    table.compact(&options, &CompactionWork::default()).await.unwrap();
    let table = table.reload().await.unwrap();
    let now = Duration::ZERO;
    let options = ExpireOptions { age_max: Some(now), age_min: now, ..ExpireOptions::default() };
    assert_eq!(table.expire_snapshots(&options).await.unwrap().data_files, 2);
    take(&home.warehouse, &to, &quiet).await.unwrap();
    let old = first.backup.id.as_str();
    assert_eq!(verify(&Stores::new(), &to, Some(old), &quiet).await.unwrap().problems, [""; 0]);
    restore(&to, Some(old), &home.options("old"), &quiet).await.unwrap();
    let restored = Warehouse::open_with(&home.options("old")).await.unwrap();
    assert_eq!(rows(&restored).await, 1500);
}
