//! Where new content goes: a table provider that only takes rows.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;
use stoa_error::Error;
use stoa_table::Table;

use crate::tables::changes::Reading;
use crate::tables::nested::engine_schema;
use crate::tables::sink::{self, Commit, WriteMode};
use crate::tables::transaction::Block;
use stoa_semantics::errors::to_datafusion;

/// A plan's target that writes its rows in the given way.
pub(super) fn source(table: Table, mode: WriteMode, reading: Arc<Reading>) -> Arc<dyn TableSource> {
    let schema = engine_schema(&table.schema());
    provider_as_source(Arc::new(Target { schema, table, mode, reading }))
}

struct Target {
    table: Table,
    mode: WriteMode,
    reading: Arc<Reading>,
    schema: SchemaRef,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({})", self.table.ident())
    }
}

#[async_trait]
impl TableProvider for Target {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn EngineSession,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        sink::write_only()
    }

    async fn insert_into(
        &self,
        state: &dyn EngineSession,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        if operation != InsertOp::Append {
            return Err(to_datafusion(Error::internal("content is replaced by appending it")));
        }
        let reading = Some(Arc::clone(&self.reading));
        let commit = Commit { reading, staging: Block::staging_of(state) };
        sink::plan_write(self.table.clone(), self.mode.clone(), commit, input)
            .map_err(to_datafusion)
    }
}
