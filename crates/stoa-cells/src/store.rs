//! The store: what HQL asks for, answered from tables.
//!
//! In: calls of [`CellStore`]. Out: commits of the catalog, records of the log, streams of cells.
//!
//! Not here: writing (`write`, `load`), reading (`scan`), compacting (`compact`).

use std::sync::Arc;

use async_trait::async_trait;
use stoa_error::{ErrorKind, Result};
use stoa_hql::lang::ast::CompactKind;
use stoa_hql::scan::ScanSpec;
use stoa_hql::{
    BulkLoad, CellBatch, CellStore, CellStream, CompactScope, ListingEntry, NamespacePath,
    TableName, TableSchema, TimestampSource,
};
use stoa_ingest::Ingest;
use stoa_table::{TableIdent, Warehouse};

use crate::layout::schema_of;
use crate::load::{FileLoad, LogLoad};
use crate::names::ident_of;
use crate::options::CellOptions;
use crate::state::Inner;
use crate::table::{CellSnapshot, CellTable, in_words_of_hql};
use crate::{catalog, compact, scan, write};

/// Tables of cells in a warehouse. Clones share everything; see the crate's documentation.
#[derive(Clone)]
pub struct CellTables {
    pub(crate) inner: Arc<Inner>,
}

impl CellTables {
    /// The tables of cells in `warehouse`. Small writes go through `ingest`; without it each is a
    /// commit of its own. Timestamps continue after the newest that is found.
    ///
    /// # Errors
    /// Those of the catalog and of reading tables' metadata. A table that cannot be read is logged
    /// and passed over.
    pub async fn open(
        warehouse: Warehouse,
        ingest: Option<Ingest>,
        options: CellOptions,
    ) -> Result<Self> {
        let inner = Inner::open(warehouse, ingest, options).await?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The schema of a table by its name in the catalog; none if it holds no cells.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound), [`Corrupt`](ErrorKind::Corrupt).
    pub async fn schema_of(&self, ident: &TableIdent) -> Result<Option<Arc<TableSchema>>> {
        schema_of(&self.inner.warehouse.table(ident).await?)
    }

    /// The cells that `spec` asks for, of a table by its name in the catalog. A batch turns into an
    /// Arrow batch with [`CellBatch::to_record_batch`].
    ///
    /// # Errors
    /// As [`CellStore::scan`]; [`Invalid`](ErrorKind::Invalid) if the table holds no cells.
    pub async fn scan_ident(&self, ident: &TableIdent, spec: ScanSpec) -> Result<CellStream> {
        let inner = &self.inner;
        let snapshot = CellSnapshot::of(&inner.warehouse, inner.ingest.as_ref(), ident).await?;
        scan::scan(inner, snapshot, spec).await
    }

    async fn open_table(&self, table: &TableName) -> Result<CellTable> {
        CellTable::open(&self.inner.warehouse, table).await
    }
}

#[async_trait]
impl CellStore for CellTables {
    fn timestamps(&self) -> &TimestampSource {
        &self.inner.options.timestamps
    }

    async fn namespace_exists(&self, namespace: &NamespacePath) -> Result<bool> {
        catalog::namespace_exists(&self.inner.warehouse, namespace).await
    }

    async fn create_namespace(&self, namespace: &NamespacePath) -> Result<()> {
        catalog::create_namespace(&self.inner.warehouse, namespace).await
    }

    async fn drop_namespace(&self, namespace: &NamespacePath) -> Result<()> {
        catalog::drop_namespace(&self.inner.warehouse, namespace).await
    }

    async fn listing(&self, namespace: &NamespacePath) -> Result<Vec<ListingEntry>> {
        catalog::listing(&self.inner.warehouse, namespace).await
    }

    async fn schema(&self, table: &TableName) -> Result<Option<Arc<TableSchema>>> {
        match self.open_table(table).await {
            Ok(cells) => Ok(Some(cells.schema)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create_table(&self, table: &TableName, schema: TableSchema) -> Result<()> {
        catalog::create_table(&self.inner.warehouse, table, &schema).await
    }

    async fn alter_table(&self, table: &TableName, schema: TableSchema) -> Result<()> {
        catalog::alter_table(&self.inner.warehouse, table, &schema).await
    }

    async fn rename_table(&self, from: &TableName, to: &TableName) -> Result<()> {
        catalog::rename_table(&self.inner.warehouse, from, to).await
    }

    async fn drop_table(&self, table: &TableName) -> Result<()> {
        let dropped = catalog::drop_table(&self.inner.warehouse, table).await?;
        if let Some(ingest) = &self.inner.ingest {
            ingest.forget(&dropped).await;
        }
        Ok(())
    }

    async fn mutate(&self, table: &TableName, cells: CellBatch) -> Result<()> {
        self.inner.check_writable()?;
        let opened = self.open_table(table).await?;
        let written = write::mutate(&self.inner, &opened, cells).await;
        written.map_err(|error| in_words_of_hql(error, table))
    }

    async fn bulk_load(&self, table: &TableName, logged: bool) -> Result<Box<dyn BulkLoad>> {
        self.inner.check_writable()?;
        let opened = self.open_table(table).await?;
        match &self.inner.ingest {
            Some(ingest) if logged => {
                Ok(Box::new(LogLoad::new(Arc::clone(&self.inner), ingest.clone(), opened)))
            }
            _ => Ok(Box::new(FileLoad::new(Arc::clone(&self.inner), opened))),
        }
    }

    async fn scan(&self, table: &TableName, spec: ScanSpec) -> Result<CellStream> {
        let scanned = self.scan_ident(&ident_of(table), spec).await;
        scanned.map_err(|error| in_words_of_hql(error, table))
    }

    async fn compact(&self, scope: CompactScope, kind: Option<CompactKind>) -> Result<()> {
        compact::compact(&self.inner, &scope, kind).await
    }

    async fn wait_for_maintenance(&self) -> Result<()> {
        // What a command asks for is done when the command returns.
        Ok(())
    }

    async fn set_readonly(&self, readonly: bool) -> Result<()> {
        catalog::set_readonly(&self.inner.warehouse, readonly).await?;
        self.inner.set_readonly(readonly);
        Ok(())
    }
}
