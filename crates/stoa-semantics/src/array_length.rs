//! `array_length(array [, dimension])`: NULL, not 0, of an array without elements.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::call::{Operation, columns, failure};
use super::operators::name;

/// The type of a length.
const LENGTH: DataType = DataType::Int32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ArrayLength;

impl Operation for ArrayLength {
    fn name(&self) -> &str {
        "array_length"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        let is_array = |of: &DataType| {
            use DataType::{FixedSizeList, LargeList, List, Null};
            matches!(of, Null | List(_) | LargeList(_) | FixedSizeList(..))
        };
        match types {
            [of] if is_array(of) => Ok(LENGTH),
            [of, dimension] if is_array(of) && (dimension.is_integer() || dimension.is_null()) => {
                Ok(LENGTH)
            }
            other => {
                let types: Vec<&str> = other.iter().map(name).collect();
                let message = format!("function array_length({}) does not exist", types.join(", "));
                Err(failure("42883", message))
            }
        }
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let (array, dimensions) = match columns.as_slice() {
            [array] => (array, None),
            [array, dimensions, ..] => (array, Some(cast(dimensions, &DataType::Int64)?)),
            [] => return Err(failure("42883", "no operand")),
        };
        if array.data_type().is_null() {
            return Ok(new_null_array(&LENGTH, rows));
        }
        let array = &with_offsets(array)?;
        let length = |row: usize| {
            let dimension = match &dimensions {
                None => 1,
                Some(dimensions) if dimensions.is_null(row) => return None,
                Some(dimensions) => dimensions.as_primitive::<Int64Type>().value(row),
            };
            length(array, row, dimension)
        };
        Ok(Arc::new((0..rows).map(length).collect::<Int32Array>()))
    }
}

/// `array_ndims(array)`: NULL of an array without elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Dimensions;

impl Operation for Dimensions {
    fn name(&self) -> &str {
        "array_ndims"
    }

    fn makes_nulls(&self) -> bool {
        true
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::List(_) | DataType::Null] => Ok(LENGTH),
            other => {
                let types: Vec<&str> = other.iter().map(name).collect();
                let message = format!("function array_ndims({}) does not exist", types.join(", "));
                Err(failure("42883", message))
            }
        }
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let Some(array) = columns.first() else { return Err(failure("42883", "no operand")) };
        let (mut of, mut dimensions) = (array.data_type(), 0);
        while let DataType::List(item) = of {
            (of, dimensions) = (item.data_type(), dimensions + 1);
        }
        let dimensions = |row: usize| length(array, row, 1).map(|_| dimensions);
        Ok(Arc::new((0..rows).map(dimensions).collect::<Int32Array>()))
    }
}

/// Lists of any kind as those with 32-bit offsets.
fn with_offsets(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            cast(array, &DataType::List(Arc::clone(item)))?
        }
        _ => Arc::clone(array),
    })
}

/// The elements of one dimension, the outermost is 1; those of an inner one are as many in each array.
fn length(array: &ArrayRef, row: usize, dimension: i64) -> Option<i32> {
    let list = array.as_list_opt::<i32>()?;
    if dimension < 1 || list.is_null(row) {
        return None;
    }
    let elements = list.value(row);
    match elements.len() {
        0 => None,
        of if dimension == 1 => i32::try_from(of).ok(),
        _ => length(&elements, 0, dimension - 1),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray};
    use datafusion::common::ScalarValue;

    use super::*;

    #[test]
    fn no_elements_have_no_length() {
        let lists: [Option<Vec<Option<i64>>>; 3] =
            [Some(vec![Some(1), None]), Some(Vec::new()), None];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        let lengths = |dimension: i64| {
            let dimension = ColumnarValue::Scalar(ScalarValue::Int64(Some(dimension)));
            let operands = [ColumnarValue::Array(Arc::clone(&lists)), dimension];
            let lengths = ArrayLength.compute(&operands, 3).unwrap();
            cast(&lengths, &DataType::Int64).unwrap().as_primitive::<Int64Type>().clone()
        };
        assert_eq!(lengths(1), Int64Array::from(vec![Some(2), None, None]));
        assert_eq!(lengths(2), Int64Array::from(vec![None, None, None]));
    }
}
