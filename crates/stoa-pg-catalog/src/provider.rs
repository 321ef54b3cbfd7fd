//! The schema `pg_catalog`: its own tables first, then those every PostgreSQL has alike.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use stoa_semantics::errors::to_datafusion;
use tokio::sync::OnceCell;

use crate::contents::Contents;
use crate::relations::Relations;
use crate::roles::Roles;
use crate::server::{Asker, Server};
use crate::system_tables::{Build, SystemTable, TABLES};

/// `pg_catalog`.
#[derive(Debug)]
pub(super) struct PgCatalog {
    source: Arc<Source>,
}

/// What the tables are built from.
struct Source {
    database: String,
    server: Arc<dyn Server>,
    /// Tables that are the same in every PostgreSQL.
    common: Arc<dyn SchemaProvider>,
    /// Names and columns of all tables of this schema; read once.
    system: OnceCell<Vec<(String, SchemaRef)>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl PgCatalog {
    pub(super) fn new(
        database: &str,
        server: Arc<dyn Server>,
        common: Arc<dyn SchemaProvider>,
    ) -> Self {
        let (database, system) = (database.to_owned(), OnceCell::new());
        Self { source: Arc::new(Source { database, server, common, system }) }
    }
}

impl Source {
    fn names(&self) -> Vec<String> {
        let mut names = self.common.table_names();
        names.extend(TABLES.iter().map(|table| table.name.to_owned()));
        names.sort();
        names.dedup();
        names
    }

    async fn table(
        self: &Arc<Self>,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some(table) = TABLES.iter().find(|table| table.name == name) else {
            return self.common.table(name).await;
        };
        let live: Arc<dyn PartitionStream> = Arc::new(LiveTable::new(self, table)?);
        let table = StreamingTable::try_new(Arc::clone(live.schema()), vec![live])?;
        Ok(Some(Arc::new(table)))
    }

    /// What there is of which `asker` may know.
    async fn contents(
        self: &Arc<Self>,
        with_details: bool,
        asker: &dyn Asker,
    ) -> EngineResult<Contents> {
        let system = self.system.get_or_try_init(|| self.read_system()).await?;
        let relations = Relations::read(asker, system, with_details).await;
        let policy = asker.policy().await.map_err(to_datafusion)?;
        Ok(Contents {
            database: self.database.clone(),
            settings: asker.settings(),
            roles: Roles::of(&self.database, &policy),
            policy,
            running: asker.running(),
            relations: relations.map_err(to_datafusion)?,
        })
    }

    async fn read_system(self: &Arc<Self>) -> EngineResult<Vec<(String, SchemaRef)>> {
        let mut system = Vec::new();
        for name in self.names() {
            if let Some(table) = Box::pin(self.table(&name)).await? {
                system.push((name, table.schema()));
            }
        }
        Ok(system)
    }
}

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        self.source.names()
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        self.source.table(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        TABLES.iter().any(|table| table.name == name) || self.source.common.table_exist(name)
    }
}

/// A table that is built when it is read.
#[derive(Debug)]
struct LiveTable {
    source: Arc<Source>,
    schema: SchemaRef,
    build: Build,
    reads_details: bool,
}

impl LiveTable {
    fn new(source: &Arc<Source>, table: &SystemTable) -> EngineResult<Self> {
        Ok(Self {
            source: Arc::clone(source),
            schema: (table.build)(&Contents::default())?.schema(),
            build: table.build,
            reads_details: table.reads_details,
        })
    }
}

impl PartitionStream for LiveTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, tasks: Arc<TaskContext>) -> SendableRecordBatchStream {
        let asker = self.source.server.asker(tasks.session_config());
        let (source, build, reads_details) =
            (Arc::clone(&self.source), self.build, self.reads_details);
        let rows = async move {
            let asker = asker.map_err(to_datafusion)?;
            build(&source.contents(reads_details, &*asker).await?)
        };
        let stream = futures::stream::once(rows);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))
    }
}
