//! Comparisons with literals that have no type yet, and of instants with local times.
//!
//! As in PostgreSQL, `column = '5'` reads the text as what the column is.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::analyze::Scope;
use super::numeric::NUMERIC;
use super::{casts, time_zone};

pub(super) fn binary(binary: BinaryExpr, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let BinaryExpr { left, op, right } = binary;
    let (a, b) = (left.get_type(&scope.schema)?, right.get_type(&scope.schema)?);
    let left = Box::new(beside(*left, &a, &b, scope)?);
    let right = Box::new(beside(*right, &b, &a, scope)?);
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
}

pub(super) fn between(between: Between, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let Between { expr, negated, low, high } = between;
    let of = expr.get_type(&scope.schema)?;
    let bound = |bound: Expr| {
        let own = bound.get_type(&scope.schema)?;
        beside(bound, &own, &of, scope).map(Box::new)
    };
    let (low, high) = (bound(*low)?, bound(*high)?);
    Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
}

pub(super) fn in_list(list: InList, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let InList { expr, list, negated } = list;
    let of = expr.get_type(&scope.schema)?;
    let list = list
        .into_iter()
        .map(|item| {
            let own = item.get_type(&scope.schema)?;
            beside(item, &own, &of, scope)
        })
        .collect::<Result<_>>()?;
    Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })))
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
            DataType::Boolean | DataType::Date32 => other.clone(),
            DataType::Timestamp(_, None) => time_zone::LOCAL,
            DataType::Timestamp(_, Some(_)) => time_zone::instant(),
            DataType::Time64(_) => other.clone(),
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
