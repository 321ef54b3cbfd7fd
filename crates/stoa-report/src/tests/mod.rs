//! What the tests of reports share: a table, its files in a store of choice, a report on it.
#![allow(clippy::unwrap_used)]

mod bounds;
mod cold;
mod disk;
mod elsewhere;
mod fresh;
mod hot;
mod parts;
mod whole;
mod whole_groups;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use stoa_ingest::FreshRows;
use stoa_orc::Predicate;
use stoa_rangeio::throttle::{Throttle, ThrottledStore};
use stoa_rangeio::{RangeReader, ReaderOptions};
use stoa_table::{
    PartitionTerm, ScanFile, SortTerm, Table, TableIdent, TableSpec, Transform, Warehouse,
    WriteOptions,
};

use crate::outcome::Answer;
use crate::report::{Aggregate, Condition, Function, Item, Order, Report, Test};
use crate::reports::{ReportOptions, Reports};
use crate::view::TableView;
use crate::warm::columns_of;

/// A warehouse with one table, of one file per part.
pub(crate) struct Home {
    pub(crate) table: Table,
    pub(crate) files: Vec<Arc<ScanFile>>,
    pub(crate) warehouse: Warehouse,
    pub(crate) directory: tempfile::TempDir,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("part", DataType::Int32, false),
        Field::new("account", DataType::Int64, false),
        Field::new("region", DataType::Utf8, true),
        Field::new("clicks", DataType::Int64, true),
    ]))
}

fn spec() -> TableSpec {
    TableSpec {
        partition_by: vec![PartitionTerm::new("part", Transform::Identity)],
        sort_by: vec![SortTerm::ascending("account")],
        properties: BTreeMap::from([("stoa.orc.row-index-stride".to_owned(), "1000".to_owned())]),
        ..TableSpec::new(schema())
    }
}

/// Rows of a part: accounts ascend, ten rows each.
pub(crate) fn rows(part: i32, rows: i64, salt: i64) -> RecordBatch {
    rows_of(10, part, rows, salt)
}

/// Rows of a part: accounts ascend, `each` rows each.
fn rows_of(each: i64, part: i32, rows: i64, salt: i64) -> RecordBatch {
    let regions = ["eu", "us", "apac"];
    let region = |n: i64| (n % 11 != 0).then(|| regions[(n % 3) as usize]);
    let mixed = |n: i64| (n + salt).wrapping_mul(0x9e37_79b9).rem_euclid(100_003);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values((0..rows).map(|_| part))),
        Arc::new(Int64Array::from_iter_values((0..rows).map(|n| n / each))),
        Arc::new(StringArray::from_iter((0..rows).map(region))),
        Arc::new(Int64Array::from_iter_values((0..rows).map(mixed))),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

impl Home {
    /// `parts` files of `part_rows` rows, in row groups of 1000, in which 100 accounts are whole.
    pub(crate) async fn new(parts: i32, part_rows: i64) -> Self {
        Self::spread(&vec![10; parts as usize], part_rows).await
    }

    /// A file of `part_rows` rows, in row groups of 1000, for each part; `each` says how many rows an account has in
    /// it.
    pub(crate) async fn spread(each: &[i64], part_rows: i64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("warehouse");
        let url = stoa_store::parse_location(place.to_str().unwrap()).unwrap();
        let warehouse = Warehouse::open(&url).await.unwrap();
        let ident = TableIdent::new("public", "clicks");
        let table = warehouse.create_table(&ident, spec()).await.unwrap();
        let mut writer = table.writer(WriteOptions::default()).unwrap();
        for (part, each) in (0..).zip(each) {
            writer.write(rows_of(*each, part, part_rows, i64::from(part))).await.unwrap();
        }
        let table = writer.commit().await.unwrap().table;
        let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
        assert_eq!(files.len(), each.len());
        Self { table, files, warehouse, directory }
    }

    /// The files in another store, a slow one of another machine.
    pub(crate) async fn copied(&self, throttle: Throttle) -> (Arc<InMemory>, Vec<Arc<ScanFile>>) {
        let memory = Arc::new(InMemory::new());
        let slow: Arc<dyn ObjectStore> = Arc::new(ThrottledStore::new(memory.clone(), throttle));
        let reader = RangeReader::new(slow.clone(), ReaderOptions::object_store());
        let mut files = Vec::new();
        for file in &self.files {
            let bytes = file.store.get(&file.path).await.unwrap().bytes().await.unwrap();
            memory.put(&file.path, bytes.into()).await.unwrap();
            let location = file.location.replace("file://", "s3://bucket");
            let (store, reader) = (slow.clone(), reader.clone());
            files.push(Arc::new(ScanFile { location, store, reader, ..file.as_ref().clone() }));
        }
        (memory, files)
    }

    /// Bytes of a file with the first part's rows, but other clicks.
    pub(crate) async fn rewritten(&self, salt: i64) -> bytes::Bytes {
        let ident = TableIdent::new("public", format!("other{salt}"));
        let table = self.warehouse.create_table(&ident, spec()).await.unwrap();
        let mut writer = table.writer(WriteOptions::default()).unwrap();
        writer.write(rows(0, self.files[0].rows as i64, salt)).await.unwrap();
        let table = writer.commit().await.unwrap().table;
        let file = table.plan_scan(&Predicate::always()).await.unwrap().files.remove(0);
        file.store.get(&file.path).await.unwrap().bytes().await.unwrap()
    }

    /// Makes reports look for the table's rows in `files`.
    pub(crate) fn show(&self, reports: &Reports, files: &[Arc<ScanFile>]) {
        let files = files.iter().map(|file| reports.numbers.number(file.clone())).collect();
        let view = (
            self.table.metadata_location().to_owned(),
            Arc::new(TableView::of_files(&self.table, files)),
        );
        reports.views.lock().insert(self.table.uuid(), view);
    }

    pub(crate) async fn ask(&self, reports: &Reports, report: &Report) -> Answer {
        let fresh = FreshRows::none(&self.table);
        sendable(reports.run(&self.table, &fresh, report)).await.unwrap().unwrap()
    }
}

/// A millisecond-exact wait before each answer.
pub(crate) fn latency(millis: u64) -> Throttle {
    Throttle { latency: Duration::from_millis(millis), ..Throttle::default() }
}

/// Clicks and rows per region of some accounts.
pub(crate) fn report(table: &Table, low: i128, high: i128) -> Report {
    let all = columns_of(table);
    let columns = ["account", "region", "clicks"].map(|name| {
        let position = table.schema().index_of(name).unwrap();
        all.iter().find(|column| column.position == position).unwrap().clone()
    });
    let aggregate = |function, column| Aggregate { function, column };
    Report {
        columns: columns.to_vec(),
        conditions: vec![Condition { column: 0, test: Test::Between(low, high) }],
        grouped: true,
        group_by: vec![1],
        aggregates: vec![aggregate(Function::Sum, Some(2)), aggregate(Function::Count, None)],
        items: vec![Item::Column(1), Item::Aggregate(0), Item::Aggregate(1)],
        schema: Arc::new(Schema::new(vec![
            Field::new("region", DataType::Utf8, true),
            Field::new("clicks", DataType::Int64, true),
            Field::new("n", DataType::Int64, true),
        ])),
        order: vec![Order { by: Item::Column(1), descending: false, nulls_first: true }],
        offset: 0,
        limit: None,
    }
}

/// What the engine's tasks await must be able to change threads.
pub(crate) fn sendable<F: Future + Send>(future: F) -> F {
    future
}

pub(crate) fn reports() -> Reports {
    Reports::new(ReportOptions::default())
}
