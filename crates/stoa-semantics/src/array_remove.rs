//! `array_remove(array, value)`: NULL is a value, too.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBuilder, ListArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, call, columns, failure};
use super::casts;
use crate::scope::Scope;

/// The call with ours, for arrays of what can be compared.
pub(super) fn rewrite(
    mut function: ScalarFunction,
    scope: &Scope<'_>,
) -> Result<Transformed<Expr>> {
    let [array, value] = function.args.as_mut_slice() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let DataType::List(item) = array.get_type(&scope.schema)? else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let of = value.get_type(&scope.schema)?;
    let value = casts::to_type(std::mem::take(value), &of, item.data_type(), scope.options)?;
    Ok(Transformed::yes(call(ArrayRemove, vec![std::mem::take(array), value])))
}

/// The array without elements that are equal to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ArrayRemove;

impl Operation for ArrayRemove {
    fn name(&self) -> &str {
        "array_without"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [arrays, values] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        let Some(lists) = arrays.as_list_opt::<i32>() else {
            return Err(failure("42883", "an array wanted"));
        };
        let DataType::List(item) = arrays.data_type() else {
            return Err(failure("42883", "an array wanted"));
        };
        let values = cast(values, item.data_type())?;
        let converter = RowConverter::new(vec![SortField::new(item.data_type().clone())])?;
        let items = converter.convert_columns(&[Arc::clone(lists.values())])?;
        let values = converter.convert_columns(&[values])?;
        let (mut kept, mut lengths) = (Vec::new(), Vec::with_capacity(rows));
        let mut valid = BooleanBuilder::with_capacity(rows);
        let offsets = lists.value_offsets();
        for row in 0..rows {
            let before = kept.len();
            if lists.is_valid(row) {
                let places = offsets[row]..offsets[row + 1];
                let places = places.filter_map(|place| u32::try_from(place).ok());
                kept.extend(places.filter(|place| items.row(*place as usize) != values.row(row)));
            }
            valid.append_value(lists.is_valid(row));
            lengths.push(kept.len() - before);
        }
        let kept = take(lists.values(), &UInt32Array::from(kept), None)?;
        let nulls = arrow::buffer::NullBuffer::new(valid.finish().values().clone());
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, kept, Some(nulls))?))
    }
}
