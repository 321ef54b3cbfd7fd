//! What a daemon computes of a statement: with which memory, until when, and what its errors are.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use datafusion_distributed::BroadcastExec;
use futures::TryStreamExt;
use stoa_distributed::sent;

use super::parts::Part;
use crate::run::cooperate::make_cooperative;
use crate::run::memory;
use crate::tables::scan::count_sent_scans;

/// The plan of a task as it runs: it gives way to others, sees when nobody waits for it any more, and takes its
/// memory where the part of the statement takes it.
///
/// # Errors
/// Those of operators that get other inputs.
pub(super) fn prepared(
    plan: Arc<dyn ExecutionPlan>,
    part: &Arc<Part>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let plan = make_cooperative(plan, part.stop())?;
    count_sent_scans(&plan, part.progress());
    // The library puts another one in the place of an operator that sends rows out.
    let sends = plan.is::<RepartitionExec>() || plan.is::<BroadcastExec>();
    let input = plan.children().first().map(|input| Arc::clone(input));
    match input.filter(|_| sends) {
        Some(input) => {
            let task: Arc<dyn ExecutionPlan> = Arc::new(TaskExec::new(input, part));
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            plan.replace_children(vec![task], options)
        }
        None => Ok(Arc::new(TaskExec::new(plan, part))),
    }
}

/// A plan as the first task of its statement, on the daemon that has it.
pub(super) fn first_task(
    plan: Arc<dyn ExecutionPlan>,
    part: &Arc<Part>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter();
    let children = children.map(|input| Arc::new(TaskExec::new(Arc::clone(input), part)) as _);
    let children = children.collect();
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// A task of a part of a statement.
struct TaskExec {
    input: Arc<dyn ExecutionPlan>,
    part: Arc<Part>,
}

impl TaskExec {
    fn new(input: Arc<dyn ExecutionPlan>, part: &Arc<Part>) -> Self {
        Self { input, part: Arc::clone(part) }
    }
}

impl fmt::Debug for TaskExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskExec").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for TaskExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskExec")
    }
}

impl ExecutionPlan for TaskExec {
    fn name(&self) -> &str {
        "TaskExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
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
        Ok(Arc::new(Self::new(input, &self.part)))
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
        self.part.note_plan(&self.input);
        let context = memory::drawing_on(&context, self.part.memory());
        let rows = self.input.execute(partition, context).map_err(sent)?;
        // What the part has taken is given back after the last row.
        let part = Arc::clone(&self.part);
        let rows = rows.map_err(sent).inspect_ok(move |_| {
            let _part = &part;
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
