//! Types in which the values of queries are stored: those that Iceberg has.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use stoa_error::{Error, Result};

/// Digits after the point that a stored decimal without a scale of its own gets.
const NUMERIC_STORED_SCALE: i8 = 20;

/// Whether two types of stored columns are the same, whatever their nested fields are called.
pub(crate) fn same_type(left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::Timestamp(unit, zone), DataType::Timestamp(other, other_zone)) => {
            unit == other && zone.is_some() == other_zone.is_some()
        }
        (left, right) => left.equals_datatype(right),
    }
}

/// The type in which values of a type are stored.
///
/// # Errors
/// `Unsupported` where they cannot be.
pub(crate) fn storable_type(data_type: &DataType) -> Result<DataType> {
    Ok(match data_type {
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, Some(_)) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => DataType::Decimal128(*p, *s),
        // Tables have decimals of 38 digits.
        DataType::Decimal256(_, s) => DataType::Decimal128(38, (*s).min(NUMERIC_STORED_SCALE)),
        DataType::Dictionary(_, value) => storable_type(value)?,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let item = Field::new("element", storable_type(item.data_type())?, true);
            DataType::List(Arc::new(item))
        }
        DataType::Struct(fields) => {
            let field =
                |f: &Arc<Field>| Ok(Field::new(f.name(), storable_type(f.data_type())?, true));
            DataType::Struct(fields.iter().map(field).collect::<Result<_>>()?)
        }
        DataType::Null => DataType::Utf8,
        DataType::Interval(_) | DataType::Duration(_) | DataType::Union(..) => {
            let named = if matches!(data_type, DataType::Union(..)) { "union" } else { "interval" };
            return Err(Error::unsupported(format!("type {named} cannot be stored"))
                .with_hint("cast it to a type that docs/sql.md lists"));
        }
        other => other.clone(),
    })
}
