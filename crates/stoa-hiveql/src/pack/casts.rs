//! Hive's casts: what is no value of the type is NULL.

use stoa_error::Result;

use super::value::{DAY_US, Type, Value, double_of};
use super::{
    Function, converted, makes_bigint, makes_boolean, makes_date, makes_double, makes_int,
    makes_text, makes_timestamp, maybe, no_function, strict, whole,
};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_to_boolean", (1, 1), makes_boolean, |v| converted(&v[0], &Type::Boolean)),
    strict("hive_to_tinyint", (1, 1), makes_int, |v| {
        narrow(&v[0], i32::from(i8::MIN), i32::from(i8::MAX))
    }),
    strict("hive_to_smallint", (1, 1), makes_int, |v| {
        narrow(&v[0], i32::from(i16::MIN), i32::from(i16::MAX))
    }),
    strict("hive_to_int", (1, 1), makes_int, |v| converted(&v[0], &Type::Int)),
    strict("hive_to_bigint", (1, 1), makes_bigint, |v| converted(&v[0], &Type::Bigint)),
    strict("hive_to_double", (1, 1), makes_double, |v| converted(&v[0], &Type::Double)),
    strict("hive_to_float", (1, 1), makes_double, |v| {
        Ok(v[0].double().map_or(Value::Null, |d| Value::Double(f64::from(d as f32))))
    }),
    strict("hive_to_string", (1, 1), makes_text, |v| Ok(maybe(v[0].text()?))),
    strict("hive_to_date", (1, 1), makes_date, |v| converted(&v[0], &Type::Date)),
    strict("hive_to_timestamp", (1, 1), makes_timestamp, timestamp),
    // The text of a decimal of so many digits, which the engine then casts.
    strict("hive_to_decimal", (3, 3), makes_text, decimal_as_text),
    strict("hive_number", (1, 1), number_type, |v| match &v[0] {
        Value::Text(text) => Ok(double_of(text).map_or(Value::Null, Value::Double)),
        other => Ok(other.clone()),
    }),
    // What avg, stddev and the like take: doubles, or decimals as they are.
    strict("hive_measure", (1, 1), measure_type, |v| match &v[0] {
        Value::Decimal(..) => Ok(v[0].clone()),
        other => converted(other, &Type::Double),
    }),
];

/// Numbers as they are, texts as doubles.
fn number_type(types: &[Type]) -> Result<Type> {
    match &types[0] {
        of if of.is_number() => Ok(of.clone()),
        Type::Text | Type::Null => Ok(Type::Double),
        _ => Err(no_function("a number of", types)),
    }
}

fn measure_type(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::Decimal(precision, scale) => Ok(Type::Decimal(*precision, *scale)),
        Type::Text | Type::Null | Type::Int | Type::Bigint | Type::Double => Ok(Type::Double),
        _ => Err(no_function("avg", types)),
    }
}

/// As Java narrows: whole numbers wrap around. Texts and decimals that do not fit are NULL.
fn narrow(value: &Value, min: i32, max: i32) -> Result<Value> {
    Ok(match value.int()? {
        None => Value::Null,
        Some(found) if (min..=max).contains(&found) => Value::Int(found),
        Some(_) if matches!(value, Value::Text(_) | Value::Decimal(..)) => Value::Null,
        Some(found) if max == i32::from(i8::MAX) => Value::Int(i32::from(found as i8)),
        Some(found) => Value::Int(i32::from(found as i16)),
    })
}

/// Numbers are seconds, as with `hive.int.timestamp.conversion.in.seconds`; without it, whole numbers are
/// milliseconds: these are refused.
fn timestamp(v: &[Value]) -> Result<Value> {
    Ok(match &v[0] {
        Value::Int(_) | Value::Bigint(_) | Value::Boolean(_) => {
            return Err(stoa_error::Error::unsupported(
                "a whole number as a TIMESTAMP is not supported",
            )
            .with_detail(
                "it is seconds or milliseconds, as hive.int.timestamp.conversion.in.seconds says",
            )
            .with_hint("use CAST(from_unixtime(seconds) AS TIMESTAMP)"));
        }
        Value::Double(_) | Value::Decimal(..) => {
            let seconds = v[0].double().unwrap_or(f64::NAN);
            let limit = 250_000.0 * 366.0 * DAY_US as f64 / 1e6;
            if seconds.abs() < limit {
                Value::Timestamp((seconds * 1e6).round() as i64)
            } else {
                Value::Null
            }
        }
        Value::Text(text)
            if text.trim().starts_with(|c: char| c.is_ascii_digit())
                && text.contains(':')
                && !text.contains('-') =>
        {
            return Err(stoa_error::Error::unsupported(format!(
                "\"{text}\" as a TIMESTAMP is not supported"
            ))
            .with_detail("Hive takes a time of the day for one of the current day")
            .with_hint("write the date, too"));
        }
        other => converted(other, &Type::Timestamp)?,
    })
}

/// A value as a decimal of so many digits, rounded half up; NULL where it does not fit.
pub(super) fn decimal(value: &Value, precision: u8, scale: i8) -> Value {
    let found = match value {
        Value::Boolean(value) => Some((i128::from(*value), 0)),
        Value::Int(value) => Some((i128::from(*value), 0)),
        Value::Bigint(value) => Some((i128::from(*value), 0)),
        Value::Decimal(value, scale) => Some((*value, *scale)),
        Value::Double(value) if value.is_finite() => read(&format!("{value}")),
        Value::Text(text) => read(text.trim()),
        Value::Timestamp(micros) => Some((i128::from(*micros), 6)),
        _ => None,
    };
    let rescaled = found.and_then(|(value, from)| rescale(value, from, scale));
    let limit = 10_i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
    match rescaled {
        Some(value) if value.abs() < limit => Value::Decimal(value, scale),
        _ => Value::Null,
    }
}

/// Digits with a point and an exponent.
fn read(text: &str) -> Option<(i128, i8)> {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let all: String = unsigned.chars().chain(fraction.chars()).collect();
    if all.is_empty() || !all.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let all = all.trim_start_matches('0');
    let value: i128 =
        if all.is_empty() { 0 } else { all.get(..all.len().min(38))?.parse().ok()? };
    let cut = i32::try_from(all.len().saturating_sub(38)).ok()?;
    let value = if whole.starts_with('-') { -value } else { value };
    let scale = scale.checked_sub(cut)?;
    match scale {
        0..=120 => Some((value, i8::try_from(scale).ok()?)),
        -38..=-1 => {
            let power = 10_i128.checked_pow(scale.unsigned_abs())?;
            Some((value.checked_mul(power)?, 0))
        }
        _ if value == 0 => Some((0, 0)),
        121.. => Some((0, 0)),
        _ => None,
    }
}

/// The same number with other digits behind the point, rounded half up.
pub(super) fn rescale(value: i128, from: i8, to: i8) -> Option<i128> {
    let shift = i32::from(to) - i32::from(from);
    if shift >= 0 {
        return value.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?);
    }
    let Some(power) = 10_i128.checked_pow(shift.unsigned_abs()) else { return Some(0) };
    let (quotient, rest) = (value / power, value % power);
    let is_up = rest.unsigned_abs() >= power.unsigned_abs() - power.unsigned_abs() / 2;
    Some(if is_up { quotient + value.signum() } else { quotient })
}

fn decimal_as_text(v: &[Value]) -> Result<Value> {
    let digits = |at: usize| whole(v, at).map(|value| value.unwrap_or_default());
    let precision = u8::try_from(digits(1)?).unwrap_or(38);
    let scale = i8::try_from(digits(2)?).unwrap_or_default();
    Ok(maybe(decimal(&v[0], precision, scale).text()?))
}
