//! `round` of floating-point numbers.
//!
//! In: numbers, and for how many digits. Out: doubles. Without digits, PostgreSQL rounds to the even neighbour; with
//! digits it has no such function. Decimals are the engine's (`functions` chooses).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::call::{Operation, column};

/// `round(float)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RoundEven;

impl Operation for RoundEven {
    fn name(&self) -> &str {
        "round_even"
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("round({})", operands.join(","))
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let numbers = cast(column, &DataType::Float64)?;
        let rounded = numbers.as_primitive::<Float64Type>();
        Ok(Arc::new(rounded.unary::<_, Float64Type>(f64::round_ties_even)))
    }
}

/// `round(float, digits)`, which PostgreSQL has for `numeric` only: half away from zero, as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RoundFloat;

impl Operation for RoundFloat {
    fn name(&self) -> &str {
        "round_float"
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("round({})", operands.join(","))
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let [values, digits] = operands else {
            return exec_err!("round needs a number and its digits");
        };
        let values = cast(&values.to_array(rows)?, &DataType::Float64)?;
        let digits = cast(&digits.to_array(rows)?, &DataType::Int64)?;
        let rounded = arrow::compute::binary::<_, _, _, Float64Type>(
            values.as_primitive::<Float64Type>(),
            digits.as_primitive::<Int64Type>(),
            rounded_at,
        )?;
        Ok(Arc::new(rounded))
    }
}

/// `value` to `digits` behind the point, or before it where they are negative. What has no such digit stays as it is.
fn rounded_at(value: f64, digits: i64) -> f64 {
    let unit = match digits.unsigned_abs() {
        // Exact; of larger ones, the nearest double is that of a text.
        places @ 0..=22 => 10_f64.powi(places as i32),
        places => format!("1e{places}").parse().unwrap_or(f64::INFINITY),
    };
    if !value.is_finite() {
        return value;
    }
    let (scaled, back): (f64, fn(f64, f64) -> f64) = match digits < 0 {
        true if !unit.is_finite() => return 0.0_f64.copysign(value),
        true => (value / unit, |whole, unit| whole * unit),
        false => (value * unit, |whole, unit| whole / unit),
    };
    // Doubles from 2^52 on are whole.
    let is_whole = scaled.abs() >= 4_503_599_627_370_496.0;
    let rounded = back(scaled.round(), unit);
    if !scaled.is_finite() || is_whole || !rounded.is_finite() { value } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_rounded_at_any_digit() {
        for (value, digits, expected) in [
            (1234.5, -2, 1200.0),
            (1250.0, -2, 1300.0),
            (-1250.0, -2, -1300.0),
            (2.345, 1, 2.3),
            (2.5, 400, 2.5),
            (42.0, -400, 0.0),
            (1e300, 20, 1e300),
            (1e300, -301, 0.0),
            (5e300, -301, 1e301),
            (0.1, i64::MAX, 0.1),
            (0.1, i64::MIN, 0.0),
            (f64::INFINITY, 2, f64::INFINITY),
        ] {
            assert_eq!(rounded_at(value, digits), expected, "round({value}, {digits})");
        }
        assert!(rounded_at(f64::NAN, -400).is_nan());
    }
}
