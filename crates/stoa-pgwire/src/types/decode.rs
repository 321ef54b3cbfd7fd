//! Parameters a client sent, as values for the engine.
//!
//! In: bytes in text or binary form and the wire type. Out: a [`ScalarValue`].
//!
//! **Invariant:** whatever the bytes, the result is a value or an error with SQLSTATE 22P02 (text)
//! or 22P03 (binary).

use arrow_array::StringArray;
use arrow_array::types::IntervalMonthDayNano;
use arrow_schema::DataType;
use datafusion::arrow::datatypes::i256;
use datafusion::common::ScalarValue;
use stoa_error::{Error, Result};
use stoa_orc::{one_nan_32, one_nan_64};
use stoa_sql::dates::{self, ZoneText};

use super::calendar::{DAY_US, PG_EPOCH_DAYS};
use super::numeric::Decimal;
use super::zone::Zone;
use super::{PgType, to_arrow};
use crate::format::Format;

/// Reads a parameter; `None` bytes are NULL.
pub(crate) fn parameter(
    of: PgType,
    format: Format,
    bytes: Option<&[u8]>,
    zone: Zone,
) -> Result<ScalarValue> {
    let Some(bytes) = bytes else {
        return Ok(to_arrow(of)
            .and_then(|data_type| ScalarValue::try_from(&data_type).ok())
            .unwrap_or(ScalarValue::Null));
    };
    match format {
        Format::Text => {
            let text = std::str::from_utf8(bytes).map_err(|source| {
                Error::invalid("invalid byte sequence for encoding \"UTF8\"")
                    .with_sqlstate("22021")
                    .with_source(source)
            })?;
            from_text(of, text, zone).ok_or_else(|| text_error(of, text))
        }
        Format::Binary => from_binary(of, bytes).ok_or_else(|| binary_error(of, bytes)),
    }
}

fn text_error(of: PgType, text: &str) -> Error {
    let shown: String = text.chars().take(80).collect();
    let error = Error::invalid(format!("invalid input syntax for type {}: \"{shown}\"", of.name()));
    error.with_sqlstate("22P02")
}

fn binary_error(of: PgType, bytes: &[u8]) -> Error {
    Error::invalid(format!("incorrect binary data for type {}: {} bytes", of.name(), bytes.len()))
        .with_sqlstate("22P03")
}

fn from_text(of: PgType, text: &str, zone: Zone) -> Option<ScalarValue> {
    let number = text.trim();
    Some(match of {
        PgType::Bool => ScalarValue::Boolean(Some(parse_bool(number)?)),
        PgType::Int2 => ScalarValue::Int16(Some(number.parse().ok()?)),
        PgType::Int4 => ScalarValue::Int32(Some(number.parse().ok()?)),
        PgType::Oid
        | PgType::Regproc
        | PgType::Regclass
        | PgType::Regtype
        | PgType::Regnamespace
        | PgType::Regrole => {
            let oid: i64 = number.parse().ok()?;
            ScalarValue::Int32(Some(u32::try_from(oid).ok()? as i32))
        }
        PgType::Int8 => ScalarValue::Int64(Some(number.parse().ok()?)),
        PgType::Float4 => ScalarValue::Float32(Some(parse_float(number)? as f32)),
        PgType::Float8 => ScalarValue::Float64(Some(parse_float(number)?)),
        PgType::Numeric => numeric(&Decimal::parse(number)?)?,
        PgType::Date => ScalarValue::Date32(Some(date_of(text)?)),
        PgType::Time | PgType::Timetz => {
            ScalarValue::Time64Microsecond(Some(dates::read_time(text).ok()?))
        }
        PgType::Timestamp => ScalarValue::TimestampMicrosecond(Some(moment_of(text)?.0), None),
        PgType::Timestamptz => {
            let (local, own) = moment_of(text)?;
            let offset = own.unwrap_or(zone).offset_at_local(local);
            let micros = local.checked_sub(i64::from(offset) * 1_000_000)?;
            ScalarValue::TimestampMicrosecond(Some(micros), Some("+00:00".into()))
        }
        PgType::Interval => {
            let of = DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano);
            let read = stoa_semantics::read_local(&StringArray::from(vec![text]), &of).ok()?;
            ScalarValue::try_from_array(&read, 0).ok()?
        }
        PgType::Bytea => ScalarValue::Binary(Some(parse_bytea(text)?)),
        PgType::Uuid => ScalarValue::FixedSizeBinary(16, Some(parse_uuid(number)?)),
        PgType::Text
        | PgType::Varchar
        | PgType::Bpchar
        | PgType::Name
        | PgType::Char
        | PgType::Unknown
        | PgType::Json
        | PgType::Jsonb => ScalarValue::Utf8(Some(text.to_owned())),
        PgType::Array(_) => array_from_text(of.element()?, text, zone)?,
        PgType::Int2vector | PgType::Oidvector | PgType::Record => return None,
    })
}

fn from_binary(of: PgType, bytes: &[u8]) -> Option<ScalarValue> {
    Some(match of {
        PgType::Bool => match bytes {
            [byte] => ScalarValue::Boolean(Some(*byte != 0)),
            _ => return None,
        },
        PgType::Int2 => ScalarValue::Int16(Some(i16::from_be_bytes(bytes.try_into().ok()?))),
        PgType::Int4
        | PgType::Oid
        | PgType::Regproc
        | PgType::Regclass
        | PgType::Regtype
        | PgType::Regnamespace
        | PgType::Regrole => ScalarValue::Int32(Some(i32::from_be_bytes(bytes.try_into().ok()?))),
        PgType::Int8 => ScalarValue::Int64(Some(i64::from_be_bytes(bytes.try_into().ok()?))),
        PgType::Float4 => {
            ScalarValue::Float32(Some(one_nan_32(f32::from_be_bytes(bytes.try_into().ok()?))))
        }
        PgType::Float8 => {
            ScalarValue::Float64(Some(one_nan_64(f64::from_be_bytes(bytes.try_into().ok()?))))
        }
        PgType::Numeric => numeric(&Decimal::parse_binary(bytes)?)?,
        PgType::Date => {
            let days = i64::from(i32::from_be_bytes(bytes.try_into().ok()?)) + PG_EPOCH_DAYS;
            ScalarValue::Date32(Some(days.try_into().ok()?))
        }
        PgType::Time => {
            let micros = i64::from_be_bytes(bytes.try_into().ok()?);
            (0..=DAY_US).contains(&micros).then_some(())?;
            ScalarValue::Time64Microsecond(Some(micros))
        }
        PgType::Timetz => {
            let micros = i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
            ScalarValue::Time64Microsecond(Some(micros))
        }
        PgType::Timestamp => ScalarValue::TimestampMicrosecond(Some(pg_micros(bytes)?), None),
        PgType::Timestamptz => {
            ScalarValue::TimestampMicrosecond(Some(pg_micros(bytes)?), Some("+00:00".into()))
        }
        PgType::Interval => {
            let bytes: [u8; 16] = bytes.try_into().ok()?;
            let (micros, rest) = bytes.split_first_chunk::<8>()?;
            let (days, months) = rest.split_first_chunk::<4>()?;
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(
                i32::from_be_bytes(months.try_into().ok()?),
                i32::from_be_bytes(*days),
                i64::from_be_bytes(*micros).checked_mul(1000)?,
            )))
        }
        PgType::Bytea => ScalarValue::Binary(Some(bytes.to_vec())),
        PgType::Uuid => {
            (bytes.len() == 16).then_some(())?;
            ScalarValue::FixedSizeBinary(16, Some(bytes.to_vec()))
        }
        PgType::Jsonb => {
            let (version, text) = bytes.split_first()?;
            (*version == 1).then_some(())?;
            ScalarValue::Utf8(Some(String::from_utf8(text.to_vec()).ok()?))
        }
        PgType::Text
        | PgType::Varchar
        | PgType::Bpchar
        | PgType::Name
        | PgType::Char
        | PgType::Unknown
        | PgType::Json => ScalarValue::Utf8(Some(String::from_utf8(bytes.to_vec()).ok()?)),
        PgType::Array(_) => array_from_binary(of.element()?, bytes)?,
        PgType::Int2vector | PgType::Oidvector | PgType::Record => return None,
    })
}

fn pg_micros(bytes: &[u8]) -> Option<i64> {
    i64::from_be_bytes(bytes.try_into().ok()?).checked_add(PG_EPOCH_DAYS * DAY_US)
}

fn parse_bool(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn parse_float(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "nan" => Some(f64::NAN),
        "infinity" | "inf" | "+infinity" => Some(f64::INFINITY),
        "-infinity" | "-inf" => Some(f64::NEG_INFINITY),
        number => number.parse().ok().map(one_nan_64),
    }
}

/// Decimal with the number's own precision and scale.
fn numeric(decimal: &Decimal) -> Option<ScalarValue> {
    let scale = i8::try_from(decimal.scale()).ok()?;
    let precision = u8::try_from(decimal.precision()).ok()?;
    let text = decimal.integer_text();
    if precision <= 38 {
        return Some(ScalarValue::Decimal128(Some(text.parse().ok()?), precision, scale));
    }
    Some(ScalarValue::Decimal256(Some(i256::from_string(&text)?), precision, scale))
}

/// `\x…` in hexadecimal, or PostgreSQL's older escape form.
fn parse_bytea(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return parse_hex(digits.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        match after {
            [b'\\', ..] => {
                bytes.push(b'\\');
                rest = &after[1..];
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = &after[3..];
            }
            _ => return None,
        }
    }
    Some(bytes)
}

fn parse_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let nibble = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
            _ => None,
        })
        .collect()
}

fn parse_uuid(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'-' | b'{' | b'}')).collect();
    parse_hex(&digits).filter(|bytes| bytes.len() == 16)
}

/// A date as text; its zone, too, must be one.
fn date_of(text: &str) -> Option<i32> {
    zone_of(dates::read(text).ok()?.zone)?;
    dates::read_date(text).ok()
}

/// Local microseconds since 1970-01-01, and the zone that the text names.
fn moment_of(text: &str) -> Option<(i64, Option<Zone>)> {
    let (local, zone) = dates::read_timestamp(text).ok()?;
    Some((local, zone_of(zone)?))
}

/// The zone of a text, if it names one; `None` where there is no such zone.
fn zone_of(text: Option<ZoneText>) -> Option<Option<Zone>> {
    Some(Some(match text {
        None => return Some(None),
        Some(ZoneText::Offset(east)) => Zone::Fixed(east),
        Some(ZoneText::Named(name)) => match dates::abbreviation(&name) {
            Some(east) => Zone::Fixed(east),
            None => Zone::parse(&name)?,
        },
    }))
}

fn list(element: PgType, values: Vec<ScalarValue>) -> Option<ScalarValue> {
    let item = match values.iter().find(|value| !value.is_null()) {
        Some(value) => value.data_type(),
        None => to_arrow(element).unwrap_or(DataType::Utf8),
    };
    let values: Vec<_> =
        values.into_iter().map(|value| value.cast_to(&item).ok()).collect::<Option<_>>()?;
    Some(ScalarValue::List(ScalarValue::new_list_nullable(&values, &item)))
}

/// Elements an array parameter may have at most.
const ELEMENTS_MAX: usize = 1 << 24;

fn array_from_binary(element: PgType, bytes: &[u8]) -> Option<ScalarValue> {
    let word = |at: usize| -> Option<i32> {
        Some(i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let (dimensions, oid) = (word(0)?, word(8)? as u32);
    let element = PgType::from_oid(oid).unwrap_or(element);
    if dimensions == 0 {
        return list(element, Vec::new());
    }
    let count = usize::try_from(word(12)?).ok().filter(|count| *count <= ELEMENTS_MAX)?;
    if dimensions != 1 {
        return None;
    }
    let mut at = 20;
    let mut values = Vec::new();
    for _ in 0..count {
        let length = word(at)?;
        at += 4;
        let field = match usize::try_from(length) {
            Ok(length) => {
                let field = bytes.get(at..at.checked_add(length)?)?;
                at += length;
                Some(field)
            }
            Err(_) => None,
        };
        values.push(match field {
            Some(field) => from_binary(element, field)?,
            None => parameter(element, Format::Binary, None, Zone::default()).ok()?,
        });
    }
    list(element, values)
}

/// Reads `{a,"b c",NULL}`, of one dimension.
fn array_from_text(element: PgType, text: &str, zone: Zone) -> Option<ScalarValue> {
    let body = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut values = Vec::new();
    let mut chars = body.chars().peekable();
    while chars.peek().is_some() {
        let mut word = String::new();
        let mut quoted = false;
        while let Some(next) = chars.peek().copied() {
            match next {
                ',' => break,
                '{' | '}' => return None,
                '"' => {
                    quoted = true;
                    chars.next();
                    loop {
                        match chars.next()? {
                            '"' => break,
                            '\\' => word.push(chars.next()?),
                            other => word.push(other),
                        }
                    }
                }
                '\\' => {
                    chars.next();
                    word.push(chars.next()?);
                }
                other => {
                    chars.next();
                    word.push(other);
                }
            }
        }
        values.push(if !quoted && word.trim().eq_ignore_ascii_case("null") {
            parameter(element, Format::Text, None, zone).ok()?
        } else {
            let word = if quoted { word.as_str() } else { word.trim() };
            from_text(element, word, zone)?
        });
        if chars.next().is_some() && chars.peek().is_none() {
            return None; // ends with a comma
        }
    }
    list(element, values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(of: PgType, text: &str) -> Option<ScalarValue> {
        parameter(of, Format::Text, Some(text.as_bytes()), Zone::default()).ok()
    }

    #[test]
    fn text_parameters_are_read() {
        assert_eq!(read(PgType::Bool, "on"), Some(ScalarValue::Boolean(Some(true))));
        assert_eq!(read(PgType::Int4, " 7 "), Some(ScalarValue::Int32(Some(7))));
        assert_eq!(read(PgType::Int4, "7.5"), None);
        assert_eq!(
            read(PgType::Numeric, "-12.50"),
            Some(ScalarValue::Decimal128(Some(-1250), 4, 2))
        );
        assert_eq!(read(PgType::Date, "2024-02-29"), Some(ScalarValue::Date32(Some(19_782))));
        assert_eq!(read(PgType::Date, "2023-02-29"), None);
        assert_eq!(
            read(PgType::Timestamp, "1970-01-01 00:00:01+09"),
            Some(ScalarValue::TimestampMicrosecond(Some(1_000_000), None))
        );
        assert_eq!(
            read(PgType::Timestamptz, "1970-01-01 09:00:01+09"),
            Some(ScalarValue::TimestampMicrosecond(Some(1_000_000), Some("+00:00".into())))
        );
        assert_eq!(read(PgType::Bytea, "\\x00ff"), Some(ScalarValue::Binary(Some(vec![0, 255]))));
        assert_eq!(
            read(PgType::Bytea, "a\\\\\\001"),
            Some(ScalarValue::Binary(Some(b"a\\\x01".to_vec())))
        );
        assert_eq!(
            read(PgType::Interval, "1 mon 2 days 00:00:01.5"),
            Some(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(
                1,
                2,
                1_500_000_000
            ))))
        );
    }

    #[test]
    fn arrays_are_read() {
        let ints = PgType::Int4.array().unwrap();
        let expected = ScalarValue::List(ScalarValue::new_list_nullable(
            &[ScalarValue::Int32(Some(1)), ScalarValue::Int32(None)],
            &DataType::Int32,
        ));
        assert_eq!(read(ints, "{1,NULL}"), Some(expected.clone()));
        let words = [1, 1, 23, 2, 1, 4, 1, -1_i32];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let value = parameter(ints, Format::Binary, Some(&bytes), Zone::default()).unwrap();
        assert_eq!(value, expected);
        assert_eq!(read(ints, "{1,}"), None);
        let texts = PgType::Text.array().unwrap();
        assert!(read(texts, "{\"a,b\",\"null\"}").is_some());
        assert!(read(texts, "{}").is_some());
    }

    #[test]
    fn nulls_have_their_type() {
        let value = parameter(PgType::Int8, Format::Binary, None, Zone::default()).unwrap();
        assert_eq!(value, ScalarValue::Int64(None));
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(
            bytes: Vec<u8>, text: String, oid in prop::sample::select(vec![
                16_u32, 17, 18, 20, 21, 23, 25, 26, 700, 701, 1082, 1083, 1114, 1184, 1186, 1266,
                1700, 2950, 3802, 1007, 1009, 1231, 1115,
            ])
        ) {
            let of = PgType::from_oid(oid).unwrap();
            let _ = parameter(of, Format::Binary, Some(&bytes), Zone::default());
            let _ = parameter(of, Format::Text, Some(text.as_bytes()), Zone::default());
        }
    }
}
