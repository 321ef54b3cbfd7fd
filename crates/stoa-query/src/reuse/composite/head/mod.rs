//! What computes on the answers of cores.
//!
//! In: the plan above the cores, planned physically by the engine for one plan partition, and without the rules that
//! lay out streams. Out: per call, one batch from one batch per core, on the spot: no streams, no tasks, no metrics.
//!
//! Expressions, aggregate functions and window functions are the engine's own objects. **Invariant:** an operator that
//! is not here, or has a property that is not looked at here, makes no head.

mod aggregate;
mod join;
mod places;
mod sort;
mod window;

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};

use stoa_report::Memory;

use super::leaf::LeafExec;
use aggregate::Grouping;
use join::Join;
use sort::Sort;
use window::Windows;

/// Bytes of all batches of one computation; beyond, the engine must compute, which can spill.
const BYTES_MAX: usize = 64 << 20;

/// Steps in which memory is asked for; a computation that takes less asks nobody.
const BYTES_STEP: usize = 1 << 20;

/// The operators above the cores of a form.
pub(crate) struct Head {
    top: Node,
    schema: SchemaRef,
    /// The engine's plan, to be shown.
    shown: String,
}

/// An operator: from batches to a batch.
enum Node {
    /// The answer of a core, by number.
    Core(usize, SchemaRef),
    /// One row without columns.
    OneRow(SchemaRef),
    Project(Box<Node>, Vec<Arc<dyn PhysicalExpr>>, SchemaRef),
    Filter(Box<Node>, Arc<dyn PhysicalExpr>, Option<Vec<usize>>),
    Sort(Box<Node>, Sort),
    Limit(Box<Node>, usize, Option<usize>),
    Group(Box<Node>, Box<Grouping>),
    Window(Box<Node>, Windows),
    Join(Box<[Node; 2]>, Box<Join>),
    Union(Vec<Node>, SchemaRef),
}

/// The answers of the cores, and what was computed from them so far.
pub(super) struct Computation<'a> {
    cores: &'a [RecordBatch],
    memory: &'a dyn Memory,
    bytes: usize,
}

impl Head {
    /// The head of `plan`, whose leaves stand for so many cores, and whose places have these `types`. Its answer has
    /// the columns of `schema`.
    pub(super) async fn of(
        plan: LogicalPlan,
        schema: SchemaRef,
        cores: usize,
        types: &[DataType],
        state: &SessionState,
    ) -> Option<Self> {
        let plan = places::with_functions(plan, types).ok()?;
        let config = state.config().clone().with_target_partitions(1);
        let state = SessionStateBuilder::new_from_existing(state.clone())
            .with_config(config)
            .with_physical_optimizer_rules(Vec::new())
            .build();
        let planned = state.query_planner().create_physical_plan(&plan, &state).await.ok()?;
        let top = Node::of(&planned)?;
        let computed = planned.schema();
        let types = |schema: &SchemaRef| -> Vec<DataType> {
            schema.fields().iter().map(|field| field.data_type().clone()).collect()
        };
        let fits = top.cores() == cores && types(&computed) == types(&schema);
        fits.then(|| Self {
            top,
            schema,
            shown: displayable(planned.as_ref()).indent(false).to_string(),
        })
    }

    /// Columns of the answer.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The operators, one a line.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Computes the answer from those of the cores, in their order, with the values of the call. What it took of
    /// `memory` beyond the answer is given back.
    ///
    /// # Errors
    /// Those of the expressions, and `ResourcesExhausted` where it takes too much memory.
    pub(crate) fn compute(
        &self,
        cores: &[RecordBatch],
        values: &Arc<[ScalarValue]>,
        memory: &dyn Memory,
    ) -> EngineResult<RecordBatch> {
        let compute = || self.top.compute(&mut Computation { cores, memory, bytes: 0 });
        let batch = with_schema(&self.schema, places::with_values(values, compute)?)?;
        // Less than before: there is that much.
        memory.resize(batch.get_array_memory_size() / BYTES_STEP * BYTES_STEP);
        Ok(batch)
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Head").field(&self.shown).finish()
    }
}

impl Computation<'_> {
    /// Counts what was computed.
    fn add(&mut self, batch: RecordBatch) -> EngineResult<RecordBatch> {
        self.take(batch.get_array_memory_size())?;
        Ok(batch)
    }

    /// Counts bytes that are about to be taken.
    pub(super) fn take(&mut self, bytes: usize) -> EngineResult<()> {
        let before = self.bytes;
        self.bytes = self.bytes.saturating_add(bytes);
        let steps = self.bytes / BYTES_STEP;
        let is_more = steps > before / BYTES_STEP;
        match self.bytes > BYTES_MAX || is_more && !self.memory.resize(steps * BYTES_STEP) {
            true => Err(DataFusionError::ResourcesExhausted("too much for a report".to_owned())),
            false => Ok(()),
        }
    }
}

impl Node {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let input = |of: &Arc<dyn ExecutionPlan>| Some(Box::new(Self::of(of)?));
        if let Some(leaf) = plan.downcast_ref::<LeafExec>() {
            return Some(Self::Core(leaf.number, plan.schema()));
        }
        if plan.is::<PlaceholderRowExec>() {
            let has_columns = !plan.schema().fields().is_empty();
            return (!has_columns).then(|| Self::OneRow(plan.schema()));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let exprs = projection.expr().iter().map(|column| Arc::clone(&column.expr));
            return Some(Self::Project(input(projection.input())?, exprs.collect(), plan.schema()));
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let columns = filter.projection().as_ref().map(|columns| columns.to_vec());
            let plain = filter.fetch().is_none();
            let predicate = Arc::clone(filter.predicate());
            return plain.then_some(Self::Filter(input(filter.input())?, predicate, columns));
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            return Some(Self::Sort(input(sort.input())?, Sort::of(sort)));
        }
        if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
            return Some(Self::Limit(input(limit.input())?, limit.skip(), limit.fetch()));
        }
        if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
            return Some(Self::Limit(input(limit.input())?, 0, Some(limit.fetch())));
        }
        if let Some(same) = plan.downcast_ref::<CoalescePartitionsExec>() {
            return same.fetch().is_none().then(|| Self::of(same.input()))?;
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            let (grouping, below) = Grouping::of(aggregate)?;
            return Some(Self::Group(input(below)?, Box::new(grouping)));
        }
        if let Some(union) = plan.downcast_ref::<UnionExec>() {
            let inputs = union.inputs().iter().map(Self::of).collect::<Option<_>>()?;
            return Some(Self::Union(inputs, plan.schema()));
        }
        if let Some((windows, below)) = Windows::of(plan) {
            return Some(Self::Window(input(below)?, windows));
        }
        let (join, [left, right]) = Join::of(plan)?;
        Some(Self::Join(Box::new([Self::of(left)?, Self::of(right)?]), Box::new(join)))
    }

    /// Leaves below it that stand for cores.
    fn cores(&self) -> usize {
        match self {
            Self::Core(..) => 1,
            Self::OneRow(_) => 0,
            Self::Project(input, ..)
            | Self::Filter(input, ..)
            | Self::Sort(input, _)
            | Self::Limit(input, ..)
            | Self::Group(input, _)
            | Self::Window(input, _) => input.cores(),
            Self::Join(inputs, _) => inputs.iter().map(Self::cores).sum(),
            Self::Union(inputs, _) => inputs.iter().map(Self::cores).sum(),
        }
    }

    fn compute(&self, computation: &mut Computation<'_>) -> EngineResult<RecordBatch> {
        match self {
            Self::Core(number, schema) => {
                let batch = computation.cores.get(*number).cloned();
                let batch = batch.ok_or_else(|| internal("a core has no answer"))?;
                with_schema(schema, batch)
            }
            Self::OneRow(schema) => batch_of(schema, Vec::new(), 1),
            Self::Project(input, exprs, schema) => {
                let batch = input.compute(computation)?;
                let column = |expr: &Arc<dyn PhysicalExpr>| {
                    expr.evaluate(&batch)?.into_array(batch.num_rows())
                };
                let columns = exprs.iter().map(column).collect::<EngineResult<Vec<_>>>()?;
                computation.add(batch_of(schema, columns, batch.num_rows())?)
            }
            Self::Filter(input, predicate, columns) => {
                let batch = input.compute(computation)?;
                let kept = predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
                let kept = kept.as_boolean_opt().ok_or_else(|| internal("a condition is none"))?;
                let batch = match kept.null_count() == 0 && kept.true_count() == kept.len() {
                    true => batch,
                    false => filter_record_batch(&batch, kept)?,
                };
                Ok(match columns {
                    Some(columns) => batch.project(columns)?,
                    None => batch,
                })
            }
            Self::Sort(input, sort) => {
                let batch = input.compute(computation)?;
                computation.add(sort.sorted(&batch)?)
            }
            Self::Limit(input, skip, fetch) => {
                let batch = input.compute(computation)?;
                let skip = (*skip).min(batch.num_rows());
                let left = batch.num_rows() - skip;
                Ok(batch.slice(skip, fetch.map_or(left, |fetch| fetch.min(left))))
            }
            Self::Group(input, grouping) => {
                let batch = input.compute(computation)?;
                computation.add(grouping.compute(&batch)?)
            }
            Self::Window(input, windows) => {
                let batch = input.compute(computation)?;
                computation.add(windows.compute(&batch)?)
            }
            Self::Join(inputs, join) => {
                let left = inputs[0].compute(computation)?;
                let right = inputs[1].compute(computation)?;
                let joined = join.compute(&left, &right, computation)?;
                computation.add(joined)
            }
            Self::Union(inputs, schema) => {
                let one = |input: &Self| with_schema(schema, input.compute(computation)?);
                let batches = inputs.iter().map(one).collect::<EngineResult<Vec<_>>>()?;
                computation.add(concat_batches(schema, &batches)?)
            }
        }
    }
}

/// The same columns by the names, and with the nullability, of `schema`.
fn with_schema(schema: &SchemaRef, batch: RecordBatch) -> EngineResult<RecordBatch> {
    let rows = batch.num_rows();
    batch_of(schema, batch.columns().to_vec(), rows)
}

fn batch_of(
    schema: &SchemaRef,
    columns: Vec<arrow::array::ArrayRef>,
    rows: usize,
) -> EngineResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// What only a bug can cause; the statement is planned then.
fn internal(what: &str) -> DataFusionError {
    DataFusionError::Internal(what.to_owned())
}
