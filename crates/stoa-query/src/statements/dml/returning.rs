//! `RETURNING`: the rows that a statement changes, as the query over them sees them.
//!
//! ```text
//!  rows to insert ┐
//!  new rows       ├─► Rows, in memory ─► in the place of the table in `SELECT … FROM table` ─► the answer
//!  rows to delete ┘
//! ```
//! **Invariants:** the answer is computed before anything is written, so that a statement whose answer fails changes
//! nothing; what it takes is the engine's memory. Columns are read with the caller's right to do so.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, TableScan, Volatility, WriteOp,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;
use parking_lot::Mutex;
use stoa_error::{Error, Result};
use stoa_semantics::errors::{from_datafusion, to_datafusion};
use stoa_semantics::volatility;
use stoa_table::Table;

use crate::access::fields_at;
use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::statements::columns;
use crate::tables::table::stoa_table;

/// What a statement returns of the rows that it changes.
pub(crate) struct Returning {
    /// Over the table, which the rows replace.
    query: LogicalPlan,
    answer: Mutex<Option<Rows>>,
}

/// Rows in memory.
pub(crate) struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl Rows {
    /// A plan that gives them.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) fn into_plan(self) -> Result<LogicalPlan> {
        scan_of("rows", &self.schema, self.batches)
    }
}

impl Returning {
    /// `query` is over the table that `plan` changes.
    ///
    /// # Errors
    /// 0A000 for statements whose rows are not to be had, or would be others each time they are computed.
    pub(crate) fn of(plan: &LogicalPlan, query: LogicalPlan) -> Result<Self> {
        let LogicalPlan::Dml(dml) = plan else {
            return Err(Error::unsupported("RETURNING is not supported here"));
        };
        let is_insert = matches!(dml.op, WriteOp::Insert(_));
        if !is_insert && is_volatile(&dml.input)? {
            return Err(Error::unsupported("RETURNING of values that are random is not supported")
                .with_hint("leave out RETURNING, and read the rows afterwards"));
        }
        Ok(Self { query, answer: Mutex::new(None) })
    }

    /// Whether the caller may read the columns that are returned.
    ///
    /// # Errors
    /// 42501.
    pub(super) fn check_rights(&self, session: &Session, table: &Table) -> Result<()> {
        let schema = table.schema();
        let mut read = BTreeSet::new();
        self.query
            .apply(|node| {
                node.apply_expressions(|expr| {
                    let columns = expr.column_refs().into_iter();
                    read.extend(columns.filter_map(|column| schema.index_of(&column.name).ok()));
                    Ok(TreeNodeRecursion::Continue)
                })
            })
            .map_err(from_datafusion)?;
        session.caller.may_select(table, fields_at(table, Some(&read)).into_iter())
    }

    /// The rows of a plan, which are computed now, with the columns of the table.
    ///
    /// # Errors
    /// Those of the plan; 53200 where there is too little memory.
    pub(super) async fn rows_of(
        &self,
        session: &Session,
        plan: &LogicalPlan,
        guard: &QueryGuard,
    ) -> Result<Rows> {
        let mut stream = session.stream(plan, guard).await?;
        let schema = stream.schema();
        let memory =
            MemoryConsumer::new("rows that are returned").register(session.runner.memory());
        let mut batches = Vec::new();
        while let Some(batch) = stream.try_next().await.map_err(from_datafusion)? {
            memory.try_grow(batch.get_array_memory_size()).map_err(from_datafusion)?;
            batches.push(batch);
        }
        Ok(Rows { schema, batches, memory })
    }

    /// Computes what is returned of `rows`.
    ///
    /// # Errors
    /// Those of the query.
    pub(super) async fn answer(
        &self,
        session: &Session,
        rows: &Rows,
        guard: &QueryGuard,
    ) -> Result<()> {
        let replace = |node: LogicalPlan| match node {
            LogicalPlan::TableScan(scan) if stoa_table(&scan.source).is_some() => {
                over_rows(&scan, rows).map(Transformed::yes).map_err(to_datafusion)
            }
            other => Ok(Transformed::no(other)),
        };
        let query = self.query.clone().transform_up(replace).map_err(from_datafusion)?.data;
        let query = session.pin_snapshots(query).await?;
        let answer = self.rows_of(session, &query, guard).await?;
        *self.answer.lock() = Some(answer);
        Ok(())
    }

    /// The answer, after the rows were written.
    ///
    /// # Errors
    /// `Internal` where none was computed.
    pub(crate) fn into_rows(self) -> Result<SendableRecordBatchStream> {
        let Some(Rows { schema, batches, memory }) = self.answer.into_inner() else {
            return Err(Error::internal("a statement returned nothing"));
        };
        // What they take is given back when all are handed out.
        let memory = Arc::new(memory);
        let batches = batches.into_iter().map(move |batch| {
            let _held = &memory;
            Ok(batch)
        });
        let rows = futures::stream::iter(batches);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Whether a query gives a row for each row of its table.
///
/// # Errors
/// 42803 for aggregates, 42P20 for window functions.
pub(crate) fn check_returning(query: &LogicalPlan) -> Result<()> {
    let mut refused = None;
    query
        .apply(|node| {
            refused = match node {
                LogicalPlan::Aggregate(_) => Some(("aggregate functions", "42803")),
                LogicalPlan::Window(_) => Some(("window functions", "42P20")),
                _ => return Ok(TreeNodeRecursion::Continue),
            };
            Ok(TreeNodeRecursion::Stop)
        })
        .map_err(from_datafusion)?;
    match refused {
        Some((what, sqlstate)) => {
            Err(Error::invalid(format!("{what} are not allowed in RETURNING"))
                .with_sqlstate(sqlstate)
                .with_hint("return the rows, and compute it of them"))
        }
        None => Ok(()),
    }
}

/// Whether a plan computes values that are others each time.
fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut is_volatile = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarFunction(call) = expr {
                    is_volatile |= volatility(call) == Volatility::Volatile;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(from_datafusion)?;
    Ok(is_volatile)
}

/// `rows` under the name and with the columns of the table that is scanned.
fn over_rows(scan: &TableScan, rows: &Rows) -> Result<LogicalPlan> {
    let plan = scan_of("rows", &rows.schema, rows.batches.clone())?;
    let table = scan.source.schema();
    let plan = columns::cast_to(plan, &table)?;
    LogicalPlanBuilder::from(plan)
        .alias(scan.table_name.clone())
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)
}

fn scan_of(name: &str, schema: &SchemaRef, batches: Vec<RecordBatch>) -> Result<LogicalPlan> {
    let table = MemTable::try_new(Arc::clone(schema), vec![batches]).map_err(from_datafusion)?;
    LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(table)), None)
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)
}
