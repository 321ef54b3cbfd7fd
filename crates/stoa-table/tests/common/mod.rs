//! What the tests of tables share.
#![allow(dead_code, clippy::unwrap_used)]

pub mod foreign;

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use iceberg::spec::{FormatVersion, Manifest, ManifestList};
use object_store::ObjectStoreExt;
use stoa_orc::{Decoder, Predicate, Projection, ReadOptions, Step, TailDecoder, TailStep};
use stoa_table::{
    CheckReport, PartitionTerm, ScanFile, SortTerm, Table, TableIdent, TableSpec, Transform,
    Warehouse, WriteOptions,
};

/// An empty warehouse in a directory of its own.
pub struct Home {
    pub directory: tempfile::TempDir,
    pub warehouse: Warehouse,
}

impl Home {
    pub async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let warehouse = open(directory.path()).await;
        Self { directory, warehouse }
    }

    /// The warehouse as another process would open it.
    pub async fn reopen(&self) -> Warehouse {
        open(self.directory.path()).await
    }
}

pub async fn open(directory: &std::path::Path) -> Warehouse {
    let url = stoa_store::parse_location(directory.to_str().unwrap()).unwrap();
    Warehouse::open(&url).await.unwrap()
}

pub fn ident(name: &str) -> TableIdent {
    TableIdent::new("public", name)
}

/// day, account, clicks, cost
pub fn report_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("day", DataType::Date32, false),
        Field::new("account", DataType::Utf8, true),
        Field::new("clicks", DataType::Int64, true),
        Field::new("cost", DataType::Float64, true),
    ]))
}

/// Partitioned by month of day, sorted by account and day.
pub fn report_spec() -> TableSpec {
    TableSpec {
        partition_by: vec![PartitionTerm::new("day", Transform::Month)],
        sort_by: vec![SortTerm::ascending("account"), SortTerm::ascending("day")],
        ..TableSpec::new(report_schema())
    }
}

/// `rows` rows, one per day from `first_day` on.
pub fn report_rows(first_day: i32, rows: usize) -> RecordBatch {
    let days: ArrayRef = Arc::new(Date32Array::from_iter_values(
        (0..rows).map(|row| first_day + i32::try_from(row).unwrap()),
    ));
    let accounts: ArrayRef = Arc::new(StringArray::from_iter(
        (0..rows).map(|row| (row % 7 != 3).then(|| format!("account {}", row % 5))),
    ));
    let clicks: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row as i64)));
    let cost: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64 / 4.0)));
    RecordBatch::try_new(report_schema(), vec![days, accounts, clicks, cost]).unwrap()
}

/// The rows of `batch` in the order of [`report_spec`].
pub fn sorted(batch: &RecordBatch) -> RecordBatch {
    let column = |index: usize| SortColumn { values: batch.column(index).clone(), options: None };
    let indices = lexsort_to_indices(&[column(1), column(0)], None).unwrap();
    take_record_batch(batch, &indices).unwrap()
}

/// Fails unless every file is in the order of [`report_spec`]; gives back their number.
pub async fn assert_sorted(table: &Table) -> usize {
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    for file in &files {
        let batches = read(table, file).await;
        let whole = concat_batches(&table.schema(), &batches).unwrap();
        assert_eq!(texts(&whole), texts(&sorted(&whole)), "{}", file.location);
        assert_ne!(file.sort_order_id, Some(0), "{}", file.location);
    }
    files.len()
}

/// All rows of the current snapshot, each as text, sorted.
pub async fn rows(table: &Table) -> Vec<String> {
    let plan = table.plan_scan(&Predicate::always()).await.unwrap();
    let mut rows = Vec::new();
    for file in &plan.files {
        for batch in read(table, file).await {
            rows.extend(texts(&batch));
        }
    }
    rows.sort_unstable();
    rows
}

/// The rows of a data file, in its order.
pub async fn read(table: &Table, file: &ScanFile) -> Vec<RecordBatch> {
    let whole = file.store.get(&file.path).await.unwrap().bytes().await.unwrap();
    let mut tail = TailDecoder::new(whole.len() as u64);
    let TailStep::Done(metadata) = tail.decode(whole.clone()).unwrap() else { panic!("no tail") };
    let options = ReadOptions::default().with_projection(Projection::Fields(table.schema()));
    let mut decoder = Decoder::new(Arc::new(metadata), options).unwrap();
    let mut batches = Vec::new();
    loop {
        match decoder.next().unwrap() {
            Step::NeedsData(_) => decoder.push(0, whole.clone()),
            Step::Batch(batch) => batches.push(batch),
            Step::Finished => return batches,
        }
    }
}

/// The rows of a batch as text.
pub fn texts(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    let row = |row| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

/// Rows of several batches as [`rows`] gives them.
pub fn sorted_texts<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Vec<String> {
    let mut rows: Vec<String> = batches.into_iter().flat_map(texts).collect();
    rows.sort_unstable();
    rows
}

/// An entry of a manifest: status (0 existing, 1 added, 2 deleted), snapshot, data and file sequence
/// number, rows.
pub type Entry = (i32, Option<i64>, Option<i64>, Option<i64>, u64);

/// The entries of all manifests of the current snapshot as they are written, sorted.
pub async fn entries(table: &Table) -> Vec<Entry> {
    let read = |location: &str| std::fs::read(location.strip_prefix("file://").unwrap()).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&read(table.metadata_location())).unwrap();
    let current = &json["current-snapshot-id"];
    let snapshots = json["snapshots"].as_array().unwrap();
    let snapshot = snapshots.iter().find(|snapshot| &snapshot["snapshot-id"] == current).unwrap();
    let list = read(snapshot["manifest-list"].as_str().unwrap());
    let list = ManifestList::parse_with_version(&list, FormatVersion::V2).unwrap();
    let mut entries = Vec::new();
    for file in list.entries() {
        let manifest = Manifest::parse_avro(&read(&file.manifest_path)).unwrap();
        entries.extend(manifest.entries().iter().map(|entry| {
            let status = entry.status() as i32;
            let (data, file) = (entry.sequence_number(), entry.file_sequence_number);
            (status, entry.snapshot_id(), data, file, entry.record_count())
        }));
    }
    entries.sort_unstable();
    entries
}

/// Fails unless the table is sound.
pub async fn assert_sound(table: &Table) -> CheckReport {
    let report = table.check().await.unwrap();
    assert_eq!(report.problems, []);
    report
}

/// Appends a batch in one commit.
pub async fn append(table: &Table, batch: RecordBatch) -> Table {
    let mut writer = table.writer(WriteOptions::default()).unwrap();
    writer.write(batch).await.unwrap();
    writer.commit().await.unwrap().table
}
