//! Values from PostgreSQL's binary form, in which drivers send rows to `COPY … (FORMAT binary)`.
//!
//! In: the bytes of one value. Out: the value at the end of its column, or why not. The form is that
//! of the column's own type, as results of the PostgreSQL protocol have it: nothing is converted but
//! the scale of numerics. Lists of scalars are arrays; other nested values are JSON text.
//!
//! **Invariant:** counts and lengths within a value are believed only as far as its bytes go.

use std::fmt::Display;

use arrow_schema::DataType;

use super::nested::Nested;
use super::values::Values;
use super::{Column, Outcome};
use crate::bad_value::BadValue;
use crate::convert::Conversions;
use crate::number::{self, NumberError};

/// Days from 1970-01-01, Arrow's epoch, to 2000-01-01, PostgreSQL's.
const EPOCH_DAYS: i32 = 10_957;
const DAY_US: i64 = 86_400_000_000;
/// Days from 0000-12-31 to 1970-01-01.
const DAYS_BEFORE_1970: i32 = 719_163;

/// Signs of a numeric.
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const MINUS_INFINITY: u16 = 0xF000;
/// Bytes before a numeric's digits, which count to 10,000 each.
const NUMERIC_HEADER_BYTES: usize = 8;
/// The place of the first digit of the largest numbers that columns hold, and of the last that counts:
/// 38 decimal digits on either side of the point, and one that is rounded.
const WEIGHT_MAX: i32 = 9;
const WEIGHT_MIN: i32 = -11;

const CONVERTS_NOTHING: &str =
    "send values of the column's own type; the binary format converts nothing";

impl Column {
    /// Appends a value that is not NULL from its binary form.
    pub fn append_binary(&mut self, bytes: &[u8], with: &Conversions) -> Outcome {
        self.values.append_binary(bytes, &self.type_name, with)?;
        self.nulls.append(true);
        Ok(())
    }
}

impl Values {
    fn append_binary(&mut self, bytes: &[u8], of: &str, with: &Conversions) -> Outcome {
        match self {
            Self::Boolean(values) => values.append(fixed::<1>(bytes, of)? != [0]),
            Self::Int8(values) => values.push(narrow(i16::from_be_bytes(fixed(bytes, of)?), of)?),
            Self::Int16(values) => values.push(i16::from_be_bytes(fixed(bytes, of)?)),
            Self::Int32(values) => values.push(i32::from_be_bytes(fixed(bytes, of)?)),
            Self::Int64(values) => values.push(i64::from_be_bytes(fixed(bytes, of)?)),
            Self::UInt8(values) => values.push(narrow(i16::from_be_bytes(fixed(bytes, of)?), of)?),
            Self::UInt16(values) => values.push(narrow(i32::from_be_bytes(fixed(bytes, of)?), of)?),
            Self::UInt32(values) => values.push(narrow(i64::from_be_bytes(fixed(bytes, of)?), of)?),
            Self::UInt64(values) => values.push(narrow(numeric(bytes, 20, 0, of)?, of)?),
            Self::Float32(values) => values.push(f32::from_be_bytes(fixed(bytes, of)?)),
            Self::Float64(values) => values.push(f64::from_be_bytes(fixed(bytes, of)?)),
            Self::Decimal { values, precision, scale } => {
                values.push(numeric(bytes, *precision, *scale, of)?);
            }
            Self::Date(values) => values.push(date(i32::from_be_bytes(fixed(bytes, of)?), of)?),
            Self::Time { values, unit_ns } => {
                let micros = i64::from_be_bytes(fixed(bytes, of)?);
                if !(0..=DAY_US).contains(&micros) {
                    return Err(outside(micros, of));
                }
                values.push(micros * 1000 / *unit_ns);
            }
            Self::Timestamp { values, units_per_second, .. } => {
                let micros = i64::from_be_bytes(fixed(bytes, of)?);
                values.push(moment(micros, *units_per_second, of)?);
            }
            Self::Text(values) => values.append(utf8(bytes)?.as_bytes()),
            Self::Binary(values) => values.append(bytes),
            Self::FixedBinary { values, width } => {
                if bytes.len() != *width {
                    return Err(wrong_length(bytes, *width, of));
                }
                values.extend_from_slice(bytes);
            }
            Self::Nested(nested) => return append_nested(nested, bytes, of, with),
        }
        Ok(())
    }
}

fn append_nested(nested: &mut Nested, bytes: &[u8], of: &str, with: &Conversions) -> Outcome {
    if let Nested::List { item, ends, .. } = nested
        && let Some(oids) = element_oids(item.field.data_type())
    {
        append_items(item, oids, bytes, of, with)?;
        ends.push(item.len() as i64);
        return Ok(());
    }
    nested.append(utf8(bytes)?, of, with)
}

/// Appends the elements of an array: dimensions, flags, the elements' type, then length and lower bound
/// of the dimension, then each element with its length before it.
fn append_items(
    item: &mut Column,
    oids: &[u32],
    bytes: &[u8],
    of: &str,
    with: &Conversions,
) -> Outcome {
    let cut = || BadValue::binary(of, "the array is cut off");
    let mut rest = bytes;
    let mut word = || -> Result<i32, Box<BadValue>> {
        let (word, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        rest = after;
        Ok(i32::from_be_bytes(*word))
    };
    let (dimensions, _has_nulls, oid) = (word()?, word()?, word()? as u32);
    if !oids.contains(&oid) {
        let what = format!("the type of the elements has the OID {oid}");
        return Err(BadValue::binary(of, &what).hint(CONVERTS_NOTHING));
    }
    let count = match dimensions {
        0 => 0,
        1 => {
            let (count, _lower_bound) = (word()?, word()?);
            usize::try_from(count).map_err(|_| cut())?
        }
        more => return Err(BadValue::binary(of, &format!("{more} dimensions instead of one"))),
    };
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        rest = after;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            item.append_null()?;
            continue;
        };
        let (element, after) = rest.split_at_checked(length).ok_or_else(cut)?;
        rest = after;
        item.append_binary(element, with)?;
    }
    match rest.len() {
        0 => Ok(()),
        more => Err(BadValue::binary(of, &format!("{more} bytes after the array"))),
    }
}

/// The types (OIDs) that the elements of an array can say they have; `None` for those whose lists are
/// JSON.
fn element_oids(item: &DataType) -> Option<&'static [u32]> {
    Some(match item {
        DataType::Boolean => &[16],
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => &[21],
        DataType::Int32 | DataType::UInt16 => &[23],
        DataType::Int64 | DataType::UInt32 => &[20],
        DataType::UInt64 | DataType::Decimal128(..) => &[1700],
        DataType::Float32 => &[700],
        DataType::Float64 => &[701],
        // text, character, character varying
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => &[25, 1042, 1043],
        DataType::FixedSizeBinary(16) => &[2950],
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => &[17],
        DataType::Date32 => &[1082],
        DataType::Time32(_) | DataType::Time64(_) => &[1083],
        DataType::Timestamp(_, None) => &[1114],
        DataType::Timestamp(_, Some(_)) => &[1184],
        _ => return None,
    })
}

fn utf8(bytes: &[u8]) -> Result<&str, Box<BadValue>> {
    std::str::from_utf8(bytes).map_err(|_| {
        let mut bad = BadValue::not_utf8(bytes);
        bad.hint = Some("the binary format has text in UTF-8".to_owned());
        bad
    })
}

/// A value of a fixed length.
fn fixed<const N: usize>(bytes: &[u8], of: &str) -> Result<[u8; N], Box<BadValue>> {
    bytes.try_into().map_err(|_| wrong_length(bytes, N, of))
}

fn wrong_length(bytes: &[u8], expected: usize, of: &str) -> Box<BadValue> {
    BadValue::binary(of, &format!("{} bytes instead of {expected}", bytes.len()))
        .hint(CONVERTS_NOTHING)
}

fn narrow<T: Copy + Display, U: TryFrom<T>>(value: T, of: &str) -> Result<U, Box<BadValue>> {
    U::try_from(value).map_err(|_| outside(value, of))
}

fn outside(value: impl Display, of: &str) -> Box<BadValue> {
    BadValue::out_of_range(value.to_string().as_bytes(), of)
}

/// Days since 2000-01-01 as days since 1970-01-01, where the calendar has them.
fn date(days: i32, of: &str) -> Result<i32, Box<BadValue>> {
    let since_1970 = match days {
        i32::MAX => return Err(outside("infinity", of)),
        i32::MIN => return Err(outside("-infinity", of)),
        days => days.checked_add(EPOCH_DAYS),
    };
    let is_date = |days: &i32| {
        let days = days.checked_add(DAYS_BEFORE_1970);
        days.and_then(chrono::NaiveDate::from_num_days_from_ce_opt).is_some()
    };
    let outside = || outside(format_args!("{days} days after 2000-01-01"), of);
    since_1970.filter(is_date).ok_or_else(outside)
}

/// Microseconds since 2000-01-01 as units since 1970-01-01, where the calendar has them.
fn moment(micros: i64, units_per_second: i64, of: &str) -> Result<i64, Box<BadValue>> {
    let since_1970 = match micros {
        i64::MAX => return Err(outside("infinity", of)),
        i64::MIN => return Err(outside("-infinity", of)),
        micros => micros.checked_add(i64::from(EPOCH_DAYS) * DAY_US),
    };
    let is_moment = |micros: &i64| chrono::DateTime::from_timestamp_micros(*micros).is_some();
    let units = |micros: i64| match units_per_second {
        1_000_000_000 => micros.checked_mul(1000),
        units_per_second => Some(micros.div_euclid(1_000_000 / units_per_second)),
    };
    let outside = || outside(format_args!("{micros} microseconds after 2000-01-01"), of);
    since_1970.filter(is_moment).and_then(units).ok_or_else(outside)
}

/// A numeric as an integer of `scale` digits after the point, rounded as text is: number of digits, weight
/// of the first, sign, digits after the point to show, digits.
fn numeric(bytes: &[u8], precision: u8, scale: i8, of: &str) -> Result<i128, Box<BadValue>> {
    let damaged = |what: &str| BadValue::binary(of, what);
    let mut words = bytes.as_chunks::<2>().0.iter().map(|word| u16::from_be_bytes(*word));
    let (Some(count), Some(weight), Some(sign), Some(shown)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(damaged("a numeric without its 8 bytes of header"));
    };
    if bytes.len() != NUMERIC_HEADER_BYTES + 2 * usize::from(count) {
        return Err(damaged("a number of digits that are not there"));
    }
    match sign {
        0 | NEGATIVE => {}
        NAN => return Err(outside("NaN", of)),
        INFINITY => return Err(outside("Infinity", of)),
        MINUS_INFINITY => return Err(outside("-Infinity", of)),
        _ => return Err(damaged("no sign of a numeric")),
    }
    if shown >= NEGATIVE {
        return Err(damaged("a scale that is too large"));
    }
    let text = number_text(words, i32::from(weight as i16), sign == NEGATIVE, i32::from(shown));
    let text = text.map_err(|what| match what {
        NumberError::NotANumber => damaged("digits that are none, or more than its scale says"),
        NumberError::OutOfRange => outside("a number of more than 40 digits", of),
    })?;
    number::decimal(&text, precision, scale).map_err(|_| BadValue::out_of_range(&text, of))
}

/// The number's text, as far as its digits count for a column.
fn number_text(
    digits: impl Iterator<Item = u16>,
    weight: i32,
    is_negative: bool,
    shown: i32,
) -> Result<Vec<u8>, NumberError> {
    let mut text = Vec::with_capacity(64);
    if is_negative {
        text.push(b'-');
    }
    // What comes next, and whether a digit other than 0 came.
    let (mut next, mut has_begun) = (weight.clamp(0, WEIGHT_MAX), false);
    for (at, digit) in (0..).map(|index| weight - index).zip(digits) {
        if digit >= 10_000 || (digit != 0 && hides_digits(at, digit, shown)) {
            return Err(NumberError::NotANumber);
        }
        has_begun |= digit != 0;
        if at > WEIGHT_MAX && has_begun {
            return Err(NumberError::OutOfRange);
        }
        if !(WEIGHT_MIN..=WEIGHT_MAX).contains(&at) {
            continue;
        }
        while next > at {
            put(&mut text, next, 0);
            next -= 1;
        }
        put(&mut text, at, digit);
        next = at - 1;
    }
    while next >= 0 {
        put(&mut text, next, 0);
        next -= 1;
    }
    Ok(text)
}

/// Appends the digit of 10,000 at `at`, 0 being the place before the point.
fn put(text: &mut Vec<u8>, at: i32, digit: u16) {
    if at >= 0 && !text.last().is_some_and(u8::is_ascii_digit) {
        if at == 0 || digit != 0 {
            text.extend_from_slice(digit.to_string().as_bytes());
        }
        return;
    }
    if at == -1 {
        text.push(b'.');
    }
    let digits = [digit / 1000, digit / 100 % 10, digit / 10 % 10, digit % 10];
    text.extend(digits.map(|digit| b'0' + digit as u8));
}

/// Whether the digit at `at` has decimal digits other than 0 after the last one that is shown.
fn hides_digits(at: i32, digit: u16, shown: i32) -> bool {
    // Decimal digits after the point, of this one's last.
    let last = -4 * at;
    match last - shown {
        ..=0 => false,
        beyond @ 1..=3 => !digit.is_multiple_of(10_u16.pow(beyond.unsigned_abs())),
        _ => true,
    }
}
