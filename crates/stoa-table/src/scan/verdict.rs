//! Whether rows between two bounds may match a predicate.
//!
//! Bounds leave out NULL and NaN. Comparison follows SQL on Arrow: NULL never matches a
//! comparison, NaN is larger than every number.

use std::cmp::Ordering;

use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};

use crate::value::compare;

/// What is known about a column's values in some rows. Everything unknown is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FieldBounds<'a> {
    /// No value is smaller.
    pub(crate) lower: Option<&'a Literal>,
    /// No value is larger.
    pub(crate) upper: Option<&'a Literal>,
    /// There is at least one NULL.
    pub(crate) has_null: Option<bool>,
    /// There is at least one value that is not NULL.
    pub(crate) has_value: Option<bool>,
    /// There is at least one NaN.
    pub(crate) has_nan: Option<bool>,
}

/// Whether rows described by `bounds` (per column) may match `predicate`.
pub(crate) fn may_match<'a>(
    predicate: &Predicate,
    bounds: &impl Fn(ColumnRef) -> FieldBounds<'a>,
) -> bool {
    match predicate {
        Predicate::And(parts) => parts.iter().all(|part| may_match(part, bounds)),
        Predicate::Or(parts) => parts.iter().any(|part| may_match(part, bounds)),
        Predicate::Compare { column, op, value } => bounds(*column).may_compare(*op, value),
        Predicate::In { column, values } => {
            let bounds = bounds(*column);
            values.iter().any(|value| bounds.may_compare(CompareOp::Eq, value))
        }
        Predicate::IsNull(column) => bounds(*column).has_null != Some(false),
        Predicate::IsNotNull(column) => bounds(*column).has_value != Some(false),
    }
}

impl FieldBounds<'_> {
    /// Whether a value here may be `op value`.
    pub(crate) fn may_compare(&self, op: CompareOp, value: &Literal) -> bool {
        if self.has_value == Some(false) {
            return false;
        }
        // NaN is outside the bounds and larger than all numbers.
        if is_float(value) && self.has_nan != Some(false) && op_takes_nan(op, value) {
            return true;
        }
        let lower = self.lower.map(|lower| order(lower, value, -0.0));
        let upper = self.upper.map(|upper| order(upper, value, 0.0));
        let above = |order: Option<Option<Ordering>>| order == Some(Some(Ordering::Greater));
        let below = |order: Option<Option<Ordering>>| order == Some(Some(Ordering::Less));
        let equal = |order: Option<Option<Ordering>>| order == Some(Some(Ordering::Equal));
        match op {
            CompareOp::Eq => !above(lower) && !below(upper),
            CompareOp::NotEq => is_float(value) || !(equal(lower) && equal(upper)),
            CompareOp::Lt => !above(lower) && !equal(lower),
            CompareOp::LtEq => !above(lower),
            CompareOp::Gt => !below(upper) && !equal(upper),
            CompareOp::GtEq => !below(upper),
        }
    }
}

fn is_float(value: &Literal) -> bool {
    matches!(value, Literal::Float(_))
}

/// Whether NaN may be `op value`: it is above every number, and equal to itself.
fn op_takes_nan(op: CompareOp, value: &Literal) -> bool {
    match op {
        CompareOp::Gt | CompareOp::GtEq | CompareOp::NotEq => true,
        CompareOp::Eq | CompareOp::LtEq => matches!(value, Literal::Float(v) if v.is_nan()),
        CompareOp::Lt => false,
    }
}

/// How a bound compares with a value. Writers do not agree on which zero is smaller, so a zero
/// bound counts as `zero`, the one that widens the range.
fn order(bound: &Literal, value: &Literal, zero: f64) -> Option<Ordering> {
    match bound {
        Literal::Float(bound) if *bound == 0.0 => compare(&Literal::Float(zero), value),
        bound => compare(bound, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMN: ColumnRef = ColumnRef::Field(1);

    fn check(lower: Literal, upper: Literal, op: CompareOp, value: Literal, expected: bool) {
        let bounds = FieldBounds {
            lower: Some(&lower),
            upper: Some(&upper),
            has_null: Some(false),
            has_value: Some(true),
            has_nan: Some(false),
        };
        let predicate = Predicate::Compare { column: COLUMN, op, value: value.clone() };
        let verdict = may_match(&predicate, &|_| bounds);
        assert_eq!(verdict, expected, "[{lower:?}, {upper:?}] {op:?} {value:?}");
    }

    #[test]
    fn comparisons_with_bounds() {
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let int = Literal::Int;
        for (op, value, expected) in [
            (Eq, 9, false),
            (Eq, 10, true),
            (Eq, 20, true),
            (Eq, 21, false),
            (NotEq, 10, true),
            (Lt, 10, false),
            (Lt, 11, true),
            (LtEq, 9, false),
            (LtEq, 10, true),
            (Gt, 20, false),
            (Gt, 19, true),
            (GtEq, 21, false),
            (GtEq, 20, true),
        ] {
            check(int(10), int(20), op, int(value), expected);
        }
        check(int(10), int(10), NotEq, int(10), false);
        check(Literal::Float(0.0), Literal::Float(0.0), Lt, Literal::Float(0.0), true);
        check(Literal::Float(-0.0), Literal::Float(-0.0), Eq, Literal::Float(0.0), true);
        // Types that do not meet prune nothing.
        check(int(10), int(20), Eq, Literal::String("x".into()), true);
        check(int(10), int(20), Gt, Literal::Float(f64::NAN), true);
    }

    #[test]
    fn nulls_and_nans_count() {
        let low = Literal::Float(1.0);
        let all_null = FieldBounds { has_value: Some(false), ..FieldBounds::default() };
        let greater =
            Predicate::Compare { column: COLUMN, op: CompareOp::Gt, value: Literal::Float(5.0) };
        assert!(!may_match(&greater, &|_| all_null));
        assert!(!may_match(&Predicate::IsNotNull(COLUMN), &|_| all_null));
        assert!(may_match(&Predicate::IsNull(COLUMN), &|_| all_null));
        let perhaps_nan =
            FieldBounds { lower: Some(&low), upper: Some(&low), ..FieldBounds::default() };
        assert!(may_match(&greater, &|_| perhaps_nan));
        let no_nan = FieldBounds { has_nan: Some(false), ..perhaps_nan };
        assert!(!may_match(&greater, &|_| no_nan));
        assert!(!may_match(&Predicate::Or(vec![]), &|_| no_nan));
        assert!(may_match(&Predicate::And(vec![]), &|_| no_nan));
    }
}
