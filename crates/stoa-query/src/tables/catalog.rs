//! The warehouse as the engine's catalog: namespaces are schemas.
//!
//! In: names. Out: tables of the snapshot that is current when the statement is planned. Lists of names are
//! asked for by synchronous calls (`information_schema`, `pg_catalog`); they come from a copy that
//! [`Data::refresh`] renews before such a statement is planned.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result as EngineResult};
use parking_lot::RwLock;
use stoa_catalog::TableIdent;
use stoa_semantics::errors::to_datafusion;

use crate::tables::data::Data;

/// All namespaces of the warehouse.
#[derive(Debug)]
pub(crate) struct StoaCatalog {
    data: Arc<Data>,
    /// Schemas that are not namespaces: `pg_catalog`.
    added: RwLock<BTreeMap<String, Arc<dyn SchemaProvider>>>,
}

impl StoaCatalog {
    pub(crate) fn new(data: Arc<Data>) -> Self {
        Self { data, added: RwLock::default() }
    }
}

impl CatalogProvider for StoaCatalog {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.data.namespaces();
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
            let data = Arc::clone(&self.data);
            Arc::new(Namespace { name: name.to_owned(), data }) as Arc<dyn SchemaProvider>
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
    data: Arc<Data>,
}

#[async_trait]
impl SchemaProvider for Namespace {
    fn table_names(&self) -> Vec<String> {
        self.data.names_in(&self.name)
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let ident = TableIdent { namespace: self.name.clone(), name: name.to_owned() };
        self.data.provider(&ident).await.map_err(to_datafusion)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.data.has_name(&self.name, name)
    }
}
