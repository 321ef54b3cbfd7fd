//! Cells in memory: the smallest store, for tests and for trying HQL out.
//!
//! A table is a list of sorted runs, from the oldest to the newest. A write becomes a run; two
//! neighbours of like size become one, so that their number grows with the logarithm of the cells.
//!
//! Not here: durability. What is written lasts as long as the value.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use parking_lot::RwLock;
use stoa_error::Result;

use crate::batch::{CellBatch, sort_cells};
use crate::lang::ast::CompactKind;
use crate::name::{NamespacePath, TableName};
use crate::read::{CellReader, CellStream, Compaction, ReadStep, read_stream};
use crate::scan::ScanSpec;
use crate::schema::TableSchema;
use crate::store::{BulkLoad, CellStore, CompactScope, ListingEntry, errors};
use crate::timestamp::TimestampSource;

/// A store that keeps everything in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryCells(Arc<Shared>);

struct Shared {
    timestamps: TimestampSource,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    namespaces: BTreeSet<NamespacePath>,
    tables: BTreeMap<TableName, Table>,
    readonly: bool,
}

struct Table {
    schema: Arc<TableSchema>,
    runs: Vec<Run>,
}

/// Sorted cells, in batches that follow each other.
#[derive(Clone)]
struct Run {
    batches: Arc<Vec<CellBatch>>,
    cells: usize,
}

impl MemoryCells {
    /// An empty store with this source of timestamps.
    pub fn new(timestamps: TimestampSource) -> Self {
        Self(Arc::new(Shared { timestamps, state: RwLock::new(State::default()) }))
    }

    fn add_runs(&self, name: &TableName, runs: Vec<Run>) -> Result<()> {
        let now_ns = self.0.timestamps.now_ns();
        let mut state = self.0.state.write();
        state.check_writable()?;
        let table = state.table_mut(name)?;
        for run in runs {
            table.runs.push(run);
            table.merge_like_sizes(now_ns)?;
        }
        Ok(())
    }
}

impl Default for MemoryCells {
    fn default() -> Self {
        Self::new(TimestampSource::system())
    }
}

impl State {
    fn check_writable(&self) -> Result<()> {
        if self.readonly { Err(errors::readonly()) } else { Ok(()) }
    }

    fn has_namespace(&self, namespace: &NamespacePath) -> bool {
        namespace.is_root() || self.namespaces.contains(namespace)
    }

    fn check_namespace(&self, namespace: &NamespacePath) -> Result<()> {
        match self.has_namespace(namespace) {
            true => Ok(()),
            false => Err(errors::missing_namespace(namespace)),
        }
    }

    fn check_free(&self, table: &TableName) -> Result<()> {
        let as_namespace = table.namespace.resolve(&table.name)?;
        if self.tables.contains_key(table) || self.has_namespace(&as_namespace) {
            return Err(errors::table_exists(table));
        }
        Ok(())
    }

    fn table(&self, name: &TableName) -> Result<&Table> {
        self.tables.get(name).ok_or_else(|| errors::missing_table(name))
    }

    fn table_mut(&mut self, name: &TableName) -> Result<&mut Table> {
        self.tables.get_mut(name).ok_or_else(|| errors::missing_table(name))
    }
}

impl Run {
    fn of(batches: Vec<CellBatch>) -> Self {
        let cells = batches.iter().map(CellBatch::len).sum();
        Self { batches: Arc::new(batches), cells }
    }

    fn sorted(cells: &CellBatch) -> Result<Self> {
        Ok(Self::of(vec![sort_cells(cells)?]))
    }

    fn stream(&self) -> CellStream {
        let batches = Arc::clone(&self.batches);
        let next = move |at: usize| Some((Ok(batches.get(at)?.clone()), at + 1));
        stream::unfold(0, move |at| futures::future::ready(next(at))).boxed()
    }
}

impl Table {
    fn merge_like_sizes(&mut self, now_ns: i64) -> Result<()> {
        while let [.., older, newer] = self.runs.as_slice() {
            if older.cells > 2 * newer.cells {
                return Ok(());
            }
            let merged = self.merge(self.runs.len() - 2, Compaction::Partial, now_ns)?;
            self.runs.truncate(self.runs.len() - 2);
            self.runs.push(merged);
        }
        Ok(())
    }

    /// The runs from `first` on as one.
    fn merge(&self, first: usize, kind: Compaction, now_ns: i64) -> Result<Run> {
        let runs = &self.runs[first..];
        let mut reader = CellReader::compaction(&self.schema, kind, now_ns, runs.len());
        let mut read = vec![0; runs.len()];
        let mut merged = Vec::new();
        loop {
            match reader.step()? {
                ReadStep::NeedsInput(input) => {
                    reader.push(input, runs[input].batches.get(read[input]).cloned());
                    read[input] += 1;
                }
                ReadStep::Batch(batch) => merged.push(batch),
                ReadStep::Finished => return Ok(Run::of(merged)),
            }
        }
    }
}

#[async_trait]
impl CellStore for MemoryCells {
    fn timestamps(&self) -> &TimestampSource {
        &self.0.timestamps
    }

    async fn namespace_exists(&self, namespace: &NamespacePath) -> Result<bool> {
        Ok(self.0.state.read().has_namespace(namespace))
    }

    async fn create_namespace(&self, namespace: &NamespacePath) -> Result<()> {
        let mut state = self.0.state.write();
        let taken = match (namespace.parent(), namespace.name()) {
            (Some(parent), Some(name)) => {
                state.check_namespace(&parent)?;
                let table = TableName { namespace: parent, name: name.to_owned() };
                state.tables.contains_key(&table)
            }
            _ => true,
        };
        if taken || !state.namespaces.insert(namespace.clone()) {
            return Err(errors::namespace_exists(namespace));
        }
        Ok(())
    }

    async fn drop_namespace(&self, namespace: &NamespacePath) -> Result<()> {
        let mut state = self.0.state.write();
        state.check_namespace(namespace)?;
        let has_tables = state.tables.keys().any(|table| table.namespace == *namespace);
        let has_namespaces =
            state.namespaces.iter().any(|other| other.parent().as_ref() == Some(namespace));
        if has_tables || has_namespaces || namespace.is_root() {
            return Err(errors::namespace_not_empty(namespace));
        }
        state.namespaces.remove(namespace);
        Ok(())
    }

    async fn listing(&self, namespace: &NamespacePath) -> Result<Vec<ListingEntry>> {
        let state = self.0.state.read();
        state.check_namespace(namespace)?;
        let tables = state.tables.keys().filter(|table| table.namespace == *namespace);
        let tables =
            tables.map(|table| ListingEntry { name: table.name.clone(), is_namespace: false });
        let inner = state.namespaces.iter().filter(|n| n.parent().as_ref() == Some(namespace));
        let inner = inner.filter_map(|inner| inner.name());
        let inner = inner.map(|name| ListingEntry { name: name.to_owned(), is_namespace: true });
        let mut entries: Vec<ListingEntry> = tables.chain(inner).collect();
        entries.sort();
        Ok(entries)
    }

    async fn schema(&self, table: &TableName) -> Result<Option<Arc<TableSchema>>> {
        Ok(self.0.state.read().tables.get(table).map(|table| Arc::clone(&table.schema)))
    }

    async fn create_table(&self, table: &TableName, schema: TableSchema) -> Result<()> {
        let mut state = self.0.state.write();
        state.check_namespace(&table.namespace)?;
        state.check_free(table)?;
        let made = Table { schema: Arc::new(schema), runs: Vec::new() };
        state.tables.insert(table.clone(), made);
        Ok(())
    }

    async fn alter_table(&self, table: &TableName, schema: TableSchema) -> Result<()> {
        let mut state = self.0.state.write();
        let known = state.table_mut(table)?;
        if known.schema.generation + 1 != schema.generation {
            return Err(errors::altered_meanwhile(table));
        }
        known.schema = Arc::new(schema);
        Ok(())
    }

    async fn rename_table(&self, from: &TableName, to: &TableName) -> Result<()> {
        let mut state = self.0.state.write();
        state.table(from)?;
        state.check_namespace(&to.namespace)?;
        state.check_free(to)?;
        if let Some(table) = state.tables.remove(from) {
            state.tables.insert(to.clone(), table);
        }
        Ok(())
    }

    async fn drop_table(&self, table: &TableName) -> Result<()> {
        let mut state = self.0.state.write();
        state.tables.remove(table).map(|_| ()).ok_or_else(|| errors::missing_table(table))
    }

    async fn mutate(&self, table: &TableName, cells: CellBatch) -> Result<()> {
        self.add_runs(table, vec![Run::sorted(&cells)?])
    }

    async fn bulk_load(&self, table: &TableName, _logged: bool) -> Result<Box<dyn BulkLoad>> {
        let state = self.0.state.read();
        state.check_writable()?;
        state.table(table)?;
        let load = MemoryLoad { store: self.clone(), table: table.clone(), runs: Vec::new() };
        Ok(Box::new(load))
    }

    async fn scan(&self, table: &TableName, spec: ScanSpec) -> Result<CellStream> {
        let state = self.0.state.read();
        let table = state.table(table)?;
        let inputs: Vec<CellStream> = table.runs.iter().map(Run::stream).collect();
        let now_ns = self.0.timestamps.now_ns();
        let reader = CellReader::new(&table.schema, &spec, now_ns, inputs.len());
        Ok(read_stream(reader, inputs))
    }

    async fn compact(&self, scope: CompactScope, _kind: Option<CompactKind>) -> Result<()> {
        let now_ns = self.0.timestamps.now_ns();
        let mut state = self.0.state.write();
        let tables: Vec<&mut Table> = match &scope {
            CompactScope::Table { table, .. } => vec![state.table_mut(table)?],
            CompactScope::Everything => state.tables.values_mut().collect(),
        };
        for table in tables {
            let merged = table.merge(0, Compaction::Full, now_ns)?;
            table.runs = vec![merged];
        }
        Ok(())
    }

    async fn wait_for_maintenance(&self) -> Result<()> {
        Ok(())
    }

    async fn set_readonly(&self, readonly: bool) -> Result<()> {
        self.0.state.write().readonly = readonly;
        Ok(())
    }
}

struct MemoryLoad {
    store: MemoryCells,
    table: TableName,
    runs: Vec<Run>,
}

#[async_trait]
impl BulkLoad for MemoryLoad {
    async fn write(&mut self, cells: CellBatch) -> Result<()> {
        self.runs.push(Run::sorted(&cells)?);
        Ok(())
    }

    async fn abandon(&mut self) -> u64 {
        self.runs.clear();
        0
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        self.store.add_runs(&self.table, self.runs)
    }
}
