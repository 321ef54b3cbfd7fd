//! Hive's operators where PostgreSQL's are others: arithmetic of mixed types, comparisons of texts with numbers.

use std::cmp::Ordering;

use stoa_error::{Error, Result};

use super::casts::rescale;
use super::value::{Type, Value, out_of_range};
use super::{
    Function, converted, digits, lenient, makes_bigint, makes_text, maybe, no_function, strict,
    whole, wider,
};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_add", (2, 255), |t| chain_type(t, |pair| sum_type("+", pair)), |v| chain('+', v)),
    strict("hive_subtract", (2, 2), |t| sum_type("-", t), |v| arithmetic('-', v)),
    strict("hive_multiply", (2, 255), |t| chain_type(t, product_type), |v| chain('*', v)),
    strict("hive_divide", (2, 3), quotient_type, divide),
    strict("hive_div", (2, 2), div_type, div),
    strict("hive_mod", (2, 2), mod_type, |v| remainder(v, false)),
    strict("hive_pmod", (2, 2), mod_type, |v| remainder(v, true)),
    strict("hive_eq", (2, 2), comparison_type, |v| compare(v, |o| o == Ordering::Equal)),
    strict("hive_ne", (2, 2), comparison_type, |v| compare(v, |o| o != Ordering::Equal)),
    strict("hive_lt", (2, 2), comparison_type, |v| compare(v, |o| o == Ordering::Less)),
    strict("hive_le", (2, 2), comparison_type, |v| compare(v, |o| o != Ordering::Greater)),
    strict("hive_gt", (2, 2), comparison_type, |v| compare(v, |o| o == Ordering::Greater)),
    strict("hive_ge", (2, 2), comparison_type, |v| compare(v, |o| o != Ordering::Less)),
    lenient("hive_same", (2, 2), comparison_type, |v| match (&v[0], &v[1]) {
        (Value::Null, Value::Null) => Ok(Value::Boolean(true)),
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Boolean(false)),
        _ => compare(v, |o| o == Ordering::Equal)
            .map(|same| Value::Boolean(same == Value::Boolean(true))),
    }),
    strict("hive_concat", (1, 255), concat_type, concat),
    // Whether values are the same ones, as a text; NULL where one is: count(DISTINCT a, b).
    strict("hive_key", (1, 255), makes_text, |v| key(v).map(|text| maybe(Some(text)))),
    strict("hive_plus_months", (2, 2), shifted_type, |v| {
        super::dates::plus_months_of(&v[0], whole(v, 1)?.unwrap_or_default())
    }),
    strict("hive_plus_micros", (2, 2), |_| Ok(Type::Timestamp), plus_micros),
    strict("hive_bigint_of", (1, 1), makes_bigint, |v| converted(&v[0], &Type::Bigint)),
];

fn shifted_type(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::Date => Ok(Type::Date),
        Type::Timestamp | Type::Null => Ok(Type::Timestamp),
        _ => Err(no_function("+ interval", types).with_hint("cast the text to DATE or TIMESTAMP")),
    }
}

fn plus_micros(v: &[Value]) -> Result<Value> {
    let (Some(time), Some(micros)) = (v[0].timestamp(), whole(v, 1)?) else {
        return Ok(Value::Null);
    };
    Ok(time.checked_add(micros).map_or(Value::Null, Value::Timestamp))
}

/// Types of operands as numbers: texts are doubles.
fn numbers(name: &str, types: &[Type]) -> Result<(Type, Type)> {
    let number = |of: &Type| match of {
        Type::Text | Type::Null => Ok(Type::Double),
        of if of.is_number() => Ok(of.clone()),
        _ => Err(no_function(name, types)
            .with_hint("use date_add, date_sub, datediff or INTERVAL for dates and timestamps")),
    };
    // NULL is of the other's type.
    match (&types[0], &types[1]) {
        (Type::Null, other) if other.is_number() => Ok((other.clone(), other.clone())),
        (own, Type::Null) if own.is_number() => Ok((own.clone(), own.clone())),
        (a, b) => Ok((number(a)?, number(b)?)),
    }
}

/// Decimals of more than 38 digits lose digits behind the point, six of which stay (`HiveDecimal`).
fn fitted(precision: i32, scale: i32) -> Type {
    let (precision, scale) = match precision > 38 {
        true => {
            let whole = precision - scale;
            (38, (38 - whole).max(scale.min(6)))
        }
        false => (precision, scale),
    };
    Type::Decimal(u8::try_from(precision).unwrap_or(38), i8::try_from(scale).unwrap_or_default())
}

fn parts(of: &Type) -> (i32, i32) {
    let (precision, scale) = digits(of);
    (i32::from(precision), i32::from(scale))
}

fn sum_type(name: &str, types: &[Type]) -> Result<Type> {
    let (a, b) = numbers(name, types)?;
    Ok(match wider(&a, &b) {
        Type::Decimal(..) => {
            let ((p, s), (q, t)) = (parts(&a), parts(&b));
            fitted(s.max(t) + (p - s).max(q - t) + 1, s.max(t))
        }
        other => other,
    })
}

fn product_type(types: &[Type]) -> Result<Type> {
    let (a, b) = numbers("*", types)?;
    Ok(match wider(&a, &b) {
        Type::Decimal(..) => {
            let ((p, s), (q, t)) = (parts(&a), parts(&b));
            fitted(p + q + 1, s + t)
        }
        other => other,
    })
}

/// Whole numbers are divided as doubles. The third operand has the type of a literal that is the second: as many digits
/// as it is written with.
fn quotient_type(types: &[Type]) -> Result<Type> {
    let (a, mut b) = numbers("/", types)?;
    if let (Type::Decimal(..), Some(literal)) = (&a, types.get(2)) {
        b = literal.clone();
    }
    Ok(match wider(&a, &b) {
        Type::Decimal(..) => {
            let ((p, s), (q, t)) = (parts(&a), parts(&b));
            let scale = (s + q + 1).max(6);
            fitted(p - s + t + scale, scale)
        }
        _ => Type::Double,
    })
}

fn div_type(types: &[Type]) -> Result<Type> {
    match numbers("div", types)? {
        (Type::Int | Type::Bigint, Type::Int | Type::Bigint) => Ok(Type::Bigint),
        _ => {
            Err(no_function("div", types).with_hint("DIV takes whole numbers; cast them to BIGINT"))
        }
    }
}

fn mod_type(types: &[Type]) -> Result<Type> {
    let (a, b) = numbers("%", types)?;
    Ok(match wider(&a, &b) {
        Type::Decimal(..) => {
            let ((p, s), (q, t)) = (parts(&a), parts(&b));
            fitted((p - s).min(q - t) + s.max(t), s.max(t))
        }
        other => other,
    })
}

/// Both operands as one kind of number.
enum Pair {
    Whole(i64, i64, bool),
    Doubles(f64, f64),
    Decimals(i128, i128, i8),
}

fn pair(v: &[Value]) -> Result<Option<Pair>> {
    Ok(match (&v[0], &v[1]) {
        (Value::Int(a), Value::Int(b)) => Some(Pair::Whole(i64::from(*a), i64::from(*b), true)),
        (Value::Int(_) | Value::Bigint(_), Value::Int(_) | Value::Bigint(_)) => {
            let (a, b) = (v[0].bigint()?, v[1].bigint()?);
            a.zip(b).map(|(a, b)| Pair::Whole(a, b, false))
        }
        (Value::Double(_) | Value::Text(_), _) | (_, Value::Double(_) | Value::Text(_)) => {
            v[0].double().zip(v[1].double()).map(|(a, b)| Pair::Doubles(a, b))
        }
        _ => {
            let scaled = |value: &Value| match value {
                Value::Decimal(value, scale) => Some((*value, *scale)),
                other => other.bigint().ok().flatten().map(|value| (i128::from(value), 0)),
            };
            let Some(((a, s), (b, t))) = scaled(&v[0]).zip(scaled(&v[1])) else { return Ok(None) };
            let scale = s.max(t);
            let both = rescale(a, s, scale).zip(rescale(b, t, scale));
            both.map(|(a, b)| Pair::Decimals(a, b, scale))
        }
    })
}

/// The type of a chain of one operator, from the left.
fn chain_type(types: &[Type], of: fn(&[Type]) -> Result<Type>) -> Result<Type> {
    let mut all = types[0].clone();
    for next in &types[1..] {
        all = of(&[all, next.clone()])?;
    }
    Ok(all)
}

/// A chain of one operator, from the left.
fn chain(op: char, v: &[Value]) -> Result<Value> {
    let mut all = v[0].clone();
    for next in &v[1..] {
        all = arithmetic(op, &[all, next.clone()])?;
    }
    Ok(all)
}

/// Whole numbers wrap around, as Java's do; decimals that do not fit are NULL.
fn arithmetic(op: char, v: &[Value]) -> Result<Value> {
    let Some(pair) = pair(v)? else { return Ok(Value::Null) };
    Ok(match pair {
        Pair::Whole(a, b, is_int) => {
            let value = match op {
                '+' => a.wrapping_add(b),
                '-' => a.wrapping_sub(b),
                _ => a.wrapping_mul(b),
            };
            // The lower half, as of Java's int.
            if is_int { Value::Int(value as i32) } else { Value::Bigint(value) }
        }
        Pair::Doubles(a, b) => Value::Double(match op {
            '+' => a + b,
            '-' => a - b,
            _ => a * b,
        }),
        Pair::Decimals(a, b, scale) => {
            let found = match op {
                '+' => a.checked_add(b).map(|value| (value, scale)),
                '-' => a.checked_sub(b).map(|value| (value, scale)),
                _ => {
                    let own = |value: &Value| match value {
                        Value::Decimal(value, scale) => (*value, *scale),
                        other => (i128::from(other.bigint().ok().flatten().unwrap_or_default()), 0),
                    };
                    let ((a, s), (b, t)) = (own(&v[0]), own(&v[1]));
                    a.checked_mul(b).map(|value| (value, s + t))
                }
            };
            found.map_or(Value::Null, |(value, scale)| Value::Decimal(value, scale))
        }
    })
}

/// By zero it is NULL.
fn divide(v: &[Value]) -> Result<Value> {
    let Some(pair) = pair(v)? else { return Ok(Value::Null) };
    Ok(match pair {
        Pair::Whole(_, 0, _) => Value::Null,
        Pair::Whole(a, b, _) => Value::Double(a as f64 / b as f64),
        Pair::Doubles(_, 0.0) => Value::Null,
        Pair::Doubles(a, b) => Value::Double(a / b),
        Pair::Decimals(_, 0, _) => Value::Null,
        Pair::Decimals(a, b, _) => return quotient(a, b),
    })
}

/// More digits than any type has, so that it is rounded once: a rest that is cut off makes the last digit odd one out.
fn quotient(a: i128, b: i128) -> Result<Value> {
    for scale in (7..=25_i8).rev() {
        let power = 10_i128.checked_pow(u32::from(scale.unsigned_abs()));
        let Some(scaled) = power.and_then(|power| a.checked_mul(power)) else { continue };
        let (mut found, rest) = (scaled / b, scaled % b);
        if rest != 0 && found % 5 == 0 {
            found += a.signum() * b.signum();
        }
        return Ok(Value::Decimal(found, scale));
    }
    Err(out_of_range("the quotient", "decimal"))
}

fn div(v: &[Value]) -> Result<Value> {
    match pair(v)? {
        Some(Pair::Whole(_, 0, _)) => {
            Err(Error::invalid("division by zero").with_sqlstate("22012"))
        }
        Some(Pair::Whole(a, b, _)) => Ok(Value::Bigint(a.wrapping_div(b))),
        _ => Ok(Value::Null),
    }
}

/// By zero it is NULL; a positive remainder has the sign of the divisor.
fn remainder(v: &[Value], is_positive: bool) -> Result<Value> {
    let Some(pair) = pair(v)? else { return Ok(Value::Null) };
    Ok(match pair {
        Pair::Whole(_, 0, _) | Pair::Decimals(_, 0, _) => Value::Null,
        Pair::Whole(a, b, is_int) => {
            let mut value = a.wrapping_rem(b);
            if is_positive {
                value = value.wrapping_add(b).wrapping_rem(b);
            }
            if is_int { Value::Int(value as i32) } else { Value::Bigint(value) }
        }
        Pair::Doubles(_, 0.0) => Value::Null,
        Pair::Doubles(a, b) => Value::Double(if is_positive { (a % b + b) % b } else { a % b }),
        Pair::Decimals(a, b, scale) => {
            Value::Decimal(if is_positive { (a % b).wrapping_add(b) % b } else { a % b }, scale)
        }
    })
}

fn comparison_type(types: &[Type]) -> Result<Type> {
    kind(&types[0], &types[1]).map(|_| Type::Boolean).ok_or_else(|| {
        let (a, b) = (types[0].name(), types[1].name());
        Error::invalid(format!("values of {a} and {b} cannot be compared"))
            .with_sqlstate("42883")
            .with_hint("cast one of them")
    })
}

enum Kind {
    Numbers,
    Texts,
    Dates,
    Timestamps,
    Booleans,
}

fn kind(a: &Type, b: &Type) -> Option<Kind> {
    use Type::{Boolean, Date, Null, Text, Timestamp};
    Some(match (a, b) {
        (Text | Null, Text | Null) => Kind::Texts,
        (Boolean, Boolean | Null) | (Null, Boolean) => Kind::Booleans,
        (Date, Date | Text | Null) | (Text | Null, Date) => Kind::Dates,
        (Timestamp, Timestamp | Date | Text | Null) | (Date | Text | Null, Timestamp) => {
            Kind::Timestamps
        }
        (a, b)
            if (a.is_number() || matches!(a, Text | Null))
                && (b.is_number() || matches!(b, Text | Null)) =>
        {
            Kind::Numbers
        }
        _ => return None,
    })
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Boolean(_) => Type::Boolean,
        Value::Int(_) => Type::Int,
        Value::Bigint(_) => Type::Bigint,
        Value::Double(_) => Type::Double,
        Value::Decimal(_, scale) => Type::Decimal(38, *scale),
        Value::Text(_) => Type::Text,
        Value::Binary(_) => Type::Binary,
        Value::Date(_) => Type::Date,
        Value::Timestamp(_) => Type::Timestamp,
        Value::List(_) => Type::List(Box::new(Type::Null)),
        Value::Map(_) => Type::Map(Box::new(Type::Null), Box::new(Type::Null)),
    }
}

/// How two values compare: a text with a number as doubles, with a date as dates. `None` where one is none.
pub(super) fn ordering(a: &Value, b: &Value) -> Result<Option<Ordering>> {
    let Some(kind) = kind(&type_of(a), &type_of(b)) else { return Ok(None) };
    Ok(match kind {
        Kind::Numbers => match pair(&[a.clone(), b.clone()])? {
            Some(Pair::Whole(a, b, _)) => Some(a.cmp(&b)),
            // As Double.compare of Java: NaN is equal to itself and greater than all others.
            Some(Pair::Doubles(a, b)) => {
                Some(a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())))
            }
            Some(Pair::Decimals(a, b, _)) => Some(a.cmp(&b)),
            None => None,
        },
        Kind::Texts => a.text()?.zip(b.text()?).map(|(a, b)| a.cmp(&b)),
        Kind::Dates => a.date().zip(b.date()).map(|(a, b)| a.cmp(&b)),
        Kind::Timestamps => a.timestamp().zip(b.timestamp()).map(|(a, b)| a.cmp(&b)),
        Kind::Booleans => a.boolean().zip(b.boolean()).map(|(a, b)| a.cmp(&b)),
    })
}

fn compare(v: &[Value], is: fn(Ordering) -> bool) -> Result<Value> {
    Ok(ordering(&v[0], &v[1])?.map_or(Value::Null, |found| Value::Boolean(is(found))))
}

fn concat_type(types: &[Type]) -> Result<Type> {
    match types.iter().find(|of| matches!(of, Type::List(_) | Type::Map(..))) {
        Some(_) => Err(no_function("concat", types)),
        None => Ok(Type::Text),
    }
}

fn concat(v: &[Value]) -> Result<Value> {
    let mut all = String::new();
    for value in v {
        all.push_str(&value.text()?.unwrap_or_default());
    }
    Ok(Value::Text(all))
}

/// Each text with its length before it, so that no two rows have the same key.
fn key(v: &[Value]) -> Result<String> {
    let mut all = String::new();
    for value in v {
        let text = value.text()?.unwrap_or_default();
        all.push_str(&format!("{}:{text}", text.len()));
    }
    Ok(all)
}
