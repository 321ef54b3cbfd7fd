//! `width_bucket(value, thresholds)`: the place of a value among sorted thresholds.
//!
//! It is found by halving, as in PostgreSQL: of thresholds that are not sorted, the answer is the same.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{DataType, Float64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, call, columns, failure, unsupported};
use super::casts;
use super::declared;
use super::unify::{self, Branch};
use crate::scope::Scope;

/// The call with value and thresholds of one type.
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let [value, thresholds] = function.args.as_slice() else {
        return declared::rewrite(function, scope);
    };
    let (of, of_list) = (value.get_type(&scope.schema)?, thresholds.get_type(&scope.schema)?);
    let DataType::List(item) = &of_list else { return declared::rewrite(function, scope) };
    let item_type = item.data_type();
    if item_type.is_nested() {
        return Err(failure("2202E", "thresholds must be one-dimensional array"));
    }
    let branches = [
        Branch::of(value, of.clone()),
        Branch { of: item_type.clone(), is_unknown: item_type.is_null() },
    ];
    let Some(common) = unify::type_of_all("width_bucket", &branches)? else {
        return declared::rewrite(function, scope);
    };
    let common = if common.is_floating() { DataType::Float64 } else { common };
    if matches!(common, DataType::Interval(_) | DataType::Duration(_)) {
        let message = "width_bucket of intervals is not supported";
        return Err(unsupported(message, "compare seconds: extract(epoch FROM …)"));
    }
    let list = DataType::List(Arc::new(item.as_ref().clone().with_data_type(common.clone())));
    let value = casts::to_type(value.clone(), &of, &common, scope.options)?;
    let thresholds = casts::to_type(thresholds.clone(), &of_list, &list, scope.options)?;
    Ok(Transformed::yes(call(Bucket, vec![value, thresholds])))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bucket;

impl Operation for Bucket {
    fn name(&self) -> &str {
        "width_bucket_of"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [values, lists] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        let Some(lists) = lists.as_list_opt::<i32>() else {
            return Err(failure("42883", "an array wanted"));
        };
        let (values, items) =
            (without_signs_of_zero(values), without_signs_of_zero(lists.values()));
        let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
        let keys = converter.convert_columns(&[Arc::clone(&items)])?;
        let wanted = converter.convert_columns(&[Arc::clone(&values)])?;
        let offsets = lists.value_offsets();
        let bucket = |row: usize| -> Result<Option<i32>> {
            if values.is_null(row) || lists.is_null(row) {
                return Ok(None);
            }
            let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
            if items.slice(start, end - start).null_count() > 0 {
                return Err(failure("22004", "thresholds array must not contain NULLs"));
            }
            let (mut left, mut right) = (start, end);
            while left < right {
                let middle = left.midpoint(right);
                match wanted.row(row) < keys.row(middle) {
                    true => right = middle,
                    false => left = middle + 1,
                }
            }
            Ok(i32::try_from(left - start).ok())
        };
        Ok(Arc::new((0..rows).map(bucket).collect::<Result<Int32Array>>()?))
    }
}

/// Zeros are equal, and so are values that are no numbers.
fn without_signs_of_zero(array: &ArrayRef) -> ArrayRef {
    let Some(floats) = array.as_primitive_opt::<Float64Type>() else { return Arc::clone(array) };
    let positive = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
    Arc::new(floats.unary::<_, Float64Type>(positive))
}
