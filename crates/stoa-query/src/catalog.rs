//! The warehouse as the engine's catalog: namespaces are schemas.
//!
//! In: names. Out: [`StoaTable`]s of the snapshot that is current when the statement is planned.
//! Lists of names are asked for by synchronous calls (`information_schema`, `pg_catalog`); they
//! come from a copy that [`StoaCatalog::refresh`] renews before such a statement is planned.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result as EngineResult};
use parking_lot::RwLock;
use stoa_catalog::TableIdent;
use stoa_cells::CellTables;
use stoa_error::{ErrorKind, Result};
use stoa_ingest::{FreshRows, Ingest, TableSnapshot};
use stoa_report::Reports;
use stoa_table::{Table, Warehouse};

use crate::cells::{self, Form};
use crate::error::to_datafusion;
use crate::file_cache::FileCache;
use crate::table::StoaTable;

/// All namespaces of the warehouse.
#[derive(Debug)]
pub(crate) struct StoaCatalog {
    shared: Arc<Shared>,
    /// Schemas that are not namespaces: `pg_catalog`.
    added: RwLock<BTreeMap<String, Arc<dyn SchemaProvider>>>,
}

struct Shared {
    warehouse: Warehouse,
    files: Arc<FileCache>,
    reports: Arc<Reports>,
    ingest: Option<Ingest>,
    cells: CellTables,
    names: RwLock<BTreeMap<String, Vec<String>>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Shared {
    fn as_engine_table(&self, table: Table) -> StoaTable {
        StoaTable::new(table, Arc::clone(&self.files), Arc::clone(&self.reports))
            .with_ingest(self.ingest.clone())
    }

    /// A table by the name that SQL has for it; `None` if there is none.
    async fn provider(&self, ident: &TableIdent) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.found(ident).await? {
            let cells = cells::view(&self.cells, &table);
            return Ok(Some(cells.unwrap_or_else(|| Arc::new(self.as_engine_table(table)))));
        }
        let Some((name, form)) = cells::split_name(&ident.name) else { return Ok(None) };
        let ident = TableIdent { namespace: ident.namespace.clone(), name: name.to_owned() };
        let Some(table) = self.found(&ident).await? else { return Ok(None) };
        match cells::history(&self.cells, &table)? {
            Some(_) if form == Form::Raw => Ok(Some(Arc::new(self.as_engine_table(table)))),
            history => Ok(history),
        }
    }

    async fn found(&self, ident: &TableIdent) -> Result<Option<Table>> {
        match self.warehouse.table(ident).await {
            Ok(table) => Ok(Some(table)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl StoaCatalog {
    pub(crate) async fn new(
        warehouse: Warehouse,
        files: Arc<FileCache>,
        reports: Arc<Reports>,
        ingest: Option<Ingest>,
        cells: CellTables,
    ) -> Result<Self> {
        let shared = Shared { warehouse, files, reports, ingest, cells, names: RwLock::default() };
        let catalog = Self { shared: Arc::new(shared), added: RwLock::default() };
        catalog.refresh().await?;
        Ok(catalog)
    }

    /// The tables.
    pub(crate) fn warehouse(&self) -> &Warehouse {
        &self.shared.warehouse
    }

    /// Reads the lists of names again.
    pub(crate) async fn refresh(&self) -> Result<()> {
        let warehouse = &self.shared.warehouse;
        let mut names = BTreeMap::new();
        for namespace in warehouse.namespaces().await? {
            let tables = warehouse.tables(&namespace).await?;
            names.insert(namespace, tables.into_iter().map(|ident| ident.name).collect());
        }
        *self.shared.names.write() = names;
        Ok(())
    }

    /// The table as it is now, and the rows that are in no data file yet.
    pub(crate) async fn snapshot(&self, ident: &TableIdent) -> Result<TableSnapshot> {
        let shared = &self.shared;
        match &shared.ingest {
            Some(ingest) => ingest.snapshot(ident).await,
            None => {
                let table = shared.warehouse.table(ident).await?;
                Ok(TableSnapshot { fresh: FreshRows::none(&table), table })
            }
        }
    }

    /// The tables as they are at one moment, with the rows that are in no data file then. None comes
    /// twice.
    pub(crate) async fn tables(&self, idents: &[TableIdent]) -> Result<Vec<StoaTable>> {
        let shared = &self.shared;
        match &shared.ingest {
            None => {
                let tables = shared.warehouse.tables_at_once(idents).await?;
                Ok(tables.into_iter().map(|table| shared.as_engine_table(table)).collect())
            }
            Some(ingest) => {
                let snapshots = ingest.snapshots(idents).await?;
                Ok(snapshots.into_iter().map(|snapshot| self.at(snapshot)).collect())
            }
        }
    }

    /// A snapshot as the engine sees it.
    pub(crate) fn at(&self, snapshot: TableSnapshot) -> StoaTable {
        self.shared.as_engine_table(snapshot.table).with_fresh(snapshot.fresh)
    }

    /// The table as it is now.
    pub(crate) async fn table(&self, ident: &TableIdent) -> Result<StoaTable> {
        let shared = &self.shared;
        match &shared.ingest {
            None => Ok(shared.as_engine_table(shared.warehouse.table(ident).await?)),
            Some(ingest) => {
                let snapshot = ingest.snapshot(ident).await?;
                Ok(shared.as_engine_table(snapshot.table).with_fresh(snapshot.fresh))
            }
        }
    }
}

impl CatalogProvider for StoaCatalog {
    fn schema_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.shared.names.read().keys().cloned().collect();
        names.extend(self.added.read().keys().cloned());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if let Some(schema) = self.added.read().get(name) {
            return Some(Arc::clone(schema));
        }
        // A namespace another process has just made is not in the copy; its tables are looked up
        // in the catalog all the same.
        (name != "information_schema").then(|| {
            let shared = Arc::clone(&self.shared);
            Arc::new(Namespace { name: name.to_owned(), shared }) as Arc<dyn SchemaProvider>
        })
    }

    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> EngineResult<Option<Arc<dyn SchemaProvider>>> {
        Ok(self.added.write().insert(name.to_owned(), schema))
    }
}

#[derive(Debug)]
struct Namespace {
    name: String,
    shared: Arc<Shared>,
}

#[async_trait]
impl SchemaProvider for Namespace {
    fn table_names(&self) -> Vec<String> {
        self.shared.names.read().get(&self.name).cloned().unwrap_or_default()
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let ident = TableIdent { namespace: self.name.clone(), name: name.to_owned() };
        self.shared.provider(&ident).await.map_err(to_datafusion)
    }

    fn table_exist(&self, name: &str) -> bool {
        let names = self.shared.names.read();
        names.get(&self.name).is_some_and(|tables| tables.iter().any(|table| table == name))
    }
}
