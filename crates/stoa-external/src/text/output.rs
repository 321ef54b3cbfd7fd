//! Rows as lines.
//!
//! **Invariant:** what is written is read again as it was: a value that would end its line or field, where nothing can
//! take that meaning from it, is refused. Hive writes such values, and reads others.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, TimeUnit};
use base64::Engine;
use stoa_error::{Error, Place, Result};

use super::{BASE64, Csv, Delimited, TextFormat};

/// Calls `line` with each row of a batch as a line, without its end.
pub(crate) fn write_rows(
    batch: &RecordBatch,
    format: &TextFormat,
    mut line: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut text = Vec::new();
    let mut field = Vec::new();
    let schema = batch.schema();
    for row in 0..batch.num_rows() {
        text.clear();
        for (at, column) in batch.columns().iter().enumerate() {
            let written = match format {
                TextFormat::Delimited(format) => {
                    if at > 0 {
                        text.push(format.separators[0]);
                    }
                    value(column, row, format, 1, &mut text)
                }
                TextFormat::Csv(format) => {
                    if at > 0 {
                        text.push(format.separator);
                    }
                    field.clear();
                    csv_value(column, row, *format, &mut field, &mut text)
                }
            };
            written.map_err(|error| error.at(Place::Field(schema.field(at).name().clone())))?;
        }
        line(&text)?;
    }
    Ok(())
}

/// A value of a partition column as a text; `None` is NULL.
///
/// # Errors
/// `Unsupported` for a type that no partition column can have.
pub fn value_text(array: &dyn Array, row: usize) -> Result<Option<String>> {
    if array.is_null(row) {
        return Ok(None);
    }
    let mut text = Vec::new();
    match array.data_type() {
        DataType::Utf8 => return Ok(Some(array.as_string::<i32>().value(row).to_owned())),
        of if of.is_nested() => {
            return Err(Error::unsupported(format!(
                "{of} cannot be the type of a partition column"
            )));
        }
        _ => scalar(array, row, &mut text)?,
    }
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

fn csv_value(
    array: &dyn Array,
    row: usize,
    format: Csv,
    field: &mut Vec<u8>,
    line: &mut Vec<u8>,
) -> Result<()> {
    if array.is_null(row) {
        return Ok(());
    }
    match array.data_type() {
        DataType::Utf8 => field.extend_from_slice(array.as_string::<i32>().value(row).as_bytes()),
        DataType::Binary => field.extend_from_slice(array.as_binary::<i32>().value(row)),
        _ => scalar(array, row, field)?,
    }
    line.push(format.quote);
    for byte in field.iter() {
        if [b'\n', b'\r'].contains(byte) {
            return Err(breaks_line());
        }
        // What the reader would take for an escape.
        let is_special = *byte == format.quote || *byte == format.write_escape;
        if is_special || *byte == format.read_escape {
            line.push(if is_special { format.write_escape } else { format.read_escape });
        }
        line.push(*byte);
    }
    line.push(format.quote);
    Ok(())
}

fn value(
    array: &dyn Array,
    row: usize,
    format: &Delimited,
    level: usize,
    text: &mut Vec<u8>,
) -> Result<()> {
    if array.is_null(row) {
        text.extend_from_slice(&format.null);
        return Ok(());
    }
    let separator = |level: usize| {
        format.separators.get(level).copied().ok_or_else(|| {
            Error::unsupported("types that are nested so deep have no separators in files of text")
        })
    };
    match array.data_type() {
        DataType::Utf8 => string(array.as_string::<i32>().value(row).as_bytes(), format, text),
        DataType::Binary => {
            text.extend_from_slice(BASE64.encode(array.as_binary::<i32>().value(row)).as_bytes());
            Ok(())
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            for at in 0..items.len() {
                if at > 0 {
                    text.push(separator(level)?);
                }
                value(&items, at, format, level + 1, text)?;
            }
            Ok(())
        }
        DataType::Struct(_) => {
            for (at, column) in array.as_struct().columns().iter().enumerate() {
                if at > 0 {
                    text.push(separator(level)?);
                }
                value(column, row, format, level + 1, text)?;
            }
            Ok(())
        }
        DataType::Map(..) => {
            let pairs = array.as_map().value(row);
            let [keys, values] = pairs.columns() else {
                return Err(Error::internal("a map has no keys and values"));
            };
            for at in 0..pairs.len() {
                if at > 0 {
                    text.push(separator(level)?);
                }
                value(keys, at, format, level + 2, text)?;
                text.push(separator(level + 1)?);
                value(values, at, format, level + 2, text)?;
            }
            Ok(())
        }
        _ => scalar(array, row, text),
    }
}

fn breaks_line() -> Error {
    Error::invalid("a value has a line break, which ends a row in files of text")
        .with_sqlstate("22P04")
        .with_hint("replace it in the query, or use ESCAPED BY or another format")
}

fn string(value: &[u8], format: &Delimited, text: &mut Vec<u8>) -> Result<()> {
    let begin = text.len();
    for byte in value {
        let is_break = [b'\n', b'\r'].contains(byte);
        let is_separator = format.separators.contains(byte);
        match format.escape {
            Some(escape) if is_break => {
                text.extend_from_slice(&[escape, if *byte == b'\n' { b'n' } else { b'r' }]);
                continue;
            }
            Some(escape) if is_separator || *byte == escape => text.push(escape),
            Some(_) => {}
            None if is_break => return Err(breaks_line()),
            // Separators of deeper levels mean nothing in a text.
            None if format.separators[..3].contains(byte) => {
                return Err(Error::invalid("a value has a delimiter of the table's files in it")
                    .with_sqlstate("22P04")
                    .with_hint(
                        "define the table with ESCAPED BY, or with another delimiter or format",
                    ));
            }
            None => {}
        }
        text.push(*byte);
    }
    if text.get(begin..) == Some(&format.null) {
        return Err(Error::invalid("a text is the one that stands for NULL in the table's files")
            .with_sqlstate("22P04")
            .with_hint("define the table with ESCAPED BY or NULL DEFINED AS"));
    }
    Ok(())
}

fn scalar(array: &dyn Array, row: usize, text: &mut Vec<u8>) -> Result<()> {
    let written = match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            java_float(value.is_nan(), value.is_infinite(), f64::from(value), &format!("{value:e}"))
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            java_float(value.is_nan(), value.is_infinite(), value, &format!("{value:e}"))
        }
        DataType::Date32 => {
            let date = array.as_primitive::<Date32Type>().value_as_date(row);
            date.map(|date| date.to_string()).unwrap_or_default()
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let values = array.as_primitive::<arrow_array::types::TimestampMicrosecondType>();
            let time = values.value_as_datetime(row).unwrap_or_default();
            let all = time.format("%Y-%m-%d %H:%M:%S%.6f").to_string();
            all.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        DataType::Decimal128(..) => {
            let formatter = ArrayFormatter::try_new(array, &FormatOptions::default());
            let formatter =
                formatter.map_err(|e| Error::internal("a decimal has no text").with_source(e))?;
            formatter.value(row).to_string()
        }
        other => {
            return Err(Error::unsupported(format!("{other} in files of text is not supported")));
        }
    };
    text.extend_from_slice(written.as_bytes());
    Ok(())
}

/// A number as Java writes it; `scientific` is `1.5e10`.
fn java_float(is_nan: bool, is_infinite: bool, value: f64, scientific: &str) -> String {
    if is_nan {
        return "NaN".to_owned();
    }
    if is_infinite {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value != 0.0 && !(-3..7).contains(&exponent) {
        let point = if mantissa.contains('.') { "" } else { ".0" };
        return format!("{mantissa}{point}E{exponent}");
    }
    // Digits of the mantissa with the point moved.
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits.replace('.', "")),
        None => ("", mantissa.replace('.', "")),
    };
    match usize::try_from(exponent) {
        Ok(whole) => {
            let padded = format!("{digits:0<width$}", width = whole + 2);
            let (before, behind) = padded.split_at(whole + 1);
            format!("{sign}{before}.{behind}")
        }
        Err(_) => {
            let zeros = usize::try_from(-exponent - 1).unwrap_or_default();
            format!("{sign}0.{}{digits}", "0".repeat(zeros))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        let check = |value: f64, expected: &str| {
            assert_eq!(
                java_float(value.is_nan(), value.is_infinite(), value, &format!("{value:e}")),
                expected
            );
        };
        check(1.0, "1.0");
        check(-1.5, "-1.5");
        check(100.0, "100.0");
        check(1_234_567.5, "1234567.5");
        check(1e7, "1.0E7");
        check(1.5e10, "1.5E10");
        check(0.001, "0.001");
        check(0.0001, "1.0E-4");
        check(0.0, "0.0");
        check(-0.0, "-0.0");
        check(f64::NAN, "NaN");
        check(f64::NEG_INFINITY, "-Infinity");
    }
}
