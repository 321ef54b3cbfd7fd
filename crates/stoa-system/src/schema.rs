//! The schema, as the engine looks tables up in it.

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

use crate::server::Server;
use crate::tables::{SystemTable, all};

/// `system`.
pub struct SystemSchema {
    server: Arc<dyn Server>,
    tables: Vec<Arc<SystemTable>>,
}

impl SystemSchema {
    /// The schema of a server.
    pub fn new(server: Arc<dyn Server>) -> Self {
        Self::with_tables(server, all())
    }

    pub(crate) fn with_tables(server: Arc<dyn Server>, tables: Vec<SystemTable>) -> Self {
        Self { server, tables: tables.into_iter().map(Arc::new).collect() }
    }

    fn find(&self, name: &str) -> Option<&Arc<SystemTable>> {
        self.tables.iter().find(|table| table.name == name)
    }
}

impl std::fmt::Debug for SystemSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SystemSchema")
    }
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables.iter().map(|table| table.name.to_owned()).collect()
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some(table) = self.find(name).map(Arc::clone) else { return Ok(None) };
        let schema = Arc::clone(&table.schema);
        let live = Live { server: Arc::clone(&self.server), table };
        Ok(Some(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(live)])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// A table that is built when it is read.
struct Live {
    server: Arc<dyn Server>,
    table: Arc<SystemTable>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Live")
    }
}

impl PartitionStream for Live {
    fn schema(&self) -> &SchemaRef {
        &self.table.schema
    }

    fn execute(&self, tasks: Arc<TaskContext>) -> SendableRecordBatchStream {
        let table = Arc::clone(&self.table);
        let figures = self.server.figures(tasks.session_config());
        let rows = async move { table.read(figures.map_err(to_datafusion)?).await };
        let schema = Arc::clone(&self.table.schema);
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(rows)))
    }
}
