//! `array_like('{1,2}', x)`: a literal in quotes as an array with elements of the type of x, for `x = ANY ('{1,2}')`.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, failure};
use super::casts;
use super::numeric::NUMERIC;
use crate::scope::Scope;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ArrayLike;

impl Operation for ArrayLike {
    fn name(&self) -> &str {
        "array_like"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        let element = match types {
            [_, DataType::Null | DataType::LargeUtf8 | DataType::Utf8View] => DataType::Utf8,
            // Elements have scales of their own.
            [_, of] if of.is_decimal() => NUMERIC,
            [_, of] => of.clone(),
            _ => return Err(failure("42883", "array_like takes a text and a value")),
        };
        Ok(DataType::List(Arc::new(Field::new_list_field(element, true))))
    }

    fn compute(&self, _: &[ColumnarValue], _: usize) -> Result<ArrayRef> {
        Err(DataFusionError::Internal("array_like was not told its types".to_owned()))
    }
}

/// The literal as an array.
pub(super) fn rewrite(call: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let types = call.args.iter().map(|arg| arg.get_type(&scope.schema));
    let to = ArrayLike.result(&types.collect::<Result<Vec<_>>>()?)?;
    let Some(text) = call.args.into_iter().next() else {
        return Err(failure("42883", "array_like takes a text and a value"));
    };
    let read = casts::rewrite(Cast::new(Box::new(text), to), scope)?;
    Ok(Transformed::yes(read.data))
}
