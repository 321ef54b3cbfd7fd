//! Windows over whole partitions, one after the other.
//!
//! The engine's `WindowAggExec` collects all rows of its input, computes all partitions of the window in one
//! step, and asks no pool for the memory. [`PartitionedWindowExec`] is in its place: it computes the
//! partitions that are complete each time its input has given a batch.
//!
//! ```text
//! batches, by partition ─► OpenPartition (charged) ─► complete ones: computed ─► batches with the results
//! ```
//! In: the operator as it was planned, whose input is in order of its `PARTITION BY`. Out: the same rows.
//! Not seen before it ends is one partition of one function.

use std::fmt;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{concat, concat_batches};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::evaluate_partition_ranges;
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::error::Result as EngineResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, WindowExpr,
};
use futures::{StreamExt, stream};
use stoa_env::executors::hand_over;
use stoa_semantics::windows::over_partition;

use super::{fail_if_asked, has_computed_long};
use crate::run::stop::Stop;

/// Bytes that one row takes while its partition is computed: a value of the engine's own.
const ROW_BYTES: usize = 64;

/// Copies of what a window reads: as it was read, and as one batch.
const COPIES: usize = 2;

/// A window over whole partitions.
#[derive(Clone, Debug)]
pub(super) struct PartitionedWindowExec {
    window: WindowAggExec,
    metrics: ExecutionPlanMetricsSet,
    stop: Arc<Stop>,
}

impl PartitionedWindowExec {
    pub(super) fn new(window: WindowAggExec, stop: Arc<Stop>) -> Self {
        Self { window, metrics: ExecutionPlanMetricsSet::new(), stop }
    }
}

impl DisplayAs for PartitionedWindowExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.window.fmt_as(format, f)
    }
}

impl ExecutionPlan for PartitionedWindowExec {
    fn name(&self) -> &str {
        "WindowAggExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.window.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.window.input()]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        self.window.apply_expressions(f)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(self.window.input()));
        let can_repartition = !self.window.partition_keys().is_empty();
        let functions = self.window.window_expr().to_vec();
        let window = WindowAggExec::try_new(functions, input, can_repartition)?;
        Ok(Arc::new(Self::new(window, Arc::clone(&self.stop))))
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
        let memory = MemoryConsumer::new(format!("WindowAggExec[{partition}]"));
        let memory = memory.register(context.memory_pool());
        let input = self.window.input().execute(partition, context)?;
        let schema = self.schema();
        let open = OpenPartition {
            functions: self.window.window_expr().to_vec(),
            keys: self.window.partition_by_sort_keys()?,
            input: input.schema(),
            output: Arc::clone(&schema),
            rows: Vec::new(),
            counter: RecordBatchMemoryCounter::new(),
            memory,
            metrics: BaselineMetrics::new(&self.metrics, partition),
            stop: Arc::clone(&self.stop),
        };
        let batches = stream::unfold(Some((input, open)), next_batch);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

type Batch = EngineResult<RecordBatch>;

/// What a stream is made of; `None` once it has ended.
type State = Option<(SendableRecordBatchStream, OpenPartition)>;

/// The rows of the next partitions that are complete.
async fn next_batch(state: State) -> Option<(Batch, State)> {
    let (mut input, mut open) = state?;
    loop {
        let (complete, ended) = match input.next().await {
            Some(Ok(batch)) => (open.push(batch), false),
            Some(Err(error)) => (Err(error), true),
            None => (open.finish(), true),
        };
        return match complete {
            Ok(None) if ended => None,
            Ok(None) => continue,
            Ok(Some(batch)) if ended => Some((Ok(batch), None)),
            Ok(Some(batch)) => Some((Ok(batch), Some((input, open)))),
            Err(error) => Some((Err(error), None)),
        };
    }
}

/// The rows of the partition that is not complete yet.
struct OpenPartition {
    functions: Vec<Arc<dyn WindowExpr>>,
    /// What tells partitions apart; none where all rows are one.
    keys: Vec<PhysicalSortExpr>,
    input: SchemaRef,
    output: SchemaRef,
    rows: Vec<RecordBatch>,
    counter: RecordBatchMemoryCounter,
    memory: MemoryReservation,
    metrics: BaselineMetrics,
    stop: Arc<Stop>,
}

impl OpenPartition {
    /// Takes further rows; gives those of partitions that are complete now, with the results.
    fn push(&mut self, batch: RecordBatch) -> EngineResult<Option<RecordBatch>> {
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        self.charge(&batch)?;
        let Some(start) = self.last_start(&batch)? else {
            self.rows.push(batch);
            return Ok(None);
        };
        let last = batch.slice(start, batch.num_rows() - start);
        let mut complete = mem::replace(&mut self.rows, vec![last.clone()]);
        if start > 0 {
            complete.push(batch.slice(0, start));
        }
        if complete.is_empty() {
            return Ok(None);
        }
        let computed = self.compute(complete)?;
        self.counter = RecordBatchMemoryCounter::new();
        self.memory.free();
        self.charge(&last)?;
        Ok(Some(computed))
    }

    /// The rows of the last partition, when there are no more.
    fn finish(&mut self) -> EngineResult<Option<RecordBatch>> {
        let rows = mem::take(&mut self.rows);
        match rows.is_empty() {
            true => Ok(None),
            false => self.compute(rows).map(Some),
        }
    }

    fn charge(&mut self, batch: &RecordBatch) -> EngineResult<()> {
        let bytes = self.counter.count_batch(batch).saturating_mul(COPIES);
        let rows = batch.num_rows().saturating_mul(ROW_BYTES);
        self.memory.try_grow(bytes.saturating_add(rows))
    }

    /// The row at which the last partition of a batch begins; `None` where that is the open one.
    fn last_start(&self, batch: &RecordBatch) -> EngineResult<Option<usize>> {
        let start = self.partitions(batch)?.last().map_or(0, |range| range.start);
        let goes_on = match self.rows.last() {
            Some(last) => {
                let border = [last.slice(last.num_rows() - 1, 1), batch.slice(0, 1)];
                let border = concat_batches(&self.input, &border)?;
                self.partitions(&border)?.len() == 1
            }
            None => false,
        };
        Ok((start > 0 || !goes_on).then_some(start))
    }

    /// Where the partitions of a batch are.
    fn partitions(&self, batch: &RecordBatch) -> EngineResult<Vec<Range<usize>>> {
        let keys = self.keys.iter().map(|key| key.evaluate_to_sort_column(batch));
        evaluate_partition_ranges(batch.num_rows(), &keys.collect::<EngineResult<Vec<_>>>()?)
    }

    /// Rows of whole partitions, with the results of the functions as further columns.
    fn compute(&self, rows: Vec<RecordBatch>) -> EngineResult<RecordBatch> {
        let _timer = self.metrics.elapsed_compute().timer();
        let batch = concat_batches(&self.input, &rows)?;
        drop(rows);
        let mut results = vec![Vec::new(); self.functions.len()];
        for range in self.partitions(&batch)? {
            let partition = batch.slice(range.start, range.len());
            for (function, results) in self.functions.iter().zip(&mut results) {
                results.push(self.evaluate(function, &partition)?);
            }
        }
        let mut columns = batch.columns().to_vec();
        for parts in &results {
            let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
            columns.push(concat(&parts)?);
        }
        self.metrics.record_output(batch.num_rows());
        Ok(RecordBatch::try_new(Arc::clone(&self.output), columns)?)
    }

    fn evaluate(
        &self,
        function: &Arc<dyn WindowExpr>,
        partition: &RecordBatch,
    ) -> EngineResult<ArrayRef> {
        fail_if_asked(&self.stop)?;
        let compute = || over_partition(partition.num_rows(), || function.evaluate(partition));
        match has_computed_long() {
            true => hand_over(compute),
            false => compute(),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::super::make_cooperative;
    use super::*;
    use crate::run::stop::Stops;

    const SUM: &str = "SELECT v % 100 AS k, sum(v) OVER (PARTITION BY v % 100) AS s \
                       FROM generate_series(1, 20000) AS t(v)";

    fn context(batch_rows: usize, memory_bytes: usize) -> SessionContext {
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(memory_bytes)))
            .build_arc()
            .unwrap();
        let config = SessionConfig::new().with_batch_size(batch_rows).with_target_partitions(1);
        SessionContext::new_with_config_rt(config, runtime)
    }

    async fn planned(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
        context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
    }

    /// The first operator of a kind, from the top.
    fn find<'a>(
        plan: &'a Arc<dyn ExecutionPlan>,
        name: &str,
    ) -> Option<&'a Arc<dyn ExecutionPlan>> {
        if plan.name() == name {
            return Some(plan);
        }
        plan.children().into_iter().find_map(|child| find(child, name))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn partitions_are_those_of_the_engine() {
        let statements = [
            format!("{SUM} ORDER BY 1, 2"),
            "SELECT v, sum(v) OVER (PARTITION BY v % 9), rank() OVER (PARTITION BY v % 9 \
             ORDER BY v DESC) FROM generate_series(1, 900) AS t(v) ORDER BY v"
                .to_owned(),
            // Partitions of NULL, and of one row; several functions.
            "SELECT k, v, sum(v) OVER w, min(v) OVER w, first_value(v) OVER (PARTITION BY k \
             ORDER BY v DESC ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) \
             FROM (SELECT nullif(v % 7, 3) AS k, v FROM generate_series(1, 300) AS t(v) \
             UNION ALL SELECT v AS k, v FROM generate_series(1000, 1100) AS t(v)) AS q \
             WINDOW w AS (PARTITION BY k) ORDER BY 1, 2"
                .to_owned(),
            "SELECT count(*) OVER () AS n, v FROM generate_series(1, 500) AS t(v) ORDER BY v"
                .to_owned(),
            "SELECT sum(v) OVER (PARTITION BY v) FROM generate_series(1, 10) AS t(v) \
             WHERE v > 20"
                .to_owned(),
            // Keys that are equal by a join only.
            "SELECT b.v, sum(a.v) OVER (PARTITION BY b.v) FROM generate_series(1, 300) AS a(v) \
             JOIN generate_series(1, 300) AS b(v) ON a.v = b.v ORDER BY 1"
                .to_owned(),
        ];
        for rows in [1, 7, 100, 8192] {
            let context = context(rows, 1 << 30);
            for sql in &statements {
                let (stop, _waiting) = Stops::default().begin();
                let wanted = planned(&context, sql).await;
                let schema = wanted.schema();
                let wanted = collect(wanted, context.task_ctx()).await.unwrap();
                let plan = make_cooperative(planned(&context, sql).await, &stop).unwrap();
                let found = collect(plan, context.task_ctx()).await.unwrap();
                let whole = |batches: &[RecordBatch]| concat_batches(&schema, batches).unwrap();
                assert_eq!(whole(&found), whole(&wanted), "{rows}: {sql}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_partition_is_there_before_the_next_and_sees_the_stop() {
        let context = context(64, 1 << 30);
        let (stop, waiting) = Stops::default().begin();
        let plan = make_cooperative(planned(&context, SUM).await, &stop).unwrap();
        let window = find(&plan, "WindowAggExec").unwrap();
        let mut stream = window.execute(0, context.task_ctx()).unwrap();
        let first = stream.next().await.unwrap().unwrap();
        // 200 rows each; the first is complete with the fourth batch.
        assert_eq!(first.num_rows(), 200);
        drop(waiting);
        let error = loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("it went on to its end"),
            }
        };
        assert_eq!(stoa_semantics::errors::from_datafusion(error).sqlstate(), "57014");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_collected_is_charged() {
        let sql = "SELECT sum(v) OVER () FROM generate_series(1, 200000) AS t(v)";
        let (stop, _waiting) = Stops::default().begin();
        let context = context(8192, 2 << 20);
        let plan = make_cooperative(planned(&context, sql).await, &stop).unwrap();
        let error = collect(plan, context.task_ctx()).await.unwrap_err();
        assert_eq!(stoa_semantics::errors::from_datafusion(error).sqlstate(), "53200");
        assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
    }

    #[test]
    fn rows_stay_until_their_partition_is_complete() {
        let schema =
            SchemaRef::new(arrow::datatypes::Schema::new(vec![arrow::datatypes::Field::new(
                "k",
                arrow::datatypes::DataType::Int64,
                true,
            )]));
        let pool: Arc<dyn datafusion::execution::memory_pool::MemoryPool> =
            Arc::new(GreedyMemoryPool::new(1 << 20));
        let key = Arc::new(datafusion::physical_expr::expressions::Column::new("k", 0));
        let (stop, _waiting) = Stops::default().begin();
        let mut open = OpenPartition {
            functions: Vec::new(),
            keys: vec![PhysicalSortExpr::new_default(key)],
            input: Arc::clone(&schema),
            output: Arc::clone(&schema),
            rows: Vec::new(),
            counter: RecordBatchMemoryCounter::new(),
            memory: MemoryConsumer::new("test").register(&pool),
            metrics: BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), 0),
            stop,
        };
        let batch = |keys: Vec<Option<i64>>| {
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(keys))])
                .unwrap()
        };
        let keys = |batch: Option<RecordBatch>| {
            let batch = batch?;
            let keys = batch.column(0).as_primitive::<Int64Type>();
            Some(keys.iter().map(|key| key.unwrap_or(-1)).collect::<Vec<_>>())
        };
        let mut push = |rows: Vec<Option<i64>>| keys(open.push(batch(rows)).unwrap());
        assert_eq!(push(vec![Some(1), Some(1)]), None);
        assert_eq!(push(vec![Some(1)]), None);
        assert_eq!(push(vec![]), None);
        assert_eq!(push(vec![Some(1), Some(2), Some(3)]), Some(vec![1, 1, 1, 1, 2]));
        assert_eq!(push(vec![None]), Some(vec![3]));
        assert_eq!(push(vec![None, None]), None);
        assert_eq!(keys(open.finish().unwrap()), Some(vec![-1, -1, -1]));
        assert_eq!(keys(open.finish().unwrap()), None);
    }
}
