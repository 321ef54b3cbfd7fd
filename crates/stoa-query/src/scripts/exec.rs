//! The operator: each plan partition of its input goes through a process of its own.

use std::fmt;
use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning,
    PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use stoa_error::{Error, Result};
use stoa_script::{Script, Spec};
use stoa_semantics::errors::{from_datafusion, to_datafusion};

use super::node::schema_of;
use super::rows::{Reader, Writer};
use super::session::SessionScripts;

/// Rows through a program.
#[derive(Debug)]
pub(super) struct ScriptExec {
    command: Arc<str>,
    spec: Spec,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl ScriptExec {
    pub(super) fn new(command: &str, spec: Spec, input: Arc<dyn ExecutionPlan>) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema_of(&spec)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            input.boundedness(),
        );
        Self { command: command.into(), spec, input, properties: Arc::new(properties) }
    }

    /// The columns of the keys: those by which rows are distributed, then those by which they are sorted.
    fn keys(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        let schema = self.input.schema();
        let first = schema.fields().len().saturating_sub(self.spec.keys());
        let key = |at: usize| Arc::new(Column::new(schema.field(at).name(), at)) as _;
        (first..schema.fields().len()).map(key).collect()
    }
}

impl DisplayAs for ScriptExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptExec: {} [{}]", self.command, self.spec)
    }
}

impl ExecutionPlan for ScriptExec {
    fn name(&self) -> &str {
        "ScriptExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let mut keys = self.keys();
        keys.truncate(self.spec.distribute);
        InputDistributionRequirements::new(vec![match keys.is_empty() {
            true => Distribution::UnspecifiedDistribution,
            false => Distribution::KeyPartitioned(keys),
        }])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let keys = self.keys().into_iter().skip(self.spec.distribute);
        let sorted = keys.zip(&self.spec.sort).map(|(expr, key)| {
            let options = SortOptions { descending: key.descending, nulls_first: key.nulls_first };
            PhysicalSortExpr::new(expr, options)
        });
        vec![LexOrdering::new(sorted).map(OrderingRequirements::from)]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self::new(&self.command, self.spec.clone(), input)))
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        #[expect(deprecated, reason = "the one place where both names meet")]
        self.with_new_children(children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let config = context.session_config();
        let scripts = config.get_extension::<SessionScripts>().ok_or_else(|| {
            to_datafusion(Error::internal("a plan without a session runs a program"))
        })?;
        let (guard, launch) = scripts.launch(&self.command).map_err(to_datafusion)?;
        let rows = self.input.execute(partition, Arc::clone(&context))?;
        let arguments = self.input.schema().fields().len() - self.keys().len();
        let writer = Writer::new(self.spec.input.clone(), arguments);
        let rows = rows.map(move |batch| writer.bytes(&batch.map_err(from_datafusion)?));
        let mut rows = rows.boxed();
        let reader = Reader::new(schema_of(&self.spec), &self.spec, config.batch_size());
        let partial = self.spec.partial;
        // As in Hive, a process begins with its first row: without rows, there is none.
        let begin = async move {
            let first = first_of(&mut rows).await?;
            let rows = futures::stream::once(async { first }).chain(rows).boxed();
            Some(Script::start(&guard, &launch, rows, partial))
        };
        let batches = futures::stream::once(begin).flat_map(move |script| match script {
            None => futures::stream::empty().boxed(),
            Some(Err(error)) => futures::stream::iter([Err(to_datafusion(error))]).boxed(),
            Some(Ok(script)) => reader.clone().batches(script).boxed(),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema_of(&self.spec), batches)))
    }
}

/// The first lines, or the error in place of them.
async fn first_of(rows: &mut BoxStream<'static, Result<Vec<u8>>>) -> Option<Result<Vec<u8>>> {
    loop {
        match rows.next().await? {
            Ok(lines) if lines.is_empty() => {}
            first => return Some(first),
        }
    }
}
