//! PostgreSQL's meaning of statements, where the engine's own is another one: subqueries as values, set
//! operations that count rows, numbers of different kinds side by side.
//!
//! ```text
//! plan ─► levels        columns of queries further out are refused
//!       ─► laterals     rows made of the values of a row beside them ─► rows on top of it
//!       ─► keys         ORDER BY subqueries about the row ─► ORDER BY columns
//!       ─► one_row      IN, ANY, ALL and EXISTS of one row ─► comparisons with it
//!       ─► per_row      aggregates by another comparison than equality ─► joins with their values
//!       ─► predicates    IN, ANY and ALL with three values ─► EXISTS
//!       ─► marks        EXISTS outside of WHERE ─► joins that mark rows, in VALUES: counts
//!       ─► multiplicity EXCEPT ALL, INTERSECT ALL ─► rows numbered among equal ones
//!       ─► rows         ORDER BY ROW(a, b) ─► ORDER BY a, b
//!       ─► offsets      OFFSET without LIMIT in a subquery ─► rows by their numbers
//!       ─► (types of expressions: `analyze`)
//!       ─► floats       a decimal beside a double is a double
//!       ─► guards       branches of a boolean CASE stay in their order
//!       ─► zeros        0.0 and -0.0 are one value for ORDER BY
//! ```
//! In: a plan as it was made of the statement. Out: a plan with the same columns that the engine
//! answers as PostgreSQL does. **Invariant:** the rules change nothing the second time.

mod floats;
mod guards;
mod keys;
mod laterals;
mod levels;
mod marks;
mod multiplicity;
mod offsets;
mod one_row;
mod per_row;
mod predicates;
mod rows;
mod zeros;

pub(crate) use floats::{add_other_zeros, compares};

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;

/// The rule for subqueries and set operations, which comes before all others.
pub(crate) fn first() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(Relational)
}

/// The rules that come when expressions have their types.
pub(crate) fn last() -> [Arc<dyn AnalyzerRule + Send + Sync>; 3] {
    [Arc::new(floats::FloatComparisons), Arc::new(guards::Guards), Arc::new(zeros::OneZero)]
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
            let node = node.transform_data(rows::ordered_by_parts)?;
            let node = node.transform_data(|node| Ok(multiplicity::order_once(node)))?;
            let node = node.transform_data(one_row::compared)?;
            let node = node.transform_data(|node| per_row::join_values(node, &mut names))?;
            let node = node.transform_data(|node| predicates::three_valued(node, &mut names))?;
            let node = node.transform_data(|node| marks::join_marks(node, &mut names))?;
            node.transform_data(marks::counted_in_values)
        })
        .and_then(|plan: Transformed<LogicalPlan>| offsets::rows_by_number(plan.data))
    }

    fn name(&self) -> &str {
        "stoa_relational"
    }
}
