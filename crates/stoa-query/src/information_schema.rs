//! The schema `information_schema`: the engine's own, of the names that the caller may know.
//!
//! In: the warehouse, and who runs the plan. Out: the engine's tables. A table whose metadata cannot
//! be read is there without columns, for those who may know all; it does not hide the others.

use std::any::Any;
use std::sync::{Arc, Weak};

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProviderList, SchemaProvider,
    Session as EngineSession, TableProvider,
};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use stoa_error::Error;

use crate::access::Caller;
use crate::catalog::StoaCatalog;
use crate::engine::DATABASE;
use crate::error::to_datafusion;
use crate::table::table_shown;

/// Name of the schema.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";

/// `information_schema`.
#[derive(Debug)]
pub(crate) struct InformationSchema {
    /// Has this schema, too.
    catalog: Weak<StoaCatalog>,
}

impl InformationSchema {
    pub(crate) fn new(catalog: &Arc<StoaCatalog>) -> Self {
        Self { catalog: Arc::downgrade(catalog) }
    }
}

/// The engine's schema over no tables at all, which has the same columns.
fn empty() -> InformationSchemaProvider {
    InformationSchemaProvider::new(Arc::new(MemoryCatalogProviderList::new()))
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        empty().table_names()
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some(table) = empty().table(name).await? else { return Ok(None) };
        let catalog = Weak::clone(&self.catalog);
        Ok(Some(Arc::new(Listing { catalog, name: name.to_owned(), schema: table.schema() })))
    }

    fn table_exist(&self, name: &str) -> bool {
        empty().table_exist(name)
    }
}

/// One of its tables, which is made for whoever reads it.
#[derive(Debug)]
struct Listing {
    catalog: Weak<StoaCatalog>,
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
        let catalog = self.catalog.upgrade().ok_or_else(gone)?;
        let caller = Caller::of(state).map_err(to_datafusion)?;
        let mut listed = InformationSchemaProvider::new(Arc::new(Known { catalog, caller }));
        if let Some(state) = state.as_any().downcast_ref::<SessionState>() {
            listed = listed.with_table_functions(state.table_functions().clone());
        }
        let table = listed.table(&self.name).await?.ok_or_else(gone)?;
        table.scan(state, projection, filters, limit).await
    }
}

/// The catalog with the names that a caller may know.
#[derive(Clone, Debug)]
struct Known {
    catalog: Arc<StoaCatalog>,
    caller: Arc<Caller>,
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
        vec![DATABASE.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == DATABASE).then(|| Arc::new(self.clone()) as Arc<dyn CatalogProvider>)
    }
}

impl CatalogProvider for Known {
    fn schema_names(&self) -> Vec<String> {
        self.catalog.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let all = self.catalog.schema(name)?;
        Some(Arc::new(KnownTables { all, caller: Arc::clone(&self.caller) }))
    }
}

#[derive(Debug)]
struct KnownTables {
    all: Arc<dyn SchemaProvider>,
    caller: Arc<Caller>,
}

#[async_trait]
impl SchemaProvider for KnownTables {
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
                let all = self.caller.may_everything();
                return Ok(all.then(|| Named::shared(Schema::empty(), TableType::Base)));
            }
        };
        let Some(table) = table_shown(provider.as_ref() as &dyn Any) else {
            return Ok(Some(provider));
        };
        if !self.caller.may_know(table) {
            return Ok(None);
        }
        let columns = provider.schema();
        let known = self.caller.known_columns(table, &columns);
        if known.len() == columns.fields().len() {
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
