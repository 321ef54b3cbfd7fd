//! How much a statement's plan may grow while it is optimised.
//!
//! The optimiser computes what is constant, and copies what it has computed: with `repeat('x', 60000000)`
//! a few bytes of text would become a plan of any size. So while its rules are at work, on this thread,
//! results above [`VALUE_BYTES_MAX`], and all together above [`PLAN_BYTES_MAX`], stay calls, to be computed
//! when the plan is executed. Rows of VALUES are computed while the plan is made: there only few
//! such calls may stay.
//!
//! **Invariant:** nothing of this is seen outside of the optimiser's rules.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use stoa_error::{Error, ErrorKind};

use super::is_checked;
use crate::errors::to_datafusion;

/// A constant that is computed while a plan is optimised, bytes.
const VALUE_BYTES_MAX: u64 = 8 << 10;

/// All constants of a plan together, bytes.
const PLAN_BYTES_MAX: u64 = 16 << 20;

/// Calls with large results in the rows of one VALUES.
const LARGE_VALUES_MAX: usize = 16;

thread_local! {
    /// Bytes that may still become constants; `None` while no rule is at work.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    /// What was left by the rule before.
    static LEFT_BY_RULES: Cell<u64> = const { Cell::new(PLAN_BYTES_MAX) };
}

/// Whether a result of so many bytes may be computed now; it is counted if it may.
pub(super) fn allows(bytes: u64) -> bool {
    LEFT.with(|left| match left.get() {
        None => true,
        Some(now) if bytes <= VALUE_BYTES_MAX && bytes <= now => {
            left.set(Some(now - bytes));
            true
        }
        Some(_) => false,
    })
}

/// The optimiser's rules, none of which computes more than the bounds.
pub(crate) fn rules(
    rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let rules = rules.into_iter().enumerate();
    let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> =
        rules.map(|(index, rule)| Arc::new(Bounded { rule, is_first: index == 0 }) as _).collect();
    rules.push(Arc::new(FewLargeValues));
    rules
}

/// A rule at work under the bounds.
struct Bounded {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
    /// Whether a plan begins with it.
    is_first: bool,
}

impl fmt::Debug for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}

impl OptimizerRule for Bounded {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if self.is_first {
            LEFT_BY_RULES.set(PLAN_BYTES_MAX);
        }
        let at_work = AtWork::begin();
        let rewritten = self.rule.rewrite(plan, config);
        drop(at_work);
        rewritten
    }
}

/// While it is there, results are counted.
struct AtWork {
    before: Option<u64>,
}

impl AtWork {
    fn begin() -> Self {
        Self { before: LEFT.replace(Some(LEFT_BY_RULES.get())) }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if let Some(left) = LEFT.replace(self.before) {
            LEFT_BY_RULES.set(left);
        }
    }
}

/// Refuses VALUES with many large results, which would all be there at once.
#[derive(Debug)]
struct FewLargeValues;

impl OptimizerRule for FewLargeValues {
    fn name(&self) -> &str {
        "few_large_values"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if let LogicalPlan::Values(values) = &plan {
            let mut calls = 0;
            for expr in values.values.iter().flatten() {
                // Most are literals.
                if matches!(expr, Expr::Literal(..)) {
                    continue;
                }
                expr.apply(|part| {
                    calls += usize::from(is_checked(part));
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
            if calls > LARGE_VALUES_MAX {
                return Err(too_many());
            }
        }
        Ok(Transformed::no(plan))
    }
}

fn too_many() -> datafusion::error::DataFusionError {
    to_datafusion(
        Error::new(ErrorKind::Exhausted, "too many large values in the rows of VALUES")
            .with_sqlstate("54000")
            .with_detail(format!(
                "{LARGE_VALUES_MAX} functions may make more than {VALUE_BYTES_MAX} bytes each"
            ))
            .with_hint("split it into several statements, or use SELECT … UNION ALL"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_folded_is_counted_while_rules_are_at_work() {
        assert!(allows(u64::MAX), "nobody optimises");
        LEFT_BY_RULES.set(PLAN_BYTES_MAX);
        let calls = PLAN_BYTES_MAX / VALUE_BYTES_MAX;
        for call in 0..calls {
            let _at_work = AtWork::begin();
            assert!(!allows(VALUE_BYTES_MAX + 1));
            assert!(allows(VALUE_BYTES_MAX), "{call}");
        }
        let at_work = AtWork::begin();
        assert!(!allows(1) && allows(0));
        drop(at_work);
        assert!(allows(u64::MAX));
    }
}
