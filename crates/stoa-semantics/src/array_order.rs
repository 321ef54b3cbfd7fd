//! Which of two arrays comes first: element by element, where NULL is larger than all values; then the shorter one.
//!
//! The engine takes NULL for the smallest of elements where it compares arrays, and for the largest where it sorts them.
//!
//! Source: PostgreSQL, `array_cmp` in `arrayfuncs.c`.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, DynComparator, Int32Array, make_comparator, new_null_array};
use arrow::compute::{SortOptions, cast, interleave};
use arrow::datatypes::DataType;

use datafusion::error::Result;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{ColumnarValue, Expr};

use super::call::{Operation, call, columns, failure};

/// Whether a type is one of arrays.
pub(super) fn is_array(of: &DataType) -> bool {
    matches!(of, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

/// -1, 0 or 1 where the left array comes first, is equal, or comes last; NULL beside NULL.
pub(super) fn order(left: Expr, right: Expr) -> Expr {
    call(ArrayOrder, vec![left, right])
}

/// The largest of some arrays, or the smallest, without those that are NULL.
pub(super) fn extreme(arrays: Vec<Expr>, is_greatest: bool) -> Expr {
    call(ExtremeArray { is_greatest }, arrays)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ArrayOrder;

impl Operation for ArrayOrder {
    fn name(&self) -> &str {
        "array_order"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = of_one_type(columns(operands, rows)?)?;
        let [left, right] = columns.as_slice() else {
            return Err(failure("42883", "array_order takes two arrays"));
        };
        let compare = comparator(left, right)?;
        let order = |row| match left.is_null(row) || right.is_null(row) {
            true => None,
            false => Some(compare(row, row) as i32),
        };
        Ok(Arc::new((0..rows).map(order).collect::<Int32Array>()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ExtremeArray {
    is_greatest: bool,
}

impl Operation for ExtremeArray {
    fn name(&self) -> &str {
        if self.is_greatest { "greatest_array" } else { "least_array" }
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        common(types)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = of_one_type(columns(operands, rows)?)?;
        let Some(first) = columns.first() else { return Err(failure("42883", "no operand")) };
        let mut best = vec![0; rows];
        for (at, column) in columns.iter().enumerate().skip(1) {
            let compare: Vec<_> = columns[..at]
                .iter()
                .map(|other| comparator(column, other))
                .collect::<Result<_>>()?;
            let wanted = if self.is_greatest { Ordering::Greater } else { Ordering::Less };
            for (row, best) in best.iter_mut().enumerate().filter(|(row, _)| column.is_valid(*row))
            {
                let is_better = columns[*best].is_null(row) || compare[*best](row, row) == wanted;
                if is_better {
                    *best = at;
                }
            }
        }
        let indices: Vec<_> = best.into_iter().enumerate().map(|(row, at)| (at, row)).collect();
        if indices.is_empty() {
            return Ok(new_null_array(first.data_type(), 0));
        }
        let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
        Ok(interleave(&columns, &indices)?)
    }
}

fn comparator(left: &ArrayRef, right: &ArrayRef) -> Result<DynComparator> {
    Ok(make_comparator(left, right, SortOptions { descending: false, nulls_first: false })?)
}

fn of_one_type(columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
    let types: Vec<_> = columns.iter().map(|column| column.data_type().clone()).collect();
    let of = common(&types)?;
    columns.iter().map(|column| Ok(cast(column, &of)?)).collect()
}

fn common(types: &[DataType]) -> Result<DataType> {
    let mut types = types.iter();
    let Some(first) = types.next() else { return Err(failure("42883", "no operand")) };
    types.try_fold(first.clone(), |common, of| {
        comparison_coercion(&common, of)
            .ok_or_else(|| failure("42883", "arrays of these types cannot be compared"))
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::ListArray;
    use arrow::datatypes::{Int32Type, Int64Type};
    use proptest::prelude::*;

    use super::*;

    type Elements = Option<Vec<Option<i32>>>;

    /// As PostgreSQL's manual has it.
    fn expected(left: &[Option<i32>], right: &[Option<i32>]) -> Ordering {
        let key = |element: &Option<i32>| (element.is_none(), element.unwrap_or_default());
        left.iter().map(key).cmp(right.iter().map(key))
    }

    fn list(rows: &[Elements]) -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows.iter().cloned()))
    }

    fn elements() -> impl Strategy<Value = Elements> {
        let element = proptest::option::weighted(0.7, 0..3);
        proptest::option::weighted(0.8, proptest::collection::vec(element, 0..4))
    }

    proptest! {
        #[test]
        fn null_is_larger_than_all_elements(rows in proptest::collection::vec((elements(), elements()), 0..20)) {
            let (left, right): (Vec<_>, Vec<_>) = rows.iter().cloned().unzip();
            let operands = [list(&left), list(&right)].map(ColumnarValue::Array);
            let order = ArrayOrder.compute(&operands, rows.len()).unwrap();
            let most = ExtremeArray { is_greatest: true }.compute(&operands, rows.len()).unwrap();
            let least = ExtremeArray { is_greatest: false }.compute(&operands, rows.len()).unwrap();
            let mut wanted = [Vec::new(), Vec::new()];
            let mut orders = Vec::new();
            for (left, right) in rows {
                let compared = left.as_ref().zip(right.as_ref()).map(|(a, b)| expected(a, b));
                orders.push(compared.map(|order| order as i32));
                let (small, large) = match compared {
                    Some(Ordering::Greater) => (right, left),
                    Some(_) => (left, right),
                    None => (left.clone().or(right.clone()), left.or(right)),
                };
                wanted[0].push(small);
                wanted[1].push(large);
            }
            prop_assert_eq!(&*order, &Int32Array::from(orders) as &dyn Array);
            prop_assert_eq!(&*least, &*list(&wanted[0]));
            prop_assert_eq!(&*most, &*list(&wanted[1]));
        }
    }

    #[test]
    fn elements_of_two_types_are_compared_as_the_wider_one() {
        let wide = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1_i64 << 40)])]);
        let operands = [list(&[Some(vec![Some(5)])]), Arc::new(wide)].map(ColumnarValue::Array);
        let order = ArrayOrder.compute(&operands, 1).unwrap();
        assert_eq!(&*order, &Int32Array::from(vec![-1]) as &dyn Array);
    }
}
