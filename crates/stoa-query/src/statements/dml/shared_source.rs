//! Several INSERTs that read one source: it is read once, and each gets its rows.
//!
//! ```text
//!  a ◄─ SELECT … WHERE p ─┐                                ┌─► a ◄─ SELECT … WHERE p
//!                         ├─ source   becomes   kept rows ─┤
//!  b ◄─ SELECT … WHERE q ─┘        (source WHERE p OR q)   └─► b ◄─ SELECT … WHERE q
//! ```
//! In: their plans. Out: plans that read rows which are kept: in memory up to [`KEPT_BYTES_MAX`], the rest in a file
//! where queries spill. The source is the largest part that all plans have below their own conditions, groups and
//! orders. Only columns that one of them reads are kept, and only rows that one of them may take.
//!
//! **Invariant:** each INSERT has the rows that it would have by itself, of one state of the tables.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema};
use datafusion::datasource::provider_as_source;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, TableSource, Volatility, WriteOp,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::{StreamExt, TryStreamExt};
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use stoa_semantics::errors::from_datafusion;
use stoa_semantics::volatility;

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::tables::table::stoa_table;

/// Rows of a source that are kept in memory, bytes; more are kept in a file.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// An INSERT, and the condition on the rows that it replaces, if it is an INSERT OVERWRITE with one.
pub(crate) struct InsertPlan {
    pub(crate) plan: LogicalPlan,
    pub(crate) overwritten: Option<Expr>,
}

/// The same INSERTs, with their source read. Where they have none in common, each reads by itself.
///
/// # Errors
/// Those of reading it; 53200 and 53100 where there is no room for its rows.
pub(crate) async fn read_once(
    session: &Session,
    plans: Vec<LogicalPlan>,
    guard: &QueryGuard,
) -> Result<Vec<LogicalPlan>> {
    let Some(source) = shared_by(&plans) else { return Ok(plans) };
    let source = source.clone();
    let places = columns_read(&plans, &source)?;
    let wanted = match rows_read(&plans, &source)? {
        Some(condition) => LogicalPlanBuilder::from(source.clone()).filter(condition),
        None => Ok(LogicalPlanBuilder::from(source.clone())),
    };
    let columns = source.schema().columns();
    let named = places.iter().map(|at| Expr::Column(columns[*at].clone()).alias(kept_name(*at)));
    let wanted = wanted
        .and_then(|rows| rows.project(named.collect::<Vec<_>>()))
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)?;
    let wanted = session.pin_snapshots(wanted).await?;
    let kept = Kept::of(session, &wanted, guard).await?;
    let kept = kept_plan(kept, &source, &places)?;
    plans.into_iter().map(|plan| with_kept(plan, &source, &kept)).collect()
}

/// INSERTs that can run one after the other in one transaction: those that overwrite a table come first, and those
/// that overwrite different partitions of it are one.
///
/// # Errors
/// 0A000 where a table, or the partitions into which rows come, would be overwritten twice.
pub(crate) fn together(inserts: Vec<InsertPlan>) -> Result<Vec<InsertPlan>> {
    let (mut overwriting, mut adding): (Vec<InsertPlan>, Vec<InsertPlan>) =
        (Vec::new(), Vec::new());
    for insert in inserts {
        if !super::changes_rows(&insert.plan) {
            adding.push(insert);
            continue;
        }
        match overwriting.iter_mut().find(|first| target(&first.plan) == target(&insert.plan)) {
            Some(first) => take_over(first, insert)?,
            None => overwriting.push(insert),
        }
    }
    overwriting.append(&mut adding);
    Ok(overwriting)
}

fn target(plan: &LogicalPlan) -> Option<TableIdent> {
    match plan {
        LogicalPlan::Dml(dml) => stoa_table(&dml.target).map(|found| found.table.ident().clone()),
        _ => None,
    }
}

fn take_over(first: &mut InsertPlan, other: InsertPlan) -> Result<()> {
    let twice = || {
        let name = target(&other.plan).map(|ident| ident.to_string()).unwrap_or_default();
        Error::unsupported(format!("table {name} is overwritten twice in one statement")).with_hint(
            "name different partitions with values, or write one INSERT OVERWRITE with UNION ALL",
        )
    };
    let (Some(one), Some(another)) = (&first.overwritten, &other.overwritten) else {
        return Err(twice());
    };
    if one == another {
        return Err(twice());
    }
    let (LogicalPlan::Dml(into), LogicalPlan::Dml(from)) = (&first.plan, &other.plan) else {
        return Err(Error::internal("an INSERT has no such plan"));
    };
    let both = LogicalPlanBuilder::from(into.input.as_ref().clone())
        .union(from.input.as_ref().clone())
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)?;
    let condition = one.clone().or(another.clone());
    first.plan = LogicalPlan::Dml(with_input(into, both));
    first.overwritten = Some(condition);
    Ok(())
}

fn with_input(dml: &DmlStatement, input: LogicalPlan) -> DmlStatement {
    let WriteOp::Insert(op) = &dml.op else { return dml.clone() };
    let (name, target) = (dml.table_name.clone(), Arc::clone(&dml.target));
    DmlStatement::new(name, target, WriteOp::Insert(*op), Arc::new(input))
}

/// What an INSERT writes, from the top down to where rows come from.
fn spine(plan: &LogicalPlan) -> Vec<&LogicalPlan> {
    let mut all = Vec::new();
    let mut next = match plan {
        LogicalPlan::Dml(dml) => Some(dml.input.as_ref()),
        _ => None,
    };
    while let Some(node) = next {
        all.push(node);
        next = match node.inputs().as_slice() {
            [input] => Some(*input),
            _ => None,
        };
    }
    all
}

/// The largest part that all plans have.
fn shared_by(plans: &[LogicalPlan]) -> Option<&LogicalPlan> {
    let (first, others) = plans.split_first()?;
    let others: Vec<Vec<&LogicalPlan>> = others.iter().map(spine).collect();
    let is_shared = |node: &&LogicalPlan| {
        others.iter().all(|spine| spine.iter().any(|other| is_same(node, other)))
    };
    let reads = |node: &&LogicalPlan| {
        !matches!(node, LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_))
    };
    spine(first).into_iter().filter(reads).find(is_shared).filter(|_| !others.is_empty())
}

/// Whether two plans give the same rows. Equal ones may differ in what they read under one name, and with whose rights.
fn is_same(one: &LogicalPlan, other: &LogicalPlan) -> bool {
    if one != other {
        return false;
    }
    let (one, other) = (sources(one), sources(other));
    one.len() == other.len()
        && one.iter().zip(&other).all(|(one, other)| is_same_source(one, other))
}

fn sources(plan: &LogicalPlan) -> Vec<Arc<dyn TableSource>> {
    let mut all = Vec::new();
    // Walking does not fail: nothing that is called does.
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            all.push(Arc::clone(&scan.source));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    all
}

fn is_same_source(one: &Arc<dyn TableSource>, other: &Arc<dyn TableSource>) -> bool {
    if Arc::ptr_eq(one, other) {
        return true;
    }
    match (stoa_table(one), stoa_table(other)) {
        (Some(one), Some(other)) => {
            one.table.uuid() == other.table.uuid()
                && one.table.schema_id() == other.table.schema_id()
                && one.scans_all()
                && other.scans_all()
                && one.has_reader_of(&other)
        }
        // Functions and other relations may have other parameters.
        _ => false,
    }
}

/// The nodes of a plan above the source.
fn above<'a>(plan: &'a LogicalPlan, source: &LogicalPlan) -> Vec<&'a LogicalPlan> {
    spine(plan).into_iter().take_while(|node| !is_same(node, source)).collect()
}

/// The places of the source's columns that some plan reads.
fn columns_read(plans: &[LogicalPlan], source: &LogicalPlan) -> Result<Vec<usize>> {
    let schema = source.schema();
    let all = || (0..schema.fields().len()).collect();
    let mut read = BTreeSet::new();
    for node in plans.iter().flat_map(|plan| above(plan, source)) {
        let passes_names = matches!(
            node,
            LogicalPlan::Projection(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::Aggregate(_)
                | LogicalPlan::Window(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Limit(_)
        );
        if !passes_names || has_subquery(node)? {
            return Ok(all());
        }
        node.apply_expressions(|expr| {
            read.extend(
                expr.column_refs()
                    .into_iter()
                    .filter_map(|column| schema.index_of_column(column).ok()),
            );
            Ok(TreeNodeRecursion::Continue)
        })
        .map_err(from_datafusion)?;
    }
    if read.is_empty() {
        read.insert(0);
    }
    Ok(read.into_iter().filter(|at| *at < schema.fields().len()).collect())
}

fn has_subquery(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_subqueries(|_| {
        found = true;
        Ok(TreeNodeRecursion::Stop)
    })
    .map_err(from_datafusion)?;
    Ok(found)
}

/// The condition on rows that some plan may take; `None` where one takes all.
fn rows_read(plans: &[LogicalPlan], source: &LogicalPlan) -> Result<Option<Expr>> {
    let mut any: Option<Expr> = None;
    for plan in plans {
        let Some(LogicalPlan::Filter(filter)) = above(plan, source).last().copied() else {
            return Ok(None);
        };
        if has_subquery(&LogicalPlan::Filter(filter.clone()))? || is_volatile(&filter.predicate)? {
            return Ok(None);
        }
        let condition = filter.predicate.clone();
        any = Some(match any {
            Some(any) => any.or(condition),
            None => condition,
        });
    }
    Ok(any)
}

fn is_volatile(expr: &Expr) -> Result<bool> {
    let is_volatile = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => Ok(volatility(call) == Volatility::Volatile),
        _ => Ok(false),
    };
    expr.exists(is_volatile).map_err(from_datafusion)
}

/// What the kept column is called that was the source's at this place.
fn kept_name(at: usize) -> String {
    format!("column {at}")
}

/// Kept rows in the place of the source: under its names, with its types.
fn kept_plan(kept: Kept, source: &LogicalPlan, places: &[usize]) -> Result<LogicalPlan> {
    let schema = Arc::clone(&kept.schema);
    let table = StreamingTable::try_new(schema, vec![Arc::new(kept)]).map_err(from_datafusion)?;
    let rows = LogicalPlanBuilder::scan("kept rows", provider_as_source(Arc::new(table)), None)
        .map_err(from_datafusion)?;
    let read = Arc::clone(rows.schema());
    let column = |at: &usize| {
        let (qualifier, field) = source.schema().qualified_field(*at);
        let kept = Column::new(Some("kept rows"), kept_name(*at));
        let has_type = ExprSchema::field_from_column(read.as_ref(), &kept)
            .is_ok_and(|kept| kept.data_type() == field.data_type());
        let kept = Expr::Column(kept);
        let kept = match has_type {
            true => kept,
            false => datafusion::logical_expr::cast(kept, field.data_type().clone()),
        };
        kept.alias_qualified(qualifier.cloned(), field.name())
    };
    let columns: Vec<Expr> = places.iter().map(column).collect();
    rows.project(columns).and_then(LogicalPlanBuilder::build).map_err(from_datafusion)
}

fn with_kept(plan: LogicalPlan, source: &LogicalPlan, kept: &LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Dml(dml) = &plan else { return Ok(plan) };
    let input = dml.input.as_ref().clone().transform_down(|node| match is_same(&node, source) {
        true => Ok(Transformed::new(kept.clone(), true, TreeNodeRecursion::Jump)),
        false => Ok(Transformed::no(node)),
    });
    Ok(LogicalPlan::Dml(with_input(dml, input.map_err(from_datafusion)?.data)))
}

/// Rows that can be read any number of times.
struct Kept {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// What the rows in memory take.
    _memory: MemoryReservation,
    /// The rows after them.
    spilled: Option<Spilled>,
}

struct Spilled {
    manager: SpillManager,
    file: Arc<dyn SpillFile>,
}

impl Kept {
    /// The rows of a plan, which runs now.
    async fn of(session: &Session, plan: &LogicalPlan, guard: &QueryGuard) -> Result<Self> {
        let mut stream = session.stream(plan, guard).await?;
        // Branches of a union may differ in which columns have NULLs.
        let fields = stream.schema();
        let fields = fields.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let memory =
            MemoryConsumer::new("rows for several INSERTs").register(session.runner.memory());
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let runtime = Arc::clone(session.state().runtime_env());
        let manager = SpillManager::new(runtime, metrics, Arc::clone(&schema));
        let (mut batches, mut spilling) = (Vec::new(), None);
        while let Some(batch) = stream.try_next().await.map_err(from_datafusion)? {
            let batch = batch.with_schema(Arc::clone(&schema)).map_err(|error| {
                Error::internal("rows do not have the columns of their plan").with_source(error)
            })?;
            let bytes = batch.get_array_memory_size();
            let fits = spilling.is_none()
                && memory.size() + bytes <= KEPT_BYTES_MAX
                && memory.try_grow(bytes).is_ok();
            if fits {
                batches.push(batch);
                continue;
            }
            let mut file = match spilling.take() {
                Some(file) => file,
                None => manager
                    .create_in_progress_file("rows for several INSERTs")
                    .map_err(from_datafusion)?,
            };
            file.append_batch(&batch).map_err(from_datafusion)?;
            spilling = Some(file);
        }
        let file = match spilling {
            Some(mut file) => file.finish().map_err(from_datafusion)?,
            None => None,
        };
        let spilled = file.map(|file| Spilled { manager, file });
        Ok(Self { schema, batches, _memory: memory, spilled })
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("batches", &self.batches.len()).finish_non_exhaustive()
    }
}

impl PartitionStream for Kept {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let memory = futures::stream::iter(self.batches.clone().into_iter().map(Ok));
        let spilled = self
            .spilled
            .as_ref()
            .map(|spilled| spilled.manager.read_spill_as_stream(Arc::clone(&spilled.file), None));
        let rows = match spilled {
            None => memory.boxed(),
            Some(Ok(spilled)) => memory.chain(spilled).boxed(),
            Some(Err(error)) => futures::stream::iter([Err(error)]).boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}
