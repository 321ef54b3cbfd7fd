//! Partition values as the text of paths and of reports.

use std::fmt::Write;

use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta};
use stoa_orc::Literal;

use crate::Transform;

/// `name=value/name=value` as Iceberg's Java writes it, escaped for use as a path. Values are texts
/// of [`value_text`], `None` for NULL.
pub(crate) fn partition_path<'a>(
    fields: impl Iterator<Item = (&'a str, Option<String>)>,
) -> String {
    let mut path = String::new();
    for (name, value) in fields {
        if !path.is_empty() {
            path.push('/');
        }
        escape_into(&mut path, name);
        path.push('=');
        match value {
            Some(value) => escape_into(&mut path, &value),
            None => path.push_str("null"),
        }
    }
    path
}

/// The text of one partition value: dates and times spelled out.
pub(crate) fn value_text(transform: Transform, value: &Literal) -> String {
    match (transform, value) {
        (Transform::Year, Literal::Int(years)) => format!("{:04}", 1970 + years),
        (Transform::Month, Literal::Int(months)) => {
            let months = 1970 * 12 + months;
            format!("{:04}-{:02}", months.div_euclid(12), months.rem_euclid(12) + 1)
        }
        (Transform::Hour, Literal::Int(hours)) => {
            let day = hours.div_euclid(24);
            format!("{}-{:02}", date(day), hours.rem_euclid(24))
        }
        (_, Literal::Date(days)) => date(i64::from(*days)),
        (_, Literal::Boolean(value)) => value.to_string(),
        (_, Literal::Int(value)) => value.to_string(),
        (_, Literal::Float(value)) => value.to_string(),
        (_, Literal::Decimal(value, scale)) => decimal(*value, *scale),
        (_, Literal::String(value)) => value.clone(),
        (_, Literal::Binary(value)) => hex(value),
        (_, Literal::TimestampMicros(micros)) => timestamp(*micros),
    }
}

fn date(days: i64) -> String {
    let date =
        TimeDelta::try_days(days).and_then(|delta| NaiveDate::default().checked_add_signed(delta));
    date.map_or_else(|| days.to_string(), |date| date.format("%Y-%m-%d").to_string())
}

fn timestamp(micros: i64) -> String {
    let time: Option<NaiveDateTime> =
        DateTime::from_timestamp_micros(micros).map(|t| t.naive_utc());
    time.map_or_else(|| micros.to_string(), |time| time.format("%Y-%m-%dT%H:%M:%S%.f").to_string())
}

fn decimal(value: i128, scale: i8) -> String {
    let Ok(scale @ 1..) = usize::try_from(scale) else { return value.to_string() };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{whole}.{fraction}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Escapes as Java's `URLEncoder` does, which Iceberg uses; bounded, because a file name is.
fn escape_into(path: &mut String, text: &str) {
    const BYTES_MAX: usize = 120;
    let start = path.len();
    for character in text.chars() {
        if path.len() - start > BYTES_MAX {
            // The partition value itself is in the manifest; the path only has to be a path.
            return;
        }
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '*' | '_' => path.push(character),
            ' ' => path.push('+'),
            other => {
                for byte in other.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(path, "%{byte:02X}");
                }
            }
        }
    }
}
