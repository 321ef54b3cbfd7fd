//! Functions that plans call and statements cannot name, by the names that they have in plans.
//!
//! A plan that another daemon is to compute names its functions; these are the ones that rules put into plans. A
//! function that is made for each call anew, from a type or a time zone, is not here: it cannot be found by a name.

use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Operator, ScalarUDF};

use super::call::function;
use super::date_and_days::{DateAndDays, DaysBetween};
use super::date_and_time::{DateAndTime, TimesBetween};
use super::numeric::{Quotient, WideProduct};
use super::operators::{Checked, ExclusiveOr, Joined};
use super::rounding::{RoundEven, RoundFloat};
use super::text_of::TextOf;
use super::{byte_texts, date_part, date_trunc, functions, relational, series};

/// A state that finds functions of plans by their names, instead of the engine's own of these names. For plans that
/// are decoded, not for statements.
pub fn with_functions_of_plans(mut state: SessionState) -> SessionState {
    for function in all() {
        // It is refused by registries that cannot change only.
        let _ = state.register_udf(Arc::new(function));
    }
    state
}

fn all() -> impl Iterator<Item = ScalarUDF> {
    ours().chain(engines())
}

/// The engine's functions that statements find in an extended form, of which plans have what it stands for.
fn engines() -> impl Iterator<Item = ScalarUDF> {
    let also = byte_texts::ALSO.iter().chain(&date_trunc::ALSO).chain(&series::ALSO);
    also.map(|also| Arc::unwrap_or_clone((also.engine)()))
}

fn ours() -> impl Iterator<Item = ScalarUDF> {
    let operators =
        [Operator::Plus, Operator::Minus, Operator::Multiply, Operator::Divide, Operator::Modulo];
    let checked = operators.map(|operator| function(Checked(operator)));
    let others = [
        function(DateAndDays(Operator::Plus)),
        function(DateAndDays(Operator::Minus)),
        function(DaysBetween),
        function(DateAndTime),
        function(TimesBetween),
        function(Quotient),
        function(WideProduct),
        function(ExclusiveOr),
        function(Joined),
        function(TextOf::default()),
        function(RoundEven),
        function(RoundFloat),
        relational::positive_zero(),
    ];
    let parts = date_part::all().map(function);
    checked.into_iter().chain(others).chain(parts).chain(functions::capitals())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: Vec<String> = all().map(|function| function.name().to_owned()).collect();
        let unique: BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{names:?}");
    }
}
