//! `ceil(decimal)` and `floor(decimal)`: with no decimals, and with the digit more that 9.9 needs.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};

use super::call::{Operation, call, column, failure};
use crate::scope::Scope;

pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let up = function.func.name() == "ceil";
    match function.args.as_slice() {
        [value] if matches!(value.get_type(&scope.schema)?, DataType::Decimal128(_, 1..)) => {
            Ok(Transformed::yes(call(Whole { up }, function.args)))
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(function))),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Whole {
    /// To the greater number, not to the lesser one.
    up: bool,
}

impl Whole {
    fn no_such(self, types: &[DataType]) -> DataFusionError {
        failure("42883", format!("{}({types:?}) does not exist", self.name()))
    }
}

impl Operation for Whole {
    fn name(&self) -> &str {
        if self.up { "ceil" } else { "floor" }
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Decimal128(precision, scale @ 1..)] => {
                let digits = precision.saturating_sub(scale.unsigned_abs()) + 1;
                Ok(DataType::Decimal128(digits, 0))
            }
            other => Err(self.no_such(other)),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = column(operands, rows)?;
        let of = std::slice::from_ref(column.data_type());
        let ([DataType::Decimal128(_, scale)], DataType::Decimal128(digits, _)) =
            (of, self.result(of)?)
        else {
            return Err(self.no_such(of));
        };
        let unit = 10_i128.pow(u32::from(scale.unsigned_abs()));
        let lesser = |number: i128| number.div_euclid(unit);
        let numbers = column.as_primitive::<Decimal128Type>();
        let whole: Decimal128Array = match self.up {
            true => numbers.unary(|number| -lesser(-number)),
            false => numbers.unary(lesser),
        };
        Ok(Arc::new(whole.with_precision_and_scale(digits, 0)?))
    }
}
