//! `information_schema.columns`, with the names of types that PostgreSQL has.
//!
//! In: the catalog as a caller may know it. Out: one row for each column. Types agree with what
//! `pg_attribute` says of the same column.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int32Builder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::CatalogProvider;
use datafusion::error::Result;
use stoa_semantics::errors::to_datafusion;

use stoa_sql::DeclaredType;
use stoa_sql::identity::Identity;

use crate::server::{self, Asker};

/// Name of the table.
pub(super) const COLUMNS: &str = "columns";

/// Columns of the table that are numbers; all others are texts.
const NUMBERS: [&str; 7] = [
    "ordinal_position",
    "character_maximum_length",
    "character_octet_length",
    "numeric_precision",
    "numeric_precision_radix",
    "numeric_scale",
    "datetime_precision",
];

/// The table's columns, in PostgreSQL's order; those that are always NULL there and nobody reads are left out.
const NAMES: [&str; 24] = [
    "table_catalog",
    "table_schema",
    "table_name",
    "column_name",
    "ordinal_position",
    "column_default",
    "is_nullable",
    "data_type",
    "character_maximum_length",
    "character_octet_length",
    "numeric_precision",
    "numeric_precision_radix",
    "numeric_scale",
    "datetime_precision",
    "interval_type",
    "udt_catalog",
    "udt_schema",
    "udt_name",
    "dtd_identifier",
    "is_identity",
    "identity_generation",
    "is_generated",
    "generation_expression",
    "is_updatable",
];

/// The columns of the table.
pub(super) fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let field = |name: &str| match NUMBERS.contains(&name) {
            true => Field::new(name, DataType::Int32, true),
            false => Field::new(name, DataType::Utf8, true),
        };
        Arc::new(Schema::new(NAMES.map(field).to_vec()))
    });
    Arc::clone(&SCHEMA)
}

/// The rows: all columns of all tables of `catalog`, which is called `database`, but for those of one schema.
///
/// # Errors
/// Those of the catalog.
pub(super) async fn rows(
    database: &str,
    catalog: &dyn CatalogProvider,
    left_out: &str,
    asker: &dyn Asker,
) -> Result<RecordBatch> {
    let mut rows = Rows::default();
    let mut names = catalog.schema_names();
    names.sort();
    let of_tables = asker.namespaces().await.map_err(to_datafusion)?;
    for namespace in names.into_iter().filter(|name| name != left_out) {
        let Some(schema) = catalog.schema(&namespace) else { continue };
        let defaults = match of_tables.contains(&namespace) {
            true => defaults(asker, &namespace).await?,
            false => HashMap::new(),
        };
        let mut tables = schema.table_names();
        tables.sort();
        for name in tables {
            let Some(table) = schema.table(&name).await? else { continue };
            for (position, field) in (1..).zip(table.schema().fields()) {
                let default = defaults.get(&(name.clone(), field.name().clone()));
                rows.add([database, &namespace, &name], position, field, default);
            }
        }
    }
    rows.finish()
}

/// The defaults of a namespace, by table and column.
async fn defaults(asker: &dyn Asker, namespace: &str) -> Result<HashMap<(String, String), String>> {
    let mut found = HashMap::new();
    for table in asker.tables(namespace, true).await.map_err(to_datafusion)? {
        let server::Told::Details(details) = table.told else { continue };
        let of_table = details.defaults.into_iter();
        found.extend(of_table.map(|(column, text)| ((table.name.clone(), column), text)));
    }
    Ok(found)
}

#[derive(Default)]
struct Rows {
    /// By their place among [`NAMES`]; the one that a column is not stays empty.
    texts: [StringBuilder; NAMES.len()],
    numbers: [Int32Builder; NAMES.len()],
}

impl Rows {
    fn add(
        &mut self,
        [database, namespace, table]: [&str; 3],
        position: i32,
        field: &Field,
        default: Option<&String>,
    ) {
        let told = Told::of(field);
        let identity = default.and_then(|text| Identity::of_default(text)).map(|(of, _)| of);
        let identifier = position.to_string();
        for (at, name) in NAMES.iter().enumerate() {
            if NUMBERS.contains(name) {
                self.numbers[at].append_option(match *name {
                    "ordinal_position" => Some(position),
                    "character_maximum_length" => told.characters,
                    "character_octet_length" => told.octets,
                    "numeric_precision" => told.precision,
                    "numeric_precision_radix" => told.radix,
                    "numeric_scale" => told.scale,
                    "datetime_precision" => told.second_digits,
                    _ => None,
                });
                continue;
            }
            self.texts[at].append_option(match *name {
                "table_catalog" | "udt_catalog" => Some(database),
                "table_schema" => Some(namespace),
                "table_name" => Some(table),
                "column_name" => Some(field.name().as_str()),
                "column_default" => default.filter(|_| identity.is_none()).map(String::as_str),
                "is_nullable" => Some(if field.is_nullable() { "YES" } else { "NO" }),
                "data_type" => Some(told.data_type),
                "udt_schema" => Some("pg_catalog"),
                "udt_name" => Some(told.udt_name),
                "dtd_identifier" => Some(identifier.as_str()),
                "is_identity" => Some(if identity.is_some() { "YES" } else { "NO" }),
                "identity_generation" => identity.as_ref().map(Identity::generation),
                "is_generated" => Some("NEVER"),
                "is_updatable" => Some("YES"),
                _ => None,
            });
        }
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let columns = NAMES.iter().enumerate().map(|(at, name)| -> ArrayRef {
            match NUMBERS.contains(name) {
                true => Arc::new(self.numbers[at].finish()),
                false => Arc::new(self.texts[at].finish()),
            }
        });
        let columns = columns.collect();
        Ok(RecordBatch::try_new(schema(), columns)?)
    }
}

/// What is told of a column's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    data_type: &'static str,
    udt_name: &'static str,
    precision: Option<i32>,
    radix: Option<i32>,
    scale: Option<i32>,
    /// Digits of the fraction of a second.
    second_digits: Option<i32>,
    octets: Option<i32>,
    /// Characters that a text may have at most.
    characters: Option<i32>,
}

/// The most bytes that PostgreSQL says a text may have.
const TEXT_OCTETS: i32 = 1 << 30;

/// The most bytes of a character.
const UTF8_OCTETS: i32 = 4;

impl Told {
    fn of(field: &Field) -> Self {
        let metadata = field.metadata();
        match metadata.get("pg.oid_alias").map(String::as_str) {
            Some("regproc") => return Self::named("regproc", "regproc"),
            Some("regclass") => return Self::named("regclass", "regclass"),
            Some("regtype") => return Self::named("regtype", "regtype"),
            Some("regnamespace") => return Self::named("regnamespace", "regnamespace"),
            Some("regrole") => return Self::named("regrole", "regrole"),
            Some(_) => return Self::named("oid", "oid"),
            None => {}
        }
        match metadata.contains_key("pg.char") {
            true => Self::named("\"char\"", "char"),
            false => match DeclaredType::of(field) {
                Some(declared) => Self::declared(declared),
                None => Self::of_type(field.data_type()),
            },
        }
    }

    fn declared(of: DeclaredType) -> Self {
        let text = |data_type, udt_name, length: Option<u32>| {
            let characters = length.and_then(|length| i32::try_from(length).ok());
            let octets =
                characters.map_or(TEXT_OCTETS, |length| length.saturating_mul(UTF8_OCTETS));
            Self { characters, octets: Some(octets), ..Self::named(data_type, udt_name) }
        };
        match of {
            DeclaredType::SmallInt => Self::number("smallint", "int2", 16, Some(0)),
            DeclaredType::Varchar(length) => text("character varying", "varchar", length),
            DeclaredType::Char(length) => text("character", "bpchar", Some(length)),
        }
    }

    fn of_type(of: &DataType) -> Self {
        match of {
            DataType::Boolean => Self::named("boolean", "bool"),
            DataType::Int8 | DataType::Int16 | DataType::UInt8 => {
                Self::number("smallint", "int2", 16, Some(0))
            }
            DataType::Int32 | DataType::UInt16 => Self::number("integer", "int4", 32, Some(0)),
            DataType::Int64 | DataType::UInt32 => Self::number("bigint", "int8", 64, Some(0)),
            DataType::Float16 | DataType::Float32 => Self::number("real", "float4", 24, None),
            DataType::Float64 => Self::number("double precision", "float8", 53, None),
            DataType::UInt64 => Self::named("numeric", "numeric"),
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => Self {
                precision: Some(i32::from(*precision)),
                radix: Some(10),
                scale: Some(i32::from(*scale)),
                ..Self::named("numeric", "numeric")
            },
            DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Self { octets: Some(TEXT_OCTETS), ..Self::named("text", "text") }
            }
            DataType::FixedSizeBinary(16) => Self::named("uuid", "uuid"),
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::named("bytea", "bytea"),
            DataType::Date32 | DataType::Date64 => Self::time("date", "date", 0),
            DataType::Time32(_) | DataType::Time64(_) => {
                Self::time("time without time zone", "time", 6)
            }
            DataType::Timestamp(_, None) => {
                Self::time("timestamp without time zone", "timestamp", 6)
            }
            DataType::Timestamp(_, Some(_)) => {
                Self::time("timestamp with time zone", "timestamptz", 6)
            }
            DataType::Interval(_) | DataType::Duration(_) => Self::time("interval", "interval", 6),
            DataType::Dictionary(_, values) => Self::of_type(values),
            DataType::RunEndEncoded(_, values) => Self::of(values),
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                match array_of(Self::of(item).udt_name) {
                    Some(udt_name) => Self::named("ARRAY", udt_name),
                    None => Self::named("json", "json"),
                }
            }
            DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::Struct(_)
            | DataType::Map(..)
            | DataType::Union(..) => Self::named("json", "json"),
        }
    }

    fn named(data_type: &'static str, udt_name: &'static str) -> Self {
        Self { data_type, udt_name, ..Self::default() }
    }

    /// A number of so many bits.
    fn number(
        data_type: &'static str,
        udt_name: &'static str,
        bits: i32,
        scale: Option<i32>,
    ) -> Self {
        let precision = Some(bits);
        Self { precision, radix: Some(2), scale, ..Self::named(data_type, udt_name) }
    }

    fn time(data_type: &'static str, udt_name: &'static str, digits: i32) -> Self {
        Self { second_digits: Some(digits), ..Self::named(data_type, udt_name) }
    }
}

/// The internal name of the arrays of a type; `None` where PostgreSQL's clients get JSON instead.
fn array_of(udt_name: &str) -> Option<&'static str> {
    Some(match udt_name {
        "bool" => "_bool",
        "int2" => "_int2",
        "int4" => "_int4",
        "int8" => "_int8",
        "float4" => "_float4",
        "float8" => "_float8",
        "numeric" => "_numeric",
        "text" => "_text",
        "uuid" => "_uuid",
        "bytea" => "_bytea",
        "date" => "_date",
        "time" => "_time",
        "timestamp" => "_timestamp",
        "timestamptz" => "_timestamptz",
        "interval" => "_interval",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn types_are_told_by_postgresqls_names() {
        let check = |of: DataType, data_type: &str, udt_name: &str| {
            let told = Told::of(&Field::new("c", of, true));
            assert_eq!((told.data_type, told.udt_name), (data_type, udt_name));
        };
        check(DataType::Int64, "bigint", "int8");
        check(DataType::Utf8View, "text", "text");
        check(DataType::Decimal128(10, 2), "numeric", "numeric");
        let timestamp =
            |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        check(timestamp(None), "timestamp without time zone", "timestamp");
        check(timestamp(Some("UTC")), "timestamp with time zone", "timestamptz");
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        check(list(DataType::Int32), "ARRAY", "_int4");
        check(list(list(DataType::Int32)), "json", "json");
        check(DataType::Struct(Vec::<Field>::new().into()), "json", "json");
    }

    #[test]
    fn digits_are_told_of_numbers() {
        let told = |of: DataType| {
            let told = Told::of(&Field::new("c", of, true));
            (told.precision, told.radix, told.scale)
        };
        assert_eq!(told(DataType::Decimal128(10, 2)), (Some(10), Some(10), Some(2)));
        assert_eq!(told(DataType::Int32), (Some(32), Some(2), Some(0)));
        assert_eq!(told(DataType::Float64), (Some(53), Some(2), None));
        assert_eq!(told(DataType::Utf8), (None, None, None));
    }
}
