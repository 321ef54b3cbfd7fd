//! A table that says that it holds cells, whose schema of cells nobody can read.
//!
//! Another engine can set any property. Lists of columns show the table's own, so that one bad table does
//! not keep everybody from seeing the others; reading it says what is wrong.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use stoa_error::Error;
use stoa_table::Table;

use super::holds_cells;
use crate::tables::nested::engine_schema;
use stoa_semantics::errors::to_datafusion;

#[derive(Clone)]
pub(super) struct Unreadable {
    table: Table,
    schema: SchemaRef,
}

impl std::fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unreadable").field("ident", self.table.ident()).finish_non_exhaustive()
    }
}

impl Unreadable {
    pub(super) fn new(table: Table) -> Self {
        Self { schema: engine_schema(&table.schema()), table }
    }
}

#[async_trait]
impl TableProvider for Unreadable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn EngineSession,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let error = stoa_cells::schema_of(&self.table).err();
        Err(to_datafusion(error.unwrap_or_else(|| Error::internal("a schema can be read again"))))
    }

    async fn insert_into(
        &self,
        _state: &dyn EngineSession,
        _input: Arc<dyn ExecutionPlan>,
        _insert_op: InsertOp,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Err(to_datafusion(holds_cells(self.table.ident())))
    }
}
