//! Texts as values: what PostgreSQL's input functions take.
//!
//! Blanks around a value do not count. **Invariant:** a text that is not of the type is an error (22P02,
//! 22007), one that does not fit it, too (22003, 22008); never NULL, never another value.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    Decimal256Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array,
    IntervalMonthDayNanoArray, ListArray, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, IntervalUnit, TimeUnit, i256};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use stoa_error::{Error, Subject};
use stoa_orc::{one_nan_32, one_nan_64};
use stoa_sql::dates::{self, Wrong, ZoneText};

use super::call::{Operation, column, failure, unsupported};
use super::interval_text;
use super::numeric::{Decimal, out_of_range};
use super::operators::name;
use super::time_zone::Zone;
use super::uuids;
use crate::errors::to_datafusion;

/// A cast of a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FromText {
    to: DataType,
    /// The session's zone.
    zone: Arc<str>,
}

impl FromText {
    pub(super) fn new(to: &DataType, zone: &str) -> Self {
        Self { to: to.clone(), zone: zone.into() }
    }

    /// Whether texts are read as `to` here, and not by the engine.
    pub(super) fn reads(to: &DataType) -> bool {
        match to {
            DataType::List(item) => {
                matches!(item.data_type(), DataType::Utf8) || Self::reads(item.data_type())
            }
            DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Boolean
            | DataType::Date32
            | DataType::Float32
            | DataType::Float64
            | DataType::Binary
            | DataType::FixedSizeBinary(uuids::BYTES)
            | DataType::Interval(IntervalUnit::MonthDayNano) => true,
            DataType::Decimal128(..) | DataType::Decimal256(..) => true,
            of => of.is_signed_integer(),
        }
    }
}

impl Operation for FromText {
    fn name(&self) -> &str {
        "from_text"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("from_text({} AS {})", operands.join(","), self.to)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let texts = cast(column, &DataType::Utf8)?;
        read(texts.as_string::<i32>(), &self.to, &self.zone)
    }
}

fn each<T>(texts: &StringArray, read: impl Fn(&str) -> Result<T>) -> Result<Vec<Option<T>>> {
    texts.iter().map(|text| text.map(&read).transpose()).collect()
}

/// Texts as values of a type, in a session of some zone.
pub(super) fn read(texts: &StringArray, to: &DataType, zone: &str) -> Result<ArrayRef> {
    Ok(match to {
        DataType::Boolean => Arc::new(BooleanArray::from(each(texts, boolean)?)),
        DataType::Float64 => Arc::new(Float64Array::from(each(texts, |t| float(t, to))?)),
        DataType::Float32 => {
            let narrow = |text: &str| match float(text, to)? {
                wide if wide.is_finite() && !(wide as f32).is_finite() => Err(misfit(text, to)),
                wide if wide != 0.0 && wide as f32 == 0.0 => Err(misfit(text, to)),
                _ => f32::from_str(text.trim()).map(one_nan_32).map_err(|_| wrong(text, to)),
            };
            Arc::new(Float32Array::from(each(texts, narrow)?))
        }
        DataType::Decimal128(precision, scale) => {
            let digits = each(texts, |text| {
                decimal(text)?
                    .at_scale(i32::from(*scale))
                    .and_then(i256::to_i128)
                    .filter(|digits| fits(*digits, *precision))
                    .ok_or_else(|| overflow(*precision, *scale))
            })?;
            Arc::new(Decimal128Array::from(digits).with_data_type(to.clone()))
        }
        DataType::Decimal256(_, scale) => {
            let digits = each(texts, |text| {
                decimal(text)?.at_scale(i32::from(*scale)).ok_or_else(out_of_range)
            })?;
            Arc::new(Decimal256Array::from(digits).with_data_type(to.clone()))
        }
        DataType::Date32 => Arc::new(Date32Array::from(each(texts, date)?)),
        DataType::Time64(_) => {
            Arc::new(Time64MicrosecondArray::from(each(texts, |text| time(text, to))?))
        }
        DataType::Timestamp(_, of) => {
            let zone = of.as_ref().map(|_| Zone::named(zone)).transpose()?;
            let times = each(texts, |text| timestamp(text, zone.as_ref(), to))?;
            Arc::new(TimestampMicrosecondArray::from(times).with_data_type(to.clone()))
        }
        DataType::Binary => {
            let bytes = each(texts, bytes)?;
            Arc::new(BinaryArray::from_iter(bytes))
        }
        DataType::FixedSizeBinary(uuids::BYTES) => {
            let values = each(texts, |text| uuids::read(text).ok_or_else(|| wrong(text, to)))?;
            let values = values.into_iter();
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, uuids::BYTES)?)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Arc::new(IntervalMonthDayNanoArray::from(each(texts, interval_text::read)?))
        }
        DataType::List(item) => list(texts, item, zone)?,
        DataType::Utf8 => Arc::new(texts.clone()),
        of if of.is_signed_integer() => {
            let whole = Int64Array::from(each(texts, |text| integer(text, to))?);
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            match cast_with_options(&whole, to, &strict) {
                Ok(cast) => cast,
                Err(_) => return Err(first_misfit(texts, to)),
            }
        }
        other => return Err(failure("0A000", format!("no text is cast to {other}"))),
    })
}

fn wrong(text: &str, to: &DataType) -> DataFusionError {
    misread("22P02", text, format!("invalid input syntax for type {}: \"{text}\"", name(to)))
}

fn wrong_time(text: &str, to: &DataType) -> DataFusionError {
    const WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];
    let word = text.trim().trim_start_matches(['+', '-']);
    if word.eq_ignore_ascii_case("infinity") {
        return unsupported(
            format!("'{}' as {} is not supported", text.trim(), name(to)),
            "use a date that no row reaches, such as '9999-12-31', or NULL",
        );
    }
    if WORDS.iter().any(|word| text.trim().eq_ignore_ascii_case(word)) {
        return unsupported(
            format!("'{}' as {} is not supported", text.trim(), name(to)),
            "use now(), current_date, and what is added to them",
        );
    }
    misread("22007", text, format!("invalid input syntax for type {}: \"{text}\"", name(to)))
}

/// An error about a text, which may be a literal of the statement.
fn misread(sqlstate: &'static str, text: &str, said: String) -> DataFusionError {
    let error = Error::invalid(said).with_sqlstate(sqlstate);
    to_datafusion(error.about(Subject::Literal(text.to_owned())))
}

fn misfit(text: &str, to: &DataType) -> DataFusionError {
    failure("22003", format!("value \"{text}\" is out of range for type {}", name(to)))
}

fn overflow(precision: u8, scale: i8) -> DataFusionError {
    failure("22003", format!("numeric field overflow: it has precision {precision}, scale {scale}"))
}

fn fits(digits: i128, precision: u8) -> bool {
    10_i128.checked_pow(precision.into()).is_none_or(|end| digits.unsigned_abs() < end as u128)
}

fn integer(text: &str, to: &DataType) -> Result<i64> {
    let trimmed = text.trim();
    trimmed.parse().map_err(|_| {
        let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
        match !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => misfit(text, to),
            false => wrong(text, to),
        }
    })
}

fn first_misfit(texts: &StringArray, to: &DataType) -> DataFusionError {
    let bits = to.primitive_width().unwrap_or(8) * 8;
    let does_fit = |text: &&str| {
        let value: i64 = text.trim().parse().unwrap_or(0);
        bits >= 64 || (-(1_i64 << (bits - 1))..1_i64 << (bits - 1)).contains(&value)
    };
    let text = texts.iter().flatten().find(|text| !does_fit(text)).unwrap_or_default();
    misfit(text, to)
}

fn boolean(text: &str) -> Result<bool> {
    let lower = text.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    match lower.as_str() {
        "1" => Ok(true),
        "0" => Ok(false),
        _ if begins("true", 1) || begins("yes", 1) || lower == "on" => Ok(true),
        _ if begins("false", 1) || begins("no", 1) || begins("off", 2) => Ok(false),
        _ => Err(wrong(text, &DataType::Boolean)),
    }
}

fn float(text: &str, to: &DataType) -> Result<f64> {
    let trimmed = text.trim();
    let is_hex = trimmed.contains(['x', 'X', '_']);
    let value = trimmed.parse().ok().filter(|_| !is_hex).map(one_nan_64);
    let value = value.ok_or_else(|| wrong(text, to))?;
    let is_special = trimmed.contains(['i', 'I']);
    // What is no zero as it is written, and too small.
    let mantissa = trimmed.split(['e', 'E']).next().unwrap_or_default();
    let is_lost = value == 0.0 && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    match is_lost || value.is_infinite() && !is_special {
        true => {
            Err(failure("22003", format!("\"{trimmed}\" is out of range for type {}", name(to))))
        }
        false => Ok(value),
    }
}

/// A decimal with the digits that it is written with.
pub(super) fn decimal(text: &str) -> Result<Decimal> {
    parse_decimal(text).ok_or_else(|| match is_decimal(text) {
        true => out_of_range(),
        false => wrong(text, &DataType::Decimal128(38, 0)),
    })
}

fn is_decimal(text: &str) -> bool {
    let text = text.trim();
    text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
}

fn parse_decimal(text: &str) -> Option<Decimal> {
    let text = text.trim();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = all.trim_start_matches('0');
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    if significant.is_empty() {
        return Some(Decimal { digits: i256::ZERO, scale: scale.clamp(0, 38) });
    }
    if significant.len() > 76 || !(-76..=1000).contains(&scale) {
        return None;
    }
    let digits = i256::from_string(&format!("{sign}{significant}"))?;
    match scale {
        0.. => Some(Decimal { digits, scale }),
        _ => Some(Decimal { digits: Decimal { digits, scale }.at_scale(0)?, scale: 0 }),
    }
}

/// The decimal type with as many digits as a text has; `None` where 38 do not do.
pub(super) fn decimal_type(text: &str) -> Option<DataType> {
    let number = parse_decimal(text)?;
    let digits = number.digits.wrapping_abs().to_string().len() as i32;
    let (precision, scale) = (digits.max(number.scale).max(1), number.scale);
    (precision <= 38).then_some(DataType::Decimal128(precision as u8, scale as i8))
}

fn date(text: &str) -> Result<i32> {
    let to = &DataType::Date32;
    let days = match constant_time(text) {
        Some(_) => 0,
        None => dates::read_date(text).map_err(|why| wrong_moment(why, text, to))?,
    };
    zone_named(dates::read(text).ok().and_then(|moment| moment.zone), text, to)?;
    Ok(days)
}

/// Words for moments that are always the same, as microseconds since 1970-01-01.
fn constant_time(text: &str) -> Option<i64> {
    text.trim().eq_ignore_ascii_case("epoch").then_some(0)
}

fn time(text: &str, to: &DataType) -> Result<i64> {
    if text.trim().eq_ignore_ascii_case("allballs") {
        return Ok(0);
    }
    dates::read_time(text).map_err(|why| wrong_moment(why, text, to))
}

/// Why a text is no date or time, as an error.
fn wrong_moment(why: Wrong, text: &str, to: &DataType) -> DataFusionError {
    match why {
        Wrong::Form => wrong_time(text, to),
        Wrong::Range => {
            misread("22008", text, format!("date/time field value out of range: \"{text}\""))
        }
        Wrong::Offset => {
            misread("22009", text, format!("time zone displacement out of range: \"{text}\""))
        }
    }
}

/// The zone that a text names.
enum OwnZone {
    /// Seconds to the east of UTC.
    Offset(i32),
    Named(Zone),
}

fn zone_named(zone: Option<ZoneText>, text: &str, to: &DataType) -> Result<Option<OwnZone>> {
    let name = match zone {
        None => return Ok(None),
        Some(ZoneText::Offset(east)) => return Ok(Some(OwnZone::Offset(east))),
        Some(ZoneText::Named(name)) => name,
    };
    if let Some(east) = dates::abbreviation(&name) {
        return Ok(Some(OwnZone::Offset(east)));
    }
    match Zone::named(&name) {
        Ok(zone) => Ok(Some(OwnZone::Named(zone))),
        // `2026-01-01 Europe/Berlim`: PostgreSQL says which zone there is not.
        Err(error) if name.contains('/') => Err(error),
        Err(_) => Err(wrong_time(text, to)),
    }
}

/// Microseconds of a timestamp; an instant if `session`, the session's zone, is given.
fn timestamp(text: &str, session: Option<&Zone>, to: &DataType) -> Result<i64> {
    if let Some(micros) = constant_time(text) {
        return Ok(micros);
    }
    let (local, zone) = dates::read_timestamp(text).map_err(|why| wrong_moment(why, text, to))?;
    match (session, zone_named(zone, text, to)?) {
        // A timestamp without a zone has none, whatever is written.
        (None, _) => Ok(local),
        (Some(_), Some(OwnZone::Offset(east))) => Ok(local - i64::from(east) * 1_000_000),
        (Some(_), Some(OwnZone::Named(own))) => own.instant(local),
        (Some(session), None) => session.instant(local),
    }
}

/// `\x6869`, or text with `\\` and `\nnn`.
fn bytes(text: &str) -> Result<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let hex: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        if !hex.len().is_multiple_of(2) {
            return Err(failure("22023", "invalid hexadecimal data: odd number of digits"));
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        return hex
            .chunks(2)
            .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
            .collect::<Option<_>>()
            .ok_or_else(|| failure("22023", "invalid hexadecimal digit"));
    }
    escaped(text)
}

/// Text with `\\` and `\nnn`.
pub(super) fn escaped(text: &str) -> Result<Vec<u8>> {
    let syntax = || failure("22P02", "invalid input syntax for type bytea");
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = match (byte, after) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                after
            }
            (b'\\', _) => return Err(syntax()),
            (byte, after) => {
                out.push(*byte);
                after
            }
        };
    }
    Ok(out)
}

/// `{a,"b c",NULL}`.
fn list(texts: &StringArray, item: &FieldRef, zone: &str) -> Result<ArrayRef> {
    let is_nested = item.data_type().is_nested();
    let mut items: Vec<Option<String>> = Vec::new();
    let mut lengths = Vec::with_capacity(texts.len());
    for text in texts {
        let before = items.len();
        if let Some(text) = text {
            items_of(text, is_nested, &mut items)?;
        }
        lengths.push(items.len() - before);
    }
    let items = StringArray::from(items);
    let items = read(&items, item.data_type(), zone)?;
    let nulls: Option<NullBuffer> = texts.nulls().cloned();
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    if let Some(inner) = items.as_list_opt::<i32>() {
        let is_even = |ends: &[i32]| {
            let mut lengths = (ends[0]..ends[1]).map(|at| inner.value_length(at as usize));
            let first = lengths.next();
            lengths.all(|length| Some(length) == first)
        };
        if !offsets.windows(2).all(is_even) {
            let why = "multidimensional arrays must have sub-arrays with matching dimensions";
            return Err(failure("22P02", format!("malformed array literal: {why}")));
        }
    }
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, nulls)?))
}

/// The text of an array within another, which begins at its brace.
fn inner_array(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let (mut text, mut depth, mut is_quoted, mut is_escaped) =
        (String::new(), 0_usize, false, false);
    for letter in chars.by_ref() {
        text.push(letter);
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '{' if !is_quoted => depth += 1,
            '}' if !is_quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(text);
                }
            }
            _ => {}
        }
    }
    None
}

fn items_of(text: &str, is_nested: bool, items: &mut Vec<Option<String>>) -> Result<()> {
    let malformed =
        |why: &str| failure("22P02", format!("malformed array literal: \"{text}\": {why}"));
    let inner = text.trim();
    let inner = inner
        .strip_prefix('{')
        .and_then(|inner| inner.strip_suffix('}'))
        .ok_or_else(|| malformed("it is not within braces"))?;
    if inner.trim().is_empty() {
        return Ok(());
    }
    let mut chars = inner.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut item = String::new();
        if is_nested {
            if chars.peek() != Some(&'{') {
                return Err(malformed("dimensions do not match"));
            }
            let Some(inner) = inner_array(&mut chars) else {
                return Err(malformed("a brace is not closed"));
            };
            items.push(Some(inner));
            while chars.next_if(|c| c.is_whitespace()).is_some() {}
            match chars.next() {
                Some(',') => continue,
                None => return Ok(()),
                Some(_) => return Err(malformed("something follows an array")),
            }
        }
        let is_quoted = chars.next_if_eq(&'"').is_some();
        if is_quoted {
            loop {
                match chars.next() {
                    Some('"') => break,
                    Some('\\') => item.extend(chars.next()),
                    Some(c) => item.push(c),
                    None => return Err(malformed("a quote is not closed")),
                }
            }
            while chars.next_if(|c| c.is_whitespace()).is_some() {}
        } else {
            while let Some(c) = chars.next_if(|c| *c != ',') {
                match c {
                    '{' | '}' | '"' => {
                        return Err(unsupported(
                            "arrays of arrays cannot be read from texts",
                            "write ARRAY[[1, 2], [3, 4]]",
                        ));
                    }
                    '\\' => item.extend(chars.next()),
                    c => item.push(c),
                }
            }
            item.truncate(item.trim_end().len());
            if item.is_empty() {
                return Err(malformed("an element is missing"));
            }
        }
        let is_null = !is_quoted && item.eq_ignore_ascii_case("null");
        items.push((!is_null).then_some(item));
        match chars.next() {
            Some(',') => {}
            None => return Ok(()),
            Some(_) => return Err(malformed("something follows an element")),
        }
    }
}
