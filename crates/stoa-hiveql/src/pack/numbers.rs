//! Functions of numbers.

use stoa_error::{Error, Result};

use super::casts::rescale;
use super::operators::ordering;
use super::texts::bytes;
use super::value::{Type, Value};
use super::{
    Function, common, converted, lenient, makes_bigint, makes_binary, makes_double, makes_int,
    makes_text, maybe, no_function, strict, text, whole,
};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_round", (1, 2), round_type, |v| round(v, false)),
    strict("hive_bround", (1, 2), round_type, |v| round(v, true)),
    strict("hive_floor", (1, 1), makes_whole, |v| whole_near(v, f64::floor, -1)),
    strict("hive_ceil", (1, 1), makes_whole, |v| whole_near(v, f64::ceil, 1)),
    strict("hive_abs", (1, 1), same_number, abs),
    strict("hive_sign", (1, 1), makes_double, |v| {
        double(v, |x| if x == 0.0 { 0.0 } else { x.signum() })
    }),
    strict("hive_negative", (1, 1), same_number, |v| {
        Ok(match &v[0] {
            Value::Int(x) => Value::Int(x.wrapping_neg()),
            Value::Bigint(x) => Value::Bigint(x.wrapping_neg()),
            Value::Decimal(x, scale) => Value::Decimal(-x, *scale),
            other => other.double().map_or(Value::Null, |x| Value::Double(-x)),
        })
    }),
    strict("hive_positive", (1, 1), same_number, |v| {
        Ok(match &v[0] {
            Value::Text(_) => v[0].double().map_or(Value::Null, Value::Double),
            other => other.clone(),
        })
    }),
    strict("hive_sqrt", (1, 1), makes_double, |v| {
        double_or_null(v, |x| (x >= 0.0).then(|| x.sqrt()))
    }),
    strict("hive_cbrt", (1, 1), makes_double, |v| double(v, f64::cbrt)),
    strict("hive_exp", (1, 1), makes_double, |v| double(v, f64::exp)),
    strict("hive_ln", (1, 1), makes_double, |v| double_or_null(v, |x| (x > 0.0).then(|| x.ln()))),
    strict("hive_log2", (1, 1), makes_double, |v| {
        double_or_null(v, |x| (x > 0.0).then(|| x.ln() / 2_f64.ln()))
    }),
    strict("hive_log10", (1, 1), makes_double, |v| {
        double_or_null(v, |x| (x > 0.0).then(|| x.log10()))
    }),
    strict("hive_log", (1, 2), makes_double, |v| match v {
        [base, of] => Ok(match (base.double(), of.double()) {
            (Some(base), Some(of)) if base > 1.0 && of > 0.0 => Value::Double(of.ln() / base.ln()),
            _ => Value::Null,
        }),
        _ => double_or_null(v, |x| (x > 0.0).then(|| x.ln())),
    }),
    strict("hive_pow", (2, 2), makes_double, |v| {
        Ok(match (v[0].double(), v[1].double()) {
            (Some(a), Some(b)) => Value::Double(a.powf(b)),
            _ => Value::Null,
        })
    }),
    strict("hive_sin", (1, 1), makes_double, |v| double(v, f64::sin)),
    strict("hive_cos", (1, 1), makes_double, |v| double(v, f64::cos)),
    strict("hive_tan", (1, 1), makes_double, |v| double(v, f64::tan)),
    strict("hive_asin", (1, 1), makes_double, |v| double(v, f64::asin)),
    strict("hive_acos", (1, 1), makes_double, |v| double(v, f64::acos)),
    strict("hive_atan", (1, 1), makes_double, |v| double(v, f64::atan)),
    strict("hive_degrees", (1, 1), makes_double, |v| double(v, f64::to_degrees)),
    strict("hive_radians", (1, 1), makes_double, |v| double(v, f64::to_radians)),
    strict("hive_factorial", (1, 1), makes_bigint, |v| {
        Ok(match whole(v, 0)? {
            Some(n @ 0..=20) => Value::Bigint((1..=n).product()),
            _ => Value::Null,
        })
    }),
    strict("hive_bin", (1, 1), makes_text, |v| Ok(maybe(whole(v, 0)?.map(|x| format!("{x:b}"))))),
    strict("hive_hex", (1, 1), makes_text, |v| {
        Ok(match &v[0] {
            Value::Int(_) | Value::Bigint(_) => maybe(whole(v, 0)?.map(|x| format!("{x:X}"))),
            _ => Value::Text(bytes(v, 0)?.iter().map(|byte| format!("{byte:02X}")).collect()),
        })
    }),
    strict("hive_unhex", (1, 1), makes_binary, |v| {
        Ok(unhex(&text(v, 0)?).map_or(Value::Null, Value::Binary))
    }),
    strict("hive_conv", (3, 3), makes_text, conv),
    strict("hive_shiftleft", (2, 2), bits_type, |v| {
        shift(v, |x, by| ((x as i32).wrapping_shl(by), x.wrapping_shl(by)))
    }),
    strict("hive_shiftright", (2, 2), bits_type, |v| {
        shift(v, |x, by| ((x as i32).wrapping_shr(by), x.wrapping_shr(by)))
    }),
    strict("hive_shiftrightunsigned", (2, 2), bits_type, |v| {
        shift(v, |x, by| {
            ((x as i32 as u32).wrapping_shr(by) as i32, (x as u64).wrapping_shr(by) as i64)
        })
    }),
    lenient("hive_greatest", (2, 255), |t| common("greatest", t), |v| extreme(v, true)),
    lenient("hive_least", (2, 255), |t| common("least", t), |v| extreme(v, false)),
    strict("hive_width_bucket", (4, 4), makes_int, width_bucket),
    strict("hive_format_number", (2, 2), makes_text, format_number),
    // Numbers as they are; for operators that take whole numbers only.
    strict(
        "hive_bits",
        (1, 1),
        |t| match &t[0] {
            Type::Int | Type::Bigint => Ok(t[0].clone()),
            Type::Null => Ok(Type::Int),
            _ => Err(no_function("&, |, ^ or ~ of", t)),
        },
        |v| Ok(v[0].clone()),
    ),
];

fn double(v: &[Value], compute: fn(f64) -> f64) -> Result<Value> {
    Ok(v[0].double().map_or(Value::Null, |x| Value::Double(compute(x))))
}

fn double_or_null(v: &[Value], compute: fn(f64) -> Option<f64>) -> Result<Value> {
    Ok(v[0].double().and_then(compute).map_or(Value::Null, Value::Double))
}

/// The type itself; texts are doubles.
fn same_number(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::Text | Type::Null => Ok(Type::Double),
        of if of.is_number() => Ok(of.clone()),
        _ => Err(no_function("of numbers", types)),
    }
}

fn makes_whole(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::Decimal(precision, scale) => {
            let whole = i16::from(*precision) - i16::from(*scale) + 1;
            Ok(Type::Decimal(u8::try_from(whole.clamp(1, 38)).unwrap_or(38), 0))
        }
        other => same_number(std::slice::from_ref(other)).map(|_| Type::Bigint),
    }
}

fn bits_type(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::Bigint => Ok(Type::Bigint),
        Type::Int | Type::Null => Ok(Type::Int),
        _ => Err(no_function("shift of", types)),
    }
}

fn shift(v: &[Value], by: fn(i64, u32) -> (i32, i64)) -> Result<Value> {
    let (Some(x), Some(count)) = (whole(v, 0)?, whole(v, 1)?) else { return Ok(Value::Null) };
    let (small, large) = by(x, count as u32);
    Ok(if matches!(v[0], Value::Int(_)) { Value::Int(small) } else { Value::Bigint(large) })
}

fn whole_near(v: &[Value], near: fn(f64) -> f64, away: i128) -> Result<Value> {
    Ok(match &v[0] {
        Value::Int(x) => Value::Bigint(i64::from(*x)),
        Value::Bigint(x) => Value::Bigint(*x),
        Value::Decimal(x, scale) => {
            let power = 10_i128.pow(u32::try_from(*scale).unwrap_or_default());
            let (whole, rest) = (x / power, x % power);
            Value::Decimal(if rest.signum() == away { whole + away } else { whole }, 0)
        }
        other => match other.double() {
            Some(x) => converted(&Value::Double(near(x)), &Type::Bigint)?,
            None => Value::Null,
        },
    })
}

fn abs(v: &[Value]) -> Result<Value> {
    Ok(match &v[0] {
        Value::Int(x) => Value::Int(x.wrapping_abs()),
        Value::Bigint(x) => Value::Bigint(x.wrapping_abs()),
        Value::Decimal(x, scale) => Value::Decimal(x.abs(), *scale),
        other => other.double().map_or(Value::Null, |x| Value::Double(x.abs())),
    })
}

/// Whole numbers as they are; of decimals the scale is not known before their digits are: they keep theirs.
fn round_type(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::Decimal(precision, scale) => Ok(Type::Decimal((precision + 1).min(38), *scale)),
        _ => same_number(types),
    }
}

/// Half away from zero, or half to even.
fn round(v: &[Value], to_even: bool) -> Result<Value> {
    let places = if v.len() > 1 { whole(v, 1)?.unwrap_or_default() } else { 0 };
    let places = i32::try_from(places.clamp(-400, 400)).unwrap_or_default();
    Ok(match &v[0] {
        Value::Int(_) | Value::Bigint(_) => {
            let x = i128::from(whole(v, 0)?.unwrap_or_default());
            let rounded = round_whole(x, places, to_even);
            match (&v[0], i64::try_from(rounded)) {
                (Value::Int(_), Ok(x)) => i32::try_from(x).map_or(Value::Null, Value::Int),
                (_, Ok(x)) => Value::Bigint(x),
                _ => Value::Null,
            }
        }
        Value::Decimal(x, scale) => {
            let rounded = round_whole(*x, places - i32::from(*scale), to_even);
            Value::Decimal(rounded, *scale)
        }
        other => match other.double() {
            None => Value::Null,
            Some(x) if !x.is_finite() => Value::Double(x),
            Some(x) => Value::Double(round_double(x, places, to_even)),
        },
    })
}

/// A whole number, rounded to `-places` zeros at its end.
fn round_whole(x: i128, places: i32, to_even: bool) -> i128 {
    if places >= 0 {
        return x;
    }
    let Some(power) = 10_i128.checked_pow(places.unsigned_abs()) else { return 0 };
    let (whole, rest) = (x / power, (x % power).abs());
    let is_half = rest == power - rest;
    let is_up = rest > power - rest || (is_half && (!to_even || whole % 2 != 0));
    (if is_up { whole + x.signum() } else { whole }) * power
}

/// Over the digits that it is written with, as Java's `BigDecimal.valueOf` does.
fn round_double(x: f64, places: i32, to_even: bool) -> f64 {
    let text = format!("{:e}", x.abs());
    let Some((mantissa, exponent)) = text.split_once('e') else { return x };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let (Ok(unscaled), Ok(exponent)) = (digits.parse::<i128>(), exponent.parse::<i32>()) else {
        return x;
    };
    let scale = i32::try_from(digits.len()).unwrap_or(1) - 1 - exponent;
    let rounded = round_whole(unscaled, places - scale, to_even);
    let value: f64 = format!("{rounded}e{}", -scale).parse().unwrap_or(x);
    if x < 0.0 { -value } else { value }
}

fn unhex(of: &str) -> Option<Vec<u8>> {
    let padded = if of.len() % 2 == 1 { format!("0{of}") } else { of.to_owned() };
    let pairs = padded.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// A number of one base in another; to a negative base, with its sign.
fn conv(v: &[Value]) -> Result<Value> {
    let (of, from, to) = (text(v, 0)?, whole(v, 1)?, whole(v, 2)?);
    let base = |base: Option<i64>| {
        let base = base.unwrap_or_default();
        let size =
            u32::try_from(base.unsigned_abs()).ok().filter(|size| (2..=36).contains(size))?;
        Some((size, base < 0))
    };
    let (Some((from, _)), Some((to, is_signed))) = (base(from), base(to)) else {
        return Ok(Value::Null);
    };
    let (is_negative, digits) = match of.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, of.as_str()),
    };
    if of.is_empty() {
        return Ok(Value::Null);
    }
    let mut value: u64 = 0;
    for char in digits.chars() {
        let Some(digit) = char.to_digit(from) else { break };
        let next = value
            .checked_mul(u64::from(from))
            .and_then(|value| value.checked_add(u64::from(digit)));
        match next {
            Some(next) => value = next,
            // As Hive: the largest there is.
            None => {
                value = u64::MAX;
                break;
            }
        }
    }
    if is_negative {
        value = value.wrapping_neg();
    }
    let is_below = is_signed && (value as i64) < 0;
    let mut rest = if is_below { (value as i64).unsigned_abs() } else { value };
    let mut all = Vec::new();
    loop {
        let digit = u32::try_from(rest % u64::from(to)).unwrap_or_default();
        all.push(char::from_digit(digit, to).unwrap_or('0').to_ascii_uppercase());
        rest /= u64::from(to);
        if rest == 0 {
            break;
        }
    }
    if is_below {
        all.push('-');
    }
    Ok(Value::Text(all.iter().rev().collect()))
}

/// NULL where one is NULL.
fn extreme(v: &[Value], is_greatest: bool) -> Result<Value> {
    let mut found = v[0].clone();
    for value in v {
        if value.is_null() {
            return Ok(Value::Null);
        }
        let order = ordering(value, &found)?;
        let is_better =
            if is_greatest { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less };
        if order == Some(is_better) {
            found = value.clone();
        }
    }
    Ok(found)
}

fn width_bucket(v: &[Value]) -> Result<Value> {
    let of = |at: usize| v[at].double();
    let (Some(x), Some(low), Some(high), Some(count)) = (of(0), of(1), of(2), whole(v, 3)?) else {
        return Ok(Value::Null);
    };
    if count <= 0 || low == high {
        return Err(Error::invalid(
            "width_bucket needs more than 0 buckets, and bounds that differ",
        )
        .with_sqlstate("2201G"));
    }
    let share = (x - low) / (high - low);
    let bucket = match share {
        share if share < 0.0 => 0,
        share if share >= 1.0 => count.saturating_add(1),
        share => ((share * count as f64).floor() as i64).saturating_add(1),
    };
    Ok(i32::try_from(bucket).map_or(Value::Null, Value::Int))
}

/// `#,###.##`, half to even as `DecimalFormat`.
fn format_number(v: &[Value]) -> Result<Value> {
    if matches!(v[1], Value::Text(_)) {
        return Err(Error::unsupported("format_number with a pattern is not supported")
            .with_hint("give the number of digits behind the point"));
    }
    let Some(places) = whole(v, 1)? else { return Ok(Value::Null) };
    let Some(places) = i32::try_from(places).ok().filter(|places| (0..=30).contains(places)) else {
        return Err(Error::invalid("format_number takes 0 to 30 digits").with_sqlstate("22023"));
    };
    let (unscaled, scale) = match &v[0] {
        Value::Decimal(x, scale) => (*x, *scale),
        Value::Int(_) | Value::Bigint(_) => (i128::from(whole(v, 0)?.unwrap_or_default()), 0),
        other => {
            let Some(x) = other.double().filter(|x| x.is_finite() && x.abs() < 1e18) else {
                return Ok(Value::Null);
            };
            let shown = format!("{x}");
            let scale = shown.split_once('.').map_or(0, |(_, digits)| digits.len());
            (
                shown.replace('.', "").parse().unwrap_or_default(),
                i8::try_from(scale).unwrap_or_default(),
            )
        }
    };
    let rounded = round_whole(unscaled, places - i32::from(scale), true);
    let scale_to = i8::try_from(places).unwrap_or_default();
    let Some(value) = rescale(rounded, scale, scale_to) else { return Ok(Value::Null) };
    let shown = super::value::decimal_text(value.abs(), scale_to);
    let (whole, fraction) = shown.split_once('.').unwrap_or((&shown, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let is_below = unscaled < 0;
    let sign = if is_below { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Ok(Value::Text(format!("{sign}{grouped}{point}{fraction}")))
}
