//! Names of types in casts, where PostgreSQL means another one than the engine.
//!
//! A length (`varchar(3)`) or a number of digits of a second (`timestamp(0)`) travels as metadata of the
//! cast's field, for [`super::casts`].

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::error::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as SqlType, ExactNumberInfo, TimezoneInfo,
};

use super::call::unsupported;
use super::json_kind::JsonKind;
use super::numeric::NUMERIC;
use super::uuids;
use crate::errors::to_datafusion;

/// Metadata: characters of a text at most.
const LENGTH_KEY: &str = "stoa.cast.length";
/// Metadata: digits of the fraction of a second.
const PRECISION_KEY: &str = "stoa.cast.precision";

/// Types by their names in PostgreSQL.
#[derive(Debug)]
pub(super) struct PostgresTypes {
    /// Who knows the types that are not named here.
    pub(super) others: Option<Arc<dyn TypePlanner>>,
}

impl TypePlanner for PostgresTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        Ok(match sql_type {
            SqlType::Float(ExactNumberInfo::Precision(digits)) if *digits <= 24 => {
                plain(DataType::Float32)
            }
            SqlType::Float(_) | SqlType::Double(_) | SqlType::Float64 => plain(DataType::Float64),
            SqlType::Numeric(ExactNumberInfo::None)
            | SqlType::Decimal(ExactNumberInfo::None)
            | SqlType::Dec(ExactNumberInfo::None) => plain(NUMERIC),
            SqlType::Timestamp(digits, zone) => {
                let zone = match zone {
                    TimezoneInfo::Tz | TimezoneInfo::WithTimeZone => Some("UTC".into()),
                    _ => None,
                };
                limited(DataType::Timestamp(TimeUnit::Microsecond, zone), PRECISION_KEY, *digits)
            }
            SqlType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
                limited(DataType::Time64(TimeUnit::Microsecond), PRECISION_KEY, *digits)
            }
            SqlType::Interval { fields: None, precision: Some(digits) } => limited(
                DataType::Interval(IntervalUnit::MonthDayNano),
                PRECISION_KEY,
                Some(*digits),
            ),
            SqlType::Varchar(length)
            | SqlType::CharVarying(length)
            | SqlType::CharacterVarying(length)
            | SqlType::Nvarchar(length) => limited(DataType::Utf8, LENGTH_KEY, characters(length)),
            SqlType::Char(length) | SqlType::Character(length) => match characters(length) {
                None | Some(1) => limited(DataType::Utf8, LENGTH_KEY, Some(1)),
                Some(_) => {
                    return Err(unsupported(
                        "casts to char(n), which fill up with blanks, are not supported",
                        "use varchar(n), or rpad(…)",
                    ));
                }
            },
            // The type of names in the system catalog.
            SqlType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("name") => {
                plain(DataType::Utf8)
            }
            SqlType::JSON => json_field(JsonKind::Json),
            SqlType::JSONB => json_field(JsonKind::Jsonb),
            SqlType::Uuid => plain(DataType::FixedSizeBinary(uuids::BYTES)),
            SqlType::Array(
                ArrayElemTypeDef::SquareBracket(element, _)
                | ArrayElemTypeDef::AngleBracket(element),
            ) => match self.plan_type_field(element)? {
                Some(element) => list(element.data_type()),
                None => match stoa_sql::arrow_type(element) {
                    Ok(element) => list(&element),
                    Err(_) => None,
                },
            },
            other => {
                let others = self.others.as_ref().map(|others| others.plan_type_field(other));
                match others.transpose()?.flatten() {
                    None => must_exist(other)?,
                    known => known,
                }
            }
        })
    }
}

/// Types of PostgreSQL's that Stoa has not.
const MISSING: &[&str] = &[
    "bpchar",
    "box",
    "bit",
    "cidr",
    "circle",
    "cstring",
    "inet",
    "int4range",
    "int8range",
    "jsonpath",
    "line",
    "lseg",
    "macaddr",
    "money",
    "numrange",
    "oid",
    "path",
    "pg_lsn",
    "point",
    "polygon",
    "tsquery",
    "tsvector",
    "varbit",
    "void",
    "xid",
    "xml",
];

/// Leaves a type to the engine, unless no one has one of the name.
fn must_exist(of: &SqlType) -> Result<Option<FieldRef>> {
    let SqlType::Custom(name, _) = of else { return Ok(None) };
    let name = name.to_string().to_ascii_lowercase();
    if name.contains('.') || name.starts_with("reg") || MISSING.contains(&name.as_str()) {
        return Ok(None);
    }
    match stoa_sql::arrow_type(of) {
        Err(error) if error.sqlstate() == "42704" => Err(to_datafusion(error)),
        _ => Ok(None),
    }
}

fn plain(of: DataType) -> Option<FieldRef> {
    Some(Arc::new(Field::new("", of, true)))
}

fn json_field(kind: JsonKind) -> Option<FieldRef> {
    Some(Arc::new(Field::new("", DataType::Utf8, true).with_metadata(kind.metadata())))
}

fn list(element: &DataType) -> Option<FieldRef> {
    plain(DataType::List(Arc::new(Field::new_list_field(element.clone(), true))))
}

fn limited(of: DataType, key: &str, limit: Option<u64>) -> Option<FieldRef> {
    let field = Field::new("", of, true);
    Some(Arc::new(match limit {
        Some(limit) => field.with_metadata(HashMap::from([(key.to_owned(), limit.to_string())])),
        None => field,
    }))
}

fn characters(length: &Option<CharacterLength>) -> Option<u64> {
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
        _ => None,
    }
}

/// Characters that a cast leaves of a text.
pub(super) fn length_of(field: &Field) -> Option<usize> {
    field.metadata().get(LENGTH_KEY)?.parse().ok()
}

/// Digits that a cast leaves of the fraction of a second.
pub(super) fn precision_of(field: &Field) -> Option<u32> {
    field.metadata().get(PRECISION_KEY)?.parse().ok()
}
