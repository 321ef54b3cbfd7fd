//! Transforms of single values, for predicates.

use stoa_orc::Literal;

use super::murmur3::bucket;
use crate::Transform;
use crate::value::minimal_big_endian;

/// Microseconds per hour and day.
const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

/// The result of `transform` on `value`. `None` where the transform does not take such a value or
/// the result does not fit; the caller must then assume nothing.
pub(crate) fn transform_literal(transform: Transform, value: &Literal) -> Option<Literal> {
    match transform {
        Transform::Identity => Some(value.clone()),
        Transform::Void => None,
        Transform::Year | Transform::Month => {
            let months = months(days(value)?)?;
            let result = if transform == Transform::Year { months.div_euclid(12) } else { months };
            Some(Literal::Int(result))
        }
        Transform::Day => i32::try_from(days(value)?).ok().map(Literal::Date),
        Transform::Hour => match value {
            Literal::TimestampMicros(micros) => Some(Literal::Int(micros.div_euclid(HOUR))),
            _ => None,
        },
        Transform::Bucket(buckets) => bucket_of(value, buckets).map(|b| Literal::Int(b.into())),
        Transform::Truncate(width) => truncate(value, width),
    }
}

/// Days since 1970-01-01 of a date or timestamp.
fn days(value: &Literal) -> Option<i64> {
    match value {
        Literal::Date(days) => Some(i64::from(*days)),
        Literal::TimestampMicros(micros) => Some(micros.div_euclid(DAY)),
        _ => None,
    }
}

/// Months since 1970-01 of a day, in the proleptic Gregorian calendar.
pub(super) fn months(days: i64) -> Option<i64> {
    // Days from 0000-03-01, counted in eras of 400 years (H. Hinnant, "chrono-compatible
    // low-level date algorithms").
    let shifted = days.checked_add(719_468)?;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    Some((era * 400 + year_of_era) * 12 + march_month + 2 - 1970 * 12)
}

fn bucket_of(value: &Literal, buckets: u32) -> Option<i32> {
    let long = |value: i64| bucket(&value.to_le_bytes(), buckets);
    Some(match value {
        Literal::Int(value) => long(*value),
        Literal::Date(days) => long(i64::from(*days)),
        Literal::TimestampMicros(micros) => long(*micros),
        Literal::Decimal(value, _) => bucket(&minimal_big_endian(*value), buckets),
        Literal::String(value) => bucket(value.as_bytes(), buckets),
        Literal::Binary(value) => bucket(value, buckets),
        Literal::Boolean(_) | Literal::Float(_) => return None,
    })
}

fn truncate(value: &Literal, width: u32) -> Option<Literal> {
    let width = width.max(1);
    Some(match value {
        Literal::Int(value) => Literal::Int(value.checked_sub(value.rem_euclid(i64::from(width)))?),
        Literal::Decimal(value, scale) => {
            Literal::Decimal(value.checked_sub(value.rem_euclid(i128::from(width)))?, *scale)
        }
        Literal::String(value) => Literal::String(value.chars().take(width as usize).collect()),
        Literal::Binary(value) => {
            Literal::Binary(value.iter().copied().take(width as usize).collect())
        }
        _ => return None,
    })
}
