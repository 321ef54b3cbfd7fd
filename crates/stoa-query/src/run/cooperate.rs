//! Makes plans give way to others, and stop soon after nobody waits for them.
//!
//! An executor runs other tasks, and sees that a plan was dropped, when the plan's stream returns to it.
//! The engine's operators return when an input has nothing at the moment, and otherwise after so many
//! batches of some inputs; a join whose pairs all fail its condition, a sort or a window may compute for
//! minutes before. So
//!
//! - [`GiveWayExec`] stands above whatever gives batches (leaves, joins, sorts, groups, windows). Its
//!   stream returns to the executor after [`TURN`], and fails once the plan is to stop. An operator that
//!   has computed for [`LONG`] without giving anything hands its thread's other tasks over;
//! - the condition of every join is a [`WatchedExpr`]: within the operator's own loop it fails once the
//!   plan is to stop, and hands over as well. So are the keys with which a hash join makes its table, which
//!   are computed for one batch after the other;
//! - windows over whole partitions are computed partition by partition ([`windows`]).
//!
//! Not seen before it ends is one step of an operator over what it has collected: to make one batch of
//! the rows of a hash join's table, to give out the groups of an aggregation, a window over one partition.
//! It keeps no other task waiting where it was preceded by work, and is shown as long as it lasts (`stop`).

mod windows;

use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as EngineResult;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::{Stream, StreamExt};
use stoa_env::clock;
use stoa_env::executors::hand_over;

use self::windows::PartitionedWindowExec;
use crate::run::stop::{Stop, stopped};
use stoa_semantics::errors::to_datafusion;

/// How long a stream gives batches before it lets others go on.
const TURN: Duration = Duration::from_millis(10);

/// An operator that has computed for so long without a result may go on for much longer.
const LONG: Duration = Duration::from_millis(20);

thread_local! {
    /// When the operator that computes on this thread was asked for its next batch.
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// `plan`, so that it gives way and sees `stop`.
pub(crate) fn make_cooperative(
    plan: Arc<dyn ExecutionPlan>,
    stop: &Arc<Stop>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    make_part_cooperative(plan, stop, |_| false)
}

/// As [`make_cooperative`], for the part of `plan` above the operators at which it `ends`; they and what is below
/// them stay as they are.
pub(crate) fn make_part_cooperative(
    plan: Arc<dyn ExecutionPlan>,
    stop: &Arc<Stop>,
    ends: fn(&dyn ExecutionPlan) -> bool,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_down_up(
        |node| match ends(node.as_ref()) {
            true => Ok(Transformed::new(node, false, TreeNodeRecursion::Jump)),
            false => Ok(Transformed::no(node)),
        },
        |node| match ends(node.as_ref()) {
            true => Ok(Transformed::no(node)),
            false => cooperative_operator(node, stop),
        },
    )?;
    Ok(wrapped.data)
}

fn cooperative_operator(
    node: Arc<dyn ExecutionPlan>,
    stop: &Arc<Stop>,
) -> EngineResult<Transformed<Arc<dyn ExecutionPlan>>> {
    // A watched key is no column any more: what is known of the rows is what was known before.
    let properties = Arc::clone(node.properties());
    let node = watched_operator(node, stop)?;
    if !gives_batches(node.as_ref()) {
        return Ok(Transformed::no(node));
    }
    let wrapped = GiveWayExec::with_properties(node, &properties, Arc::clone(stop));
    Ok(Transformed::yes(Arc::new(wrapped) as Arc<dyn ExecutionPlan>))
}

/// Whether an operator can give many batches without asking another one for each.
fn gives_batches(plan: &dyn ExecutionPlan) -> bool {
    const NAMES: [&str; 8] = [
        "FoldScanExec",
        "JoinExec",
        "SortExec",
        "SortPreservingMergeExec",
        "AggregateExec",
        "WindowAggExec",
        "UnnestExec",
        "RecursiveQueryExec",
    ];
    // Some say more in their name: `SortExec(TopK)`.
    let name = plan.name().split('(').next().unwrap_or_default();
    plan.children().is_empty() || NAMES.iter().any(|known| name.ends_with(known))
}

/// A join with its condition and keys watched, a window by partitions; all else as it is.
fn watched_operator(
    node: Arc<dyn ExecutionPlan>,
    stop: &Arc<Stop>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        // Without a condition it may compare all rows before it gives any.
        let filter = join.filter().cloned().unwrap_or_else(always);
        let join = NestedLoopJoinExecBuilder::from(join);
        return Ok(Arc::new(join.with_filter(Some(watched(&filter, stop))).build()?));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let filter = join.filter().map(|filter| watched(filter, stop));
        let on = join.on().iter().map(|(left, right)| (watch(left, stop), Arc::clone(right)));
        return join.builder().with_on(on.collect()).with_filter(filter).build_exec();
    }
    if let Some(window) = node.downcast_ref::<WindowAggExec>() {
        return Ok(Arc::new(PartitionedWindowExec::new(window.clone(), Arc::clone(stop))));
    }
    if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
        let Some(filter) = join.filter() else { return Ok(node) };
        return Ok(Arc::new(SortMergeJoinExec::try_new(
            Arc::clone(join.left()),
            Arc::clone(join.right()),
            join.on().to_vec(),
            Some(watched(filter, stop)),
            join.join_type(),
            join.sort_options().to_vec(),
            join.null_equality(),
        )?));
    }
    Ok(node)
}

/// The condition that all pairs meet.
fn always() -> JoinFilter {
    JoinFilter::new(lit(true), Vec::new(), Arc::new(Schema::empty()))
}

fn watched(filter: &JoinFilter, stop: &Arc<Stop>) -> JoinFilter {
    let condition = watch(filter.expression(), stop);
    let columns = filter.column_indices().to_vec();
    JoinFilter::new(condition, columns, Arc::clone(filter.schema()))
}

fn watch(inner: &Arc<dyn PhysicalExpr>, stop: &Arc<Stop>) -> Arc<dyn PhysicalExpr> {
    Arc::new(WatchedExpr { inner: Arc::clone(inner), stop: Arc::clone(stop) })
}

/// # Errors
/// The plan is to stop.
fn fail_if_asked(stop: &Stop) -> EngineResult<()> {
    match stop.is_asked() {
        true => Err(to_datafusion(stopped())),
        false => Ok(()),
    }
}

/// Whether the operator that computes on this thread has done so for long without a result.
fn has_computed_long() -> bool {
    ASKED.get().is_some_and(|asked| asked.elapsed() > LONG)
}

/// An operator whose batches give way.
#[derive(Clone, Debug)]
struct GiveWayExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    stop: Arc<Stop>,
}

impl GiveWayExec {
    fn new(input: Arc<dyn ExecutionPlan>, stop: Arc<Stop>) -> Self {
        let properties = Arc::clone(input.properties());
        Self::with_properties(input, &properties, stop)
    }

    fn with_properties(
        input: Arc<dyn ExecutionPlan>,
        properties: &PlanProperties,
        stop: Arc<Stop>,
    ) -> Self {
        let properties = properties.clone().with_scheduling_type(SchedulingType::Cooperative);
        Self { input, properties: Arc::new(properties), stop }
    }
}

impl DisplayAs for GiveWayExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for GiveWayExec {
    fn name(&self) -> &str {
        "CooperativeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        Ok(Arc::new(Self::new(input, Arc::clone(&self.stop))))
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
        let rows_max = context.session_config().batch_size().saturating_mul(2);
        Ok(Box::pin(GiveWayStream {
            inner: self.input.execute(partition, context)?,
            stop: Arc::clone(&self.stop),
            // A grouping of a scan's rows returns after each row group, too.
            is_leaf: self.input.children().is_empty() || self.input.name() == "FoldScanExec",
            rows_max,
            turn: None,
            computed: Duration::ZERO,
            rest: None,
        }))
    }
}

struct GiveWayStream {
    inner: SendableRecordBatchStream,
    stop: Arc<Stop>,
    is_leaf: bool,
    /// Larger batches are handed out in parts, so that no one behind it works on all of them at once.
    rows_max: usize,
    /// When it began to give batches without a pause.
    turn: Option<Instant>,
    /// How long it has computed since it last gave a batch.
    computed: Duration,
    rest: Option<RecordBatch>,
}

impl GiveWayStream {
    fn ask(&mut self, began: Instant, context: &mut Context<'_>) -> Poll<Option<Batch>> {
        let before = ASKED.replace(Some(began));
        let is_long = !self.is_leaf && self.computed > LONG;
        let polled = match is_long {
            true => hand_over(|| self.inner.poll_next_unpin(context)),
            false => self.inner.poll_next_unpin(context),
        };
        ASKED.set(before);
        match &polled {
            Poll::Ready(Some(_)) => self.computed = Duration::ZERO,
            _ => self.computed += began.elapsed(),
        }
        polled
    }

    /// The first rows of a batch; keeps the others.
    fn part(&mut self, batch: RecordBatch) -> RecordBatch {
        if batch.num_rows() <= self.rows_max {
            return batch;
        }
        let rest = batch.num_rows() - self.rows_max;
        self.rest = Some(batch.slice(self.rows_max, rest));
        batch.slice(0, self.rows_max)
    }
}

type Batch = EngineResult<RecordBatch>;

impl Stream for GiveWayStream {
    type Item = Batch;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Batch>> {
        let this = &mut *self;
        if let Err(stopped) = fail_if_asked(&this.stop) {
            return Poll::Ready(Some(Err(stopped)));
        }
        let now = clock::monotonic();
        match this.turn {
            Some(since) if now.duration_since(since) > TURN => {
                this.turn = None;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(_) => {}
            None => this.turn = Some(now),
        }
        if let Some(rest) = this.rest.take() {
            return Poll::Ready(Some(Ok(this.part(rest))));
        }
        match this.ask(now, context) {
            Poll::Pending => {
                this.turn = None;
                Poll::Pending
            }
            Poll::Ready(Some(Ok(batch))) => Poll::Ready(Some(Ok(this.part(batch)))),
            ended => ended,
        }
    }
}

impl RecordBatchStream for GiveWayStream {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}

/// The condition of a join, which is looked at in the join's innermost loop, or a key of its table.
#[derive(Clone, Debug)]
struct WatchedExpr {
    inner: Arc<dyn PhysicalExpr>,
    stop: Arc<Stop>,
}

impl PartialEq for WatchedExpr {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for WatchedExpr {}

impl Hash for WatchedExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for WatchedExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl PhysicalExpr for WatchedExpr {
    fn data_type(&self, schema: &Schema) -> EngineResult<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> EngineResult<bool> {
        self.inner.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> EngineResult<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> EngineResult<ColumnarValue> {
        fail_if_asked(&self.stop)?;
        match has_computed_long() {
            true => hand_over(|| self.inner.evaluate(batch)),
            false => self.inner.evaluate(batch),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> EngineResult<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().unwrap_or_else(|| Arc::clone(&self.inner));
        Ok(Arc::new(Self { inner, stop: Arc::clone(&self.stop) }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use arrow::compute::concat_batches;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;
    use crate::run::stop::Stops;
    use stoa_semantics::errors::from_datafusion;

    /// A statement for each operator, with rows in one order.
    const STATEMENTS: [&str; 13] = [
        "SELECT a.value, b.value FROM generate_series(1, 50) a(value) \
         LEFT JOIN generate_series(1, 60) b(value) ON a.value + b.value = 20 ORDER BY 1, 2",
        "SELECT a.value, b.value FROM generate_series(1, 50) a(value) \
         RIGHT JOIN generate_series(1, 60) b(value) ON a.value > b.value + 45 ORDER BY 1, 2",
        "SELECT a.value, b.value FROM generate_series(1, 50) a(value) \
         FULL JOIN generate_series(1, 60) b(value) ON a.value > b.value + 45 ORDER BY 1, 2",
        "SELECT a.value FROM generate_series(1, 50) a(value) WHERE EXISTS \
         (SELECT 1 FROM generate_series(1, 9) b(value) WHERE a.value + b.value > 55) ORDER BY 1",
        "SELECT a.value FROM generate_series(1, 50) a(value) WHERE NOT EXISTS \
         (SELECT 1 FROM generate_series(1, 9) b(value) WHERE a.value + b.value > 55) ORDER BY 1",
        "SELECT count(*) FROM generate_series(1, 50) a(value) WHERE EXISTS \
         (SELECT 1 FROM generate_series(1, 3) b(value))",
        "SELECT sum(a.value * b.value) FROM generate_series(1, 500) a(value), generate_series(1, 500) b(value)",
        "SELECT a.value, b.value FROM generate_series(1, 50) a(value) JOIN generate_series(1, 60) b(value) \
         ON a.value % 5 = b.value % 5 AND a.value > b.value + 40 ORDER BY 1, 2",
        "SELECT a.value % 7 AS g, count(*) FROM generate_series(1, 50000) a(value) GROUP BY 1 ORDER BY 1",
        "SELECT a.value FROM generate_series(1, 50000) a(value) ORDER BY a.value % 1000, 1",
        "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY a.value DESC) AS r \
         FROM generate_series(1, 50000) a(value)) w",
        "SELECT sum(s) FROM (SELECT sum(a.value) OVER (PARTITION BY a.value % 3) AS s \
         FROM generate_series(1, 50000) a(value)) w",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 100) \
         SELECT sum(n) FROM r",
    ];

    fn contexts() -> [SessionContext; 2] {
        let merging = SessionConfig::new()
            .with_target_partitions(2)
            .set_bool("datafusion.optimizer.prefer_hash_join", false);
        [SessionContext::new(), SessionContext::new_with_config(merging)]
    }

    async fn planned(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
        context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
    }

    async fn rows(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> RecordBatch {
        let schema = plan.schema();
        let batches = collect(plan, context.task_ctx()).await.unwrap();
        concat_batches(&schema, &batches).unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn plans_that_give_way_answer_as_they_did() {
        for context in contexts() {
            for sql in STATEMENTS {
                let (stop, _waiting) = Stops::default().begin();
                let wanted = rows(&context, planned(&context, sql).await).await;
                let plan = make_cooperative(planned(&context, sql).await, &stop).unwrap();
                assert_eq!(rows(&context, plan).await, wanted, "{sql}");
                assert!(wanted.num_rows() > 0, "{sql}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn plans_that_are_to_stop_fail() {
        for context in contexts() {
            for sql in STATEMENTS {
                let (stop, waiting) = Stops::default().begin();
                let plan = make_cooperative(planned(&context, sql).await, &stop).unwrap();
                drop(waiting);
                let error = collect(plan, context.task_ctx()).await.unwrap_err();
                assert_eq!(from_datafusion(error).sqlstate(), "57014", "{sql}");
            }
        }
    }

    /// The first operator of a kind, from the top.
    fn find<P: ExecutionPlan>(plan: &Arc<dyn ExecutionPlan>) -> Option<&P> {
        match plan.downcast_ref::<P>() {
            Some(found) => Some(found),
            None => plan.children().into_iter().find_map(|child| find(child)),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_hash_table_fails_while_it_is_made() {
        let context = SessionContext::new();
        let sql = "SELECT * FROM generate_series(1, 50) a(value) JOIN generate_series(1, 60) b(value) \
                   ON a.value = b.value";
        let (stop, waiting) = Stops::default().begin();
        let plan = make_cooperative(planned(&context, sql).await, &stop).unwrap();
        let join = find::<HashJoinExec>(&plan).unwrap();
        let (key, _) = &join.on()[0];
        let batch = RecordBatch::new_empty(join.left().schema());
        assert!(key.evaluate(&batch).is_ok());
        drop(waiting);
        assert!(key.evaluate(&batch).is_err());
    }

    #[test]
    fn a_condition_fails_within_its_join() {
        let (stop, waiting) = Stops::default().begin();
        let filter = watched(&always(), &stop);
        let batch = RecordBatch::new_empty(SchemaRef::clone(filter.schema()));
        assert!(filter.expression().evaluate(&batch).is_ok());
        drop(waiting);
        assert!(filter.expression().evaluate(&batch).is_err());
    }
}
