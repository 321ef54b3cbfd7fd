//! Columns of Arrow as values of Hive's types, and back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, Date32Array, Decimal128Array,
    Float64Array, Int32Array, Int64Array, ListArray, MapArray, NullArray, StringBuilder,
    StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Fields, Float64Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType,
};
use datafusion::error::{DataFusionError, Result};
use stoa_error::Error;
use stoa_hiveql::pack::fitted;
use stoa_hiveql::pack::value::{Type, Value};

use crate::errors::to_datafusion;

/// Bytes of the texts of a column.
const COLUMN_BYTES_MAX: usize = 1 << 30;

fn unsupported(of: &DataType) -> DataFusionError {
    to_datafusion(
        Error::unsupported(format!("Hive's functions do not take values of {of}"))
            .with_hint("cast them, or take the parts of structs with a point"),
    )
}

/// Hive's type of a column.
///
/// # Errors
/// 0A000: Hive has no such type, or its functions do not take it.
pub(super) fn type_of(of: &DataType) -> Result<Type> {
    Ok(match of {
        DataType::Null => Type::Null,
        DataType::Boolean => Type::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            Type::Int
        }
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Type::Bigint,
        DataType::Float32 | DataType::Float64 => Type::Double,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => Type::Decimal(*precision, *scale),
        DataType::Decimal256(precision, scale) => {
            Type::Decimal((*precision).min(38), (*scale).min(18))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::Binary,
        DataType::Date32 => Type::Date,
        DataType::Timestamp(_, None) => Type::Timestamp,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Type::List(Box::new(type_of(item.data_type())?))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => match fields.as_ref() {
                [key, value] => {
                    let (key, value) = (type_of(key.data_type())?, type_of(value.data_type())?);
                    Type::Map(Box::new(key), Box::new(value))
                }
                _ => return Err(unsupported(of)),
            },
            _ => return Err(unsupported(of)),
        },
        DataType::Dictionary(_, value) => type_of(value)?,
        other => return Err(unsupported(other)),
    })
}

/// The type of a column of Hive's type.
pub(super) fn arrow_type(of: &Type) -> DataType {
    match of {
        Type::Null => DataType::Null,
        Type::Boolean => DataType::Boolean,
        Type::Int => DataType::Int32,
        Type::Bigint => DataType::Int64,
        Type::Double => DataType::Float64,
        Type::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
        Type::Text => DataType::Utf8,
        Type::Binary => DataType::Binary,
        Type::Date => DataType::Date32,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::List(item) => DataType::List(Arc::new(Field::new_list_field(arrow_type(item), true))),
        Type::Map(key, value) => DataType::Map(Arc::new(entries(key, value)), false),
    }
}

fn entries(key: &Type, value: &Type) -> Field {
    let fields = Fields::from(vec![
        Field::new("key", arrow_type(key), false),
        Field::new("value", arrow_type(value), true),
    ]);
    Field::new("entries", DataType::Struct(fields), false)
}

/// The values of a column.
///
/// # Errors
/// 0A000 as [`type_of`].
pub(super) fn values(column: &ArrayRef) -> Result<Vec<Value>> {
    let of = type_of(column.data_type())?;
    let rows = column.len();
    let each = |value: &dyn Fn(usize) -> Value, nulls: &ArrayRef| {
        let at = |row: usize| if nulls.is_null(row) { Value::Null } else { value(row) };
        (0..rows).map(at).collect::<Vec<_>>()
    };
    Ok(match &of {
        Type::Null => vec![Value::Null; rows],
        Type::List(_) => return list_values(column),
        Type::Map(..) => return map_values(column),
        plain => {
            let column = cast(column, &arrow_type(plain))?;
            match plain {
                Type::Boolean => {
                    let of = column.as_boolean();
                    each(&|row| Value::Boolean(of.value(row)), &column)
                }
                Type::Int => {
                    let of = column.as_primitive::<Int32Type>();
                    each(&|row| Value::Int(of.value(row)), &column)
                }
                Type::Bigint => {
                    let of = column.as_primitive::<Int64Type>();
                    each(&|row| Value::Bigint(of.value(row)), &column)
                }
                Type::Double => {
                    let of = column.as_primitive::<Float64Type>();
                    each(&|row| Value::Double(of.value(row)), &column)
                }
                Type::Decimal(_, scale) => {
                    let of = column.as_primitive::<Decimal128Type>();
                    each(&|row| Value::Decimal(of.value(row), *scale), &column)
                }
                Type::Binary => {
                    let of = column.as_binary::<i32>();
                    each(&|row| Value::Binary(of.value(row).to_vec()), &column)
                }
                Type::Date => {
                    let of = column.as_primitive::<Date32Type>();
                    each(&|row| Value::Date(of.value(row)), &column)
                }
                Type::Timestamp => {
                    let of = column.as_primitive::<TimestampMicrosecondType>();
                    each(&|row| Value::Timestamp(of.value(row)), &column)
                }
                _ => {
                    let of = column.as_string::<i32>();
                    each(&|row| Value::Text(of.value(row).to_owned()), &column)
                }
            }
        }
    })
}

fn list_values(column: &ArrayRef) -> Result<Vec<Value>> {
    let item = match column.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => item,
        other => return Err(unsupported(other)),
    };
    let column = cast(column, &DataType::List(Arc::clone(item)))?;
    let lists = column.as_list::<i32>();
    let all = values(lists.values())?;
    let list = |row: usize| {
        if lists.is_null(row) {
            return Value::Null;
        }
        let offsets = lists.value_offsets();
        let (begin, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        Value::List(all[begin..end].to_vec())
    };
    Ok((0..lists.len()).map(list).collect())
}

fn map_values(column: &ArrayRef) -> Result<Vec<Value>> {
    let maps = column.as_map();
    let (keys, all) = (values(maps.keys())?, values(maps.values())?);
    let map = |row: usize| {
        if maps.is_null(row) {
            return Value::Null;
        }
        let offsets = maps.value_offsets();
        let (begin, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        let pairs = keys[begin..end].iter().cloned().zip(all[begin..end].iter().cloned());
        Value::Map(pairs.collect())
    };
    Ok((0..maps.len()).map(map).collect())
}

/// A column of values, each as one of the type.
///
/// # Errors
/// 54000: texts of more than a gibibyte; a value that is not of the type is NULL.
pub(super) fn array(values: Vec<Value>, of: &Type) -> Result<ArrayRef> {
    let values = values
        .into_iter()
        .map(|value| fitted(&value, of))
        .collect::<stoa_error::Result<Vec<_>>>()
        .map_err(to_datafusion)?;
    let nulls = || NullBuffer::from_iter(values.iter().map(|value| !value.is_null()));
    Ok(match of {
        Type::Null => Arc::new(NullArray::new(values.len())),
        Type::Boolean => {
            Arc::new(BooleanArray::from_iter(values.iter().map(|value| match value {
                Value::Boolean(value) => Some(*value),
                _ => None,
            })))
        }
        Type::Int => Arc::new(Int32Array::from_iter(values.iter().map(|value| match value {
            Value::Int(value) => Some(*value),
            _ => None,
        }))),
        Type::Bigint => Arc::new(Int64Array::from_iter(values.iter().map(|value| match value {
            Value::Bigint(value) => Some(*value),
            _ => None,
        }))),
        Type::Double => Arc::new(Float64Array::from_iter(values.iter().map(|value| match value {
            Value::Double(value) => Some(*value),
            _ => None,
        }))),
        Type::Decimal(precision, scale) => {
            let decimals = values.iter().map(|value| match value {
                Value::Decimal(value, _) => Some(*value),
                _ => None,
            });
            let decimals = Decimal128Array::from_iter(decimals);
            Arc::new(decimals.with_precision_and_scale(*precision, *scale)?)
        }
        Type::Text => texts(&values)?,
        Type::Binary => {
            let mut all = BinaryBuilder::new();
            for value in &values {
                match value {
                    Value::Binary(bytes) => all.append_value(bytes),
                    _ => all.append_null(),
                }
            }
            Arc::new(all.finish())
        }
        Type::Date => Arc::new(Date32Array::from_iter(values.iter().map(|value| match value {
            Value::Date(days) => Some(*days),
            _ => None,
        }))),
        Type::Timestamp => {
            Arc::new(TimestampMicrosecondArray::from_iter(values.iter().map(|value| match value {
                Value::Timestamp(micros) => Some(*micros),
                _ => None,
            })))
        }
        Type::List(item) => {
            let nulls = nulls();
            let lengths = values.iter().map(|value| match value {
                Value::List(items) => items.len(),
                _ => 0,
            });
            let offsets = OffsetBuffer::from_lengths(lengths);
            let items = values.into_iter().flat_map(|value| match value {
                Value::List(items) => items,
                _ => Vec::new(),
            });
            let items = array(items.collect(), item)?;
            let field = Arc::new(Field::new_list_field(arrow_type(item), true));
            Arc::new(ListArray::try_new(field, offsets, items, Some(nulls))?)
        }
        Type::Map(key, value) => map_array(values, key, value)?,
    })
}

fn texts(values: &[Value]) -> Result<ArrayRef> {
    let bytes: usize = values
        .iter()
        .map(|value| match value {
            Value::Text(text) => text.len(),
            _ => 0,
        })
        .sum();
    if bytes > COLUMN_BYTES_MAX {
        return Err(to_datafusion(
            Error::invalid("the texts of a batch are too long").with_sqlstate("54000"),
        ));
    }
    let mut all = StringBuilder::with_capacity(values.len(), bytes);
    for value in values {
        match value {
            Value::Text(text) => all.append_value(text),
            _ => all.append_null(),
        }
    }
    Ok(Arc::new(all.finish()))
}

fn map_array(maps: Vec<Value>, key: &Type, value: &Type) -> Result<ArrayRef> {
    let nulls = NullBuffer::from_iter(maps.iter().map(|map| !map.is_null()));
    let lengths = maps.iter().map(|map| match map {
        Value::Map(pairs) => pairs.len(),
        _ => 0,
    });
    let offsets = OffsetBuffer::from_lengths(lengths);
    let pairs = maps.into_iter().flat_map(|map| match map {
        Value::Map(pairs) => pairs,
        _ => Vec::new(),
    });
    let (keys, values): (Vec<Value>, Vec<Value>) = pairs.unzip();
    let field = entries(key, value);
    let DataType::Struct(fields) = field.data_type().clone() else {
        return Err(unsupported(field.data_type()));
    };
    let columns = vec![array(keys, key)?, array(values, value)?];
    let pairs = StructArray::try_new(fields, columns, None)?;
    Ok(Arc::new(MapArray::try_new(Arc::new(field), offsets, pairs, Some(nulls), false)?))
}
