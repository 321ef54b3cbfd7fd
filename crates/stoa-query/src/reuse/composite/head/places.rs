//! Values of a call in the expressions of a head.
//!
//! A place is a function without arguments, which gives the value of the call that this thread computes. So the
//! expressions are compiled once, and are the same objects in all calls.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use stoa_semantics::parameters::index_of;

use super::internal;

thread_local! {
    /// The values of the call that is computed on this thread.
    static VALUES: RefCell<Arc<[ScalarValue]>> = RefCell::new(Arc::from([]));
}

/// The place of one value.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Place {
    number: usize,
    of: DataType,
    name: String,
    signature: Signature,
}

/// The plan with functions in its places, of these `types`.
///
/// # Errors
/// A place that is none of them.
pub(super) fn with_functions(plan: LogicalPlan, types: &[DataType]) -> EngineResult<LogicalPlan> {
    let function = |expr: Expr| {
        let Expr::Placeholder(place) = &expr else { return Ok(Transformed::no(expr)) };
        let number = index_of(&place.id).ok_or_else(|| internal("a place without a number"))?;
        let of = types.get(number).ok_or_else(|| internal("a place without a value"))?.clone();
        let signature = Signature::nullary(Volatility::Volatile);
        let place = Place { number, of, name: format!("value_{}", number + 1), signature };
        Ok(Transformed::yes(ScalarUDF::from(place).call(Vec::new())))
    };
    let replaced = plan.transform_up(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.transform_up(function)?.update_data(|expr| name.restore(expr)))
        })
    });
    replaced.map(|replaced| replaced.data)
}

/// Computes with these values in the places.
pub(super) fn with_values<T>(values: &Arc<[ScalarValue]>, compute: impl FnOnce() -> T) -> T {
    let before = VALUES.replace(Arc::clone(values));
    let computed = compute();
    VALUES.set(before);
    computed
}

impl ScalarUDFImpl for Place {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> EngineResult<DataType> {
        Ok(self.of.clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let value = VALUES.with_borrow(|values| values.get(self.number).cloned());
        // A list is for reports, which look up each of its values.
        let value = value.filter(|value| value.data_type() == self.of);
        value.map(ColumnarValue::Scalar).ok_or_else(|| internal("a place without a value"))
    }
}
