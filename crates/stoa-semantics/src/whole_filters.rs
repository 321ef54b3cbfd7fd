//! Filters pass on all their columns while projections are pushed down.
//!
//! The engine's rule puts a projection into the filter below it, and runs twice. The second time it reads the filter's
//! condition, whose columns are those of the filter's input, as if they were those of its output. Where a column of the
//! output has the place and the name of one in the condition, projection and condition then take the wrong columns: in
//! a join of tables whose columns have the same names, values of one table show as those of another. So projections
//! come out of filters before the rule runs; it puts them back.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;

/// The engine's rule that this one comes before.
pub(super) const PUSHING_RULE: &str = "ProjectionPushdown";

/// Takes the projections out of filters, and puts them above.
#[derive(Debug)]
pub(super) struct WholeFilters;

impl PhysicalOptimizerRule for WholeFilters {
    fn name(&self) -> &str {
        "stoa_whole_filters"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let filter = node.downcast_ref::<FilterExec>();
            match filter.and_then(|filter| Some((filter, filter.projection().as_ref()?))) {
                Some((filter, kept)) => projection_above(filter, kept).map(Transformed::yes),
                None => Ok(Transformed::no(node)),
            }
        })
        .data()
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A filter that passes on all columns, and above it a projection to those at the places `kept`.
fn projection_above(filter: &FilterExec, kept: &[usize]) -> Result<Arc<dyn ExecutionPlan>> {
    let whole = FilterExecBuilder::from(filter).apply_projection(None)?.build()?;
    let schema = whole.schema();
    let column = |place: &usize| {
        let name = schema.field(*place).name();
        let expr = Arc::new(Column::new(name, *place)) as _;
        ProjectionExpr { expr, alias: name.clone() }
    };
    let kept: Vec<ProjectionExpr> = kept.iter().map(column).collect();
    Ok(Arc::new(ProjectionExec::try_new(kept, Arc::new(whole))?))
}
