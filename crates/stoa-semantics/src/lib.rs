//! PostgreSQL's meaning of expressions and queries, where the engine's own is another one.
//!
//! ```text
//! plan ─► misplaced ─► analyze (bottom-up, types known) ─► the engine's own coercion ─► optimiser
//!           ├ arithmetic   checked integers and floats, division of decimals, dates and intervals
//!           ├ unify        one type for CASE, COALESCE, ARRAY, UNION, EXCEPT and INTERSECT
//!           ├ values       one type for each column of VALUES
//!           ├ casts        rounding, texts, arrays
//!           ├ refused      casts and arguments that PostgreSQL does not take
//!           ├ conditions   booleans, and nothing else
//!           ├ windows      frames, memory for large values
//!           ├ functions    zones, SIMILAR TO, what is replaced by name
//!           └ bounded      calls whose results may be large are checked
//! ```
//! In: a plan as it was made of the statement. Out: the same with our functions in place of the
//! engine's operators, and casts where PostgreSQL has them, so that the engine's coercion finds
//! nothing to do there. **Invariants:** the rule changes nothing the second time; names of columns stay;
//! each answer is PostgreSQL's up to trailing zeros, or an error (`docs/sql.md` lists what differs).
//!
//! Before values are put in the places of parameters, `whole_literals` makes integers of literals; `recursion`
//! gives both parts of WITH RECURSIVE the same columns.
//! `misplaced` refuses aggregates and window functions where there can be none. Subqueries, set operations and
//! comparisons of numbers of different kinds are in `relational`, values of parameters in [`parameters`], the engine's
//! errors as Stoa's in [`errors`]. `lists` and `zero_products` are at work later, while a plan is
//! simplified, `null_keys` while its joins are arranged, `nested_keys` when its operators are chosen. Texts of JSON are in `json_text`, their casts in `json_casts`,
//! their functions in `json`.
//!
//! Not here: texts and syntax (`stoa-sql`), tables and sessions (`stoa-query`).

mod also;
mod analyze;
mod arithmetic;
mod array_length;
mod array_like;
mod array_or_empty;
mod array_order;
mod array_parts;
mod array_remove;
mod array_slices;
mod average;
mod bounded;
mod buckets;
mod by_name;
mod byte_texts;
mod bytes;
mod call;
mod cast_text;
mod casts;
mod compare;
mod concatenation;
mod conditions;
mod date_and_days;
mod date_and_time;
mod date_part;
mod date_trunc;
mod declarations;
mod declared;
mod degrees;
mod distinct;
mod edit_distance;
mod encodings;
pub mod errors;
mod filtered;
mod float_aggregates;
mod from_format;
mod functions;
mod hive;
mod interval_averages;
mod interval_text;
mod joined_elements;
mod json;
mod json_casts;
mod json_kind;
mod json_path;
mod json_text;
mod known_aggregates;
mod lateral_keys;
mod like_arrays;
mod lists;
mod made_texts;
mod math;
mod misplaced;
mod modulus;
mod nested_keys;
mod null_keys;
mod numbers;
mod numeric;
mod once;
mod one_group;
mod operand_text;
mod operators;
mod ordered;
mod ordered_sets;
mod overlaps;
pub mod parameters;
mod quoting;
mod recursion;
mod refused;
mod regexes;
mod relational;
mod rounding;
mod scale;
mod scope;
mod series;
mod sign;
mod similar;
mod similar_parts;
mod span;
mod strings;
mod sum;
mod sums;
mod terms;
mod text_of;
mod text_style;
mod time_text;
mod time_zone;
mod times;
mod to_char;
mod type_of;
mod typed_operands;
mod types;
mod unicode_forms;
mod unify;
mod unordered;
mod uuids;
mod values;
mod whole;
mod whole_days;
mod whole_filters;
mod whole_literals;
pub mod windows;
mod zero_products;

pub use by_name::with_functions_of_plans;
pub use casts::length_cut_to;
pub use hive::{HIVE_COMPARISONS_KEY, HiveComparisons, sum_of_session};
pub use numeric::{NUMERIC, numeric_text};
pub use relational::volatility;
pub use text_style::{INTERVAL_STYLE_KEY, TextStyle};
pub use time_text::time_text;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, Field, TimeUnit, TimestampMicrosecondType};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{AggregateUDF, LogicalPlan};
use datafusion::optimizer::{Analyzer, Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use crate::bounded::top_groups;

/// Adds the rule and the functions to a session's state; large results draw on `memory`.
pub fn install(builder: SessionStateBuilder, memory: &Arc<dyn MemoryPool>) -> SessionStateBuilder {
    declared::register(declarations::ALL);
    let meaning = analyze::PostgresMeaning::new(memory);
    let mut rules = vec![Arc::new(misplaced::Misplaced) as _, relational::first()];
    rules.push(Arc::new(meaning) as _);
    rules.extend(relational::last());
    rules.extend(Analyzer::new().rules);
    let sum = AggregateUDF::new_from_impl(sum::CheckedSum::new());
    let average = AggregateUDF::new_from_impl(average::Average::new());
    // With all names of the engine's own, which is not to come back by one of them.
    let to_char = call::function(to_char::ToChar { zone: "UTC".into() });
    let to_char = to_char.with_aliases(["date_format"]);
    let builder = builder.with_relation_planners(vec![
        Arc::new(values::ValuesPlanner),
        Arc::new(lateral_keys::LateralPlanner),
    ]);
    let builder = builder.with_analyzer_rules(rules);
    let builder = builder.with_physical_optimizer_rules(physical_rules());
    let mut builder = builder.with_optimizer_rules(bounded::folding::rules(logical_rules()));
    let functions = builder.aggregate_functions().get_or_insert_default();
    functions.extend([Arc::new(sum), Arc::new(average)]);
    let ordered = ordered_sets::functions().map(AggregateUDF::new_from_impl);
    functions.extend(ordered.map(Arc::new));
    let of_engine = std::mem::take(functions);
    functions.extend(of_engine.into_iter().map(float_aggregates::with_one_nan_in));
    builder.window_functions().get_or_insert_default().extend(windows::functions());
    let array_length = call::function(array_length::ArrayLength);
    let named = [
        call::function(bytes::BIT_LENGTH),
        call::function(bytes::OCTET_LENGTH),
        array_length.with_aliases(["list_length"]),
        call::function(array_length::Dimensions).with_aliases(["list_ndims"]),
        call::function(array_like::AnyNull),
        call::function(array_like::ArrayLike),
        call::function(array_like::ItemLike),
        call::function(array_or_empty::ArrayOrEmpty),
        call::function(array_slices::ArraySlice),
        to_char,
        call::function(array_parts::Parts::Fill),
        call::function(array_parts::Parts::Trim),
        call::function(joined_elements::JoinedElements),
        call::function(modulus::Modulus),
        call::function(overlaps::Overlaps),
        call::function(recursion::Unmarked::default()),
        call::function(once::Once),
        call::function(sign::Sign),
        call::function(terms::SumOfTerms),
        call::function(type_of::TypeOf::default()),
    ];
    let scalar = builder.scalar_functions().get_or_insert_default();
    scalar.extend(unordered::functions().map(Arc::new));
    scalar.extend(named.map(Arc::new));
    scalar.extend(also::functions(&byte_texts::ALSO).map(Arc::new));
    scalar.extend(also::functions(&date_trunc::ALSO).map(Arc::new));
    scalar.extend(also::functions(&series::ALSO).map(Arc::new));
    scalar.extend(declared::functions().map(Arc::new));
    scalar.extend(json::functions().map(Arc::new));
    scalar.extend(hive::functions().map(Arc::new));
    let planners = builder.expr_planners().get_or_insert_default();
    planners.insert(0, Arc::new(json::JsonSubscripts));
    planners.push(Arc::new(typed_operands::TypedOperands));
    planners.insert(0, Arc::new(typed_operands::TypedItems));
    planners.push(Arc::new(json::JsonOperators));
    builder
}

/// The engine's rules for plans, some of them under [`lists`], [`zero_products`], [`one_group`] and [`null_keys`], with
/// [`whole_days`] where constants are known, and [`ordered`] and guards at the end.
fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let apart = |rule: Arc<dyn OptimizerRule + Send + Sync>| match rule.name() {
        lists::SIMPLIFYING_RULE => {
            let typed = Arc::new(zero_products::TypedProducts(rule));
            Arc::new(lists::ListsApart(typed)) as _
        }
        one_group::MOVING_RULE => Arc::new(one_group::AboveOneGroup(rule)) as _,
        null_keys::EXTRACTING_RULE => Arc::new(null_keys::NullsApart::extracting(rule)) as _,
        null_keys::ORDERING_RULE => Arc::new(null_keys::NullsApart::ordering(rule)) as _,
        _ => rule,
    };
    let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = Vec::new();
    for rule in Optimizer::new().rules {
        let computes_constants = rule.name() == lists::SIMPLIFYING_RULE;
        rules.push(apart(rule));
        if computes_constants {
            rules.push(Arc::new(whole_days::WholeDays));
        }
    }
    rules.push(Arc::new(ordered::OrderedOnce));
    rules.push(Arc::new(relational::GuardedFilters));
    rules
}

/// The engine's rules for operators, without those that move filters. These find columns by name, so that a filter
/// on one side of a join could land on a column of the other that has the same name; conditions have been moved
/// towards their tables before, where columns are qualified. With
/// [`whole_filters`] before those that move projections, and [`top_groups`] after all.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let moves_filters = [FilterPushdown::new(), FilterPushdown::new_post_optimization()];
    let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = Vec::new();
    for rule in PhysicalOptimizer::new().rules {
        if moves_filters.iter().any(|other| other.name() == rule.name()) {
            continue;
        }
        if rule.name() == whole_filters::PUSHING_RULE {
            rules.push(Arc::new(whole_filters::WholeFilters));
        }
        rules.push(match rule.name() {
            known_aggregates::KNOWING_RULE => Arc::new(known_aggregates::KnownAggregates(rule)),
            _ => rule,
        });
    }
    rules.push(Arc::new(top_groups::FewTopGroups));
    rules.push(Arc::new(nested_keys::ComparableKeys));
    rules
}

/// A plan as it was made of a statement, with whole literals as PostgreSQL types them: `integer` where they fit.
///
/// # Errors
/// Those of the engine, where a node does not take its new columns.
pub fn with_integers(plan: LogicalPlan) -> Result<LogicalPlan> {
    whole_literals::retyped(plan).map(|plan| plan.data)
}

/// A plan as it was made of a statement, with records in the places of `t.*` as an operand of a function.
///
/// # Errors
/// 0A000 beside an outer join, where a row may be missing.
pub fn with_records(plan: LogicalPlan) -> Result<LogicalPlan> {
    json::as_records(plan)
}

/// Adds the names of types, in front of those that are known already.
pub fn with_types(state: SessionState) -> SessionState {
    let mut builder = SessionStateBuilder::new_from_existing(state);
    let others = builder.type_planner().take();
    builder.with_type_planner(Arc::new(types::PostgresTypes { others })).build()
}

/// A plan with the types that its rows will have.
///
/// # Errors
/// What has no type: operators and functions that do not take these operands.
pub fn analyzed(state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
    state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {})
}

/// The time zone of a name in any case or of an offset, as it is called: `Europe/Berlin`, `<+02>-02`; `None` where there
/// is none. As in PostgreSQL, `2` is two hours to the east, and `+02:00` two to the west.
pub fn zone_called(name: &str) -> Option<String> {
    time_zone::called(name)
}

/// A zone as [`zone_called`] gave it, in the words of the engine: `+02:00` is two hours to the east.
pub fn engine_zone(called: &str) -> String {
    time_zone::for_engine(called)
}

/// A text as a moment, in microseconds since 1970-01-01 UTC; without a zone of its own it is one of `zone`.
///
/// # Errors
/// A text that is no time (22007), or is out of range (22008).
pub fn read_time(text: &str, zone: &str) -> Result<i64> {
    let to = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    let zone = time_zone::for_engine(zone);
    let read = cast_text::read(&StringArray::from(vec![text]), &to, &zone)?;
    let micros = read.as_primitive_opt::<TimestampMicrosecondType>();
    micros.map(|micros| micros.value(0)).ok_or_else(|| {
        DataFusionError::Internal("a text was read as something else than a time".to_owned())
    })
}

/// A type as PostgreSQL calls it in messages.
pub fn type_shown(of: &DataType) -> String {
    operators::type_name(of)
}

/// A column of texts as one of the type `json`.
pub fn as_json(field: Field) -> Field {
    field.with_metadata(json_kind::JsonKind::Json.metadata())
}

/// Texts as values of a type that knows no zone.
///
/// # Errors
/// A text that is not of the type (22P02, 22007), or does not fit it (22003, 22008).
pub fn read_local(texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
    cast_text::read(texts, to, "UTC")
}
