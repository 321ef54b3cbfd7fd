//! Aggregates of which the answer is known before anything is read (`count(*)` of a table), one within another.
//!
//! The engine's rule looks for the half of an aggregate that reads the rows below the half that brings results together.
//! Where that one has a FILTER, it goes on down and takes the half of *another* aggregate, whose answer then stands
//! where the outer one's should: `SELECT sum(n) FILTER (WHERE n > 1) FROM (SELECT count(*) AS n FROM t) q`. Such plans
//! are left as they are.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};

/// The engine's rule.
pub(super) const KNOWING_RULE: &str = "aggregate_statistics";

/// [`KNOWING_RULE`], but for such plans.
#[derive(Debug)]
pub(super) struct KnownAggregates(pub(super) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for KnownAggregates {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match plan.exists(|node| Ok(is_misleading(node)))? {
            true => Ok(plan),
            false => self.0.optimize(plan, config),
        }
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether a node reads rows with a FILTER, for one group, and so does an aggregate below it.
fn is_misleading(node: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(outer) = reading_one_group(node) else { return false };
    if outer.filter_expr().iter().all(Option::is_none) {
        return false;
    }
    let mut is_below = false;
    let looked = outer.input().apply(|node| {
        is_below |= reading_one_group(node).is_some();
        Ok(if is_below { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    looked.is_err() || is_below
}

fn reading_one_group(node: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    let aggregate = node.downcast_ref::<AggregateExec>()?;
    let reads_rows = aggregate.mode().input_mode() == AggregateInputMode::Raw;
    (reads_rows && aggregate.group_expr().is_empty()).then_some(aggregate)
}
