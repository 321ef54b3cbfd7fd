//! Comparisons of values of different kinds, as Hive compares them.
//!
//! | sides | compared as |
//! |---|---|
//! | text and number | doubles; what is no number is NULL |
//! | text and date | dates; what is no date is NULL |
//! | text and timestamp | timestamps; what is none is NULL |
//!
//! A literal that is a number, date or timestamp of the other side's type stays as it is, so that files are skipped by
//! it. **Invariant:** `None` leaves the comparison to what PostgreSQL means, which is the same then.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr, cast, not};
use stoa_hiveql::pack;
use stoa_hiveql::pack::value::Value;

use super::{HiveCall, HiveComparisons};
use crate::call::call;
use crate::scope::Scope;

/// A comparison of two sides.
pub(crate) fn binary(of: &BinaryExpr, scope: &Scope<'_>) -> Result<Option<Expr>> {
    if !HiveComparisons::are_asked_for(scope.options) {
        return Ok(None);
    }
    let sides = sides(&of.left, &of.right, scope)?;
    Ok(sides.map(|(left, right)| binary_expr(left, of.op, right)))
}

/// `x BETWEEN low AND high`, if a bound is of another kind than x.
pub(crate) fn between(of: &Between, scope: &Scope<'_>) -> Result<Option<Expr>> {
    if !HiveComparisons::are_asked_for(scope.options) {
        return Ok(None);
    }
    let low = sides(&of.expr, &of.low, scope)?;
    let high = sides(&of.expr, &of.high, scope)?;
    if low.is_none() && high.is_none() {
        return Ok(None);
    }
    let as_is = |bound: &Expr| (of.expr.as_ref().clone(), bound.clone());
    let (a, low) = low.unwrap_or_else(|| as_is(&of.low));
    let (b, high) = high.unwrap_or_else(|| as_is(&of.high));
    let both = binary_expr(a, Operator::GtEq, low).and(binary_expr(b, Operator::LtEq, high));
    Ok(Some(if of.negated { not(both) } else { both }))
}

/// `x IN (…)`, if an item is of another kind than x.
pub(crate) fn in_list(of: &InList, scope: &Scope<'_>) -> Result<Option<Expr>> {
    if !HiveComparisons::are_asked_for(scope.options) {
        return Ok(None);
    }
    let mut is_mixed = false;
    let mut any: Option<Expr> = None;
    for item in &of.list {
        let (left, right) = match sides(&of.expr, item, scope)? {
            Some(sides) => {
                is_mixed = true;
                sides
            }
            None => (of.expr.as_ref().clone(), item.clone()),
        };
        let equal = binary_expr(left, Operator::Eq, right);
        any = Some(match any {
            Some(others) => others.or(equal),
            None => equal,
        });
    }
    Ok(any.filter(|_| is_mixed).map(|any| if of.negated { not(any) } else { any }))
}

/// Both sides as values of one kind; `None` where they are, or PostgreSQL makes the same of them.
fn sides(left: &Expr, right: &Expr, scope: &Scope<'_>) -> Result<Option<(Expr, Expr)>> {
    let (a, b) = (left.get_type(&scope.schema)?, right.get_type(&scope.schema)?);
    Ok(match (a.is_string(), b.is_string()) {
        (true, false) => beside(left, right, &b),
        (false, true) => beside(right, left, &a).map(|(text, other)| (other, text)),
        _ => None,
    })
}

/// A text and what it is compared with, as values of one kind.
fn beside(text: &Expr, other: &Expr, of: &DataType) -> Option<(Expr, Expr)> {
    if is_of_type(text, of) {
        return None;
    }
    let (name, double) = match of {
        of if of.is_numeric() => ("hive_to_double", Some(DataType::Float64)),
        DataType::Date32 => ("hive_to_date", None),
        DataType::Timestamp(TimeUnit::Microsecond, None) => ("hive_to_timestamp", None),
        _ => return None,
    };
    let read = call(HiveCall(pack::function(name)?), vec![text.clone()]);
    let other = match double {
        Some(double) => cast(other.clone(), double),
        None => other.clone(),
    };
    Some((read, other))
}

/// Whether a text is a literal that reads as a value of a type.
fn is_of_type(text: &Expr, of: &DataType) -> bool {
    let text = match text {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => text,
        Expr::Literal(ScalarValue::Utf8(None), _) => return true,
        _ => return false,
    };
    let is_whole = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.len() < 10 && digits.chars().all(|c| c.is_ascii_digit())
    };
    match of {
        of if of.is_integer() => is_whole(text),
        of if of.is_numeric() => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
            is_whole(whole)
                && fraction.len() < 6
                && is_whole(fraction)
                && !fraction.starts_with('-')
        }
        DataType::Date32 => text.len() == 10 && Value::Text(text.clone()).date().is_some(),
        DataType::Timestamp(..) => {
            matches!(text.len(), 10 | 19) && Value::Text(text.clone()).timestamp().is_some()
        }
        _ => true,
    }
}
