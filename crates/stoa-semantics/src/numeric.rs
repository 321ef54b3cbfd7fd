//! Decimals with as many digits as PostgreSQL gives them: quotients, averages, wide products.
//!
//! Arrow's decimals have the scale of their type, PostgreSQL's one of their own each. A quotient is
//! rounded where PostgreSQL rounds it, by its rule on the two values, and held in a type with room
//! for all of them, [`NUMERIC`]. **Invariant:** such a value is PostgreSQL's, digit for digit, up to
//! trailing zeros, or an error (22003) where it has more than 38 digits before the point; beyond 38
//! digits after the point it is rounded.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal256Builder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, i256};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;

pub(crate) use stoa_report::Decimal;
use stoa_report::NUMERIC_SCALE;

use super::call::{Operation, columns, failure};
use crate::errors::to_datafusion;

/// The type of decimals without a scale of their own: quotients, averages, `numeric` in casts. Shown
/// without zeros at the end.
pub const NUMERIC: DataType = DataType::Decimal256(76, NUMERIC_SCALE);

/// The text of a value of [`NUMERIC`] as it is shown: without zeros at the end.
pub fn numeric_text(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// The quotient of two decimals, as digits of [`NUMERIC`].
pub(super) fn quotient(a: Decimal, b: Decimal) -> Result<i256> {
    stoa_report::quotient(a, b).map_err(to_datafusion)
}

/// `a / b` of two decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quotient;

impl Operation for Quotient {
    fn name(&self) -> &str {
        "numeric_divide"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(NUMERIC)
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(" / ")
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        of_two(operands, rows, quotient)
    }
}

/// `a * b` of two decimals whose product has more digits than the engine's type for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WideProduct;

impl Operation for WideProduct {
    fn name(&self) -> &str {
        "numeric_multiply"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(NUMERIC)
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(" * ")
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        of_two(operands, rows, product)
    }
}

/// Digits of two factors from which on the engine's product could not hold what they make.
const PRODUCT_DIGITS_MAX: u8 = 60;

/// Whether a product is too wide for the engine.
pub(super) fn is_wide_product(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Decimal128(p, s), DataType::Decimal128(q, t)) => {
            s + t > 38 || p + q > PRODUCT_DIGITS_MAX
        }
        _ => true,
    }
}

fn product(a: Decimal, b: Decimal) -> Result<i256> {
    let exact = match a.digits.checked_mul(b.digits) {
        Some(digits) => Some(Decimal { digits, scale: a.scale + b.scale }),
        None => {
            let (a, b) = (a.trimmed(), b.trimmed());
            let digits = a.digits.checked_mul(b.digits);
            digits.map(|digits| Decimal { digits, scale: a.scale + b.scale })
        }
    };
    exact.and_then(Decimal::as_numeric).ok_or_else(out_of_range)
}

pub(crate) fn out_of_range() -> DataFusionError {
    failure("22003", "numeric value out of range: it has more digits than are supported")
}

/// A column of decimals.
pub(super) enum Decimals {
    Narrow(ArrayRef, i8),
    Wide(ArrayRef, i8),
}

impl Decimals {
    pub(super) fn of(array: &ArrayRef) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Decimal128(_, scale) => Self::Narrow(Arc::clone(array), *scale),
            DataType::Decimal256(_, scale) => Self::Wide(Arc::clone(array), *scale),
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => {
                Self::Narrow(cast(array, &DataType::Decimal128(*p, *s))?, *s)
            }
            _ => Self::Narrow(cast(array, &DataType::Decimal128(20, 0))?, 0),
        })
    }

    pub(super) fn get(&self, row: usize) -> Option<Decimal> {
        match self {
            Self::Narrow(array, scale) => {
                let array = array.as_primitive::<Decimal128Type>();
                let digits = array.is_valid(row).then(|| i256::from_i128(array.value(row)));
                digits.map(|digits| Decimal::new(digits, *scale))
            }
            Self::Wide(array, scale) => {
                let array = array.as_primitive::<Decimal256Type>();
                let digits = array.is_valid(row).then(|| array.value(row));
                digits.map(|digits| Decimal::new(digits, *scale))
            }
        }
    }
}

fn of_two(
    operands: &[ColumnarValue],
    rows: usize,
    compute: impl Fn(Decimal, Decimal) -> Result<i256>,
) -> Result<ArrayRef> {
    let columns = columns(operands, rows)?;
    let [left, right] = columns.as_slice() else {
        return Err(failure("42883", "two operands wanted"));
    };
    let (left, right) = (Decimals::of(left)?, Decimals::of(right)?);
    let mut result = Decimal256Builder::with_capacity(rows).with_data_type(NUMERIC);
    for row in 0..rows {
        match (left.get(row), right.get(row)) {
            (Some(left), Some(right)) => result.append_value(compute(left, right)?),
            _ => result.append_null(),
        }
    }
    Ok(Arc::new(result.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_products_are_exact() {
        let number = |digits: &str, scale| Decimal::new(i256::from_string(digits).unwrap(), scale);
        let third = number("33333333333333333333000000000000000000", 38);
        let digits = product(third, number("1000", 1)).unwrap();
        assert_eq!(digits.to_string(), "3333333333333333333300000000000000000000");
        let big = number("99999999999999999999999999999999999999", 0);
        assert!(product(big, big).is_err());
    }
}
