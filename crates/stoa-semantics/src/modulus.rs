//! `mod(a, b)`: the remainder of two integers or decimals, as `a % b`. It has the sign of `a`.

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, Operator};

use super::call::{Operation, columns, failure};
use super::numeric::NUMERIC;
use super::operators::{Checked, name};
use super::{arithmetic, casts};
use crate::scope::Scope;

/// The operator in place of the function: the types of its results are those of `%`.
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let [a, b] = function.args.as_slice() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let types = (a.get_type(&scope.schema)?, b.get_type(&scope.schema)?);
    common(&types.0, &types.1)?;
    // What is NULL has no type of its own.
    let typed = |operand: &Expr, own: &DataType, other: &DataType| match own {
        DataType::Null => casts::to_type(operand.clone(), own, other, scope.options),
        _ => Ok(operand.clone()),
    };
    let left = Box::new(typed(a, &types.0, &types.1)?);
    let right = Box::new(typed(b, &types.1, &types.0)?);
    arithmetic::rewrite(BinaryExpr { left, op: Operator::Modulo, right }, scope)
}

/// The function by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Modulus;

impl Operation for Modulus {
    fn name(&self) -> &str {
        "mod"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [a, b] => common(a, b),
            other => Err(unknown(other)),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let types: Vec<DataType> = columns.iter().map(|of| of.data_type().clone()).collect();
        let of = self.result(&types)?;
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let cast =
            |column: &ArrayRef| cast_with_options(column, &of, &strict).map(ColumnarValue::Array);
        let columns = columns.iter().map(cast).collect::<std::result::Result<Vec<_>, _>>()?;
        Checked(Operator::Modulo).compute(&columns, rows)
    }
}

/// The type of which both operands are.
///
/// # Errors
/// There is no remainder of such types (42883).
fn common(a: &DataType, b: &DataType) -> Result<DataType> {
    let is_wide =
        |of: &DataType| matches!(of, DataType::Int64 | DataType::UInt64 | DataType::UInt32);
    let is_small = |of: &DataType| matches!(of, DataType::Int8 | DataType::UInt8 | DataType::Int16);
    Ok(match (a, b) {
        (DataType::Null, of) | (of, DataType::Null) if of.is_integer() || of.is_decimal() => {
            of.clone()
        }
        (a, b) if a.is_integer() && b.is_integer() => match (is_wide(a) || is_wide(b), a, b) {
            (true, ..) => DataType::Int64,
            (false, a, b) if is_small(a) && is_small(b) => DataType::Int16,
            _ => DataType::Int32,
        },
        (a, b) if (a.is_integer() || a.is_decimal()) && (b.is_integer() || b.is_decimal()) => {
            NUMERIC
        }
        _ => return Err(unknown(&[a.clone(), b.clone()])),
    })
}

fn unknown(types: &[DataType]) -> DataFusionError {
    let types: Vec<&str> = types.iter().map(name).collect();
    failure("42883", format!("function mod({}) does not exist", types.join(", ")))
}
