//! What the tests of ingest share: a home with a warehouse and a log, and readers that look at
//! data files and fresh rows.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_commitlog::{CommitLog, LogOptions, local_storage};
use stoa_ingest::{FlushLimits, FreshRows, Ingest, IngestOptions, RecoveryReport};
use stoa_orc::{Decoder, Predicate, Projection, ReadOptions, Step, TailDecoder, TailStep};
use stoa_table::{PartitionTerm, SortTerm, Table, TableIdent, TableSpec, Transform, Warehouse};

/// A directory with a warehouse and a log in it.
pub struct Home {
    pub directory: tempfile::TempDir,
    pub warehouse: Warehouse,
}

impl Home {
    pub async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let warehouse = open_warehouse(directory.path()).await;
        Self { directory, warehouse }
    }

    /// Opens the log in the home's directory, as a new process would.
    pub async fn open(&self, options: IngestOptions) -> (Ingest, RecoveryReport) {
        open_ingest(self.directory.path(), &self.warehouse, options).await
    }

    pub async fn table(&self, name: &str) -> Table {
        self.warehouse.create_table(&ident(name), spec()).await.unwrap()
    }
}

pub async fn open_warehouse(directory: &Path) -> Warehouse {
    let url = stoa_store::parse_location(directory.join("warehouse").to_str().unwrap()).unwrap();
    Warehouse::open(&url).await.unwrap()
}

pub async fn open_ingest(
    directory: &Path,
    warehouse: &Warehouse,
    options: IngestOptions,
) -> (Ingest, RecoveryReport) {
    let storage = local_storage(&directory.join("log")).unwrap();
    let log = loop {
        match CommitLog::open(storage.clone(), log_options()).await {
            // The thread of a log that was closed, or dropped, lets go of it a little later.
            Err(error) if error.sqlstate() == "55006" => tokio::task::yield_now().await,
            log => break log.unwrap(),
        }
    };
    Ingest::with_log(warehouse.clone(), log, options).await.unwrap()
}

/// Segments so small that the log lets go of some after every flush.
pub fn log_options() -> LogOptions {
    LogOptions { segment_bytes: 2048, ..LogOptions::disk() }
}

/// Flushes happen only when a test asks for them.
pub fn by_hand() -> IngestOptions {
    let never = FlushLimits { bytes: 64 << 20, rows: u64::MAX, age: Duration::from_secs(1 << 30) };
    IngestOptions { flush: never, ..IngestOptions::default() }
}

pub fn ident(name: &str) -> TableIdent {
    TableIdent::new("public", name)
}

pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("n", DataType::Int32, true),
    ]))
}

/// Two buckets by id, sorted by n.
pub fn spec() -> TableSpec {
    TableSpec {
        partition_by: vec![PartitionTerm::new("id", Transform::Bucket(2))],
        sort_by: vec![SortTerm::ascending("n")],
        ..TableSpec::new(schema())
    }
}

/// One row per id; `n` is the id reversed, so that the order of ids is not that of the table.
pub fn rows(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let n: ArrayRef = Arc::new(Int32Array::from_iter_values(ids.iter().map(|id| -(*id as i32))));
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(ids)), n]).unwrap()
}

/// The ids that a query sees now, sorted: those in data files and those that are fresh.
pub async fn ids(ingest: &Ingest, name: &str) -> Vec<i64> {
    let snapshot = ingest.snapshot(&ident(name)).await.unwrap();
    let mut ids = fresh_ids(&snapshot.fresh);
    ids.extend(stored_ids(&snapshot.table).await);
    ids.sort_unstable();
    ids
}

pub fn fresh_ids(fresh: &FreshRows) -> Vec<i64> {
    fresh.batches().flat_map(|batch| column(&batch.unwrap())).collect()
}

/// The ids in the table's data files.
pub async fn stored_ids(table: &Table) -> Vec<i64> {
    stored(table).await.iter().flat_map(column).collect()
}

/// The rows in the table's data files, in the order of each.
pub async fn stored(table: &Table) -> Vec<RecordBatch> {
    let plan = table.plan_scan(&Predicate::always()).await.unwrap();
    let mut batches = Vec::new();
    for file in plan.files {
        let path = url::Url::parse(&file.location).map(|url| url.to_file_path().unwrap());
        let path = path.unwrap_or_else(|_| file.location.clone().into());
        batches.extend(decode(std::fs::read(path).unwrap().into(), table.schema()));
    }
    batches
}

fn decode(file: bytes::Bytes, schema: SchemaRef) -> Vec<RecordBatch> {
    let mut tail = TailDecoder::new(file.len() as u64);
    let metadata = match tail.decode(file.clone()).unwrap() {
        TailStep::Done(metadata) => Arc::new(metadata),
        TailStep::NeedsTail(more) => panic!("{more} bytes of tail are not in the file"),
    };
    let options = ReadOptions::default().with_projection(Projection::Fields(schema));
    let mut decoder = Decoder::new(metadata, options).unwrap();
    let mut batches = Vec::new();
    loop {
        match decoder.next().unwrap() {
            Step::NeedsData(ranges) => ranges.into_iter().for_each(|range| {
                decoder.push(range.start, file.slice(range.start as usize..range.end as usize));
            }),
            Step::Batch(batch) => batches.push(batch),
            Step::Finished => return batches,
        }
    }
}

fn column(batch: &RecordBatch) -> Vec<i64> {
    batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

pub fn sorted(ids: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut ids: Vec<i64> = ids.into_iter().collect();
    ids.sort_unstable();
    ids
}
