//! Functions with which clients write texts: `quote_literal`, `quote_nullable`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

/// Adds the functions to a context.
pub(super) fn register(ctx: &SessionContext) {
    for writes in [Writes::Literal, Writes::Nullable] {
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
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextFunction {
    writes: Writes,
    signature: Signature,
}

impl TextFunction {
    fn new(writes: Writes) -> Self {
        Self { writes, signature: Signature::exact(vec![DataType::Utf8], Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        match self.writes {
            Writes::Literal => "quote_literal",
            Writes::Nullable => "quote_nullable",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_quoted() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\b"), "E'a\\\\b'");
    }
}
