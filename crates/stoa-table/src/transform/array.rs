//! Transforms of Arrow arrays, for splitting and sorting rows.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, Date32Array, Int32Array, new_null_array};
use arrow_schema::{DataType, TimeUnit};
use stoa_error::{Error, Result};
use stoa_orc::Literal;

use super::murmur3::bucket;
use super::scalar::months;
use crate::Transform;
use crate::value::minimal_big_endian;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

/// Applies `transform` to a column in one of the table's Arrow types.
///
/// # Errors
/// `Invalid` where the transform does not take that type or a result does not fit its type.
pub fn transform_array(transform: Transform, array: &ArrayRef) -> Result<ArrayRef> {
    match transform {
        Transform::Identity => Ok(array.clone()),
        Transform::Void => Ok(new_null_array(array.data_type(), array.len())),
        Transform::Bucket(buckets) => bucket_array(array, buckets),
        Transform::Truncate(width) => truncate_array(array, width),
        Transform::Year | Transform::Month | Transform::Day | Transform::Hour => {
            time_array(transform, array)
        }
    }
}

/// The value at `row` of a column in one of the table's Arrow types; `None` for NULL.
///
/// # Errors
/// `Unsupported` for a type that cannot be a partition value.
pub(crate) fn literal_at(array: &ArrayRef, row: usize) -> Result<Option<Literal>> {
    if row >= array.len() || array.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match array.data_type() {
        DataType::Boolean => Literal::Boolean(array.as_boolean().value(row)),
        DataType::Int32 => Literal::Int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Literal::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Literal::Float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Literal::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Date32 => Literal::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Literal::TimestampMicros(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Decimal128(_, scale) => {
            Literal::Decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)
        }
        DataType::Utf8 => Literal::String(array.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => Literal::Binary(array.as_binary::<i32>().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => {
            Literal::Binary(array.as_fixed_size_binary().value(row).to_vec())
        }
        other => {
            let named = if matches!(other, DataType::Time64(_)) { "time" } else { "of the column" };
            return Err(Error::unsupported(format!("type {named} cannot be a partition value")));
        }
    }))
}

fn time_array(transform: Transform, array: &ArrayRef) -> Result<ArrayRef> {
    let apply = |days: i64, micros: Option<i64>| -> Option<i32> {
        let result = match transform {
            Transform::Day => days,
            Transform::Hour => micros?.div_euclid(HOUR),
            Transform::Year => months(days)?.div_euclid(12),
            _ => months(days)?,
        };
        i32::try_from(result).ok()
    };
    let results: Vec<Option<i32>> = match array.data_type() {
        DataType::Date32 if transform != Transform::Hour => array
            .as_primitive::<Date32Type>()
            .iter()
            .map(|days| {
                days.map(|days| checked(apply(i64::from(days), None), transform)).transpose()
            })
            .collect::<Result<_>>()?,
        DataType::Timestamp(TimeUnit::Microsecond, _) => array
            .as_primitive::<TimestampMicrosecondType>()
            .iter()
            .map(|micros| {
                micros.map(|m| checked(apply(m.div_euclid(DAY), Some(m)), transform)).transpose()
            })
            .collect::<Result<_>>()?,
        other => return Err(wrong_type(transform, other)),
    };
    Ok(match transform {
        Transform::Day => Arc::new(Date32Array::from(results)),
        _ => Arc::new(Int32Array::from(results)),
    })
}

fn bucket_array(array: &ArrayRef, buckets: u32) -> Result<ArrayRef> {
    let long = |value: i64| bucket(&value.to_le_bytes(), buckets);
    let results: Int32Array = match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().unary(|value| long(i64::from(value))),
        DataType::Int64 => array.as_primitive::<Int64Type>().unary(long),
        DataType::Date32 => array.as_primitive::<Date32Type>().unary(|days| long(i64::from(days))),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            array.as_primitive::<TimestampMicrosecondType>().unary(long)
        }
        DataType::Decimal128(_, _) => array
            .as_primitive::<Decimal128Type>()
            .unary(|value| bucket(&minimal_big_endian(value), buckets)),
        DataType::Utf8 => array
            .as_string::<i32>()
            .iter()
            .map(|value| value.map(|value| bucket(value.as_bytes(), buckets)))
            .collect(),
        DataType::Binary => array
            .as_binary::<i32>()
            .iter()
            .map(|value| value.map(|value| bucket(value, buckets)))
            .collect(),
        DataType::FixedSizeBinary(_) => array
            .as_fixed_size_binary()
            .iter()
            .map(|value| value.map(|value| bucket(value, buckets)))
            .collect(),
        other => return Err(wrong_type(Transform::Bucket(buckets), other)),
    };
    Ok(Arc::new(results))
}

fn truncate_array(array: &ArrayRef, width: u32) -> Result<ArrayRef> {
    let transform = Transform::Truncate(width);
    let width = width.max(1);
    let too_small =
        || Error::invalid(format!("a value is too small for {transform}")).with_sqlstate("22003");
    Ok(match array.data_type() {
        DataType::Int32 => {
            let cut = |value: i32| -> Result<i32> {
                let value = i64::from(value);
                i32::try_from(value - value.rem_euclid(i64::from(width))).map_err(|_| too_small())
            };
            Arc::new(array.as_primitive::<Int32Type>().try_unary::<_, Int32Type, _>(cut)?)
        }
        DataType::Int64 => {
            let cut = |value: i64| {
                value.checked_sub(value.rem_euclid(i64::from(width))).ok_or_else(too_small)
            };
            Arc::new(array.as_primitive::<Int64Type>().try_unary::<_, Int64Type, Error>(cut)?)
        }
        DataType::Decimal128(_, _) => {
            let cut = |value: i128| {
                value.checked_sub(value.rem_euclid(i128::from(width))).ok_or_else(too_small)
            };
            let values = array.as_primitive::<Decimal128Type>();
            let results = values.try_unary::<_, Decimal128Type, Error>(cut)?;
            Arc::new(results.with_data_type(array.data_type().clone()))
        }
        DataType::Utf8 => {
            let mut results = StringBuilder::with_capacity(array.len(), 0);
            for value in array.as_string::<i32>() {
                results.append_option(value.map(|value| first_chars(value, width)));
            }
            Arc::new(results.finish())
        }
        DataType::Binary => {
            let mut results = BinaryBuilder::with_capacity(array.len(), 0);
            for value in array.as_binary::<i32>() {
                results
                    .append_option(value.map(|value| value.get(..width as usize).unwrap_or(value)));
            }
            Arc::new(results.finish())
        }
        other => return Err(wrong_type(transform, other)),
    })
}

fn first_chars(text: &str, count: u32) -> &str {
    match text.char_indices().nth(count as usize) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn checked(result: Option<i32>, transform: Transform) -> Result<i32> {
    result.ok_or_else(|| {
        Error::invalid(format!("a value is out of range for {transform}")).with_sqlstate("22008")
    })
}

fn wrong_type(transform: Transform, data_type: &DataType) -> Error {
    Error::invalid(format!("a column of type {data_type} cannot take {transform}"))
        .with_sqlstate("42P17")
}
