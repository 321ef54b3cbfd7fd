//! `values[2:3]`, `values[:2]`, `values[2:]`: parts of arrays, as calls.
//!
//! In: an expression. Out: the same as `array_between(values, from, to)`, where a bound that is not given is that of all arrays.

use datafusion_sql::sqlparser::ast::{AccessExpr, Expr, Subscript, Value};
use stoa_error::{Error, Result};

use crate::reread;

/// The function that takes a part of an array; both bounds belong to it, and the first element is 1.
pub const ARRAY_SLICE: &str = "array_between";

/// Writes a part of an array as a call.
///
/// # Errors
/// 0A000 for parts of several dimensions.
pub(super) fn write_as_call(expr: &mut Expr) -> Result<()> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return Ok(()) };
    let is_slice =
        |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Slice { .. }));
    if !access_chain.iter().any(is_slice) {
        return Ok(());
    }
    let [AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None })] =
        access_chain.as_mut_slice()
    else {
        return Err(Error::unsupported("parts of arrays of several dimensions are not supported")
            .with_hint("take a part of one dimension: (values)[from:to]"));
    };
    let all = |number: &str| Expr::value(Value::Number(number.to_owned(), false));
    let bounds = [
        lower_bound.take().unwrap_or_else(|| all("1")),
        upper_bound.take().unwrap_or_else(|| all("2147483647")),
    ];
    let root = std::mem::replace(root.as_mut(), Expr::value(Value::Null));
    let [from, to] = bounds;
    *expr = reread::call(ARRAY_SLICE, vec![root, from, to])
        .map_err(|e| Error::internal("a part of an array is not written").with_source(e))?;
    Ok(())
}
