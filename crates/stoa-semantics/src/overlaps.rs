//! `(start, end) OVERLAPS (start, end)`: whether two spans of time have a moment in common.
//!
//! The second of a pair may be a length. Of a pair, the earlier moment is the start; one that is NULL is not known, and
//! the answer is NULL where it depends on it. A span of one moment has that moment, another has not its end.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, Operator};

use super::call::{Operation, call, columns, failure};
use super::operators::type_name;
use super::unify::{self, Branch};
use super::{arithmetic, casts, time_zone};
use crate::scope::Scope;

/// The call with moments of one type.
pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    if function.func.name() == Overlaps.name() && is_typed(&function, scope)? {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    }
    let Ok([a, b, c, d]) = <[Expr; 4]>::try_from(function.args) else {
        return Err(failure("42883", "OVERLAPS takes two pairs"));
    };
    let [b, d] = [(&a, b), (&c, d)].map(|(start, end)| end_of(start, end, scope));
    let moments = [a, b?, c, d?];
    let types = moments.iter().map(|moment| moment.get_type(&scope.schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    let branches: Vec<Branch> =
        moments.iter().zip(&types).map(|(moment, of)| Branch::of(moment, of.clone())).collect();
    let of = match unify::type_of_all("OVERLAPS", &branches)? {
        Some(DataType::Date32) => time_zone::LOCAL,
        Some(of @ (DataType::Timestamp(..) | DataType::Time64(_))) => of,
        _ => {
            let types = types.iter().map(type_name).collect::<Vec<_>>().join(", ");
            let message = format!("function pg_catalog.overlaps({types}) does not exist");
            return Err(failure("42883", message));
        }
    };
    let moments = moments.into_iter().zip(types);
    let moments = moments.map(|(moment, from)| casts::to_type(moment, &from, &of, scope.options));
    Ok(Transformed::yes(call(Overlaps, moments.collect::<Result<_>>()?)))
}

fn is_typed(function: &ScalarFunction, scope: &Scope<'_>) -> Result<bool> {
    let mut types = Vec::with_capacity(4);
    for arg in &function.args {
        types.push(arg.get_type(&scope.schema)?);
    }
    let is_moment = |of: &DataType| matches!(of, DataType::Timestamp(..) | DataType::Time64(_));
    Ok(types.iter().all(is_moment) && types.windows(2).all(|pair| pair[0] == pair[1]))
}

/// The moment behind a start, which may be given as a length.
fn end_of(start: &Expr, end: Expr, scope: &Scope<'_>) -> Result<Expr> {
    match end.get_type(&scope.schema)? {
        DataType::Interval(_) | DataType::Duration(_) => {
            let (left, right) = (Box::new(start.clone()), Box::new(end));
            let sum = BinaryExpr { left, op: Operator::Plus, right };
            Ok(arithmetic::rewrite(sum, scope)?.data)
        }
        _ => Ok(end),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Overlaps;

impl Operation for Overlaps {
    fn name(&self) -> &str {
        "overlaps"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn makes_nulls(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let numbers = columns
            .iter()
            .map(|column| Ok(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone()));
        let numbers = numbers.collect::<Result<Vec<_>>>()?;
        let [a, b, c, d] = numbers.as_slice() else {
            return Err(failure("42883", "OVERLAPS takes two pairs"));
        };
        let at = |column: &PrimitiveArray<Int64Type>, row: usize| {
            column.is_valid(row).then(|| column.value(row))
        };
        let of = |row| overlap(span(at(a, row), at(b, row))?, span(at(c, row), at(d, row))?);
        Ok(Arc::new((0..rows).map(of).collect::<BooleanArray>()))
    }
}

/// Start and end; the end is not known where one of them is not.
fn span(a: Option<i64>, b: Option<i64>) -> Option<(i64, Option<i64>)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.min(b), Some(a.max(b)))),
        (Some(known), None) | (None, Some(known)) => Some((known, None)),
        (None, None) => None,
    }
}

fn overlap(one: (i64, Option<i64>), other: (i64, Option<i64>)) -> Option<bool> {
    let ((first, first_end), (second, second_end)) =
        if one.0 <= other.0 { (one, other) } else { (other, one) };
    if first == second {
        return (first_end.is_some() && second_end.is_some()).then_some(true);
    }
    match first_end? > second {
        true => Some(true),
        false => second_end.map(|_| false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_moments_in_common() {
        let check = |a, b, c, d, expected| {
            let found = span(a, b).and_then(|one| overlap(one, span(c, d)?));
            assert_eq!(found, expected, "{a:?} {b:?} {c:?} {d:?}");
        };
        check(Some(1), Some(5), Some(4), Some(9), Some(true));
        check(Some(5), Some(1), Some(9), Some(4), Some(true));
        check(Some(1), Some(4), Some(4), Some(9), Some(false));
        check(Some(4), Some(4), Some(4), Some(4), Some(true));
        check(Some(1), None, Some(4), Some(9), None);
        check(Some(1), Some(5), Some(4), None, Some(true));
        check(Some(1), Some(3), Some(4), None, None);
        check(None, None, Some(4), Some(5), None);
    }
}
