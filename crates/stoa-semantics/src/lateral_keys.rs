//! What determines what within a LATERAL subquery does so for one row beside it only.
//!
//! `row_number() OVER (…)` without a partition, keys of GROUP BY and columns of DISTINCT determine all other columns of
//! their query. The engine adds columns that a key of GROUP BY determines to the keys. Beside another row the subquery is
//! another one, in which the same number stands for another row: `GROUP BY x.rn` would be by more than it.

use std::sync::Arc;

use datafusion::common::FunctionalDependencies;
use datafusion::error::Result;
use datafusion::logical_expr::logical_plan::Projection;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::TableFactor;

/// Plans LATERAL subqueries without such knowledge.
#[derive(Debug)]
pub(super) struct LateralPlanner;

impl RelationPlanner for LateralPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Derived { lateral: true, subquery, alias, sample } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let plan =
            context.plan(TableFactor::Derived { lateral: false, subquery, alias: None, sample })?;
        let plan = match plan.all_out_ref_exprs().is_empty() {
            true => plan,
            false => without_dependencies(plan)?,
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

fn without_dependencies(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = plan.schema().as_ref().clone();
    let schema = Arc::new(schema.with_functional_dependencies(FunctionalDependencies::empty())?);
    let (columns, rows) = match plan {
        LogicalPlan::Projection(of) => (of.expr, of.input),
        other => {
            let columns = other.schema().columns().into_iter().map(Expr::Column).collect();
            (columns, Arc::new(other))
        }
    };
    Projection::try_new_with_schema(columns, rows, schema).map(LogicalPlan::Projection)
}
