//! `bytea` in functions: `encode`, `decode`, `length`, `octet_length`, `bit_length`.
//!
//! The engine would take bytes for letters. A literal of no type yet is `bytea` where PostgreSQL has the
//! function for nothing else.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int32Array, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, call, column, failure};
use super::{cast_text, casts};
use crate::scope::Scope;

/// `encode(bytes, format)`: a literal is read as bytes, and there is the format `escape`.
pub(super) fn encode(mut function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    if let Some(value) = function.args.first_mut()
        && matches!(value, Expr::Literal(ScalarValue::Utf8(Some(_)), _))
    {
        let of = value.get_type(&scope.schema)?;
        *value = casts::to_type(std::mem::take(value), &of, &DataType::Binary, scope.options)?;
    }
    if is_escape(&function) {
        function.args.truncate(1);
        return Ok(Transformed::yes(call(Escaped, function.args)));
    }
    Ok(Transformed::yes(Expr::ScalarFunction(function)))
}

/// `decode(text, format)`: there is the format `escape`.
pub(super) fn decode(mut function: ScalarFunction) -> Result<Transformed<Expr>> {
    if is_escape(&function) {
        function.args.truncate(1);
        return Ok(Transformed::yes(call(Unescaped, function.args)));
    }
    Ok(Transformed::no(Expr::ScalarFunction(function)))
}

fn is_escape(function: &ScalarFunction) -> bool {
    match function.args.as_slice() {
        [_, Expr::Literal(format, _)] => {
            let format = format.try_as_str().flatten();
            format.is_some_and(|format| format.eq_ignore_ascii_case("escape"))
        }
        _ => false,
    }
}

/// `length` of bytes; of texts it is the engine's.
pub(super) fn length(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let [value] = function.args.as_slice() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    match value.get_type(&scope.schema)? {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            Ok(Transformed::yes(call(OCTET_LENGTH, function.args)))
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(function))),
    }
}

/// `octet_length(value)`, in place of the engine's, which knows no bytes.
pub(super) const OCTET_LENGTH: ByteLength = ByteLength { per_byte: 1 };

/// `bit_length(value)`, likewise.
pub(super) const BIT_LENGTH: ByteLength = ByteLength { per_byte: 8 };

/// Bytes, or bits, of a text or of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ByteLength {
    per_byte: i32,
}

impl Operation for ByteLength {
    fn name(&self) -> &str {
        if self.per_byte == 1 { "octet_length" } else { "bit_length" }
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types.len() {
            1 => Ok(DataType::Int32),
            given => {
                let message = format!("function {} takes one value, not {given}", self.name());
                Err(failure("42883", message))
            }
        }
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = column(operands, rows)?;
        let values = match column.data_type().is_string() {
            true => cast(&cast(&column, &DataType::Utf8)?, &DataType::Binary)?,
            false => Arc::new(binary(operands, rows)?) as ArrayRef,
        };
        let length = |value: &[u8]| {
            let length = i32::try_from(value.len()).ok();
            let length = length.and_then(|length| length.checked_mul(self.per_byte));
            length.ok_or_else(|| failure("22003", "integer out of range"))
        };
        let lengths = values.as_binary::<i32>().iter().map(|value| value.map(length).transpose());
        Ok(Arc::new(lengths.collect::<Result<Int32Array>>()?))
    }
}

/// Bytes as text, those that are not ASCII as `\nnn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Escaped;

impl Operation for Escaped {
    fn name(&self) -> &str {
        "encode_escape"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let mut texts = StringBuilder::with_capacity(rows, 0);
        for value in &binary(operands, rows)? {
            texts.append_option(value.map(escape));
        }
        Ok(Arc::new(texts.finish()))
    }
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            1..=127 => text.push(char::from(*byte)),
            _ => {
                // Writing into a text cannot fail.
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text
}

/// Text with `\\` and `\nnn` as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Unescaped;

impl Operation for Unescaped {
    fn name(&self) -> &str {
        "decode_escape"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let texts = cast(&column(operands, rows)?, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>().iter();
        let values = texts.map(|text| text.map(cast_text::escaped).transpose());
        Ok(Arc::new(BinaryArray::from_iter(values.collect::<Result<Vec<_>>>()?)))
    }
}

fn binary(operands: &[ColumnarValue], rows: usize) -> Result<BinaryArray> {
    let column = column(operands, rows)?;
    if !matches!(
        column.data_type(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Null
    ) {
        return Err(failure("42883", "bytes wanted"));
    }
    Ok(cast(&column, &DataType::Binary)?.as_binary::<i32>().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_bytes_are_read_back() {
        for (bytes, text) in
            [(b"A\x00B".as_slice(), r"A\000B"), (b"\xff\\\n", "\\377\\\\\n"), (b"", "")]
        {
            assert_eq!(escape(bytes), text);
            assert_eq!(cast_text::escaped(text).unwrap(), bytes);
        }
    }
}
