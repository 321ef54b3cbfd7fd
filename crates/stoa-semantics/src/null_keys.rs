//! Keeps `=` and `IS NOT DISTINCT FROM` apart when the engine chooses the keys of a join.
//!
//! A join has one flag for all of its keys: either NULL equals NULL, or it equals nothing. Two of the engine's rules
//! bring keys of both kinds together and keep the flag of one of them:
//!
//! ```text
//! extract_equijoin_predicate   a JOIN b ON a.x IS NOT DISTINCT FROM b.x   with a.y = b.y as a further condition
//! eliminate_cross_join         (a JOIN b ON a.x IS NOT DISTINCT FROM b.x) JOIN c ON c.y = b.y
//! ```
//! Rows are then lost, or rows with NULL in `y` appear. The first rule does not see joins whose keys are settled. For
//! the second, a projection to the same columns stands between joins of different kinds until it is done.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::logical_plan::{Join, Projection};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The engine's rule that makes keys of the conditions of a join.
pub(super) const EXTRACTING_RULE: &str = "extract_equijoin_predicate";
/// The engine's rule that orders inner joins by their keys.
pub(super) const ORDERING_RULE: &str = "eliminate_cross_join";

/// One of the two rules, with NULLs kept apart.
pub(super) struct NullsApart {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
    rewrite: fn(
        &dyn OptimizerRule,
        LogicalPlan,
        &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>>,
}

impl NullsApart {
    /// The rule that makes keys, for joins that have no keys which match NULLs.
    pub(super) fn extracting(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Self {
        Self { rule, rewrite: extract }
    }

    /// The rule that orders joins, with joins of different kinds apart.
    pub(super) fn ordering(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Self {
        Self { rule, rewrite: order }
    }
}

impl fmt::Debug for NullsApart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}

impl OptimizerRule for NullsApart {
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
        (self.rewrite)(self.rule.as_ref(), plan, config)
    }
}

fn extract(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Join(join) if matches_nulls(join) => Ok(Transformed::no(plan)),
        _ => rule.rewrite(plan, config),
    }
}

fn order(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if !any_matches_nulls(&plan)? {
        return rule.rewrite(plan, config);
    }
    let apart = plan.transform_down_with_subqueries(set_apart)?;
    let rewritten = rule.rewrite(apart.data, config)?;
    if !apart.transformed {
        return Ok(rewritten);
    }
    let joined = rewritten.data.transform_up_with_subqueries(|node| Ok(without_barrier(node)))?;
    Ok(Transformed::new_transformed(joined.data, rewritten.transformed))
}

fn any_matches_nulls(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Join(join) if matches_nulls(join));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether a join has keys, and NULL equals NULL in them.
fn matches_nulls(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty()
}

/// Puts projections between this node and joins below it that must not be brought together with it.
fn set_apart(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let is_inner = |join: &Join| join.join_type == JoinType::Inner;
    let matches = match &node {
        LogicalPlan::Filter(_) => false,
        LogicalPlan::Join(join) if is_inner(join) => matches_nulls(join),
        _ => return Ok(Transformed::no(node)),
    };
    node.map_children(|child| match &child {
        LogicalPlan::Join(join) if is_inner(join) && (matches || matches_nulls(join)) => {
            Ok(Transformed::yes(barrier(child)))
        }
        _ => Ok(Transformed::no(child)),
    })
}

fn barrier(plan: LogicalPlan) -> LogicalPlan {
    let schema = Arc::clone(plan.schema());
    LogicalPlan::Projection(Projection::new_from_schema(Arc::new(plan), schema))
}

/// A join in the place of a projection to all of its columns, in their order.
fn without_barrier(node: LogicalPlan) -> Transformed<LogicalPlan> {
    match node {
        LogicalPlan::Projection(same) if is_barrier(&same) => {
            Transformed::yes(Arc::unwrap_or_clone(same.input))
        }
        _ => Transformed::no(node),
    }
}

fn is_barrier(node: &Projection) -> bool {
    let columns = node.input.schema().columns();
    let mut pairs = node.expr.iter().zip(&columns);
    matches!(&*node.input, LogicalPlan::Join(_))
        && node.expr.len() == columns.len()
        && node.schema == *node.input.schema()
        && pairs.all(|(expr, column)| matches!(expr, Expr::Column(of) if of == column))
}
