//! How many decimals `trunc` and `round` of a `numeric` have: those that are asked for, be they zeros.
//!
//! In: a call whose digits are a constant. Out: its value with this scale. What has no scale of its own
//! ([`NUMERIC`](super::numeric::NUMERIC)) keeps none, and what would have more digits than there are keeps its own.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast, when};

use crate::scope::Scope;

/// Digits of the largest decimal.
const DIGITS_MAX: i64 = 38;

/// `trunc(numeric)` has no decimals, `trunc(numeric, n)` has n.
pub(super) fn trunc(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let (value, digits) = match function.args.as_slice() {
        [value] => (value, Some(0)),
        [value, digits] => (value, constant(digits)),
        _ => return Ok(Transformed::no(Expr::ScalarFunction(function))),
    };
    let of = value.get_type(&scope.schema)?;
    Ok(match digits.and_then(|digits| with_scale(&of, digits)) {
        Some(to) => Transformed::yes(cast(Expr::ScalarFunction(function), to)),
        None => Transformed::no(Expr::ScalarFunction(function)),
    })
}

/// `round(numeric, n)` of a value that has fewer decimals than n: as it is, with zeros. `None` for all else.
pub(super) fn padded(function: &ScalarFunction, scope: &Scope<'_>) -> Result<Option<Expr>> {
    let [value, digits] = function.args.as_slice() else { return Ok(None) };
    let of = value.get_type(&scope.schema)?;
    let (DataType::Decimal128(_, scale), Some(digits)) = (&of, constant(digits)) else {
        return Ok(None);
    };
    if digits <= i64::from(*scale) {
        return Ok(None);
    }
    Ok(with_scale(&of, digits).map(|to| cast(value.clone(), to)))
}

/// `scale(numeric)` where it is known: of a literal, and of a cast to a type with decimals, or of a whole number. `None`
/// for computed numbers, whose zeros at the end are not PostgreSQL's.
pub(super) fn written(function: &ScalarFunction, scope: &Scope<'_>) -> Result<Option<Expr>> {
    let [value] = function.args.as_slice() else { return Ok(None) };
    let Some(scale) = scale_of(value, scope)? else { return Ok(None) };
    let scale = Expr::Literal(ScalarValue::Int32(Some(i32::from(scale))), None);
    when(value.clone().is_not_null(), scale).end().map(Some)
}

fn scale_of(value: &Expr, scope: &Scope<'_>) -> Result<Option<i8>> {
    let of = value.get_type(&scope.schema)?;
    Ok(match (value, &of) {
        (_, of) if of.is_integer() || of.is_null() => Some(0),
        (Expr::Negative(inner), _) => scale_of(inner, scope)?,
        (Expr::Cast(_) | Expr::Literal(..), DataType::Decimal128(_, scale)) => Some(*scale),
        (Expr::Cast(cast), DataType::Decimal256(..)) => match cast.expr.get_type(&scope.schema)? {
            DataType::Decimal128(..) => scale_of(&cast.expr, scope)?,
            from => from.is_integer().then_some(0),
        },
        _ => None,
    })
}

fn constant(digits: &Expr) -> Option<i64> {
    match digits {
        Expr::Literal(ScalarValue::Int64(Some(digits)), _) => Some(*digits),
        Expr::Literal(ScalarValue::Int32(Some(digits)), _) => Some(i64::from(*digits)),
        _ => None,
    }
}

/// The type of the same whole numbers with another count of decimals; `None` if it is the same, or too long.
fn with_scale(of: &DataType, decimals: i64) -> Option<DataType> {
    let DataType::Decimal128(precision, scale) = *of else { return None };
    let decimals = decimals.max(0);
    if decimals > DIGITS_MAX || decimals == i64::from(scale) {
        return None;
    }
    let whole = (i64::from(precision) - i64::from(scale)).max(0);
    let digits = (whole + decimals).max(1);
    (digits <= DIGITS_MAX).then_some(DataType::Decimal128(digits as u8, decimals as i8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_digits_stay() {
        let of = DataType::Decimal128(10, 2);
        assert_eq!(with_scale(&of, 0), Some(DataType::Decimal128(8, 0)));
        assert_eq!(with_scale(&of, -3), Some(DataType::Decimal128(8, 0)));
        assert_eq!(with_scale(&of, 30), Some(DataType::Decimal128(38, 30)));
        assert_eq!(with_scale(&of, 2), None);
        assert_eq!(with_scale(&of, 31), None);
        assert_eq!(with_scale(&of, i64::MAX), None);
        assert_eq!(with_scale(&DataType::Decimal128(3, 3), 0), Some(DataType::Decimal128(1, 0)));
        assert_eq!(with_scale(&DataType::Float64, 0), None);
    }
}
