//! `ORDER BY … OFFSET n` in a subquery: which rows are skipped depends on their order.
//!
//! The engine drops a sort above which nothing asks for an order. A limit on rows stays with the sort that it is of; an
//! offset alone does not, and any rows would be skipped. Before the sorts are looked at, such a sort gets a mark that
//! asks for its order; the engine takes the marks away again.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::{Distribution, LexRequirement};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// Keeps the sorts of offsets. It comes first.
#[derive(Debug)]
pub(crate) struct OffsetsInOrder;

impl PhysicalOptimizerRule for OffsetsInOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(limit) = node.downcast_ref::<GlobalLimitExec>() else {
                return Ok(Transformed::no(node));
            };
            if limit.skip() == 0 || limit.fetch().is_some() {
                return Ok(Transformed::no(node));
            }
            match marked(limit.input())? {
                Some(input) => Ok(Transformed::yes(node.with_new_children(vec![input])?)),
                None => Ok(Transformed::no(node)),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "stoa_offsets_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with a mark on the sort whose order it keeps; `None` where there is no such sort.
fn marked(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let order = LexRequirement::from(sort.expr().clone()).into();
        let one = Distribution::SinglePartition;
        let mark = OutputRequirementExec::new(Arc::clone(plan), Some(order), one, None);
        return Ok(Some(Arc::new(mark)));
    }
    match (plan.children().as_slice(), plan.maintains_input_order().as_slice()) {
        ([input], [true]) => match marked(input)? {
            Some(input) => Arc::clone(plan).with_new_children(vec![input]).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}
