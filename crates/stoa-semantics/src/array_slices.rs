//! `array_between(array, from, to)`: the elements between two places, both of them included; the first place is 1.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use stoa_sql::slices::ARRAY_SLICE;

use super::call::{Operation, columns, failure};
use super::operators::type_name;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ArraySlice;

impl Operation for ArraySlice {
    fn name(&self) -> &str {
        ARRAY_SLICE
    }

    fn makes_nulls(&self) -> bool {
        true
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        let [array, from, to] = types else {
            return Err(failure("42883", "array_between takes an array and two places"));
        };
        if [from, to].iter().any(|of| !of.is_integer() && !of.is_null()) {
            return Err(failure("42804", "array subscript must have type integer"));
        }
        match array {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Ok(DataType::List(Arc::clone(item)))
            }
            other => {
                let message = format!(
                    "cannot subscript type {} because it does not support subscripting",
                    type_name(other)
                );
                Err(failure("42804", message))
            }
        }
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let types: Vec<DataType> = columns.iter().map(|of| of.data_type().clone()).collect();
        let result = self.result(&types)?;
        let [arrays, from, to] = columns.as_slice() else {
            return Err(failure("42883", "array_between takes an array and two places"));
        };
        let arrays = cast(arrays, &result)?;
        let arrays = arrays.as_list::<i32>();
        let (from, to) = (cast(from, &DataType::Int64)?, cast(to, &DataType::Int64)?);
        let (from, to) = (from.as_primitive::<Int64Type>(), to.as_primitive::<Int64Type>());
        let (mut taken, mut ends) = (Vec::new(), Vec::with_capacity(rows + 1));
        let mut valid = Vec::with_capacity(rows);
        ends.push(0_i32);
        for row in 0..rows {
            let is_valid = arrays.is_valid(row) && from.is_valid(row) && to.is_valid(row);
            valid.push(is_valid);
            if is_valid {
                let start = i64::from(arrays.value_offsets()[row]);
                let length = i64::from(arrays.value_length(row));
                let (first, last) = (from.value(row).max(1), to.value(row).min(length));
                taken.extend((first..=last).filter_map(|at| u32::try_from(start + at - 1).ok()));
            }
            ends.push(i32::try_from(taken.len()).unwrap_or(i32::MAX));
        }
        let values = take(arrays.values(), &UInt32Array::from(taken), None)?;
        let DataType::List(item) = result else {
            return Err(failure("42804", "array_between takes an array"));
        };
        let ends = OffsetBuffer::new(ends.into());
        Ok(Arc::new(ListArray::try_new(item, ends, values, Some(NullBuffer::from(valid)))?))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;

    #[test]
    fn parts_are_those_between_two_places() {
        let lists = [Some(vec![Some(1), None, Some(3)]), Some(Vec::new()), None];
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let part = |from: Option<i64>, to: Option<i64>| {
            let place = |of| ColumnarValue::Scalar(ScalarValue::Int64(of));
            let operands = [ColumnarValue::Array(Arc::new(lists.clone())), place(from), place(to)];
            let part = ArraySlice.compute(&operands, 3).unwrap();
            let part = part.as_list::<i32>().clone();
            assert_eq!((part.len(), part.is_valid(1)), (3, from.is_some() && to.is_some()));
            assert!(part.is_null(2));
            part.is_valid(0).then(|| {
                part.value(0).as_primitive::<Int64Type>().iter().collect::<Vec<Option<i64>>>()
            })
        };
        assert_eq!(part(Some(2), Some(3)), Some(vec![None, Some(3)]));
        assert_eq!(part(Some(i64::MIN), Some(1)), Some(vec![Some(1)]));
        assert_eq!(part(Some(3), Some(i64::MAX)), Some(vec![Some(3)]));
        assert_eq!(part(Some(3), Some(2)), Some(vec![]));
        assert_eq!(part(None, Some(2)), None);
        assert_eq!(part(Some(1), None), None);
    }
}
