//! Arrow batches as pages of columns (`TRowSet`), without a step between.
//!
//! A column is a list of values and a bitmap: bit *i*, counted from the lowest, says that value *i* is NULL. Its place in
//! the list is filled with a zero or an empty text.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::as_datetime_with_timezone;
use arrow_array::timezone::Tz;
use arrow_array::types::{
    ArrowPrimitiveType, ArrowTimestampType, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Schema, TimeUnit};
use stoa_error::{Error, Result};
use stoa_thrift::{Kind, RowSet, TypeId, Writer};

use crate::column_type::ColumnType;
use crate::{json, text};

/// The rows of `batches` as one page; timestamps with a time zone are shown in `zone`.
///
/// # Errors
/// Internal: a column is of another type than its field says.
pub(crate) fn row_set(
    schema: &Schema,
    batches: &[RecordBatch],
    zone: &str,
    first_row: i64,
    has_more: bool,
) -> Result<RowSet> {
    let mut out = Writer::new();
    for (place, field) in schema.fields().iter().enumerate() {
        let plain = |batch: &RecordBatch| plain(batch.column(place), zone);
        let arrays = batches.iter().map(plain).collect::<Result<Vec<_>>>()?;
        put_column(ColumnType::of(field).id, &arrays, &mut out)?;
    }
    let columns = out.into_bytes();
    Ok(RowSet { first_row, column_count: schema.fields().len(), columns, has_more })
}

/// A column without dictionaries, and without time zones.
fn plain(array: &ArrayRef, zone: &str) -> Result<ArrayRef> {
    let to = |array: &ArrayRef, to: &DataType| {
        cast(array, to).map_err(|e| Error::internal("a column cannot be written").with_source(e))
    };
    match array.data_type() {
        DataType::Dictionary(_, values) => plain(&to(array, values)?, zone),
        DataType::RunEndEncoded(_, values) => plain(&to(array, values.data_type())?, zone),
        DataType::Timestamp(unit, Some(_)) => {
            let zone = zone.parse().map_err(|e| {
                Error::internal(format!("time zone {zone} is not known")).with_source(e)
            })?;
            Ok(match unit {
                TimeUnit::Second => there::<TimestampSecondType>(array, zone, 1),
                TimeUnit::Millisecond => there::<TimestampMillisecondType>(array, zone, 1000),
                TimeUnit::Microsecond => there::<TimestampMicrosecondType>(array, zone, 1_000_000),
                TimeUnit::Nanosecond => {
                    there::<TimestampNanosecondType>(array, zone, 1_000_000_000)
                }
            })
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// Times as clocks of the zone show them; those that no calendar has stay as they are.
fn there<T: ArrowTimestampType>(array: &ArrayRef, zone: Tz, per_second: i64) -> ArrayRef {
    let shifted = |value: i64| match as_datetime_with_timezone::<T>(value, zone) {
        Some(time) => {
            let offset_s = time.naive_local().and_utc().timestamp() - time.timestamp();
            value.saturating_add(offset_s.saturating_mul(per_second))
        }
        None => value,
    };
    Arc::new(array.as_primitive::<T>().unary::<_, T>(shifted))
}

/// Writes a `TColumn`: a union, so a struct of one field.
fn put_column(id: TypeId, arrays: &[ArrayRef], out: &mut Writer) -> Result<()> {
    let (field, kind) = match id {
        TypeId::Boolean => (1, Kind::Bool),
        TypeId::TinyInt => (2, Kind::Byte),
        TypeId::SmallInt => (3, Kind::I16),
        TypeId::Int => (4, Kind::I32),
        TypeId::BigInt => (5, Kind::I64),
        TypeId::Float | TypeId::Double => (6, Kind::Double),
        TypeId::Binary => (8, Kind::Bytes),
        _ => (7, Kind::Bytes),
    };
    out.field(Kind::Struct, field);
    out.field(Kind::List, 1);
    out.list(kind, arrays.iter().map(|array| array.len()).sum());
    arrays.iter().try_for_each(|array| put_values(kind, id, array, out))?;
    out.bytes_field(2, &nulls(arrays));
    out.stop();
    out.stop();
    Ok(())
}

/// Which values are NULL. Java's clients want at least one byte.
fn nulls(arrays: &[ArrayRef]) -> Vec<u8> {
    let mut bits = vec![0];
    let mut before = 0;
    for array in arrays {
        if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            bits.resize((before + array.len()).div_ceil(8), 0);
            for row in (0..array.len()).filter(|row| nulls.is_null(*row)) {
                bits[(before + row) / 8] |= 1 << ((before + row) % 8);
            }
        }
        before += array.len();
    }
    bits
}

fn put_values(kind: Kind, id: TypeId, array: &ArrayRef, out: &mut Writer) -> Result<()> {
    match (kind, array.data_type()) {
        (Kind::Bool, DataType::Boolean) => {
            let values = array.as_boolean();
            for row in 0..values.len() {
                out.raw(&[u8::from(values.is_valid(row) && values.value(row))]);
            }
        }
        (Kind::Byte, DataType::Int8) => numbers::<Int8Type, 1>(array, i8::to_be_bytes, out),
        (Kind::I16, DataType::Int16) => numbers::<Int16Type, 2>(array, i16::to_be_bytes, out),
        (Kind::I16, DataType::UInt8) => {
            numbers::<UInt8Type, 2>(array, |v| i16::from(v).to_be_bytes(), out);
        }
        (Kind::I32, DataType::Int32) => numbers::<Int32Type, 4>(array, i32::to_be_bytes, out),
        (Kind::I32, DataType::UInt16) => {
            numbers::<UInt16Type, 4>(array, |v| i32::from(v).to_be_bytes(), out);
        }
        (Kind::I64, DataType::Int64) => numbers::<Int64Type, 8>(array, i64::to_be_bytes, out),
        (Kind::I64, DataType::UInt32) => {
            numbers::<UInt32Type, 8>(array, |v| i64::from(v).to_be_bytes(), out);
        }
        (Kind::Double, DataType::Float64) => {
            numbers::<Float64Type, 8>(array, f64::to_be_bytes, out);
        }
        (Kind::Double, DataType::Float32) => {
            numbers::<Float32Type, 8>(array, |v| widened(v).to_be_bytes(), out);
        }
        (Kind::Double, DataType::Float16) => {
            numbers::<Float16Type, 8>(array, |v| f64::from(v).to_be_bytes(), out);
        }
        (Kind::Bytes, _) if id == TypeId::Binary => put_binary(array, out)?,
        (Kind::Bytes, _) => put_texts(array, out),
        (kind, of) => return Err(unfit(kind, of)),
    }
    Ok(())
}

fn unfit(kind: Kind, of: &DataType) -> Error {
    Error::internal(format!("a column of {of} cannot be written as {kind:?}"))
}

fn numbers<T: ArrowPrimitiveType, const N: usize>(
    array: &ArrayRef,
    bytes: impl Fn(T::Native) -> [u8; N],
    out: &mut Writer,
) {
    let values = array.as_primitive::<T>();
    match values.nulls() {
        None => values.values().iter().for_each(|value| out.raw(&bytes(*value))),
        Some(nulls) => {
            for (value, is_valid) in values.values().iter().zip(nulls.iter()) {
                out.raw(&if is_valid { bytes(*value) } else { [0; N] });
            }
        }
    }
}

/// The double that has the same shortest text, as Hive makes one of a float.
fn widened(value: f32) -> f64 {
    match value.is_finite() {
        true => value.to_string().parse().unwrap_or_else(|_| f64::from(value)),
        false => f64::from(value),
    }
}

fn put_binary(array: &ArrayRef, out: &mut Writer) -> Result<()> {
    for row in 0..array.len() {
        out.bytes(match array.data_type() {
            _ if array.is_null(row) => &[],
            DataType::Binary => array.as_binary::<i32>().value(row),
            DataType::LargeBinary => array.as_binary::<i64>().value(row),
            DataType::BinaryView => array.as_binary_view().value(row),
            DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
            of => return Err(unfit(Kind::Bytes, of)),
        });
    }
    Ok(())
}

fn put_texts(array: &ArrayRef, out: &mut Writer) {
    let nulls = array.logical_nulls();
    let is_nested = json::is_nested(array.data_type());
    let mut value = String::new();
    for row in 0..array.len() {
        value.clear();
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            // Nothing.
        } else if is_nested {
            json::put(array.as_ref(), row, &mut value);
        } else {
            text::put(array.as_ref(), row, &mut value);
        }
        out.bytes(value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        Decimal128Array, Float32Array, Int32Array, StringArray, TimestampMicrosecondArray,
    };
    use arrow_schema::Field;

    use super::*;

    fn encoded(arrays: &[ArrayRef]) -> Vec<u8> {
        let field = Field::new("x", arrays[0].data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = |array: &ArrayRef| {
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(array)]).unwrap()
        };
        let batches: Vec<_> = arrays.iter().map(batch).collect();
        row_set(&schema, &batches, "Asia/Tokyo", 0, false).unwrap().columns
    }

    fn texts(array: ArrayRef, expected: &[&str]) {
        let mut out = Writer::new();
        out.field(Kind::Struct, 7);
        out.field(Kind::List, 1);
        out.list(Kind::Bytes, expected.len());
        expected.iter().for_each(|text| out.bytes(text.as_bytes()));
        out.bytes_field(2, &[0]);
        out.stop();
        out.stop();
        assert_eq!(encoded(&[array]), out.into_bytes());
    }

    #[test]
    fn numbers_and_nulls_of_several_batches_are_one_column() {
        let first: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        let second: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(-1)]));
        let expected = b"\x0c\x00\x04\x0f\x00\x01\x08\x00\x00\x00\x04\
            \x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\
            \x0b\x00\x02\x00\x00\x00\x01\x06\x00\x00";
        assert_eq!(encoded(&[first, second]), expected);
    }

    #[test]
    fn values_without_a_type_of_their_own_are_texts() {
        texts(Arc::new(StringArray::from(vec!["a", ""])), &["a", ""]);
        let decimals = Decimal128Array::from(vec![150, -5]).with_precision_and_scale(9, 2).unwrap();
        texts(Arc::new(decimals), &["1.50", "-0.05"]);
        let times = TimestampMicrosecondArray::from(vec![0]).with_timezone("UTC");
        texts(Arc::new(times), &["1970-01-01 09:00:00"]);
    }

    #[test]
    fn floats_keep_their_text() {
        let bytes = encoded(&[Arc::new(Float32Array::from(vec![1.1]))]);
        assert!(bytes.windows(8).any(|window| window == 1.1_f64.to_be_bytes()));
    }
}
