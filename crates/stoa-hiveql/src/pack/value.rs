//! Values of Hive's types, and how one type becomes another.
//!
//! **Invariant:** what Hive makes NULL of is [`Value::Null`] here; what depends on Hive's version is an error.

use std::fmt::Write;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Timelike};
use stoa_error::{Error, Result};

/// A value. Equal ones are those that Hive groups together.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL
    Null,
    /// BOOLEAN
    Boolean(bool),
    /// TINYINT, SMALLINT, INT
    Int(i32),
    /// BIGINT
    Bigint(i64),
    /// FLOAT, DOUBLE
    Double(f64),
    /// DECIMAL: unscaled value and digits behind the point.
    Decimal(i128, i8),
    /// STRING, VARCHAR, CHAR
    Text(String),
    /// BINARY
    Binary(Vec<u8>),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// TIMESTAMP: microseconds since 1970-01-01, without a zone.
    Timestamp(i64),
    /// ARRAY
    List(Vec<Value>),
    /// MAP: pairs in the order of their keys' first appearance.
    Map(Vec<(Value, Value)>),
}

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as the values of the same names")]
pub enum Type {
    Null,
    Boolean,
    Int,
    Bigint,
    Double,
    /// Digits altogether, and behind the point.
    Decimal(u8, i8),
    Text,
    Binary,
    Date,
    Timestamp,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
}

impl Type {
    /// Hive's name of it.
    pub fn name(&self) -> String {
        match self {
            Self::Null => "void".into(),
            Self::Boolean => "boolean".into(),
            Self::Int => "int".into(),
            Self::Bigint => "bigint".into(),
            Self::Double => "double".into(),
            Self::Decimal(precision, scale) => format!("decimal({precision},{scale})"),
            Self::Text => "string".into(),
            Self::Binary => "binary".into(),
            Self::Date => "date".into(),
            Self::Timestamp => "timestamp".into(),
            Self::List(of) => format!("array<{}>", of.name()),
            Self::Map(key, value) => format!("map<{},{}>", key.name(), value.name()),
        }
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Bigint | Self::Double | Self::Decimal(..))
    }
}

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;

/// The date of days since 1970-01-01.
pub fn date_of(days: i32) -> Result<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(days.saturating_add(719_163)).ok_or_else(|| out("date"))
}

/// Days since 1970-01-01.
pub fn days_of(date: NaiveDate) -> i32 {
    date.num_days_from_ce() - 719_163
}

/// The time of microseconds since 1970-01-01.
pub fn time_of(micros: i64) -> Result<NaiveDateTime> {
    let time = DateTime::from_timestamp_micros(micros).ok_or_else(|| out("timestamp"))?;
    Ok(time.naive_utc())
}

/// Microseconds since 1970-01-01.
pub fn micros_of(time: NaiveDateTime) -> i64 {
    time.and_utc().timestamp_micros()
}

fn out(what: &str) -> Error {
    Error::invalid(format!("{what} out of range")).with_sqlstate("22008")
}

/// A number that a type cannot hold: Hive wraps, cuts or makes NULL of it, depending on its version.
pub fn out_of_range(what: &str, of: &str) -> Error {
    Error::invalid(format!("{what} is out of range for {of}"))
        .with_sqlstate("22003")
        .with_hint("cast to BIGINT, DOUBLE or DECIMAL")
}

/// As `Double.toString` of Java: `1.0`, `1.0E10`, `1.5E-5`.
pub fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        let text = format!("{value}");
        return if text.contains('.') { text } else { format!("{text}.0") };
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

/// A decimal with all its digits.
pub fn decimal_text(value: i128, scale: i8) -> String {
    let places = usize::try_from(scale).unwrap_or_default();
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let sign = if value < 0 { "-" } else { "" };
    if places == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// `2020-01-02 03:04:05.6`, as Hive writes timestamps: no zeros at the end of the fraction.
pub fn timestamp_text(micros: i64) -> Result<String> {
    let time = time_of(micros)?;
    let mut text = time.format("%Y-%m-%d %H:%M:%S").to_string();
    let fraction = time.nanosecond() % 1_000_000_000 / 1000;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        let _ = write!(text, ".{}", digits.trim_end_matches('0'));
    }
    Ok(text)
}

impl Value {
    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// As a text, as Hive casts to STRING; `None` of NULL.
    ///
    /// # Errors
    /// Dates out of range (22008); arrays and maps (42846), which Hive does not cast either.
    pub fn text(&self) -> Result<Option<String>> {
        Ok(Some(match self {
            Self::Null => return Ok(None),
            Self::Boolean(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Bigint(value) => value.to_string(),
            Self::Double(value) => double_text(*value),
            Self::Decimal(value, scale) => decimal_text(*value, *scale),
            Self::Text(text) => text.clone(),
            Self::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Date(days) => date_of(*days)?.format("%Y-%m-%d").to_string(),
            Self::Timestamp(micros) => timestamp_text(*micros)?,
            Self::List(_) | Self::Map(_) => {
                return Err(Error::invalid("an array or a map cannot be cast to a string")
                    .with_sqlstate("42846")
                    .with_hint("concat_ws(',', array) joins an array of strings"));
            }
        }))
    }

    /// As a double; `None` of NULL and of what is no number.
    pub fn double(&self) -> Option<f64> {
        match self {
            Self::Boolean(value) => Some(f64::from(u8::from(*value))),
            Self::Int(value) => Some(f64::from(*value)),
            Self::Bigint(value) => Some(*value as f64),
            Self::Double(value) => Some(*value),
            Self::Decimal(value, scale) => decimal_text(*value, *scale).parse().ok(),
            Self::Text(text) => double_of(text),
            // Hive: seconds since 1970.
            Self::Timestamp(micros) => Some(*micros as f64 / 1e6),
            _ => None,
        }
    }

    /// As a whole number; `None` of NULL and of what is no number. Fractions are cut off.
    ///
    /// # Errors
    /// None now.
    pub fn bigint(&self) -> Result<Option<i64>> {
        Ok(match self {
            Self::Boolean(value) => Some(i64::from(*value)),
            Self::Int(value) => Some(i64::from(*value)),
            Self::Bigint(value) => Some(*value),
            // As Java: to the nearest there is; 0 of NaN.
            Self::Double(value) => Some(*value as i64),
            Self::Decimal(value, scale) => {
                let whole = value / 10_i128.pow(u32::try_from(*scale).unwrap_or_default());
                i64::try_from(whole).ok()
            }
            Self::Text(text) => whole_of(text),
            Self::Timestamp(micros) => Some(micros.div_euclid(1_000_000)),
            _ => None,
        })
    }

    /// As an `int`; see [`Value::bigint`]. As Java narrows: whole numbers wrap around, doubles become the nearest, texts
    /// and decimals that do not fit are NULL.
    ///
    /// # Errors
    /// None now.
    pub fn int(&self) -> Result<Option<i32>> {
        if let Self::Double(value) = self {
            return Ok(Some(*value as i32));
        }
        let Some(value) = self.bigint()? else { return Ok(None) };
        Ok(match (i32::try_from(value), self) {
            (Ok(value), _) => Some(value),
            (Err(_), Self::Text(_) | Self::Decimal(..)) => None,
            (Err(_), _) => Some(value as i32),
        })
    }

    /// As a date: the beginning of a text must be one; `None` of what is none.
    pub fn date(&self) -> Option<i32> {
        match self {
            Self::Date(days) => Some(*days),
            Self::Timestamp(micros) => i32::try_from(micros.div_euclid(DAY_US)).ok(),
            Self::Text(text) => date_in(text),
            _ => None,
        }
    }

    /// As a timestamp; `None` of what is none.
    pub fn timestamp(&self) -> Option<i64> {
        match self {
            Self::Timestamp(micros) => Some(*micros),
            Self::Date(days) => i64::from(*days).checked_mul(DAY_US),
            Self::Text(text) => timestamp_in(text),
            _ => None,
        }
    }

    /// As a boolean; `None` of NULL. Of a text, `''`, `false`, `no`, `off` and `0` are false.
    pub fn boolean(&self) -> Option<bool> {
        match self {
            Self::Null | Self::Date(_) | Self::Binary(_) | Self::List(_) | Self::Map(_) => None,
            Self::Boolean(value) => Some(*value),
            Self::Int(value) => Some(*value != 0),
            Self::Bigint(value) => Some(*value != 0),
            Self::Double(value) => Some(*value != 0.0),
            Self::Decimal(value, _) => Some(*value != 0),
            Self::Timestamp(micros) => Some(*micros != 0),
            Self::Text(text) => {
                let text = text.to_ascii_lowercase();
                Some(!matches!(text.as_str(), "" | "false" | "no" | "off" | "0"))
            }
        }
    }
}

/// A text as a double, as Java reads it; without names of infinities in other spellings.
pub fn double_of(text: &str) -> Option<f64> {
    let text = text.trim();
    match text {
        "NaN" => return Some(f64::NAN),
        "Infinity" | "+Infinity" => return Some(f64::INFINITY),
        "-Infinity" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let is_plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    (digits.chars().all(is_plain)).then(|| digits.parse().ok()).flatten()
}

/// A text as a whole number: digits, and perhaps a fraction, which is cut off.
fn whole_of(text: &str) -> Option<i64> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    match whole {
        "" | "-" | "+" => None,
        whole => whole.parse().ok(),
    }
}

fn date_in(text: &str) -> Option<i32> {
    let text = text.trim();
    let end = text.find([' ', 'T']).unwrap_or(text.len());
    let (date, rest) = text.split_at(end);
    if !rest.is_empty() && timestamp_in(text).is_none() {
        return None;
    }
    let mut parts = date.split('-');
    let year = parts.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let mut two = || parts.next().filter(|part| (1..=2).contains(&part.len()))?.parse().ok();
    let (month, day) = (two()?, two()?);
    if parts.next().is_some() {
        return None;
    }
    NaiveDate::from_ymd_opt(year, month, day).map(days_of)
}

/// `yyyy-MM-dd[ HH:mm[:ss[.f]]]`, with `T` in place of the blank.
fn timestamp_in(text: &str) -> Option<i64> {
    let text = text.trim();
    let Some(end) = text.find([' ', 'T']) else {
        return date_in(text).and_then(|days| i64::from(days).checked_mul(DAY_US));
    };
    let days = date_in(&text[..end])?;
    let time = text[end + 1..].trim_start();
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let is_fraction = fraction.len() <= 9 && fraction.chars().all(|c| c.is_ascii_digit());
    if !is_fraction {
        return None;
    }
    let mut parts = time.split(':');
    let mut next = |max: i64| -> Option<i64> {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()))?;
        part.parse().ok().filter(|value| (0..=max).contains(value))
    };
    let (hour, minute) = (next(23)?, next(59)?);
    let second = match time.matches(':').count() {
        1 => 0,
        2 => next(59)?,
        _ => return None,
    };
    let micros: i64 = format!("{fraction:0<6}")[..6].parse().ok()?;
    let seconds = i64::from(days) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1_000_000 + micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e7, "1.0E7"),
            (1.234e10, "1.234E10"),
            (0.001, "0.001"),
            (1e-4, "1.0E-4"),
            (0.0, "0.0"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (9_999_999.5, "9999999.5"),
        ] {
            assert_eq!(double_text(value), text);
        }
    }

    #[test]
    fn texts_become_numbers_or_null() {
        let int = |text: &str| Value::Text(text.into()).int().unwrap();
        assert_eq!(int("12"), Some(12));
        assert_eq!(int(" 12 "), Some(12));
        assert_eq!(int("12.7"), Some(12));
        assert_eq!(int("abc"), None);
        assert_eq!(int("1e3"), None);
        assert_eq!(int("3000000000"), None);
        assert_eq!(double_of("1e3"), Some(1000.0));
        assert_eq!(double_of("inf"), None);
        assert_eq!(Value::Bigint(3_000_000_000).int().unwrap(), Some(-1_294_967_296));
    }

    #[test]
    fn texts_become_dates_and_timestamps() {
        let date = |text: &str| Value::Text(text.into()).date();
        let time = |text: &str| Value::Text(text.into()).timestamp();
        assert_eq!(date("1970-01-02"), Some(1));
        assert_eq!(date("1970-1-2"), Some(1));
        assert_eq!(date("1970-01-02 10:00:00"), Some(1));
        assert_eq!(date("2020-02-30"), None);
        assert_eq!(date("hello"), None);
        assert_eq!(time("1970-01-01 00:00:01.5"), Some(1_500_000));
        assert_eq!(time("1970-01-01T00:01"), Some(60_000_000));
        assert_eq!(time("1970-01-02"), Some(DAY_US));
        assert_eq!(time("1970-01-01 25:00:00"), None);
        assert_eq!(timestamp_text(1_500_000).unwrap(), "1970-01-01 00:00:01.5");
    }
}
