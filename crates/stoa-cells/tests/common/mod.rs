//! What the tests of cells share: a home with a warehouse and a log, and stores over it.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stoa_cells::{CellFlushOrder, CellMergeHooks, CellOptions, CellTables};
use stoa_commitlog::{CommitLog, LogOptions, local_storage};
use stoa_error::Result;
use stoa_hql::{CellStore, CompactScope, NamespacePath, TableName, TimestampSource};
use stoa_ingest::{FlushLimits, Ingest, IngestOptions};
use stoa_table::{
    CompactionGroup, CompactionOptions, CompactionWork, MergeHook, MergeHooks, Table, Warehouse,
};

/// A directory with a warehouse and a log in it, and the store that is open there.
pub struct Home {
    pub directory: tempfile::TempDir,
    pub timestamps: Arc<TimestampSource>,
}

impl Home {
    /// A home whose clock is set by hand.
    pub fn new(start_ns: i64) -> Self {
        let timestamps = Arc::new(TimestampSource::manual(start_ns));
        Self { directory: tempfile::tempdir().unwrap(), timestamps }
    }

    /// Opens the store, as a new process would.
    pub async fn open(&self) -> Store {
        let options =
            CellOptions { timestamps: Arc::clone(&self.timestamps), ..CellOptions::default() };
        open(self.directory.path(), by_hand(), options).await
    }
}

/// An open store with its parts.
#[derive(Clone)]
pub struct Store {
    pub warehouse: Warehouse,
    pub ingest: Ingest,
    pub cells: CellTables,
    pub timestamps: Arc<TimestampSource>,
}

/// Hooks that take every merge for one of some files.
#[derive(Debug)]
struct OfSome(CellMergeHooks);

impl MergeHooks for OfSome {
    fn hook(&self, table: &Table, group: &CompactionGroup) -> Result<Option<Box<dyn MergeHook>>> {
        self.0.hook(table, &CompactionGroup { whole_partition: false, ..group.clone() })
    }
}

pub async fn open(directory: &Path, ingest: IngestOptions, cells: CellOptions) -> Store {
    open_with_log(directory, "log", ingest, cells).await
}

/// As [`open`], with a log of that name: several may write the same tables.
pub async fn open_with_log(
    directory: &Path,
    log: &str,
    ingest: IngestOptions,
    cells: CellOptions,
) -> Store {
    let warehouse = open_warehouse(directory).await;
    let storage = local_storage(&directory.join(log)).unwrap();
    let log = loop {
        match CommitLog::open(storage.clone(), LogOptions::disk()).await {
            // The thread of a log that was closed, or dropped, lets go of it a little later.
            Err(error) if error.sqlstate() == "55006" => tokio::task::yield_now().await,
            log => break log.unwrap(),
        }
    };
    let (ingest, _) = Ingest::with_log(warehouse.clone(), log, ingest).await.unwrap();
    let timestamps = Arc::clone(&cells.timestamps);
    let cells = CellTables::open(warehouse.clone(), Some(ingest.clone()), cells).await.unwrap();
    Store { warehouse, ingest, cells, timestamps }
}

pub async fn open_warehouse(directory: &Path) -> Warehouse {
    let url = stoa_store::parse_location(directory.join("warehouse").to_str().unwrap()).unwrap();
    Warehouse::open(&url).await.unwrap()
}

/// Flushes happen only when a test asks for them.
pub fn by_hand() -> IngestOptions {
    let never = FlushLimits { bytes: 64 << 20, rows: u64::MAX, age: Duration::from_secs(1 << 30) };
    let order = Some(Arc::new(CellFlushOrder) as _);
    IngestOptions { flush: never, order, ..IngestOptions::default() }
}

pub fn name(text: &str) -> TableName {
    TableName::resolve(&NamespacePath::root(), text).unwrap()
}

impl Store {
    /// Brings all fresh cells into files.
    pub async fn flush(&self) {
        for table in self.tables().await {
            self.ingest.flush_now(&table).await.unwrap();
        }
    }

    /// Makes all files of each table one.
    pub async fn compact(&self) {
        self.cells.compact(CompactScope::Everything, None).await.unwrap();
    }

    /// Flushes and merges files as if there were others.
    pub async fn merge(&self) {
        self.flush().await;
        self.merge_with(OfSome(CellMergeHooks::new(Arc::clone(&self.timestamps)))).await;
    }

    /// Merges files as the background does.
    pub async fn merge_with(&self, hooks: impl MergeHooks + 'static) {
        let hooks = Some(Arc::new(hooks) as Arc<dyn MergeHooks>);
        let work = CompactionWork { hooks, ..CompactionWork::default() };
        let options = CompactionOptions { inputs_min: Some(2), ..CompactionOptions::default() };
        for table in self.tables().await {
            table.compact(&options, &work).await.unwrap();
        }
    }

    pub async fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        for namespace in self.warehouse.namespaces().await.unwrap() {
            for ident in self.warehouse.tables(&namespace).await.unwrap() {
                tables.push(self.warehouse.table(&ident).await.unwrap());
            }
        }
        tables
    }
}
