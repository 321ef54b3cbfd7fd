//! Values of one column: a writer is chosen once per batch by type, format and whether there are
//! NULLs.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};
use stoa_error::{Error, Result};

use super::RowFormat;
use super::nested;
use crate::text::calendar::{put_date, put_timestamp};
use crate::text::number::{put_decimal, put_float, put_int, put_java_float};
use crate::text::string::{Escapes, put_string};

/// Appends the value of a row, `null` if there is none.
pub(super) type Put<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// Chooses the writer of a column.
pub(super) fn bind_value<'a>(array: &'a dyn Array, format: RowFormat) -> Result<Put<'a>> {
    Ok(match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            nullable(array, move |row, out| {
                out.extend_from_slice(if values.value(row) { b"true" } else { b"false" });
            })
        }
        DataType::Int8 => integers::<Int8Type>(array),
        DataType::Int16 => integers::<Int16Type>(array),
        DataType::Int32 => integers::<Int32Type>(array),
        DataType::Int64 => integers::<Int64Type>(array),
        // ORC has no type for times: they are integers there.
        DataType::Time64(TimeUnit::Microsecond) => integers::<Time64MicrosecondType>(array),
        DataType::Float32 => floats(array, array.as_primitive::<Float32Type>().values(), format),
        DataType::Float64 => floats(array, array.as_primitive::<Float64Type>().values(), format),
        DataType::Utf8 => strings(array, format),
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            nullable(array, move |row, out| put_bytes(values.value(row), format, out))
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            nullable(array, move |row, out| put_bytes(values.value(row), format, out))
        }
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>().values();
            nullable(array, move |row, out| {
                quoted(out, |out| put_date(i64::from(values[row]), out));
            })
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            timestamps::<TimestampMicrosecondType>(array, 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            timestamps::<TimestampNanosecondType>(array, 1_000_000_000)
        }
        DataType::Decimal128(_, scale) => decimals(array, *scale, format),
        DataType::List(_) => nested::list(array, format)?,
        DataType::Map(..) => nested::map(array, format)?,
        DataType::Struct(_) => nested::structure(array, format)?,
        DataType::Union(..) => nested::union(array, format)?,
        other => return Err(Error::internal(format!("a column of {other} cannot be printed"))),
    })
}

/// A writer that looks for NULLs only where there are some.
pub(super) fn nullable<'a>(
    array: &'a dyn Array,
    put: impl Fn(usize, &mut Vec<u8>) + 'a,
) -> Put<'a> {
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => Box::new(put),
        Some(nulls) => Box::new(move |row, out| match nulls.is_valid(row) {
            true => put(row, out),
            false => out.extend_from_slice(b"null"),
        }),
    }
}

fn integers<T>(array: &dyn Array) -> Put<'_>
where
    T: ArrowPrimitiveType,
    T::Native: itoa::Integer,
{
    let values = array.as_primitive::<T>().values();
    nullable(array, move |row, out| put_int(values[row], out))
}

fn floats<'a, F>(array: &'a dyn Array, values: &'a [F], format: RowFormat) -> Put<'a>
where
    F: ryu::Float + Into<f64>,
{
    match format {
        RowFormat::Contents => nullable(array, move |row, out| put_float(values[row], out)),
        RowFormat::Java => nullable(array, move |row, out| {
            let wide: f64 = values[row].into();
            put_java_float(wide, out);
        }),
    }
}

fn strings(array: &dyn Array, format: RowFormat) -> Put<'_> {
    let values = array.as_string::<i32>();
    // A constant each, so that the test for special characters is made for it.
    match format {
        RowFormat::Contents => nullable(array, move |row, out| {
            put_string(values.value(row), Escapes::Json, out);
        }),
        RowFormat::Java => nullable(array, move |row, out| {
            put_string(values.value(row), Escapes::Gson, out);
        }),
    }
}

fn timestamps<T>(array: &dyn Array, per_second: i64) -> Put<'_>
where
    T: ArrowPrimitiveType<Native = i64>,
{
    let values = array.as_primitive::<T>().values();
    let nanos_per_unit = 1_000_000_000 / per_second;
    nullable(array, move |row, out| {
        let value = values[row];
        let nanos = value.rem_euclid(per_second) * nanos_per_unit;
        quoted(out, |out| put_timestamp(value.div_euclid(per_second), nanos as u32, out));
    })
}

fn decimals(array: &dyn Array, scale: i8, format: RowFormat) -> Put<'_> {
    let values = array.as_primitive::<Decimal128Type>().values();
    let scale = usize::try_from(scale).unwrap_or(0);
    match format {
        RowFormat::Contents => {
            nullable(array, move |row, out| put_decimal(values[row], scale, false, out))
        }
        RowFormat::Java => nullable(array, move |row, out| {
            quoted(out, |out| put_decimal(values[row], scale, true, out));
        }),
    }
}

fn put_bytes(bytes: &[u8], format: RowFormat, out: &mut Vec<u8>) {
    let comma = nested::comma(format);
    out.push(b'[');
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(comma);
        }
        put_int(*byte, out);
    }
    out.push(b']');
}

#[inline]
fn quoted(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    put(out);
    out.push(b'"');
}
