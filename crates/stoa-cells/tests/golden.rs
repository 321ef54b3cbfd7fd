//! The scripts of `stoa-hql` over tables: with all cells in the log, flushed, compacted, and read by a
//! new process after each statement that changes something.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use common::{Home, Store};
use stoa_error::Result;
use stoa_hql::lang::ast::CompactKind;
use stoa_hql::scan::ScanSpec;
use stoa_hql::{
    BulkLoad, CellBatch, CellStore, CellStream, CompactScope, ListingEntry, NamespacePath,
    TableName, TableSchema, TimestampSource,
};
use tokio::sync::RwLock;

#[path = "../../stoa-hql/tests/support/golden.rs"]
mod golden;

/// What happens after each statement that changes something.
#[derive(Clone, Copy, Debug)]
enum After {
    Nothing,
    Flush,
    /// All files become one, and only what other cells hide or have written over goes.
    Merge,
    /// All files become one, and what no reader sees goes.
    Compact,
    Reopen,
    FlushAndReopen,
}

/// A store that does more than it is asked for.
struct Busy {
    home: Home,
    after: After,
    store: RwLock<Option<Store>>,
}

impl Busy {
    async fn new(after: After) -> Self {
        let home = Home::new(golden::START_NS);
        let store = home.open().await;
        Self { home, after, store: RwLock::new(Some(store)) }
    }

    async fn cells(&self) -> stoa_cells::CellTables {
        self.store.read().await.as_ref().unwrap().cells.clone()
    }

    async fn afterwards(&self) {
        let mut held = self.store.write().await;
        let store = held.as_ref().unwrap();
        match self.after {
            After::Nothing => return,
            After::Flush => return store.flush().await,
            After::Merge => return store.merge().await,
            After::Compact => {
                return store.cells.compact(CompactScope::Everything, None).await.unwrap();
            }
            After::Reopen => store.ingest.close(false).await.unwrap(),
            After::FlushAndReopen => store.ingest.close(true).await.unwrap(),
        }
        *held = None;
        *held = Some(self.home.open().await);
    }
}

/// A load of a store that is looked after when it has ended.
struct BusyLoad(Arc<Busy>, Box<dyn BulkLoad>);

#[async_trait]
impl BulkLoad for BusyLoad {
    async fn write(&mut self, cells: CellBatch) -> Result<()> {
        self.1.write(cells).await
    }

    async fn abandon(&mut self) -> u64 {
        self.1.abandon().await
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        let finished = self.1.finish().await;
        self.0.afterwards().await;
        finished
    }
}

struct Shared(Arc<Busy>);

macro_rules! and_then {
    ($self:ident, $call:ident($($argument:expr),*)) => {{
        let done = $self.0.cells().await.$call($($argument),*).await;
        $self.0.afterwards().await;
        done
    }};
}

#[async_trait]
impl CellStore for Shared {
    fn timestamps(&self) -> &TimestampSource {
        &self.0.home.timestamps
    }

    async fn namespace_exists(&self, namespace: &NamespacePath) -> Result<bool> {
        self.0.cells().await.namespace_exists(namespace).await
    }

    async fn create_namespace(&self, namespace: &NamespacePath) -> Result<()> {
        and_then!(self, create_namespace(namespace))
    }

    async fn drop_namespace(&self, namespace: &NamespacePath) -> Result<()> {
        and_then!(self, drop_namespace(namespace))
    }

    async fn listing(&self, namespace: &NamespacePath) -> Result<Vec<ListingEntry>> {
        self.0.cells().await.listing(namespace).await
    }

    async fn schema(&self, table: &TableName) -> Result<Option<Arc<TableSchema>>> {
        self.0.cells().await.schema(table).await
    }

    async fn create_table(&self, table: &TableName, schema: TableSchema) -> Result<()> {
        and_then!(self, create_table(table, schema))
    }

    async fn alter_table(&self, table: &TableName, schema: TableSchema) -> Result<()> {
        and_then!(self, alter_table(table, schema))
    }

    async fn rename_table(&self, from: &TableName, to: &TableName) -> Result<()> {
        and_then!(self, rename_table(from, to))
    }

    async fn drop_table(&self, table: &TableName) -> Result<()> {
        and_then!(self, drop_table(table))
    }

    async fn mutate(&self, table: &TableName, cells: CellBatch) -> Result<()> {
        and_then!(self, mutate(table, cells))
    }

    async fn bulk_load(&self, table: &TableName, logged: bool) -> Result<Box<dyn BulkLoad>> {
        let load = self.0.cells().await.bulk_load(table, logged).await?;
        Ok(Box::new(BusyLoad(Arc::clone(&self.0), load)))
    }

    async fn scan(&self, table: &TableName, spec: ScanSpec) -> Result<CellStream> {
        self.0.cells().await.scan(table, spec).await
    }

    async fn compact(&self, scope: CompactScope, kind: Option<CompactKind>) -> Result<()> {
        and_then!(self, compact(scope, kind))
    }

    async fn wait_for_maintenance(&self) -> Result<()> {
        self.0.cells().await.wait_for_maintenance().await
    }

    async fn set_readonly(&self, readonly: bool) -> Result<()> {
        and_then!(self, set_readonly(readonly))
    }
}

async fn check(after: After, but: &[&str]) {
    let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("golden-{after:?}"));
    let empty_store =
        || async move { Arc::new(Shared(Arc::new(Busy::new(after).await))) as Arc<dyn CellStore> };
    golden::check(&written, but, empty_store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_over_fresh_cells() {
    check(After::Nothing, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_with_a_flush_after_each_statement() {
    check(After::Flush, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_with_a_merge_after_each_statement() {
    check(After::Merge, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_with_a_compaction_after_each_statement() {
    // These ask for markers, and for versions that come up again when the limit is raised or another
    // version is deleted: what a compaction is there to remove.
    check(After::Compact, &["insert_delete", "load", "versions"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_with_a_replay_after_each_statement() {
    check(After::Reopen, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_with_a_flush_and_a_replay_after_each_statement() {
    check(After::FlushAndReopen, &[]).await;
}
