//! Makes plans stop soon after they are cancelled.
//!
//! A cancel is seen when a plan's stream returns to its caller. The engine's leaves return now and
//! then by themselves, but a join can make millions of batches of two that its leaves gave, without
//! ever asking them again. So the output of each join is made to count against the task's budget.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as EngineResult;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// `plan`, with every join wrapped so that it gives way.
pub(crate) fn make_cancellable(
    plan: Arc<dyn ExecutionPlan>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    if !has_join(&plan) {
        return Ok(plan);
    }
    let wrapped = plan.transform_up(|node| match is_join(node.as_ref()) {
        true => {
            let wrapped: Arc<dyn ExecutionPlan> = Arc::new(CooperativeExec::new(node));
            Ok(Transformed::yes(wrapped))
        }
        false => Ok(Transformed::no(node)),
    })?;
    Ok(wrapped.data)
}

fn has_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    is_join(plan.as_ref()) || plan.children().into_iter().any(has_join)
}

fn is_join(plan: &dyn ExecutionPlan) -> bool {
    plan.name().ends_with("JoinExec")
}
