//! Operators on integers and floats that fail where the result does not fit; `#` and `||`.

use std::fmt::Write;
use std::ops::BitXor;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, StringBuilder};
use arrow::compute::cast;
use arrow::compute::kernels::bitwise::bitwise_xor;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{
    ArrowNumericType, DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, Operator};
use stoa_orc::with_one_nan;

use super::call::{Operand, Operation, columns, failure};

/// `+`, `-`, `*`, `/`, `%` of two operands of one type, an integer or a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Checked(pub(super) Operator);

impl Operation for Checked {
    fn name(&self) -> &str {
        match self.0 {
            Operator::Plus => "checked_add",
            Operator::Minus => "checked_subtract",
            Operator::Multiply => "checked_multiply",
            Operator::Divide => "checked_divide",
            _ => "checked_modulo",
        }
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(&format!(" {} ", self.0))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], _: usize) -> Result<ArrayRef> {
        let [left, right] = operands else { return Err(failure("42883", "two operands wanted")) };
        let of = left.data_type();
        let (left, right) = (Operand::of(left)?, Operand::of(right)?);
        let (left, right) = (left.datum(), right.datum());
        let result = match self.0 {
            Operator::Plus => numeric::add(left, right),
            Operator::Minus => numeric::sub(left, right),
            Operator::Multiply => numeric::mul(left, right),
            Operator::Divide => numeric::div(left, right),
            _ => numeric::rem(left, right),
        };
        let result = result.map_err(|error| explained(error, &of))?;
        match of {
            DataType::Float32 | DataType::Float64 => self.check_floats(left, right, result),
            _ => Ok(result),
        }
    }
}

impl Checked {
    /// Neither infinity nor NaN comes of finite operands, nor 0 of a product or a quotient of others.
    fn check_floats(
        &self,
        left: &dyn arrow::array::Datum,
        right: &dyn arrow::array::Datum,
        result: ArrayRef,
    ) -> Result<ArrayRef> {
        let may_vanish = matches!(self.0, Operator::Multiply | Operator::Divide);
        if is_finite(&result) && !(may_vanish && has_zero(&result)) {
            return Ok(result);
        }
        let value = |datum: &dyn arrow::array::Datum, row: usize| {
            let (array, is_scalar) = datum.get();
            float(array, if is_scalar { 0 } else { row })
        };
        for row in 0..result.len() {
            let (Some(of), Some(left), Some(right)) =
                (float(&result, row), value(left, row), value(right, row))
            else {
                continue;
            };
            if matches!(self.0, Operator::Divide | Operator::Modulo)
                && right == 0.0
                && !left.is_nan()
            {
                return Err(failure("22012", "division by zero"));
            }
            if of.is_infinite() && left.is_finite() && right.is_finite() {
                return Err(failure("22003", "value out of range: overflow"));
            }
            let vanishes = match self.0 {
                Operator::Multiply => right != 0.0,
                Operator::Divide => right.is_finite(),
                _ => false,
            };
            if of == 0.0 && left != 0.0 && vanishes {
                return Err(failure("22003", "value out of range: underflow"));
            }
        }
        // Processors make negative ones.
        Ok(with_one_nan(&result).unwrap_or(result))
    }
}

/// `#` of two integers of one signed type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ExclusiveOr;

impl Operation for ExclusiveOr {
    fn name(&self) -> &str {
        "exclusive_or"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(" # ")
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [left, right] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        Ok(match left.data_type() {
            DataType::Int16 => Arc::new(exclusive_or::<Int16Type>(left, right)?),
            DataType::Int32 => Arc::new(exclusive_or::<Int32Type>(left, right)?),
            DataType::Int64 => Arc::new(exclusive_or::<Int64Type>(left, right)?),
            _ => return Err(failure("42883", "integers wanted")),
        })
    }
}

fn exclusive_or<T>(left: &ArrayRef, right: &ArrayRef) -> Result<PrimitiveArray<T>>
where
    T: ArrowNumericType,
    T::Native: BitXor<Output = T::Native>,
{
    Ok(bitwise_xor(left.as_primitive::<T>(), right.as_primitive::<T>())?)
}

/// `||` of two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Joined;

impl Operation for Joined {
    fn name(&self) -> &str {
        "text_concat"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(" || ")
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [left, right] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        let (left, right) = (cast(left, &DataType::Utf8)?, cast(right, &DataType::Utf8)?);
        let pairs = left.as_string::<i32>().iter().zip(right.as_string::<i32>());
        let mut joined = StringBuilder::with_capacity(rows, 0);
        for pair in pairs {
            let (Some(left), Some(right)) = pair else {
                joined.append_null();
                continue;
            };
            // What is written is part of the value that is appended next.
            let written = joined.write_str(left).and_then(|()| joined.write_str(right));
            written.map_err(|error| failure("XX000", error.to_string()))?;
            joined.append_value("");
        }
        Ok(Arc::new(joined.finish()))
    }
}

fn is_finite(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().values().iter().all(|v| v.is_finite())
        }
        _ => array.as_primitive::<Float64Type>().values().iter().all(|v| v.is_finite()),
    }
}

fn has_zero(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().values().contains(&0.0),
        _ => array.as_primitive::<Float64Type>().values().contains(&0.0),
    }
}

fn float(array: &dyn Array, row: usize) -> Option<f64> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Float32 => Some(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => Some(array.as_primitive::<Float64Type>().value(row)),
        _ => None,
    }
}

/// PostgreSQL's words for what a kernel says.
fn explained(error: ArrowError, of: &DataType) -> DataFusionError {
    match error {
        ArrowError::DivideByZero => failure("22012", "division by zero"),
        ArrowError::ArithmeticOverflow(_) => failure("22003", format!("{} out of range", name(of))),
        other => other.into(),
    }
}

/// The name of a type in messages.
pub(super) fn name(of: &DataType) -> &'static str {
    match of {
        DataType::Int8 | DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 | DataType::UInt64 => "bigint",
        DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Boolean => "boolean",
        DataType::Date32 => "date",
        DataType::Timestamp(_, None) => "timestamp without time zone",
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        DataType::Time32(_) | DataType::Time64(_) => "time without time zone",
        DataType::Interval(_) | DataType::Duration(_) => "interval",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytea",
        DataType::FixedSizeBinary(_) => "uuid",
        of if of.is_decimal() => "numeric",
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "array",
        _ => "record",
    }
}

/// A type as PostgreSQL writes it; arrays of any number of dimensions are of one type.
pub(super) fn type_name(of: &DataType) -> String {
    match of {
        DataType::Null => "unknown".to_owned(),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let item = type_name(item.data_type());
            if item.ends_with("[]") { item } else { item + "[]" }
        }
        other => name(other).to_owned(),
    }
}
