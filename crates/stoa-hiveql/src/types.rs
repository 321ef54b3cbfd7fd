//! Hive's types as Stoa's.

use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo};
use stoa_error::{Error, Result};

use crate::cursor::quoted;

/// The name that Stoa has for a type of a column.
///
/// # Errors
/// 0A000: a type that Stoa has not.
pub(crate) fn column_type(of: &DataType) -> Result<String> {
    Ok(match of {
        DataType::Boolean => "boolean".into(),
        DataType::TinyInt(_) | DataType::SmallInt(_) => "smallint".into(),
        DataType::Int(_) | DataType::Integer(_) => "integer".into(),
        DataType::BigInt(_) => "bigint".into(),
        DataType::Float(ExactNumberInfo::None) | DataType::Real => "real".into(),
        DataType::Double(_) | DataType::DoublePrecision => "double precision".into(),
        DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => {
            let (precision, scale) = digits(info)?;
            format!("numeric({precision},{scale})")
        }
        DataType::String(_) => "text".into(),
        DataType::Varchar(Some(CharacterLength::IntegerLength { length, .. })) => {
            format!("varchar({length})")
        }
        DataType::Char(Some(CharacterLength::IntegerLength { length, .. })) => {
            format!("char({length})")
        }
        DataType::Varchar(None) | DataType::Char(None) => {
            return Err(Error::invalid("VARCHAR and CHAR need a length in HiveQL")
                .with_sqlstate("42601")
                .with_hint("write VARCHAR(100), or STRING"));
        }
        DataType::Binary(_) => "bytea".into(),
        DataType::Date => "date".into(),
        DataType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            "timestamp".into()
        }
        DataType::Array(ArrayElemTypeDef::AngleBracket(item)) => {
            format!("{}[]", column_type(item)?)
        }
        DataType::Map(key, value) => format!("map({}, {})", column_type(key)?, column_type(value)?),
        DataType::Struct(fields, _) => {
            let fields = fields.iter().map(|field| {
                let name =
                    field.field_name.as_ref().map(|name| name.value.clone()).unwrap_or_default();
                Ok(format!("{} {}", quoted(&name.to_lowercase()), column_type(&field.field_type)?))
            });
            format!("struct<{}>", fields.collect::<Result<Vec<_>>>()?.join(", "))
        }
        other => return Err(unknown(other)),
    })
}

/// Digits altogether, and behind the point: 10 and 0 where none are given, as in Hive.
pub(crate) fn digits(info: &ExactNumberInfo) -> Result<(u64, i64)> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let is_valid = (1..=38).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision;
    if is_valid {
        return Ok((precision, scale));
    }
    Err(Error::invalid(format!("DECIMAL({precision},{scale}) is not possible"))
        .with_sqlstate("22023")
        .with_hint("DECIMAL has 1 to 38 digits, of which as many may be behind the point"))
}

fn unknown(of: &DataType) -> Error {
    Error::unsupported(format!("the type {of} is not supported")).with_hint(
        "types are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, STRING, VARCHAR, CHAR, BINARY, DATE, \
         TIMESTAMP, ARRAY, MAP and STRUCT",
    )
}

/// The function that casts to a type, and its other operands.
///
/// # Errors
/// 0A000: Hive has no cast to it, or Stoa has not.
pub(crate) fn cast_to(of: &DataType) -> Result<(&'static str, Vec<i64>)> {
    let length = |of: &Option<CharacterLength>| match of {
        Some(CharacterLength::IntegerLength { length, .. }) => i64::try_from(*length).ok(),
        _ => None,
    };
    Ok(match of {
        DataType::Boolean => ("hive_to_boolean", Vec::new()),
        DataType::TinyInt(_) => ("hive_to_tinyint", Vec::new()),
        DataType::SmallInt(_) => ("hive_to_smallint", Vec::new()),
        DataType::Int(_) | DataType::Integer(_) => ("hive_to_int", Vec::new()),
        DataType::BigInt(_) => ("hive_to_bigint", Vec::new()),
        DataType::Float(ExactNumberInfo::None) | DataType::Real => ("hive_to_float", Vec::new()),
        DataType::Double(_) | DataType::DoublePrecision => ("hive_to_double", Vec::new()),
        DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => {
            let (precision, scale) = digits(info)?;
            ("hive_to_decimal", vec![i64::try_from(precision).unwrap_or(38), scale])
        }
        DataType::String(_) => ("hive_to_string", Vec::new()),
        DataType::Varchar(of) if length(of).is_some() => {
            ("hive_to_varchar", length(of).into_iter().collect())
        }
        DataType::Char(of) if length(of).is_some() => {
            ("hive_to_char", length(of).into_iter().collect())
        }
        DataType::Binary(_) => ("hive_to_binary", Vec::new()),
        DataType::Date => ("hive_to_date", Vec::new()),
        DataType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            ("hive_to_timestamp", Vec::new())
        }
        other => return Err(unknown(other)),
    })
}
