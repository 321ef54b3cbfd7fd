//! Aggregates and window functions where a query cannot have any, such as WHERE.
//!
//! The engine plans some of these and fails later, in words about itself.
//!
//! In: a plan as it was made of the statement: aggregates of a query are in its `Aggregate` already, window
//! functions in its `Window`. Out: the same plan, or an error (42803, 42P20).

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use stoa_error::{Error, Subject};

use crate::errors::to_datafusion;
use crate::ordered_sets;

/// Refuses what is misplaced.
#[derive(Debug)]
pub(super) struct Misplaced;

impl AnalyzerRule for Misplaced {
    fn name(&self) -> &str {
        "misplaced_functions"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.apply_with_subqueries(|node| check(node).map(|()| TreeNodeRecursion::Continue))?;
        Ok(plan)
    }
}

fn check(node: &LogicalPlan) -> Result<()> {
    let place = match node {
        LogicalPlan::Window(window) => return check_ordered_sets(&window.window_expr),
        LogicalPlan::Distinct(_) => return Ok(()),
        LogicalPlan::Aggregate(aggregate) => {
            check_ordered_sets(&aggregate.aggr_expr)?;
            return aggregate.group_expr.iter().try_for_each(|key| check_expr(key, "GROUP BY"));
        }
        LogicalPlan::Filter(_) => "WHERE",
        LogicalPlan::Join(_) => "JOIN conditions",
        LogicalPlan::Values(_) => "VALUES",
        LogicalPlan::Limit(_) => "LIMIT",
        LogicalPlan::Sort(_) => "this ORDER BY",
        _ => "this place",
    };
    let mut checked = Ok(());
    node.apply_expressions(|expr| {
        checked = check_expr(expr, place);
        Ok(match checked {
            Ok(()) => TreeNodeRecursion::Continue,
            Err(_) => TreeNodeRecursion::Stop,
        })
    })?;
    checked
}

fn check_ordered_sets(exprs: &[Expr]) -> Result<()> {
    for expr in exprs {
        expr.apply(|part| ordered_sets::check(part).map(|()| TreeNodeRecursion::Continue))?;
    }
    Ok(())
}

/// Looks through an expression, but not into the queries within it.
fn check_expr(expr: &Expr, place: &str) -> Result<()> {
    expr.apply(|part| match part {
        Expr::AggregateFunction(call) => {
            Err(refused("aggregate", call.func.name(), place, "42803"))
        }
        Expr::WindowFunction(call) => Err(refused("window", call.fun.name(), place, "42P20")),
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(())
}

fn refused(
    kind: &str,
    name: &str,
    place: &str,
    sqlstate: &'static str,
) -> datafusion::error::DataFusionError {
    let said = format!("{kind} functions are not allowed in {place}");
    let hint = "compute it in a subquery, and use its column here";
    let error = Error::invalid(said).with_sqlstate(sqlstate).with_hint(hint);
    to_datafusion(error.about(Subject::OnlyCall(name.to_owned())))
}
