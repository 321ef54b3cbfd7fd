//! The schema `information_schema`: the engine's own but for `columns` and what tells of keys, of the names that
//! the caller may know.
//!
//! In: the database, and who runs the plan. Out: the engine's tables. A table whose metadata cannot
//! be read is there without columns, for those who may know all; it does not hide the others.

use std::sync::{Arc, Weak};

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProviderList, SchemaProvider,
    Session as EngineSession, TableProvider,
};
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use stoa_error::Error;
use stoa_semantics::errors::to_datafusion;

use crate::INFORMATION_SCHEMA;
use crate::information_columns::{self, COLUMNS};
use crate::information_keys;
use crate::server::{Asker, Server};

/// `information_schema`.
#[derive(Debug)]
pub(super) struct InformationSchema {
    database: Arc<Database>,
}

/// Whose names are listed.
#[derive(Debug)]
struct Database {
    name: String,
    server: Arc<dyn Server>,
    /// Has the schema `information_schema`, too.
    catalog: Weak<dyn CatalogProvider>,
}

impl InformationSchema {
    pub(super) fn new(
        database: &str,
        server: Arc<dyn Server>,
        catalog: &Arc<dyn CatalogProvider>,
    ) -> Self {
        let (name, catalog) = (database.to_owned(), Arc::downgrade(catalog));
        Self { database: Arc::new(Database { name, server, catalog }) }
    }
}

/// The engine's schema over no tables at all, which has the same columns.
fn empty() -> InformationSchemaProvider {
    InformationSchemaProvider::new(Arc::new(MemoryCatalogProviderList::new()))
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let keys = information_keys::names().map(str::to_owned);
        empty().table_names().into_iter().chain(keys).collect()
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let schema = match (name, information_keys::schema(name)) {
            (COLUMNS, _) => information_columns::schema(),
            (_, Some(schema)) => schema,
            _ => match empty().table(name).await? {
                Some(table) => table.schema(),
                None => return Ok(None),
            },
        };
        let database = Arc::clone(&self.database);
        Ok(Some(Arc::new(Listing { database, name: name.to_owned(), schema })))
    }

    fn table_exist(&self, name: &str) -> bool {
        empty().table_exist(name) || information_keys::names().any(|of| of == name)
    }
}

/// One of its tables, which is made for whoever reads it.
#[derive(Debug)]
struct Listing {
    database: Arc<Database>,
    name: String,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for Listing {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn EngineSession,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let gone = || to_datafusion(Error::internal("a plan lists the names of no catalog"));
        let catalog = self.database.catalog.upgrade().ok_or_else(gone)?;
        let asker = self.database.server.asker(state.config()).map_err(to_datafusion)?;
        let database: Arc<str> = self.database.name.as_str().into();
        if information_keys::schema(&self.name).is_some() {
            let rows = information_keys::rows(&self.name, &self.schema, &database, &*asker).await?;
            let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
            return table.scan(state, projection, filters, limit).await;
        }
        let known = Known { database: Arc::clone(&database), catalog, asker };
        if self.name == COLUMNS {
            let rows =
                information_columns::rows(&database, &known, INFORMATION_SCHEMA, &*known.asker)
                    .await?;
            let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
            return table.scan(state, projection, filters, limit).await;
        }
        let mut listed = InformationSchemaProvider::new(Arc::new(known));
        if let Some(state) = state.as_any().downcast_ref::<SessionState>() {
            listed = listed.with_table_functions(state.table_functions().clone());
        }
        let table = listed.table(&self.name).await?.ok_or_else(gone)?;
        table.scan(state, projection, filters, limit).await
    }
}

/// The catalog with the names that somebody may know.
#[derive(Clone, Debug)]
struct Known {
    database: Arc<str>,
    catalog: Arc<dyn CatalogProvider>,
    asker: Arc<dyn Asker>,
}

impl CatalogProviderList for Known {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![self.database.to_string()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (*name == *self.database).then(|| Arc::new(self.clone()) as Arc<dyn CatalogProvider>)
    }
}

impl CatalogProvider for Known {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.catalog.schema_names();
        names.retain(|name| self.asker.may_know_namespace(name));
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let all = self.catalog.schema(name)?;
        Some(Arc::new(KnownSchema { all, asker: Arc::clone(&self.asker) }))
    }
}

#[derive(Debug)]
struct KnownSchema {
    all: Arc<dyn SchemaProvider>,
    asker: Arc<dyn Asker>,
}

#[async_trait]
impl SchemaProvider for KnownSchema {
    fn table_names(&self) -> Vec<String> {
        self.all.table_names()
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let provider = match self.all.table(name).await {
            Ok(Some(provider)) => provider,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(table = name, %error, "a table is listed without its columns");
                let all = self.asker.may_know_all();
                return Ok(all.then(|| Named::shared(Schema::empty(), TableType::Base)));
            }
        };
        let Some(known) = self.asker.known_columns(&provider) else { return Ok(None) };
        let columns = provider.schema();
        let tells_its_query =
            provider.table_type() == TableType::View && !self.asker.may_know_all();
        if known.len() == columns.fields().len() && !tells_its_query {
            return Ok(Some(provider));
        }
        let known: Vec<usize> = known.into_iter().collect();
        Ok(Some(Named::shared(columns.project(&known)?, provider.table_type())))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.all.table_exist(name)
    }
}

/// A table of which only names are told.
#[derive(Debug)]
struct Named {
    schema: SchemaRef,
    table_type: TableType,
}

impl Named {
    fn shared(schema: Schema, table_type: TableType) -> Arc<dyn TableProvider> {
        Arc::new(Self { schema: Arc::new(schema), table_type })
    }
}

#[async_trait]
impl TableProvider for Named {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        self.table_type
    }

    async fn scan(
        &self,
        _state: &dyn EngineSession,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Err(to_datafusion(Error::internal("a table is read of which only names are told")))
    }
}
