//! Arrow types by the names SQL users know.

use arrow_schema::DataType;

/// The SQL name of `data_type`, as error messages use it.
pub(crate) fn sql_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean",
        DataType::Int8 => "tinyint",
        DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::UInt8 => "unsigned tinyint",
        DataType::UInt16 => "unsigned smallint",
        DataType::UInt32 => "unsigned integer",
        DataType::UInt64 => "unsigned bigint",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytea",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Timestamp(_, None) => "timestamp",
        DataType::Timestamp(_, Some(_)) => "timestamptz",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            return format!("decimal({precision},{scale})");
        }
        DataType::List(_) | DataType::LargeList(_) => "list",
        DataType::Struct(_) => "struct",
        DataType::Map(_, _) => "map",
        DataType::FixedSizeBinary(bytes) => return format!("binary({bytes})"),
        other => return other.to_string().to_lowercase(),
    }
    .to_owned()
}
