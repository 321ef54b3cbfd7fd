//! Values as PostgreSQL writes them.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal256Type, Float32Type, Float64Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use stoa_sql::dates::DAY_US;
use stoa_sql::dates::civil::civil_from_days;
use stoa_sql::intervals::IntervalStyle;

use super::call::{Operation, column};
use super::numeric::NUMERIC;
use super::span;
use super::uuids;

/// A cast to text, with intervals in a style.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TextOf(pub(super) IntervalStyle);

impl Operation for TextOf {
    fn name(&self) -> &str {
        "text_of"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let mut texts = StringBuilder::with_capacity(rows, rows * 16);
        let writer = Writer::of(column, self.0)?;
        let mut text = String::new();
        for row in 0..column.len() {
            if column.is_null(row) {
                texts.append_null();
                continue;
            }
            text.clear();
            writer.write(row, &mut text)?;
            texts.append_value(&text);
        }
        Ok(Arc::new(texts.finish()))
    }
}

/// Whether the engine writes a type otherwise than PostgreSQL.
pub(super) fn is_ours(of: &DataType) -> bool {
    *of == NUMERIC
        || matches!(
            of,
            DataType::Float16
                | DataType::Float32
                | DataType::Float64
                | DataType::Date32
                | DataType::Timestamp(..)
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Interval(_)
                | DataType::Duration(_)
                | DataType::Binary
                | DataType::FixedSizeBinary(uuids::BYTES)
                | DataType::List(_)
                | DataType::LargeList(_)
        )
}

/// A column whose values are written.
enum Writer {
    Float(ArrayRef),
    Real(ArrayRef),
    Numeric(ArrayRef),
    Timestamp(ArrayRef, Option<super::time_zone::Zone>),
    Date(ArrayRef),
    Time(ArrayRef),
    Interval(ArrayRef, IntervalStyle),
    Bytes(ArrayRef),
    Uuid(ArrayRef),
    List(ArrayRef, Box<Writer>),
    /// Booleans in a list: one letter each.
    Flag(ArrayRef),
    Other(ArrayRef),
}

impl Writer {
    fn of(array: &ArrayRef, intervals: IntervalStyle) -> Result<Self> {
        let array = Arc::clone(array);
        Ok(match array.data_type() {
            DataType::Float16 | DataType::Float64 => Self::Float(cast(&array, &DataType::Float64)?),
            DataType::Float32 => Self::Real(array),
            of if *of == NUMERIC => Self::Numeric(array),
            DataType::Timestamp(_, zone) => {
                let shown = zone.as_ref().map(|zone| super::time_zone::Zone::named(zone));
                let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
                Self::Timestamp(cast(&array, &micros)?, shown.transpose()?)
            }
            DataType::Date32 => Self::Date(array),
            DataType::Time32(_) | DataType::Time64(_) => {
                let micros = cast(&array, &DataType::Time64(TimeUnit::Microsecond))?;
                Self::Time(cast(&micros, &DataType::Int64)?)
            }
            DataType::Duration(_) => Self::Interval(span::days_and_time(&array)?, intervals),
            DataType::Interval(_) => {
                let wide = cast(&array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
                Self::Interval(wide, intervals)
            }
            DataType::Binary => Self::Bytes(array),
            DataType::FixedSizeBinary(uuids::BYTES) => Self::Uuid(array),
            DataType::List(_) => {
                let items = Arc::clone(array.as_list::<i32>().values());
                let items = match items.data_type() {
                    DataType::Boolean => Self::Flag(items),
                    _ => Self::of(&items, intervals)?,
                };
                Self::List(array, Box::new(items))
            }
            DataType::Boolean => Self::Other(cast(&array, &DataType::Utf8)?),
            _ => Self::Other(cast(&array, &DataType::Utf8)?),
        })
    }

    fn write(&self, row: usize, out: &mut String) -> Result<()> {
        match self {
            Self::Float(array) => float(array.as_primitive::<Float64Type>().value(row), out),
            Self::Real(array) => real(array.as_primitive::<Float32Type>().value(row), out),
            Self::Numeric(array) => {
                let digits = array.as_primitive::<Decimal256Type>().value(row).to_string();
                numeric(&digits, 38, out);
            }
            Self::Timestamp(array, zone) => {
                let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
                let local = match zone {
                    None => micros,
                    Some(zone) => zone.local(micros)?,
                };
                let is_bc = date(local.div_euclid(DAY_US), out);
                out.push(' ');
                time(local.rem_euclid(DAY_US), out);
                if let Some(zone) = zone {
                    offset(zone.offset_seconds(micros)?, out);
                }
                era(is_bc, out);
            }
            Self::Date(array) => {
                let is_bc = date(array.as_primitive::<Date32Type>().value(row).into(), out);
                era(is_bc, out);
            }
            Self::Time(array) => time(array.as_primitive::<Int64Type>().value(row), out),
            Self::Interval(array, style) => {
                let of = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
                style.write((of.months, of.days, of.nanoseconds / 1000), out);
            }
            Self::Bytes(array) => {
                out.push_str("\\x");
                for byte in array.as_binary::<i32>().value(row) {
                    let _ = write!(out, "{byte:02x}");
                }
            }
            Self::Uuid(array) => {
                out.push_str(&uuids::shown(array.as_fixed_size_binary().value(row)));
            }
            Self::List(array, items) => self.write_list(array, items, row, out)?,
            Self::Flag(array) => out.push(if array.as_boolean().value(row) { 't' } else { 'f' }),
            Self::Other(array) => out.push_str(array.as_string::<i32>().value(row)),
        }
        Ok(())
    }

    fn write_list(
        &self,
        array: &ArrayRef,
        items: &Self,
        row: usize,
        out: &mut String,
    ) -> Result<()> {
        let offsets = array.as_list::<i32>().value_offsets();
        let values = array.as_list::<i32>().values();
        out.push('{');
        let mut item = String::new();
        for at in offsets[row]..offsets[row + 1] {
            if at > offsets[row] {
                out.push(',');
            }
            let at = at as usize;
            if values.is_null(at) {
                out.push_str("NULL");
                continue;
            }
            item.clear();
            items.write(at, &mut item)?;
            match (items, needs_quotes(&item)) {
                (Self::List(..), _) | (_, false) => out.push_str(&item),
                (_, true) => {
                    out.push('"');
                    for c in item.chars() {
                        if matches!(c, '"' | '\\') {
                            out.push('\\');
                        }
                        out.push(c);
                    }
                    out.push('"');
                }
            }
        }
        out.push('}');
        Ok(())
    }
}

fn needs_quotes(item: &str) -> bool {
    item.is_empty()
        || item.eq_ignore_ascii_case("null")
        || item.contains(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | ',' | '"' | '\\'))
}

/// A day since 1970-01-01 without its era, which comes last. Returns whether it is before Christ.
fn date(days: i64, out: &mut String) -> bool {
    let (year, month, day) = civil_from_days(days);
    let shown = if year <= 0 { 1 - year } else { year };
    let _ = write!(out, "{shown:04}-{month:02}-{day:02}");
    year <= 0
}

fn era(is_bc: bool, out: &mut String) {
    if is_bc {
        out.push_str(" BC");
    }
}

fn time(micros: i64, out: &mut String) {
    let seconds = micros / 1_000_000;
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    fraction(micros % 1_000_000, out);
}

fn fraction(micros: i64, out: &mut String) {
    if micros != 0 {
        let digits = format!("{micros:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// `+02`, `-03:30`.
fn offset(seconds: i32, out: &mut String) {
    let (sign, seconds) = if seconds < 0 { ('-', -seconds) } else { ('+', seconds) };
    let _ = write!(out, "{sign}{:02}", seconds / 3600);
    if seconds % 3600 != 0 {
        let _ = write!(out, ":{:02}", seconds / 60 % 60);
    }
    if seconds % 60 != 0 {
        let _ = write!(out, ":{:02}", seconds % 60);
    }
}

/// A decimal without zeros at its end.
fn numeric(digits: &str, scale: usize, out: &mut String) {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let fraction = fraction.trim_end_matches('0');
    out.push_str(sign);
    out.push_str(whole);
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
}

fn float(of: f64, out: &mut String) {
    match special(of) {
        Some(name) => out.push_str(name),
        None => shortest(&format!("{of:e}"), 15, out),
    }
}

fn real(of: f32, out: &mut String) {
    match special(f64::from(of)) {
        Some(name) => out.push_str(name),
        None => shortest(&format!("{of:e}"), 6, out),
    }
}

fn special(of: f64) -> Option<&'static str> {
    match of {
        of if of.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// The shortest digits in the notation that PostgreSQL chooses.
fn shortest(text: &str, plain_max: i32, out: &mut String) {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    out.push_str(sign);
    if !(-4..plain_max).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if exponent < 0 {
        let zeros = exponent.unsigned_abs() as usize - 1;
        let _ = write!(out, "0.{:0>width$}", digits, width = zeros + digits.len());
        return;
    }
    let whole = exponent as usize + 1;
    match digits.len() > whole {
        true => {
            let (whole, fraction) = digits.split_at(whole);
            let _ = write!(out, "{whole}.{fraction}");
        }
        false => {
            let _ = write!(out, "{digits:0<whole$}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_postgres_writes_them() {
        let text = |of: f64| {
            let mut out = String::new();
            float(of, &mut out);
            out
        };
        assert_eq!(text(0.1), "0.1");
        assert_eq!(text(-1.0), "-1");
        assert_eq!(text(1e15), "1e+15");
        assert_eq!(text(123_456_789_012_345.0), "123456789012345");
        assert_eq!(text(0.0001), "0.0001");
        assert_eq!(text(0.00001), "1e-05");
        assert_eq!(text(1500.25), "1500.25");
    }
}
