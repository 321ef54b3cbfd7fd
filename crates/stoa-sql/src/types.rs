//! Column types: SQL's names to Arrow, and so to Iceberg.
//!
//! Iceberg has no 8- and 16-bit integers: TINYINT and SMALLINT become INT. CHAR and VARCHAR are STRING. What is declared
//! of a column beyond that is a [`DeclaredType`]; within arrays and structs it is lost. TIMESTAMP is microseconds without a zone, TIMESTAMPTZ microseconds in UTC.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use datafusion_sql::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as SqlType, ExactNumberInfo, TimezoneInfo,
};
use stoa_error::{Error, Result, Subject};
use stoa_table::DeclaredType;

/// The Arrow type of an SQL type.
///
/// # Errors
/// Unsupported (0A000) or unknown (42704) types, with the nearest that exists.
pub fn arrow_type(sql: &SqlType) -> Result<DataType> {
    Ok(match sql {
        SqlType::Boolean | SqlType::Bool => DataType::Boolean,
        SqlType::TinyInt(_) | SqlType::SmallInt(_) | SqlType::Int2(_) | SqlType::Int16 => {
            DataType::Int32
        }
        SqlType::Int(_)
        | SqlType::Integer(_)
        | SqlType::Int4(_)
        | SqlType::MediumInt(_)
        | SqlType::Int32 => DataType::Int32,
        SqlType::BigInt(_) | SqlType::Int8(_) | SqlType::Int64 => DataType::Int64,
        SqlType::Real | SqlType::Float4 | SqlType::Float32 => DataType::Float32,
        SqlType::Float(ExactNumberInfo::Precision(p)) if *p <= 24 => DataType::Float32,
        SqlType::Float(_)
        | SqlType::Float8
        | SqlType::Float64
        | SqlType::Double(_)
        | SqlType::DoublePrecision => DataType::Float64,
        SqlType::Decimal(info) | SqlType::Numeric(info) | SqlType::Dec(info) => decimal(info)?,
        SqlType::Text
        | SqlType::String(_)
        | SqlType::Varchar(_)
        | SqlType::CharVarying(_)
        | SqlType::CharacterVarying(_)
        | SqlType::Nvarchar(_)
        | SqlType::Char(_)
        | SqlType::Character(_)
        | SqlType::Clob(_)
        | SqlType::JSON
        | SqlType::JSONB => DataType::Utf8,
        SqlType::Bytea
        | SqlType::Binary(_)
        | SqlType::Varbinary(_)
        | SqlType::Blob(_)
        | SqlType::Bytes(_) => DataType::Binary,
        SqlType::Date | SqlType::Date32 => DataType::Date32,
        SqlType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            DataType::Time64(TimeUnit::Microsecond)
        }
        SqlType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
        | SqlType::TimestampNtz(_)
        | SqlType::Datetime(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
        SqlType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        SqlType::Uuid => DataType::FixedSizeBinary(16),
        SqlType::Array(
            ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => DataType::List(Arc::new(Field::new("element", arrow_type(element)?, true))),
        SqlType::Struct(fields, _) => {
            let fields = fields.iter().enumerate().map(|(index, field)| {
                let name = match &field.field_name {
                    Some(name) => crate::normalise(name),
                    None => format!("f{}", index + 1),
                };
                Ok(Field::new(name, arrow_type(&field.field_type)?, true))
            });
            DataType::Struct(fields.collect::<Result<Fields>>()?)
        }
        SqlType::Map(key, value) => map(arrow_type(key)?, arrow_type(value)?),
        SqlType::Custom(name, _) => return named(&name.to_string()),
        other => {
            return Err(Error::unsupported(format!("type {other} is not supported"))
                .with_hint("docs/sql.md lists the column types"));
        }
    })
}

/// What is declared of a column of this type beyond what is stored.
///
/// # Errors
/// A length that PostgreSQL does not take (22023).
pub(super) fn declared_type(sql: &SqlType) -> Result<Option<DeclaredType>> {
    let length = |name: &str, length: &Option<CharacterLength>| match length {
        Some(CharacterLength::IntegerLength { length, .. }) => {
            let known = u32::try_from(*length).ok().filter(|length| *length <= LENGTH_MAX);
            match known {
                Some(0) => Err(format!("length for type {name} must be at least 1")),
                Some(length) => Ok(Some(length)),
                None => Err(format!("length for type {name} cannot exceed {LENGTH_MAX}")),
            }
        }
        _ => Ok(None),
    };
    let declared = match sql {
        SqlType::SmallInt(_) | SqlType::Int2(_) | SqlType::Int16 => {
            Ok(Some(DeclaredType::SmallInt))
        }
        SqlType::Varchar(of)
        | SqlType::CharVarying(of)
        | SqlType::CharacterVarying(of)
        | SqlType::Nvarchar(of) => {
            length("varchar", of).map(|length| Some(DeclaredType::Varchar(length)))
        }
        SqlType::Char(of) | SqlType::Character(of) => {
            length("char", of).map(|length| Some(DeclaredType::Char(length.unwrap_or(1))))
        }
        _ => Ok(None),
    };
    declared.map_err(|said| Error::invalid(said).with_sqlstate("22023"))
}

/// The longest texts that can be declared, as in PostgreSQL.
const LENGTH_MAX: u32 = 10_485_760;

fn decimal(info: &ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (38, 9),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(p @ 1..=38), Ok(s)) if s >= 0 && s as u64 <= precision => {
            Ok(DataType::Decimal128(p, s))
        }
        _ => Err(Error::invalid(format!("decimal({precision}, {scale}) is out of range"))
            .with_hint("precision is 1 to 38, scale 0 to precision")
            .with_sqlstate("22023")),
    }
}

fn map(key: DataType, value: DataType) -> DataType {
    let fields =
        Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields), false)), false)
}

fn named(name: &str) -> Result<DataType> {
    match name.to_lowercase().as_str() {
        // The type of names in the system catalog.
        "name" => Ok(DataType::Utf8),
        "timestamptz" => Ok(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        "timestamp_ntz" => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
        "timestamp_ltz" => Ok(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        "long" => Ok(DataType::Int64),
        "short" | "byte" => Ok(DataType::Int32),
        other => Err(Error::not_found(format!("type \"{other}\" does not exist"))
            .with_sqlstate("42704")
            .with_hint("docs/sql.md lists the column types")
            .about(Subject::Type(other.to_owned()))),
    }
}
