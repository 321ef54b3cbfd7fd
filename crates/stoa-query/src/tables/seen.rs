//! The catalog as one caller's statements are planned with it.
//!
//! A plan tells the names of columns before any row is read: in errors, and to clients that ask what a
//! statement would give. So a table or view on which the caller has no right is refused where its name is looked
//! up. **Invariant:** what passes is checked again, column by column, where it is read (`access`).

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result as EngineResult};

use crate::access::Caller;
use crate::tables::table::table_shown;
use crate::tables::versions;
use crate::tables::view::view_shown;
use stoa_semantics::errors::to_datafusion;

/// All catalogs.
#[derive(Debug)]
pub(crate) struct SeenCatalogs {
    all: Arc<dyn CatalogProviderList>,
    caller: Arc<Caller>,
}

impl SeenCatalogs {
    pub(crate) fn new(all: Arc<dyn CatalogProviderList>, caller: Arc<Caller>) -> Self {
        Self { all, caller }
    }
}

impl CatalogProviderList for SeenCatalogs {
    fn register_catalog(
        &self,
        name: String,
        catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        self.all.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.all.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let all = self.all.catalog(name)?;
        Some(Arc::new(SeenCatalog { all, caller: Arc::clone(&self.caller) }))
    }
}

#[derive(Debug)]
struct SeenCatalog {
    all: Arc<dyn CatalogProvider>,
    caller: Arc<Caller>,
}

impl CatalogProvider for SeenCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.all.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let all = self.all.schema(name)?;
        Some(Arc::new(SeenSchema { all, caller: Arc::clone(&self.caller) }))
    }
}

#[derive(Debug)]
struct SeenSchema {
    all: Arc<dyn SchemaProvider>,
    caller: Arc<Caller>,
}

impl SeenSchema {
    fn must_know(&self, provider: &dyn TableProvider) -> EngineResult<()> {
        let provider = provider as &dyn Any;
        let known = match (table_shown(provider), view_shown(provider)) {
            (Some(table), _) => self.caller.must_know(table),
            (None, Some(view)) => self.caller.must_know(view),
            (None, None) => Ok(()),
        };
        known.map_err(to_datafusion)
    }
}

#[async_trait]
impl SchemaProvider for SeenSchema {
    fn table_names(&self) -> Vec<String> {
        self.all.table_names()
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        // Which versions there are is not told to those who must not know the table.
        if let Some(table) = versions::asked_of(name)
            && let Some(provider) = self.all.table(table).await?
        {
            self.must_know(provider.as_ref())?;
        }
        let found = self.all.table(name).await?;
        if let Some(provider) = &found {
            self.must_know(provider.as_ref())?;
        }
        Ok(found)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.all.table_exist(name)
    }
}
