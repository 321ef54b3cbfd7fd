//! PostgreSQL's meaning of expressions, where the engine's own is another one.
//!
//! ```text
//! plan ─► analyze (bottom-up, types known) ─► the engine's own coercion ─► optimiser
//!           ├ arithmetic   checked integers and floats, division of decimals, dates and intervals
//!           ├ unify        one type for CASE, COALESCE, ARRAY, UNION, EXCEPT and INTERSECT
//!           ├ casts        rounding, texts, arrays
//!           ├ functions    zones, SIMILAR TO, what is replaced by name
//!           └ bounded      calls whose results may be large are checked
//! ```
//! In: a plan as it was made of the statement. Out: the same with our functions in place of the
//! engine's operators, and casts where PostgreSQL has them, so that the engine's coercion finds
//! nothing to do there. **Invariants:** the rule changes nothing the second time; names of columns stay;
//! each answer is PostgreSQL's up to trailing zeros, or an error (`docs/sql.md` lists what differs).
//!
//! Not here: comparisons of numbers of different kinds, subqueries, windows.

mod analyze;
mod arithmetic;
mod average;
mod bounded;
mod call;
mod cast_text;
mod casts;
mod compare;
mod date_and_time;
mod date_part;
mod date_trunc;
mod distinct;
mod functions;
mod modulus;
mod numeric;
mod operators;
mod sign;
mod similar;
mod sum;
mod sums;
mod terms;
mod text_of;
mod time_zone;
mod to_char;
mod types;
mod unify;
mod whole;

pub use numeric::{NUMERIC, numeric_text};

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{AggregateUDF, LogicalPlan};
use datafusion::optimizer::Analyzer;

use crate::relational;

/// Adds the rule and the functions to a session's state; large results draw on `memory`.
pub(crate) fn install(
    builder: SessionStateBuilder,
    memory: &Arc<dyn MemoryPool>,
) -> SessionStateBuilder {
    let meaning = analyze::PostgresMeaning::new(memory);
    let mut rules = vec![relational::first(), Arc::new(meaning) as _, relational::last()];
    rules.extend(Analyzer::new().rules);
    let sum = AggregateUDF::new_from_impl(sum::CheckedSum::new());
    let average = AggregateUDF::new_from_impl(average::Average::new());
    // With all names of the engine's own, which is not to come back by one of them.
    let to_char = call::function(to_char::ToChar { zone: "UTC".into() });
    let to_char = to_char.with_aliases(["date_format"]);
    let builder = builder.with_analyzer_rules(rules);
    let mut builder = builder.with_optimizer_rules(bounded::folding::rules());
    let functions = builder.aggregate_functions().get_or_insert_default();
    functions.extend([Arc::new(sum), Arc::new(average)]);
    let named = [
        to_char,
        call::function(modulus::Modulus),
        call::function(sign::Sign),
        call::function(terms::SumOfTerms),
    ];
    builder.scalar_functions().get_or_insert_default().extend(named.map(Arc::new));
    builder
}

/// Adds the names of types, in front of those that are known already.
pub(crate) fn with_types(state: SessionState) -> SessionState {
    let mut builder = SessionStateBuilder::new_from_existing(state);
    let others = builder.type_planner().take();
    builder.with_type_planner(Arc::new(types::PostgresTypes { others })).build()
}

/// A plan with the types that its rows will have.
///
/// # Errors
/// What has no type: operators and functions that do not take these operands.
pub(crate) fn analyzed(state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
    state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {})
}

/// Texts as values of a type that knows no zone.
///
/// # Errors
/// A text that is not of the type (22P02, 22007), or does not fit it (22003, 22008).
pub(crate) fn read_local(texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
    cast_text::read(texts, to, "UTC")
}
