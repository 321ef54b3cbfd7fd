//! PostgreSQL's meaning of statements, where the engine's own is another one: subqueries as values, set
//! operations that count rows, numbers of different kinds side by side.
//!
//! ```text
//! plan ─► levels        columns of queries further out are refused
//!       ─► laterals     rows made of the values of a row beside them ─► rows on top of it
//!       ─► keys         ORDER BY subqueries about the row ─► ORDER BY columns
//!       ─► one_row      IN, ANY, ALL and EXISTS of one row ─► comparisons with it
//!       ─► per_row      aggregates by another comparison than equality ─► joins with their values
//!       ─► by_keys      LIMIT, other aggregates and LATERAL about the row ─► joins with the rows of all keys
//!       ─► predicates    IN, ANY and ALL with three values ─► EXISTS
//!       ─► marks        EXISTS outside of WHERE ─► joins that mark rows, in VALUES: counts
//!       ─► multiplicity EXCEPT ALL, INTERSECT ALL ─► rows numbered among equal ones
//!       ─► rows         ORDER BY ROW(a, b) ─► ORDER BY a, b
//!       ─► offsets      OFFSET without LIMIT in a subquery ─► rows by their numbers
//!       ─► no_row       queries as values are NULL where they have no row
//!       ─► (types of expressions: `analyze`)
//!       ─► floats       a decimal beside a double is a double
//!       ─► guards       branches of a boolean CASE stay in their order
//!       ─► lengths      intervals are equal where they are equally long
//!       ─► arrays       arrays are compared element by element, where NULL is larger than all values
//!       ─► sort_keys    0.0 and -0.0 are one value for ORDER BY, intervals are ordered by their length
//! ```
//! In: a plan as it was made of the statement. Out: a plan with the same columns that the engine
//! answers as PostgreSQL does. **Invariant:** the rules change nothing the second time.

mod arrays;
mod by_keys;
mod floats;
mod guards;
mod keys;
mod laterals;
mod lengths;
mod levels;
mod marks;
mod multiplicity;
mod no_row;
mod offsets;
mod one_row;
mod per_row;
mod predicates;
mod rows;
mod sort_keys;

pub use no_row::volatility;

pub(crate) use floats::{add_other_zeros, compares};
pub(crate) use guards::GuardedFilters;
pub(crate) use sort_keys::positive_zero;

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

/// The rule for subqueries and set operations, which comes before all others.
pub(crate) fn first() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(Relational)
}

/// The rules that come when expressions have their types.
pub(crate) fn last() -> [Arc<dyn AnalyzerRule + Send + Sync>; 5] {
    [
        Arc::new(floats::FloatComparisons),
        Arc::new(guards::Guards),
        Arc::new(lengths::EqualLengths),
        Arc::new(arrays::ArraysInOrder),
        Arc::new(sort_keys::SortKeys),
    ]
}

/// A rule for a node; if joins were put below it, also for the node itself, which is then below a projection to its columns.
fn with_inner(
    node: LogicalPlan,
    is_joined: bool,
    rule: &mut dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(mut columns) = node else { return rule(node) };
    if !is_joined {
        return rule(LogicalPlan::Projection(columns));
    }
    let inner = rule(Arc::unwrap_or_clone(columns.input))?;
    columns.input = Arc::new(inner.data);
    let node = rule(LogicalPlan::Projection(columns))?;
    Ok(Transformed::new_transformed(node.data, inner.transformed || node.transformed))
}

/// Rewrites the expressions of a node, from the innermost on; the columns that they make keep their names.
fn with_typed_expressions(
    node: LogicalPlan,
    rule: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|expr| rule(expr, &schema))?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })
}

/// Subqueries and set operations.
#[derive(Debug)]
struct Relational;

impl AnalyzerRule for Relational {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        levels::check(&plan)?;
        let plan = keys::sorted_by_columns(plan)?;
        let mut names = predicates::Names::default();
        plan.transform_up_with_subqueries(|node| {
            let node = multiplicity::count_rows(node)?;
            let node = node.transform_data(|node| laterals::made_of_rows(node, &mut names))?;
            let node = node.transform_data(|node| by_keys::join_lateral(node, &mut names))?;
            let node = node.transform_data(rows::ordered_by_parts)?;
            let node = node.transform_data(|node| Ok(multiplicity::order_once(node)))?;
            let node = node.transform_data(one_row::compared)?;
            let joined = by_keys::join_values(node.data, &mut names)?;
            let (is_changed, is_joined) = (node.transformed, joined.transformed);
            let node = with_inner(joined.data, is_joined, &mut |node| {
                predicates::three_valued(node, &mut names)
            })?;
            let node = node.transform_data(|node| {
                with_inner(node, is_joined, &mut |node| marks::join_marks(node, &mut names))
            })?;
            let node = node.transform_data(marks::counted_in_values)?;
            let is_changed = is_changed || is_joined || node.transformed;
            Ok(Transformed::new_transformed(node.data, is_changed))
        })
        .and_then(|plan: Transformed<LogicalPlan>| offsets::rows_by_number(plan.data))
        .and_then(no_row::made_nullable)
    }

    fn name(&self) -> &str {
        "stoa_relational"
    }
}
