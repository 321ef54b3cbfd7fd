//! Groups of which only the first few are kept.
//!
//! For `GROUP BY k ORDER BY k LIMIT n` the engine keeps n groups, and takes memory for ten times as many before it has
//! seen a row: with a large n the process ends, as no such memory is there. Such limits are left to the sort above, which
//! takes memory as rows come, and counts it. So are limits of DISTINCT on rows that turned out to be ordered, which this
//! way of the engine cannot compute (XX000 for `(… ORDER BY … LIMIT 3) UNION … LIMIT 5`).

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, LimitOptions};

/// Most groups for which memory is taken at once.
const GROUPS_MAX: usize = 10_000;

/// Takes such limits out of aggregates. To come last: where rows are ordered is decided by other rules.
#[derive(Debug)]
pub(crate) struct FewTopGroups;

impl PhysicalOptimizerRule for FewTopGroups {
    fn name(&self) -> &str {
        "stoa_few_top_groups"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let aggregate = node.downcast_ref::<AggregateExec>();
            let is_no_help = |of: &&AggregateExec| {
                let queues_groups = !of.is_unordered_unfiltered_group_by_distinct();
                let no_help =
                    |limit: LimitOptions| limit.limit > GROUPS_MAX || limit.descending.is_none();
                queues_groups && of.limit_options().is_some_and(no_help)
            };
            Ok(match aggregate.filter(is_no_help) {
                Some(of) => Transformed::yes(Arc::new(of.with_new_limit_options(None)) as _),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn schema_check(&self) -> bool {
        true
    }
}
