//! `array_like('{1,2}', x)`: a literal in quotes as an array with elements of the type of x, for `x = ANY ('{1,2}')`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, column, failure};
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

/// `item_like(x)`: the value that is compared with such elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ItemLike;

impl Operation for ItemLike {
    fn name(&self) -> &str {
        "item_like"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] if of.is_decimal() => Ok(NUMERIC),
            [of] => Ok(of.clone()),
            _ => Err(failure("42883", "item_like takes a value")),
        }
    }

    fn compute(&self, _: &[ColumnarValue], _: usize) -> Result<ArrayRef> {
        Err(DataFusionError::Internal("item_like was not told its type".to_owned()))
    }
}

/// The value, as an element of the array would be.
pub(super) fn item(call: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let Some(item) = call.args.into_iter().next() else {
        return Err(failure("42883", "item_like takes a value"));
    };
    let of = item.get_type(&scope.schema)?;
    Ok(Transformed::yes(match of.is_decimal() && of != NUMERIC {
        true => Expr::Cast(Cast::new(Box::new(item), NUMERIC)),
        false => item,
    }))
}

/// `any_null(array)`: NULL where an element is, false of other arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AnyNull;

impl Operation for AnyNull {
    fn name(&self) -> &str {
        "any_null"
    }

    fn makes_nulls(&self) -> bool {
        true
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let lists = column(operands, rows)?;
        let Some(lists) = lists.as_list_opt::<i32>() else {
            return Ok(Arc::new(BooleanArray::from(vec![Some(false); rows])));
        };
        let has_null = |list: Option<ArrayRef>| {
            let has_null = list.is_some_and(|list| list.null_count() > 0);
            (!has_null).then_some(false)
        };
        Ok(Arc::new(lists.iter().map(has_null).collect::<BooleanArray>()))
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
