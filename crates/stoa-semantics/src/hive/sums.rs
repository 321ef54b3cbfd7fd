//! `sum` of texts, in sessions that speak HiveQL: they are summed as doubles, and what is no number counts as NULL.
//!
//! [`HiveSum`] is what these sessions call `sum`: it takes texts, too. When a plan is analysed, it becomes the `sum` of
//! all sessions, with its operand as a double where it is a text. **Invariant:** no plan that is analysed has it.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, Signature, TypeSignature,
    Volatility,
};
use stoa_hiveql::pack;

use super::HiveCall;
use crate::call::call;
use crate::scope::Scope;
use crate::sum::CheckedSum;

/// The `sum` of sessions that speak HiveQL, or of all others.
pub fn sum_of_session(speaks_hive: bool) -> Arc<AggregateUDF> {
    Arc::new(match speaks_hive {
        true => AggregateUDF::new_from_impl(HiveSum::new()),
        false => AggregateUDF::new_from_impl(CheckedSum::new()),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct HiveSum {
    numbers: CheckedSum,
    signature: Signature,
}

impl HiveSum {
    fn new() -> Self {
        let numbers = CheckedSum::new();
        let text = |of: DataType| TypeSignature::Exact(vec![of]);
        let mut all = match numbers.signature().type_signature.clone() {
            TypeSignature::OneOf(all) => all,
            one => vec![one],
        };
        all.extend([DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View].map(text));
        Self { numbers, signature: Signature::one_of(all, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for HiveSum {
    fn name(&self) -> &str {
        self.numbers.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] if of.is_string() => Ok(DataType::Float64),
            types => self.numbers.return_type(types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.numbers.accumulator(args)
    }
}

/// Makes of a session's own `sum` that of all sessions; whether it was one.
///
/// # Errors
/// That the operand has no type.
pub(crate) fn as_sum(
    function: &mut Arc<AggregateUDF>,
    args: &mut [Expr],
    scope: &Scope<'_>,
) -> Result<bool> {
    if !function.inner().is::<HiveSum>() {
        return Ok(false);
    }
    *function = sum_of_session(false);
    if let [arg] = args
        && arg.get_type(&scope.schema)?.is_string()
        && let Some(number) = pack::functions().find(|of| of.name == "hive_number")
    {
        *arg = call(HiveCall(number), vec![arg.clone()]);
    }
    Ok(true)
}
