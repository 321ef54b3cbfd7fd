//! `mask` and its like: what a text shows of itself.

use stoa_error::Result;

use super::value::{Type, Value, date_of, days_of};
use super::{Function, lenient, makes_text, no_function, strict, text, whole};
use chrono::Datelike;

pub(super) static FUNCTIONS: &[Function] = &[
    lenient("hive_mask", (1, 7), mask_type, |v| mask(v, |_, _| true, 1)),
    lenient("hive_mask_first_n", (1, 6), mask_type, |v| {
        let n = count(v)?;
        mask(v, move |at, _| at < n, 2)
    }),
    lenient("hive_mask_last_n", (1, 6), mask_type, |v| {
        let n = count(v)?;
        mask(v, move |at, length| at + n >= length, 2)
    }),
    lenient("hive_mask_show_first_n", (1, 6), mask_type, |v| {
        let n = count(v)?;
        mask(v, move |at, _| at >= n, 2)
    }),
    lenient("hive_mask_show_last_n", (1, 6), mask_type, |v| {
        let n = count(v)?;
        mask(v, move |at, length| at + n < length, 2)
    }),
    // Hive 4 has SHA-512 here in FIPS mode, else SHA-256.
    strict("hive_mask_hash", (1, 1), makes_text, |v| {
        use sha2::Digest;
        let digest = sha2::Sha256::digest(text(v, 0)?.as_bytes());
        Ok(Value::Text(digest.iter().map(|byte| format!("{byte:02x}")).collect()))
    }),
];

fn mask_type(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::Text | Type::Null => Ok(Type::Text),
        Type::Int => Ok(Type::Int),
        Type::Bigint => Ok(Type::Bigint),
        Type::Date if types.len() == 1 => Ok(Type::Date),
        _ => Err(no_function("mask", types)),
    }
}

fn count(v: &[Value]) -> Result<usize> {
    let n = if v.len() > 1 { whole(v, 1)?.unwrap_or(4) } else { 4 };
    Ok(usize::try_from(n).unwrap_or_default())
}

/// Upper case becomes X, lower case x, digits n, or what is given; -1 keeps them. Digits of numbers become 1.
fn mask(v: &[Value], is_masked: impl Fn(usize, usize) -> bool, first: usize) -> Result<Value> {
    let shown = |at: usize, default: char| -> Result<Option<char>> {
        match v.get(first + at) {
            None | Some(Value::Null) => Ok(Some(default)),
            Some(Value::Text(text)) => Ok(text.chars().next()),
            Some(other) => Ok(if other.bigint()? == Some(-1) { None } else { Some(default) }),
        }
    };
    let (upper, lower, digit) = (shown(0, 'X')?, shown(1, 'x')?, shown(2, 'n')?);
    let other = match v.get(first + 3) {
        Some(Value::Text(text)) => text.chars().next(),
        _ => None,
    };
    let number = match v.get(first + 4) {
        Some(value) if !value.is_null() => {
            value.bigint()?.filter(|digit| (0..=9).contains(digit)).unwrap_or(1)
        }
        _ => 1,
    };
    Ok(match &v[0] {
        Value::Null => Value::Null,
        Value::Date(days) => {
            // Day and month become 1, the year 1.
            let _ = date_of(*days)?.year();
            chrono::NaiveDate::from_ymd_opt(1, 1, 1)
                .map_or(Value::Null, |date| Value::Date(days_of(date)))
        }
        Value::Int(_) | Value::Bigint(_) => {
            let value = v[0].bigint()?.unwrap_or_default();
            let digits = value.unsigned_abs().to_string();
            let length = digits.len();
            let masked: String = digits
                .chars()
                .enumerate()
                .map(
                    |(at, char)| {
                        if is_masked(at, length) { number.to_string() } else { char.to_string() }
                    },
                )
                .collect();
            let masked: i64 = masked.parse().unwrap_or_default();
            let masked = if value < 0 { -masked } else { masked };
            match (&v[0], i32::try_from(masked)) {
                (Value::Int(_), Ok(small)) => Value::Int(small),
                (Value::Int(_), Err(_)) => Value::Null,
                _ => Value::Bigint(masked),
            }
        }
        of => {
            let of = of.text()?.unwrap_or_default();
            let length = of.chars().count();
            let masked = of.chars().enumerate().map(|(at, char)| {
                if !is_masked(at, length) {
                    return char;
                }
                let by = match char {
                    c if c.is_uppercase() => upper,
                    c if c.is_lowercase() => lower,
                    c if c.is_numeric() => digit,
                    _ => other,
                };
                by.unwrap_or(char)
            });
            Value::Text(masked.collect())
        }
    })
}
