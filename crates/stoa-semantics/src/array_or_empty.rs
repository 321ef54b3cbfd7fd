//! `array_or_empty(array)`: an array without elements where there is none, for `ARRAY(SELECT …)`.

use arrow::array::{Array, ArrayRef, Scalar};
use arrow::compute::{is_not_null, kernels::zip::zip};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use stoa_sql::array_queries::ARRAY_OR_EMPTY;

use super::call::{Operation, column, failure};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ArrayOrEmpty;

impl Operation for ArrayOrEmpty {
    fn name(&self) -> &str {
        ARRAY_OR_EMPTY
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of @ (DataType::List(_) | DataType::Null)] => Ok(of.clone()),
            _ => Err(failure("42883", "array_or_empty takes an array")),
        }
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let arrays = column(operands, rows)?;
        let DataType::List(element) = arrays.data_type() else { return Ok(arrays) };
        if arrays.null_count() == 0 {
            return Ok(arrays);
        }
        let none = ScalarValue::List(ScalarValue::new_list_nullable(&[], element.data_type()));
        let none = arrow::compute::cast(&none.to_array()?, arrays.data_type())?;
        Ok(zip(&is_not_null(&arrays)?, &arrays, &Scalar::new(none))?)
    }
}
