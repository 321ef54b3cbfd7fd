//! Functions of floats that are errors in PostgreSQL where the engine says NaN or infinity.
//!
//! | function | is an error |
//! |---|---|
//! | `sqrt(x)` | of a negative number (2201F) |
//! | `power(x, y)` | of zero to a negative, of a negative number to a broken power (2201F) |
//! | `exp`, `power` | where the result of finite numbers is too large, or so small that it is 0 (22003) |
//! | `acos`, `asin`, `atanh` | beyond 1 (22003) |
//! | `acosh` | below 1 (22003) |
//! | `sin`, `cos`, `tan`, `cot` | of infinity (22003) |
//!
//! Results are `double precision`, of `real` operands, too. Not here: logarithms (`functions`).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, call, columns, failure};
use crate::scope::Scope;

/// A function of one or two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Math {
    Sqrt,
    Power,
    Exp,
    Acos,
    Asin,
    Acosh,
    Atanh,
    Sin,
    Cos,
    Tan,
    Cot,
}

/// The call as one of ours, if its operands are numbers.
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let math = match (function.func.name(), function.args.len()) {
        ("sqrt", 1) => Math::Sqrt,
        ("power", 2) => Math::Power,
        ("exp", 1) => Math::Exp,
        ("acos", 1) => Math::Acos,
        ("asin", 1) => Math::Asin,
        ("acosh", 1) => Math::Acosh,
        ("atanh", 1) => Math::Atanh,
        ("sin", 1) => Math::Sin,
        ("cos", 1) => Math::Cos,
        ("tan", 1) => Math::Tan,
        ("cot", 1) => Math::Cot,
        _ => return Ok(Transformed::no(Expr::ScalarFunction(function))),
    };
    for operand in &function.args {
        if !operand.get_type(&scope.schema)?.is_numeric() {
            return Ok(Transformed::no(Expr::ScalarFunction(function)));
        }
    }
    Ok(Transformed::yes(call(math, function.args)))
}

impl Operation for Math {
    fn name(&self) -> &str {
        match self {
            Self::Sqrt => "sqrt",
            Self::Power => "power",
            Self::Exp => "exp",
            Self::Acos => "acos",
            Self::Asin => "asin",
            Self::Acosh => "acosh",
            Self::Atanh => "atanh",
            Self::Sin => "sin",
            Self::Cos => "cos",
            Self::Tan => "tan",
            Self::Cot => "cot",
        }
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let columns = columns.iter().map(|column| cast(column, &DataType::Float64));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let computed: PrimitiveArray<Float64Type> = match columns.as_slice() {
            [x] => {
                let values = x.as_primitive::<Float64Type>().iter();
                values.map(|x| x.map(|x| self.of(x, 0.0)).transpose()).collect::<Result<_>>()?
            }
            [x, y] => {
                let (x, y) = (x.as_primitive::<Float64Type>(), y.as_primitive::<Float64Type>());
                let pairs = x.iter().zip(y).map(|(x, y)| Some((x?, y?)));
                pairs
                    .map(|pair| pair.map(|(x, y)| self.of(x, y)).transpose())
                    .collect::<Result<_>>()?
            }
            _ => return Err(failure("42883", "one or two operands wanted")),
        };
        Ok(Arc::new(computed))
    }
}

impl Math {
    fn of(self, x: f64, y: f64) -> Result<f64> {
        match self {
            Self::Sqrt if x < 0.0 => {
                Err(failure("2201F", "cannot take square root of a negative number"))
            }
            Self::Sqrt => Ok(x.sqrt()),
            Self::Power if x == 0.0 && y < 0.0 => {
                Err(failure("2201F", "zero raised to a negative power is undefined"))
            }
            Self::Power if x < 0.0 && y.floor() != y && !y.is_nan() => Err(failure(
                "2201F",
                "a negative number raised to a non-integer power yields a complex result",
            )),
            Self::Power => in_range(x.powf(y), x != 0.0 && x.is_finite() && y.is_finite()),
            Self::Exp => in_range(x.exp(), x.is_finite()),
            Self::Acos if x.abs() > 1.0 => Err(beyond_input()),
            Self::Acos => Ok(x.acos()),
            Self::Asin if x.abs() > 1.0 => Err(beyond_input()),
            Self::Asin => Ok(x.asin()),
            Self::Acosh if x < 1.0 => Err(beyond_input()),
            Self::Acosh => Ok(x.acosh()),
            Self::Atanh if x.abs() > 1.0 => Err(beyond_input()),
            Self::Atanh => Ok(x.atanh()),
            Self::Sin | Self::Cos | Self::Tan | Self::Cot if x.is_infinite() => Err(beyond_input()),
            Self::Sin => Ok(x.sin()),
            Self::Cos => Ok(x.cos()),
            Self::Tan => Ok(x.tan()),
            Self::Cot => Ok(1.0 / x.tan()),
        }
    }
}

/// A result, which is neither infinite nor 0 where operands are `ordinary`.
fn in_range(result: f64, ordinary: bool) -> Result<f64> {
    match ordinary {
        true if result.is_infinite() => Err(failure("22003", "value out of range: overflow")),
        true if result == 0.0 => Err(failure("22003", "value out of range: underflow")),
        _ => Ok(result),
    }
}

fn beyond_input() -> DataFusionError {
    failure("22003", "input is out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_value_is_an_error() {
        assert!(Math::Sqrt.of(-1.0, 0.0).is_err());
        assert!(Math::Power.of(0.0, -1.0).is_err());
        assert!(Math::Power.of(-8.0, 1.0 / 3.0).is_err());
        assert!(Math::Power.of(10.0, 400.0).is_err());
        assert!(Math::Power.of(10.0, -400.0).is_err());
        assert!(Math::Exp.of(1000.0, 0.0).is_err());
        assert!(Math::Exp.of(-1000.0, 0.0).is_err());
        assert!(Math::Acos.of(2.0, 0.0).is_err());
        assert!(Math::Acosh.of(0.5, 0.0).is_err());
        assert!(Math::Atanh.of(-2.0, 0.0).is_err());
        assert!(Math::Sin.of(f64::INFINITY, 0.0).is_err());
    }

    #[test]
    fn infinity_and_nan_are_values() {
        let power = |x, y| Math::Power.of(x, y).unwrap();
        assert_eq!(power(f64::INFINITY, -1.0), 0.0);
        assert_eq!(power(0.0, 2.0), 0.0);
        assert_eq!(power(-1.0, f64::INFINITY), 1.0);
        assert!(power(-1.0, f64::NAN).is_nan());
        assert_eq!(Math::Exp.of(f64::NEG_INFINITY, 0.0).unwrap(), 0.0);
        assert!(Math::Sqrt.of(f64::NAN, 0.0).unwrap().is_nan());
    }
}
