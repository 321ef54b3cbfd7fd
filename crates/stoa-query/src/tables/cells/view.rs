//! A table of cells with a row per row key and a column per family.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use stoa_cells::CellTables;
use stoa_error::Result;
use stoa_hql::scan::ScanSpec;
use stoa_hql::{CellStream, TableSchema};
use stoa_table::Table;

use super::filter::Rows;
use super::pivot::{Pivot, Source};
use super::scan::CellScan;
use super::{ROW, holds_cells};
use crate::access::Caller;
use stoa_semantics::errors::to_datafusion;

/// Rows of the newest values.
#[derive(Clone)]
pub(super) struct CellView {
    cells: CellTables,
    table: Table,
    schema: SchemaRef,
    sources: Vec<Source>,
    key: String,
    /// Whether the first version of a cell is its newest.
    newest_first: bool,
}

impl std::fmt::Debug for CellView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CellView").field("ident", self.table.ident()).finish_non_exhaustive()
    }
}

impl CellView {
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn new(cells: CellTables, table: Table, families: &TableSchema) -> Self {
        let (schema, sources) = columns(families);
        let key = schema.field(0).name().clone();
        let newest_first = !families.living().any(|family| family.options.is_oldest_first());
        Self { cells, table, schema, sources, key, newest_first }
    }
}

/// The columns of a table of such families, and what they show.
pub(super) fn columns(families: &TableSchema) -> (SchemaRef, Vec<Source>) {
    let key = if families.family(ROW).is_some() { "row_key" } else { ROW };
    let mut fields = vec![Field::new(key, DataType::Utf8, false)];
    let mut sources = vec![Source::Key];
    for family in families.living() {
        let (kind, source) = match family.options.is_counter() {
            true => (DataType::Int64, Source::Counter(family.id)),
            false => (DataType::Utf8, Source::Text(family.id)),
        };
        fields.push(Field::new(&family.name, kind, true));
        sources.push(source);
    }
    (Arc::new(Schema::new(fields)), sources)
}

#[async_trait]
impl TableProvider for CellView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        // Ranges of rows are taken from any filter; the plan filters again.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn EngineSession,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        // Grants know the table's own columns, not what is made of its cells.
        Caller::of(state)
            .and_then(|caller| caller.may_select_all(&self.table))
            .map_err(to_datafusion)?;
        let all: Vec<usize> = (0..self.sources.len()).collect();
        let columns = projection.unwrap_or(&all);
        let schema = Arc::new(self.schema.project(columns)?);
        let sources: Vec<Source> = columns.iter().map(|column| self.sources[*column]).collect();
        let ranges = Rows::of(filters, &self.key).into_ranges();
        let spec = ranges.map(|ranges| ScanSpec {
            ranges,
            max_versions: self.newest_first.then_some(1),
            // All families are read: a row is there if any of them has a cell.
            keys_only: sources.iter().all(|source| *source == Source::Key),
            ..ScanSpec::default()
        });
        let batch_rows = state.config().batch_size();
        let rows_schema = Arc::clone(&schema);
        let to_rows =
            move |cells| rows(cells, Pivot::new(Arc::clone(&rows_schema), &sources), batch_rows);
        let scan = CellScan {
            cells: self.cells.clone(),
            ident: self.table.ident().clone(),
            schema,
            spec,
            to_rows: Box::new(to_rows),
        };
        scan.plan(limit)
    }

    async fn insert_into(
        &self,
        _state: &dyn EngineSession,
        _input: Arc<dyn ExecutionPlan>,
        _op: InsertOp,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Err(to_datafusion(holds_cells(self.table.ident())))
    }
}

/// Batches of at least so many rows, but for the last.
fn rows(
    cells: CellStream,
    pivot: Pivot,
    batch_rows: usize,
) -> BoxStream<'static, Result<RecordBatch>> {
    let next = move |(mut cells, mut pivot, mut ended): (CellStream, Pivot, bool)| async move {
        while !ended && pivot.rows() < batch_rows {
            match cells.try_next().await? {
                Some(batch) => pivot.push(&batch),
                None => {
                    pivot.end_row();
                    ended = true;
                }
            }
        }
        if pivot.rows() == 0 {
            return Ok(None);
        }
        Ok(Some((pivot.take()?, (cells, pivot, ended))))
    };
    futures::stream::try_unfold((cells, pivot, false), next).boxed()
}
