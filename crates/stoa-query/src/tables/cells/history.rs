//! A table of cells with a row per cell that can be seen.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use stoa_cells::CellTables;
use stoa_error::{Error, Result};
use stoa_hql::scan::{ColumnSelector, QualifierFilter, ScanSpec};
use stoa_hql::{CellBatch, CellStream, FamilyId, TableSchema};
use stoa_table::Table;

use super::filter::{Rows, is_column, literal_text};
use super::scan::CellScan;
use super::{ROW, holds_cells};
use crate::access::Caller;
use stoa_semantics::errors::to_datafusion;

/// What a column shows of a cell, by its place in the table.
const COLUMNS: [&str; 6] = [ROW, "family", "qualifier", "timestamp", "timestamp_ns", "value"];

/// Nanoseconds of a microsecond.
const NS_PER_US: i64 = 1000;

/// Cells one by one.
#[derive(Clone)]
pub(super) struct CellHistory {
    cells: CellTables,
    table: Table,
    families: Arc<TableSchema>,
    schema: SchemaRef,
}

impl std::fmt::Debug for CellHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CellHistory").field("ident", self.table.ident()).finish_non_exhaustive()
    }
}

impl CellHistory {
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn new(cells: CellTables, table: Table, families: Arc<TableSchema>) -> Self {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
        let kinds =
            [DataType::Utf8, DataType::Utf8, DataType::Utf8, time, DataType::Int64, DataType::Utf8];
        let fields = COLUMNS.iter().zip(kinds).map(|(name, kind)| Field::new(*name, kind, false));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { cells, table, families, schema }
    }

    /// What the filters leave to read; `None` for nothing.
    fn spec(&self, filters: &[Expr], values: bool) -> Option<ScanSpec> {
        let ranges = Rows::of(filters, ROW).into_ranges()?;
        let asked = filters.iter().filter_map(asked_family);
        let mut columns = Vec::new();
        for name in asked {
            let family = self.families.family(name)?;
            let selector = ColumnSelector { family: family.id, qualifier: QualifierFilter::Any };
            if !columns.is_empty() && !columns.contains(&selector) {
                return None;
            }
            columns = vec![selector];
        }
        Some(ScanSpec { ranges, columns, keys_only: !values, ..ScanSpec::default() })
    }
}

/// The family that a filter demands.
fn asked_family(filter: &Expr) -> Option<&str> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let named = is_column(left, COLUMNS[1]).then(|| literal_text(right)).flatten();
            named.or_else(|| is_column(right, COLUMNS[1]).then(|| literal_text(left)).flatten())
        }
        _ => None,
    }
}

#[async_trait]
impl TableProvider for CellHistory {
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
        let all: Vec<usize> = (0..COLUMNS.len()).collect();
        let columns = projection.unwrap_or(&all).clone();
        let schema = Arc::new(self.schema.project(&columns)?);
        let names = self.families.living().map(|family| (family.id, family.name.clone()));
        let spec = self.spec(filters, columns.contains(&(COLUMNS.len() - 1)));
        let names = names.collect();
        let shape = Arc::new(Shape { schema: Arc::clone(&schema), columns, names });
        let to_rows = move |cells: CellStream| {
            let shape = Arc::clone(&shape);
            cells.map(move |batch| shape.rows(&batch?)).boxed()
        };
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

/// Which columns are wanted, and the names of families.
struct Shape {
    schema: SchemaRef,
    columns: Vec<usize>,
    names: HashMap<FamilyId, String>,
}

impl Shape {
    fn rows(&self, cells: &CellBatch) -> Result<RecordBatch> {
        let columns = cells.columns();
        let arrays = self.columns.iter().map(|column| -> ArrayRef {
            match column {
                0 => Arc::new(text(&columns.rows)),
                1 => {
                    let name =
                        |id: i32| FamilyId::try_from(id).ok().and_then(|id| self.names.get(&id));
                    let names = columns.families.values().iter().map(|id| name(*id));
                    Arc::new(
                        names
                            .map(|name| name.map_or("", String::as_str))
                            .map(Some)
                            .collect::<StringArray>(),
                    )
                }
                2 => Arc::new(text(&columns.qualifiers)),
                3 => {
                    let us = columns.timestamps.values().iter().map(|ns| ns.div_euclid(NS_PER_US));
                    let times = TimestampMicrosecondArray::from_iter_values(us);
                    Arc::new(times.with_timezone("+00:00"))
                }
                4 => Arc::new(Int64Array::new(columns.timestamps.values().clone(), None)),
                _ => Arc::new(text(&columns.values)),
            }
        });
        let arrays: Vec<ArrayRef> = arrays.collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(cells.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|e| Error::internal("cells do not fit their columns").with_source(e))
    }
}

/// Shares the memory where all of it is UTF-8.
fn text(bytes: &BinaryArray) -> StringArray {
    StringArray::try_from_binary(bytes.clone()).unwrap_or_else(|_| {
        let values = bytes.iter().map(|value| value.map(String::from_utf8_lossy));
        values.collect()
    })
}
