//! Comparison of statistics with values of a query.

use std::cmp::Ordering;

use crate::predicate::Literal;
use crate::statistics::{TimestampBound, ValueStatistics};

/// Bounds of a column's values as literals.
pub(super) struct Bounds {
    pub(super) lower: Option<Bound>,
    pub(super) upper: Option<Bound>,
    /// Whether both are values, not just bounds of them.
    pub(super) is_exact: bool,
    pub(super) is_float: bool,
}

/// A bound, in the type of its statistics.
pub(super) enum Bound {
    Int(i64),
    Float(f64),
    Decimal(i128, i8),
    Bytes(Vec<u8>),
    Date(i32),
    /// Nanoseconds since 1970-01-01.
    Timestamp(i128),
}

const NANOS_PER_MICRO: i128 = 1_000;
const NANOS_PER_DAY: i128 = 86_400_000_000_000;
const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Bounds of statistics; `None` if there are none to judge by.
pub(super) fn bounds_of(statistics: &ValueStatistics) -> Option<Bounds> {
    let bounds = |lower, upper, is_exact| Bounds { lower, upper, is_exact, is_float: false };
    Some(match statistics {
        ValueStatistics::Integer { min, max, .. } => {
            bounds(min.map(Bound::Int), max.map(Bound::Int), true)
        }
        ValueStatistics::Double { min, max, sum } => {
            // NaN values are in no bound; only the sum tells of them.
            if sum.is_none_or(f64::is_nan) || [min, max].into_iter().flatten().any(|v| v.is_nan()) {
                return None;
            }
            Bounds {
                lower: min.map(Bound::Float),
                upper: max.map(Bound::Float),
                is_exact: false,
                is_float: true,
            }
        }
        ValueStatistics::String { lower, upper, lower_is_exact, upper_is_exact, .. } => bounds(
            lower.clone().map(Bound::Bytes),
            upper.clone().map(Bound::Bytes),
            *lower_is_exact && *upper_is_exact,
        ),
        ValueStatistics::Decimal { min, max, .. } => {
            let bound = |v: &Option<(i128, i8)>| v.map(|(v, s)| Bound::Decimal(v, s));
            bounds(bound(min), bound(max), false)
        }
        ValueStatistics::Date { min, max } => {
            bounds(min.map(Bound::Date), max.map(Bound::Date), true)
        }
        ValueStatistics::Timestamp { min, max } => {
            // A second of play: rounding of times before 1970 differs between writers.
            let nanos = |b: &TimestampBound, play: i128| {
                let nanos = i128::from(b.millis) * 1_000_000 + i128::from(b.nanos);
                if nanos < NANOS_PER_SECOND { nanos + play } else { nanos }
            };
            // Values may be cut to microseconds when they are read, or not: so is the lower bound.
            let cut = |nanos: i128| nanos.div_euclid(NANOS_PER_MICRO) * NANOS_PER_MICRO;
            let lower = min.map(|b| Bound::Timestamp(cut(nanos(&b, -NANOS_PER_SECOND))));
            let upper = max.map(|b| Bound::Timestamp(nanos(&b, NANOS_PER_SECOND)));
            bounds(lower, upper, false)
        }
        ValueStatistics::None
        | ValueStatistics::Boolean { .. }
        | ValueStatistics::Binary { .. }
        | ValueStatistics::Collection { .. } => return None,
    })
}

/// How a bound compares with a value; `None` if that is not certain.
pub(super) fn compare(bound: &Bound, value: &Literal) -> Option<Ordering> {
    match (bound, value) {
        (Bound::Int(a), Literal::Int(b)) => Some(a.cmp(b)),
        (Bound::Int(a), Literal::Decimal(b, scale)) => decimals(i128::from(*a), 0, *b, *scale),
        (Bound::Int(a), Literal::Float(b)) => floats(exact(*a)?, *b),
        (Bound::Float(a), Literal::Float(b)) => floats(*a, *b),
        (Bound::Float(a), Literal::Int(b)) => floats(*a, exact(*b)?),
        (Bound::Decimal(a, scale), Literal::Decimal(b, other)) => decimals(*a, *scale, *b, *other),
        (Bound::Decimal(a, scale), Literal::Int(b)) => decimals(*a, *scale, i128::from(*b), 0),
        (Bound::Bytes(a), Literal::String(b)) => Some(a.as_slice().cmp(b.as_bytes())),
        (Bound::Bytes(a), Literal::Binary(b)) => Some(a.cmp(b)),
        (Bound::Date(a), Literal::Date(b)) => Some(a.cmp(b)),
        (Bound::Date(a), Literal::TimestampMicros(b)) => {
            Some((i128::from(*a) * NANOS_PER_DAY).cmp(&(i128::from(*b) * NANOS_PER_MICRO)))
        }
        (Bound::Timestamp(a), Literal::TimestampMicros(b)) => {
            Some(a.cmp(&(i128::from(*b) * NANOS_PER_MICRO)))
        }
        (Bound::Timestamp(a), Literal::Date(b)) => Some(a.cmp(&(i128::from(*b) * NANOS_PER_DAY))),
        _ => None,
    }
}

fn floats(a: f64, b: f64) -> Option<Ordering> {
    a.partial_cmp(&b)
}

/// The integer as a float, if that is the same number.
fn exact(value: i64) -> Option<f64> {
    (value.unsigned_abs() <= 1 << 53).then_some(value as f64)
}

/// Compares unscaled values of different scales.
fn decimals(a: i128, a_scale: i8, b: i128, b_scale: i8) -> Option<Ordering> {
    let scale = a_scale.max(b_scale);
    let at = |value: i128, from: i8| {
        let by = u32::try_from(i32::from(scale) - i32::from(from)).ok()?;
        value.checked_mul(10i128.checked_pow(by)?)
    };
    Some(at(a, a_scale)?.cmp(&at(b, b_scale)?))
}
