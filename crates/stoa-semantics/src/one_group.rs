//! Conditions without columns stay above an aggregate that has a row although it reads none.
//!
//! `SELECT * FROM (SELECT count(*) FROM t) q WHERE (SELECT false)` has no row. The engine moves a condition below an aggregate
//! if all of its columns are keys of groups, and so also one that has no columns: the aggregate would then count the
//! rows of an empty table, and its one row be the answer. Below such aggregates no condition can be moved at all.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule that moves conditions.
pub(super) const MOVING_RULE: &str = "push_down_filter";

/// [`MOVING_RULE`], but for such conditions.
#[derive(Debug)]
pub(super) struct AboveOneGroup(pub(super) Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for AboveOneGroup {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match is_to_stay(&plan) {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}

/// Whether a plan is conditions, one of them without columns, on an aggregate that always has a row.
fn is_to_stay(plan: &LogicalPlan) -> bool {
    let (mut plan, mut has_none) = (plan, false);
    while let LogicalPlan::Filter(Filter { predicate, input, .. }) = plan {
        has_none |= split_conjunction(predicate).into_iter().any(has_no_column);
        plan = input;
    }
    has_none && matches!(plan, LogicalPlan::Aggregate(of) if has_empty_set(of))
}

fn has_no_column(condition: &Expr) -> bool {
    condition.column_refs().is_empty()
}

/// Whether all rows are a group, be it beside others, and so also no rows.
fn has_empty_set(aggregate: &Aggregate) -> bool {
    match aggregate.group_expr.as_slice() {
        [] | [Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_))] => true,
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().any(Vec::is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::functions_aggregate::expr_fn::count;
    use datafusion::logical_expr::logical_plan::table_scan;
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit, placeholder};

    use super::*;

    fn counted(keys: Vec<Expr>) -> LogicalPlanBuilder {
        let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
        let rows = table_scan(Some("t"), &schema, None).unwrap();
        rows.aggregate(keys, [count(lit(1)).alias("c")]).unwrap()
    }

    #[test]
    fn only_conditions_that_could_be_moved_stay() {
        let nothing = || placeholder("$1").eq(lit(1));
        let of = |rows: LogicalPlanBuilder, condition: Expr| {
            is_to_stay(&rows.filter(condition).unwrap().build().unwrap())
        };
        let rollup = || Expr::GroupingSet(GroupingSet::Rollup(vec![col("x")]));
        assert!(of(counted(vec![]), nothing()));
        assert!(of(counted(vec![rollup()]), nothing()));
        assert!(of(counted(vec![]), nothing().and(col("c").gt(lit(1)))));
        assert!(of(counted(vec![]).filter(nothing()).unwrap(), col("c").gt(lit(1))));
        assert!(!of(counted(vec![]), col("c").gt(lit(1))));
        assert!(!of(counted(vec![col("x")]), nothing()));
    }
}
