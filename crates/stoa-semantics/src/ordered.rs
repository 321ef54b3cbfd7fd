//! Orders of aggregates name each key once: `array_agg(x ORDER BY a, a)`.
//!
//! The engine keeps an order without repeated keys, and counts the keys as they were written. Keys can also become the
//! same while a plan is simplified, as `a` and `a + 0`, and a `DISTINCT ON` becomes such aggregates: so this rule comes
//! after the engine's, each time.

use std::collections::HashSet;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Leaves out what does not order any more.
#[derive(Debug)]
pub(super) struct OrderedOnce;

impl OptimizerRule for OrderedOnce {
    fn name(&self) -> &str {
        "stoa_ordered_once"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(of) = &plan else { return Ok(Transformed::no(plan)) };
        let repeats = |expr: &Expr| {
            expr.exists(|part| match part {
                Expr::AggregateFunction(of) => Ok(repeated(&of.params.order_by)),
                _ => Ok(false),
            })
        };
        // The walk itself cannot fail.
        if !of.aggr_expr.iter().any(|expr| repeats(expr).unwrap_or(true)) {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|mut part| {
                let is_changed = match &mut part {
                    Expr::AggregateFunction(of) if repeated(&of.params.order_by) => {
                        leave_out(&mut of.params.order_by);
                        true
                    }
                    _ => false,
                };
                Ok(Transformed::new_transformed(part, is_changed))
            })?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?
        .map_data(LogicalPlan::recompute_schema)
    }
}

fn repeated(order: &[SortExpr]) -> bool {
    order.len() > 1 && kept(order).contains(&false)
}

/// A key that is there before, in whichever direction, decides nothing.
fn leave_out(order: &mut Vec<SortExpr>) {
    let mut kept = kept(order).into_iter();
    order.retain(|_| kept.next().unwrap_or(true));
}

/// Which keys are new. What is simplified keeps its name as an alias, which is not looked at.
fn kept(order: &[SortExpr]) -> Vec<bool> {
    let mut known: HashSet<Expr> = HashSet::new();
    order.iter().map(|key| known.insert(key.expr.clone().unalias_nested().data)).collect()
}
