//! One time for all plans of a statement: `now()` is the same in each of them.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use stoa_error::Result;
use stoa_semantics::errors::from_datafusion;

use crate::reuse::results::reads_clock;

/// A plan with the time as it is now in the place of functions that ask for it.
///
/// # Errors
/// Those of the engine.
pub(crate) fn at_one_time(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    both_at_one_time([plan], state).map(|[plan]| plan)
}

/// As [`at_one_time`], for several plans of one statement.
///
/// # Errors
/// Those of the engine.
pub(crate) fn both_at_one_time<const N: usize>(
    mut plans: [LogicalPlan; N],
    state: &SessionState,
) -> Result<[LogicalPlan; N]> {
    all_at_one_time(&mut plans, state).map(|()| plans)
}

/// As [`both_at_one_time`], in place.
///
/// # Errors
/// Those of the engine; the plans are not to be used then.
pub(crate) fn all_at_one_time(plans: &mut [LogicalPlan], state: &SessionState) -> Result<()> {
    if !plans.iter().any(reads_clock) {
        return Ok(());
    }
    let now = SimplifyContext::builder()
        .with_config_options(Arc::clone(state.config_options()))
        .with_current_time()
        .build();
    let settle = |expr: Expr| {
        let Expr::ScalarFunction(call) = &expr else { return Ok(Transformed::no(expr)) };
        let is_clock =
            call.args.is_empty() && call.func.signature().volatility == Volatility::Stable;
        if !is_clock {
            return Ok(Transformed::no(expr));
        }
        match call.func.simplify(Vec::new(), &now)? {
            ExprSimplifyResult::Simplified(value) => Ok(Transformed::yes(value)),
            ExprSimplifyResult::Original(_) => Ok(Transformed::no(expr)),
        }
    };
    for plan in plans {
        let taken = std::mem::take(plan);
        let done = taken.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                expr.transform_up(settle).map(|done| done.update_data(|expr| name.restore(expr)))
            })
        });
        *plan = done.map_err(from_datafusion)?.data;
    }
    Ok(())
}
