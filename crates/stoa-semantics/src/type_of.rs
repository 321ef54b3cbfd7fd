//! `pg_typeof(value)`: PostgreSQL's name of a value's type, as a text.
//!
//! The value is computed, as in PostgreSQL: one that is an error stays one. A literal whose type nothing settles
//! is `unknown`. What Stoa stores as one type has one name: `varchar` is `text`.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, call, failure};
use super::operators::type_name;
use super::unify::Branch;
use crate::scope::Scope;

/// The name of its operand's type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TypeOf {
    /// The name, once the statement is analysed.
    known: Option<String>,
}

impl Operation for TypeOf {
    fn name(&self) -> &str {
        // The call is not looked at again: constants may have lost their casts by then.
        if self.known.is_some() { "type_name" } else { "pg_typeof" }
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("pg_typeof({})", operands.join(","))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let name = match (&self.known, operands) {
            (Some(known), _) => known.clone(),
            (None, [value]) => type_name(&value.data_type()),
            (None, _) => return Err(not_one(operands.len())),
        };
        Ok(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, rows))))
    }
}

/// The call with the name of its operand's type.
///
/// # Errors
/// More than one operand (42883).
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let [value] = function.args.as_slice() else { return Err(not_one(function.args.len())) };
    let branch = Branch::of(value, value.get_type(&scope.schema)?);
    let known = match branch.is_unknown {
        true => "unknown".to_owned(),
        false => type_name(&branch.of),
    };
    Ok(Transformed::yes(call(TypeOf { known: Some(known) }, function.args)))
}

fn not_one(operands: usize) -> datafusion::error::DataFusionError {
    failure("42883", format!("function pg_typeof takes one value, not {operands}"))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, TimeUnit};

    use super::*;

    #[test]
    fn types_have_postgresqls_names() {
        let check = |of: DataType, expected: &str| assert_eq!(type_name(&of), expected);
        check(DataType::Null, "unknown");
        check(DataType::Int32, "integer");
        check(DataType::Decimal128(10, 2), "numeric");
        check(crate::NUMERIC, "numeric");
        check(DataType::Timestamp(TimeUnit::Microsecond, None), "timestamp without time zone");
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        check(list(DataType::Int32), "integer[]");
        check(list(list(DataType::Utf8)), "text[]");
        check(DataType::FixedSizeBinary(16), "uuid");
    }
}
