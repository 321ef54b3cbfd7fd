//! `sign(x)`: -1, 0 or 1; of a decimal as a decimal, of all other numbers as a double.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::call::{Operation, column, failure};
use super::numeric::Decimals;
use super::operators::name;

/// The sign of a decimal.
const DECIMAL: DataType = DataType::Decimal128(1, 0);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sign;

impl Operation for Sign {
    fn name(&self) -> &str {
        "sign"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] if of.is_decimal() => Ok(DECIMAL),
            [of] if of.is_integer() || of.is_floating() || of.is_null() => Ok(DataType::Float64),
            other => {
                let types: Vec<&str> = other.iter().map(name).collect();
                let message = format!("function sign({}) does not exist", types.join(", "));
                Err(failure("42883", message))
            }
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = column(operands, rows)?;
        if column.data_type().is_decimal() {
            let decimals = Decimals::of(&column)?;
            let signs =
                (0..rows).map(|row| decimals.get(row).map(|of| of.digits.signum().as_i128()));
            return Ok(Arc::new(signs.collect::<Decimal128Array>().with_data_type(DECIMAL)));
        }
        let numbers = cast(&column, &DataType::Float64)?;
        let numbers = numbers.as_primitive::<Float64Type>();
        // Neither zero has a sign, nor what is no number.
        let sign = |number: f64| f64::from(i8::from(number > 0.0) - i8::from(number < 0.0));
        Ok(Arc::new(numbers.unary::<_, Float64Type>(sign)))
    }
}
