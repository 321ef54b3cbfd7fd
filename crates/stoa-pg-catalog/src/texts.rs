//! Functions with which clients write texts: `quote_literal`, `quote_nullable`, `pg_size_pretty`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

/// Adds the functions to a context.
pub(super) fn register(ctx: &SessionContext) {
    for writes in [Writes::Literal, Writes::Nullable, Writes::Size] {
        ctx.register_udf(ScalarUDF::new_from_impl(TextFunction::new(writes)));
    }
}

/// What a function writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Writes {
    /// A text as a literal.
    Literal,
    /// As a literal; NULL as the word.
    Nullable,
    /// A number of bytes with its unit.
    Size,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextFunction {
    writes: Writes,
    signature: Signature,
}

impl TextFunction {
    fn new(writes: Writes) -> Self {
        let operand = match writes {
            Writes::Size => DataType::Int64,
            _ => DataType::Utf8,
        };
        Self { writes, signature: Signature::exact(vec![operand], Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        match self.writes {
            Writes::Literal => "quote_literal",
            Writes::Nullable => "quote_nullable",
            Writes::Size => "pg_size_pretty",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let operands = ColumnarValue::values_to_arrays(&args.args)?;
        match operands.first() {
            Some(operand) => Ok(ColumnarValue::Array(Arc::new(write(self.writes, operand)))),
            None => exec_err!("{} needs a value", self.name()),
        }
    }
}

fn write(writes: Writes, operand: &ArrayRef) -> StringArray {
    if writes == Writes::Size {
        let sizes: &Int64Array = operand.as_primitive::<Int64Type>();
        return sizes.iter().map(|size| size.map(pretty_size)).collect();
    }
    let texts: &StringArray = operand.as_string();
    let written = |text: Option<&str>| match (writes, text) {
        (Writes::Nullable, None) => Some("NULL".to_owned()),
        (_, None) => None,
        (_, Some(text)) => Some(literal(text)),
    };
    texts.iter().map(written).collect()
}

fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match text.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

/// As PostgreSQL writes it: up to 10,239 of a unit, rounded half up.
fn pretty_size(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let (mut size, mut unit) = (i128::from(bytes), 0);
    while size.abs() >= 10 * 1024 && unit < UNITS.len() - 1 {
        // Of the first halving, one bit is kept for rounding.
        let divisor = if unit == 0 { 512 } else { 1024 };
        size /= divisor;
        unit += 1;
        let rounded = (size + size.signum()) / 2;
        if rounded.abs() < 10 * 1024 || unit == UNITS.len() - 1 {
            size = rounded;
            break;
        }
    }
    format!("{size} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers are PostgreSQL 15's.
    #[test]
    fn sizes_have_their_units() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (10_751, "10 kB"),
            (10_752, "11 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (123_456_789, "118 MB"),
            (-10_752, "-11 kB"),
            (1_234_567_890_123, "1150 GB"),
            (i64::MAX, "8192 PB"),
        ] {
            assert_eq!(pretty_size(bytes), shown);
        }
    }

    #[test]
    fn literals_are_quoted() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\b"), "E'a\\\\b'");
    }
}
