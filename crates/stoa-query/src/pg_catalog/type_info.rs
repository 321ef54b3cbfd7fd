//! PostgreSQL's type of a column, as `pg_attribute` tells it.

use arrow::datatypes::{DataType, Field};

/// What `pg_attribute` says about a column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeInfo {
    pub(super) oid: i32,
    /// Bytes; -1 where it varies.
    pub(super) length: i16,
    pub(super) by_value: bool,
    pub(super) align: &'static str,
    pub(super) storage: &'static str,
    /// Precision and scale of decimals; -1 where there is none.
    pub(super) modifier: i32,
    /// 100 (the default) for text, else 0.
    pub(super) collation: i32,
    /// 1 for arrays.
    pub(super) dimensions: i32,
}

const TEXT: i32 = 25;
const JSON: i32 = 114;

/// The type of a column. Agrees with what `stoa-pgwire` says in row descriptions; a test there
/// compares the two.
pub(super) fn type_info(field: &Field) -> TypeInfo {
    let extension = field.metadata().get("ARROW:extension:name").map(String::as_str);
    if extension == Some("arrow.uuid") {
        return fixed(2950, 16, "c");
    }
    if let Some(kind) = field.metadata().get("pg.oid_alias") {
        return fixed(oid_alias(kind), 4, "i");
    }
    if field.metadata().contains_key("pg.char") {
        return fixed(18, 1, "c");
    }
    of(field.data_type())
}

fn of(data_type: &DataType) -> TypeInfo {
    match data_type {
        DataType::Boolean => fixed(16, 1, "c"),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => fixed(21, 2, "s"),
        DataType::Int32 | DataType::UInt16 => fixed(23, 4, "i"),
        DataType::Int64 | DataType::UInt32 => fixed(20, 8, "d"),
        DataType::Float16 | DataType::Float32 => fixed(700, 4, "i"),
        DataType::Float64 => fixed(701, 8, "d"),
        DataType::UInt64 => TypeInfo { storage: "m", ..varying(1700) },
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let modifier = ((i32::from(*precision) << 16) | i32::from(*scale).max(0)) + 4;
            TypeInfo { storage: "m", modifier, ..varying(1700) }
        }
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            TypeInfo { collation: 100, ..varying(TEXT) }
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => varying(17),
        DataType::Date32 | DataType::Date64 => fixed(1082, 4, "i"),
        DataType::Time32(_) | DataType::Time64(_) => fixed(1083, 8, "d"),
        DataType::Timestamp(_, None) => fixed(1114, 8, "d"),
        DataType::Timestamp(_, Some(_)) => fixed(1184, 8, "d"),
        DataType::Interval(_) | DataType::Duration(_) => {
            TypeInfo { by_value: false, ..fixed(1186, 16, "d") }
        }
        DataType::Dictionary(_, values) => of(values),
        DataType::RunEndEncoded(_, values) => type_info(values),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            match array_oid(type_info(item).oid) {
                Some(oid) => TypeInfo { dimensions: 1, ..varying(oid) },
                None => varying(JSON),
            }
        }
        DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Struct(_)
        | DataType::Map(..)
        | DataType::Union(..) => varying(JSON),
    }
}

const fn fixed(oid: i32, length: i16, align: &'static str) -> TypeInfo {
    TypeInfo {
        oid,
        length,
        by_value: length <= 8,
        align,
        storage: "p",
        modifier: -1,
        collation: 0,
        dimensions: 0,
    }
}

const fn varying(oid: i32) -> TypeInfo {
    TypeInfo {
        oid,
        length: -1,
        by_value: false,
        align: "i",
        storage: "x",
        modifier: -1,
        collation: 0,
        dimensions: 0,
    }
}

fn oid_alias(kind: &str) -> i32 {
    match kind {
        "regproc" => 24,
        "regclass" => 2205,
        "regtype" => 2206,
        "regnamespace" => 4089,
        "regrole" => 4096,
        _ => 26,
    }
}

/// The array type over an element type; `None` for what travels as JSON.
fn array_oid(element: i32) -> Option<i32> {
    Some(match element {
        16 => 1000,
        17 => 1001,
        20 => 1016,
        21 => 1005,
        23 => 1007,
        TEXT => 1009,
        700 => 1021,
        701 => 1022,
        1082 => 1182,
        1083 => 1183,
        1114 => 1115,
        1184 => 1185,
        1186 => 1187,
        1700 => 1231,
        2950 => 2951,
        _ => return None,
    })
}

/// The SQL name of a type OID, as `information_schema.columns` gives it.
pub(super) fn sql_name(oid: i32) -> &'static str {
    match oid {
        16 => "boolean",
        17 => "bytea",
        20 => "bigint",
        21 => "smallint",
        23 => "integer",
        TEXT => "text",
        JSON => "json",
        700 => "real",
        701 => "double precision",
        1082 => "date",
        1083 => "time without time zone",
        1114 => "timestamp without time zone",
        1184 => "timestamp with time zone",
        1186 => "interval",
        1700 => "numeric",
        2950 => "uuid",
        18 => "\"char\"",
        26 => "oid",
        24 => "regproc",
        2205 => "regclass",
        2206 => "regtype",
        4089 => "regnamespace",
        4096 => "regrole",
        _ => "ARRAY",
    }
}

/// The name of a type OID as `udt_name` gives it.
pub(super) fn udt_name(oid: i32) -> &'static str {
    match oid {
        16 => "bool",
        20 => "int8",
        21 => "int2",
        23 => "int4",
        700 => "float4",
        701 => "float8",
        1083 => "time",
        1114 => "timestamp",
        1184 => "timestamptz",
        18 => "char",
        1000 => "_bool",
        1001 => "_bytea",
        1016 => "_int8",
        1005 => "_int2",
        1007 => "_int4",
        1009 => "_text",
        1021 => "_float4",
        1022 => "_float8",
        1182 => "_date",
        1183 => "_time",
        1115 => "_timestamp",
        1185 => "_timestamptz",
        1187 => "_interval",
        1231 => "_numeric",
        2951 => "_uuid",
        other => sql_name(other),
    }
}
