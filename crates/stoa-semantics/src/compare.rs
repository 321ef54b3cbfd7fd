//! Comparisons with literals that have no type yet, and of instants with local times.
//!
//! As in PostgreSQL, `column = '5'` reads the text as what the column is.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, cast, lit, not};

use super::numeric::NUMERIC;
use super::{casts, json_casts, refused, span, time_zone, uuids};
use crate::scope::Scope;

pub(super) fn binary(binary: BinaryExpr, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let BinaryExpr { left, op, right } = binary;
    let (a, b) = (left.get_type(&scope.schema)?, right.get_type(&scope.schema)?);
    let (left, right) = json_casts::compared(left, op, right, scope)?;
    if span::are_intervals(&a, &b) {
        let (left, right) = (Box::new(span::of(*left)), Box::new(span::of(*right)));
        return Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    }
    refused::comparison(op, (&left, &a), (&right, &b))?;
    let left = Box::new(beside(*left, &a, &b, scope)?);
    let right = Box::new(beside(*right, &b, &a, scope)?);
    if span::is_interval(&a) || span::is_interval(&b) {
        // The other side was a literal, or NULL.
        let (left, right) = (Box::new(span::of(*left)), Box::new(span::of(*right)));
        return Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    }
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
}

pub(super) fn between(between: Between, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let Between { expr, negated, low, high } = between;
    let of = expr.get_type(&scope.schema)?;
    let (from, to) = (low.get_type(&scope.schema)?, high.get_type(&scope.schema)?);
    if span::are_intervals(&of, &from) && span::are_intervals(&of, &to) {
        let [expr, low, high] = [expr, low, high].map(|part| Box::new(span::of(*part)));
        return Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })));
    }
    let bound = |bound: Expr| {
        let own = bound.get_type(&scope.schema)?;
        beside(bound, &own, &of, scope).map(Box::new)
    };
    let (low, high) = (bound(*low)?, bound(*high)?);
    if span::is_interval(&of) {
        // The bounds are intervals now.
        let [expr, low, high] = [expr, low, high].map(|part| Box::new(span::of(*part)));
        return Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })));
    }
    Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
}

/// `x IN (1, 2, y)` is `x IN (1, 2) OR x = y`: the engine would look up in one set what it holds for constant,
/// which it finds out without rows, and a CASE without rows is the constant of its first branch.
pub(super) fn in_list(list: InList, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let InList { expr, list, negated } = list;
    // The engine takes this for `IN (SELECT …)`, as PostgreSQL does.
    let is_query = matches!(list.as_slice(), [Expr::ScalarSubquery(_)]);
    let (of_rows, constants) = match is_query || expr.is_volatile() {
        true => (Vec::new(), list),
        false => list.into_iter().partition::<Vec<_>, _>(depends_on_row),
    };
    let of = expr.get_type(&scope.schema)?;
    let constants = constants
        .into_iter()
        .map(|item| {
            let own = item.get_type(&scope.schema)?;
            beside(item, &own, &of, scope)
        })
        .collect::<Result<Vec<_>>>()?;
    let (expr, constants) = match span::is_interval(&of) {
        true => {
            let constants = constants.into_iter().map(span::of).collect();
            (Box::new(span::of(*expr)), constants)
        }
        false => (expr, constants),
    };
    if of_rows.is_empty() {
        let list = InList { expr, list: constants, negated };
        return Ok(Transformed::yes(Expr::InList(list)));
    }
    let mut terms = Vec::with_capacity(of_rows.len() + 1);
    if !constants.is_empty() {
        let list = InList { expr: expr.clone(), list: constants, negated: false };
        terms.push(Expr::InList(list));
    }
    for item in of_rows {
        let item = if span::is_interval(&of) { span::of(item) } else { item };
        let equal = BinaryExpr::new(expr.clone(), Operator::Eq, Box::new(item));
        terms.push(binary(equal, scope)?.data);
    }
    let any = any_of(terms);
    Ok(Transformed::yes(if negated { not(any) } else { any }))
}

/// Whether an expression may have another value for another row.
fn depends_on_row(expr: &Expr) -> bool {
    let of_row = |part: &Expr| {
        matches!(
            part,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::Exists(_)
        )
    };
    // The walk itself cannot fail.
    expr.exists(|part| Ok(of_row(part))).unwrap_or(true)
}

/// Terms under OR, in a tree that is as deep as the logarithm of their count.
fn any_of(mut terms: Vec<Expr>) -> Expr {
    while terms.len() > 1 {
        let mut above = Vec::with_capacity(terms.len().div_ceil(2));
        let mut below = terms.into_iter();
        while let Some(left) = below.next() {
            above.push(match below.next() {
                Some(right) => left.or(right),
                None => left,
            });
        }
        terms = above;
    }
    terms.pop().unwrap_or_else(|| lit(false))
}

/// `nullif(a, b)`: a literal is read as in `a = b`.
pub(super) fn nullif(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let is_text = |side: &Expr| matches!(side, Expr::Literal(ScalarValue::Utf8(Some(_)), _));
    let [left, right] = function.args.as_slice() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let (a, b) = (left.get_type(&scope.schema)?, right.get_type(&scope.schema)?);
    if a == DataType::Int32 && b == DataType::Int64 {
        // Of integers, it is the first one's type.
        let args = vec![cast(left.clone(), b), right.clone()];
        let wide = Expr::ScalarFunction(ScalarFunction { args, ..function });
        return Ok(Transformed::yes(cast(wide, a)));
    }
    if !is_text(left) && !is_text(right) {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    }
    let left = beside(left.clone(), &a, &b, scope)?;
    let right = beside(right.clone(), &b, &a, scope)?;
    let args = vec![left, right];
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { args, ..function })))
}

/// An operand as it is compared with one of type `other`.
pub(super) fn beside(
    expr: Expr,
    own: &DataType,
    other: &DataType,
    scope: &Scope<'_>,
) -> Result<Expr> {
    if let Expr::Literal(ScalarValue::Utf8(Some(_)), _) = &expr {
        let to = match other {
            of if of.is_decimal() => NUMERIC,
            of if of.is_signed_integer() || of.is_floating() => of.clone(),
            DataType::Boolean | DataType::Date32 | DataType::Interval(_) => other.clone(),
            DataType::Timestamp(_, None) => time_zone::LOCAL,
            DataType::Timestamp(_, Some(_)) => time_zone::instant(),
            DataType::Time64(_) | DataType::FixedSizeBinary(uuids::BYTES) => other.clone(),
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
            _ => return Ok(expr),
        };
        return casts::to_type(expr, own, &to, scope.options);
    }
    match (own, other) {
        (DataType::Date32 | DataType::Timestamp(_, None), DataType::Timestamp(_, Some(_)))
            if !time_zone::is_utc(scope.options) =>
        {
            casts::to_type(expr, own, &time_zone::instant(), scope.options)
        }
        _ => Ok(expr),
    }
}
