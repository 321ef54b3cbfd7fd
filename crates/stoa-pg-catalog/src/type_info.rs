//! PostgreSQL's type of a column, as `pg_attribute` tells it.

use arrow::datatypes::{DataType, Field};
use stoa_sql::DeclaredType;

/// What `pg_attribute` says about a column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeInfo {
    pub(super) oid: i32,
    /// Bytes; -1 where it varies.
    pub(super) length: i16,
    pub(super) by_value: bool,
    pub(super) align: &'static str,
    pub(super) storage: &'static str,
    /// Precision and scale of decimals, length of texts; -1 where there is none.
    pub(super) modifier: i32,
    /// 100 (the default) for text, else 0.
    pub(super) collation: i32,
    /// 1 for arrays.
    pub(super) dimensions: i32,
}

const TEXT: i32 = 25;
const JSON: i32 = 114;

/// The type of a column: the declared one, else what `stoa-pgwire` says in row descriptions; a test there
/// compares the two.
pub(super) fn type_info(field: &Field) -> TypeInfo {
    if let Some(kind) = field.metadata().get("pg.oid_alias") {
        return fixed(oid_alias(kind), 4, "i");
    }
    if field.metadata().contains_key("pg.char") {
        return fixed(18, 1, "c");
    }
    match DeclaredType::of(field) {
        Some(DeclaredType::SmallInt) => fixed(21, 2, "s"),
        Some(declared @ (DeclaredType::Varchar(_) | DeclaredType::Char(_))) => {
            let oid = if matches!(declared, DeclaredType::Char(_)) { 1042 } else { 1043 };
            TypeInfo { collation: 100, modifier: declared.modifier(), ..varying(oid) }
        }
        None => of(field.data_type()),
    }
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
        DataType::FixedSizeBinary(16) => fixed(2950, 16, "c"),
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

/// Names of scalar types: OID, the name in `pg_type`, SQL's name.
const NAMES: [(i32, &str, &str); 26] = [
    (16, "bool", "boolean"),
    (17, "bytea", "bytea"),
    (18, "char", "\"char\""),
    (19, "name", "name"),
    (20, "int8", "bigint"),
    (21, "int2", "smallint"),
    (23, "int4", "integer"),
    (TEXT, "text", "text"),
    (26, "oid", "oid"),
    (JSON, "json", "json"),
    (700, "float4", "real"),
    (701, "float8", "double precision"),
    (1042, "bpchar", "character"),
    (1043, "varchar", "character varying"),
    (1082, "date", "date"),
    (1083, "time", "time without time zone"),
    (1114, "timestamp", "timestamp without time zone"),
    (1184, "timestamptz", "timestamp with time zone"),
    (1186, "interval", "interval"),
    (1700, "numeric", "numeric"),
    (2205, "regclass", "regclass"),
    (2206, "regtype", "regtype"),
    (2950, "uuid", "uuid"),
    (3802, "jsonb", "jsonb"),
    (4089, "regnamespace", "regnamespace"),
    (4096, "regrole", "regrole"),
];

/// The OID of the type with this name, which may be quoted, qualified, have a length, or end with `[]`.
pub(super) fn type_named(name: &str) -> Option<i32> {
    let name = without_modifier(&name.trim().to_ascii_lowercase());
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    if let Some(element) = name.strip_suffix("[]") {
        return array_oid(type_named(element)?);
    }
    let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    let name = match (quoted, name) {
        (Some(name), _) => name,
        (None, "int") => "int4",
        (None, "float") => "float8",
        (None, "decimal" | "dec") => "numeric",
        (None, "char") => "bpchar",
        (None, "time without time zone") => "time",
        (None, "timestamp without time zone") => "timestamp",
        (None, other) => other,
    };
    let is_it = |short: &str, sql: &str| name == short || quoted.is_none() && name == sql;
    let found = NAMES.iter().find(|(_, short, sql)| is_it(short, sql)).map(|(oid, _, _)| *oid);
    found.or_else(|| PSEUDO.iter().find(|(_, pseudo)| *pseudo == name).map(|(oid, _)| *oid))
}

/// PostgreSQL's pseudo-types, which functions have and no column: clients ask for them, to leave them out.
const PSEUDO: [(i32, &str); 14] = [
    (705, "unknown"),
    (2249, "record"),
    (2275, "cstring"),
    (2276, "any"),
    (2277, "anyarray"),
    (2278, "void"),
    (2279, "trigger"),
    (2280, "language_handler"),
    (2281, "internal"),
    (2283, "anyelement"),
    (2776, "anynonarray"),
    (3115, "fdw_handler"),
    (3500, "anyenum"),
    (3838, "event_trigger"),
];

/// `timestamp(3) with time zone` without its `(3)`.
fn without_modifier(name: &str) -> String {
    match (name.find('('), name.find(')')) {
        (Some(begin), Some(end)) if begin < end => {
            let (before, after) = (name[..begin].trim_end(), &name[end + 1..]);
            format!("{before}{after}")
        }
        _ => name.to_owned(),
    }
}

/// SQL's name of a type that [`type_named`] knows.
pub(super) fn type_shown(oid: i32) -> String {
    let named = |oid: i32| NAMES.iter().find(|(known, _, _)| *known == oid);
    if let Some((oid, _, sql)) = named(oid) {
        // The other one is `character`.
        return if *oid == 18 { "\"char\"".to_owned() } else { (*sql).to_owned() };
    }
    if let Some((_, name)) = PSEUDO.iter().find(|(known, _)| *known == oid) {
        return (*name).to_owned();
    }
    let element = NAMES.iter().find(|(element, _, _)| array_oid(*element) == Some(oid));
    element.map_or_else(|| oid.to_string(), |(_, _, sql)| format!("{sql}[]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_names() {
        assert_eq!(type_named("timestamptz"), Some(1184));
        assert_eq!(type_named("pg_catalog.int4"), Some(23));
        assert_eq!(type_named("Double Precision"), Some(701));
        assert_eq!(type_named("text[]"), Some(1009));
        assert_eq!(type_named("hstore"), None);
        assert_eq!(type_named("varchar(3)"), Some(1043));
        assert_eq!(type_named("timestamp(3) with time zone"), Some(1184));
        assert_eq!((type_named("char"), type_named("\"char\"")), (Some(1042), Some(18)));
        assert_eq!((type_shown(1007).as_str(), type_shown(23).as_str()), ("integer[]", "integer"));
    }

    #[test]
    fn decimals_carry_their_digits() {
        let field = Field::new("d", DataType::Decimal128(10, 2), true);
        assert_eq!(type_info(&field).modifier, ((10 << 16) | 2) + 4);
    }
}
