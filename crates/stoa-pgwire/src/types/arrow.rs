//! Arrow types to wire types, and back for parameters.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use stoa_query::{DeclaredType, NUMERIC};

use super::PgType;

/// Field metadata that marks an integer column of a system catalog as an OID (`oid`, `regclass`…);
/// the key is `datafusion-pg-catalog`'s.
const OID_ALIAS_KEY: &str = "pg.oid_alias";
/// Field metadata that marks a text column of a system catalog as the one-byte `"char"`.
const CHAR_KEY: &str = "pg.char";
/// Field metadata that marks a list of a system catalog as `int2vector` or `oidvector`.
const VECTOR_KEY: &str = "pg.vector";
const EXTENSION_KEY: &str = "ARROW:extension:name";
/// Field metadata that tells `jsonb` from `json`.
const JSONB_KEY: &str = "stoa.jsonb";

/// The wire type of a column.
pub(crate) fn field_type(field: &Field) -> PgType {
    if let Some(alias) = field.metadata().get(OID_ALIAS_KEY).and_then(|kind| alias_type(kind)) {
        return alias;
    }
    if field.metadata().contains_key(CHAR_KEY) {
        return PgType::Char;
    }
    match field.metadata().get(VECTOR_KEY).map(String::as_str) {
        Some("int2vector") => return PgType::Int2vector,
        Some("oidvector") => return PgType::Oidvector,
        _ => {}
    }
    match field.metadata().get(EXTENSION_KEY).map(String::as_str) {
        Some("arrow.json") if field.metadata().contains_key(JSONB_KEY) => PgType::Jsonb,
        Some("arrow.json") => PgType::Json,
        _ => match DeclaredType::of(field) {
            Some(DeclaredType::Varchar(_)) => PgType::Varchar,
            Some(DeclaredType::Char(_)) => PgType::Bpchar,
            // Sent as it is stored: what is computed of it may be any integer.
            Some(DeclaredType::SmallInt) | None => data_type(field.data_type()),
        },
    }
}

/// Whether the column holds OIDs: unsigned on the wire, although Arrow may hold them signed.
pub(crate) fn is_oid_field(field: &Field) -> bool {
    field.metadata().contains_key(OID_ALIAS_KEY)
}

fn alias_type(kind: &str) -> Option<PgType> {
    Some(match kind {
        "oid" => PgType::Oid,
        "regproc" => PgType::Regproc,
        "regclass" => PgType::Regclass,
        "regtype" => PgType::Regtype,
        "regnamespace" => PgType::Regnamespace,
        "regrole" => PgType::Regrole,
        _ => return None,
    })
}

fn data_type(data_type: &DataType) -> PgType {
    match data_type {
        DataType::Null => PgType::Text,
        DataType::Boolean => PgType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => PgType::Int2,
        DataType::Int32 | DataType::UInt16 => PgType::Int4,
        DataType::Int64 | DataType::UInt32 => PgType::Int8,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => PgType::Numeric,
        DataType::Float16 | DataType::Float32 => PgType::Float4,
        DataType::Float64 => PgType::Float8,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => PgType::Text,
        // What tables call UUID; the engine's functions give no other 16 bytes of fixed size.
        DataType::FixedSizeBinary(16) => PgType::Uuid,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => PgType::Bytea,
        DataType::Date32 | DataType::Date64 => PgType::Date,
        DataType::Time32(_) | DataType::Time64(_) => PgType::Time,
        DataType::Timestamp(_, None) => PgType::Timestamp,
        DataType::Timestamp(_, Some(_)) => PgType::Timestamptz,
        DataType::Interval(_) | DataType::Duration(_) => PgType::Interval,
        DataType::Dictionary(_, values) => self::data_type(values),
        DataType::RunEndEncoded(_, values) => field_type(values),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            array_type(item)
        }
        DataType::Struct(members) if is_record(members) => PgType::Record,
        DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Struct(_)
        | DataType::Map(..)
        | DataType::Union(..) => PgType::Json,
    }
}

/// Whether a struct is the value of `ROW(…)`, whose members have no names of their own.
pub(crate) fn is_record(members: &Fields) -> bool {
    let mut all = members.iter().enumerate();
    !members.is_empty() && all.all(|(at, member)| *member.name() == format!("c{at}"))
}

/// Arrays of scalars are arrays; lists of lists and of structs are JSON, as they need not be
/// rectangular.
fn array_type(item: &Field) -> PgType {
    match field_type(item) {
        _ if item.data_type().is_nested() => PgType::Json,
        PgType::Json => PgType::Json,
        element => element.array().unwrap_or(PgType::Json),
    }
}

/// The type modifier of a column: precision and scale of a decimal, length of a text; -1 where there is none.
pub(crate) fn type_modifier(field: &Field) -> i32 {
    match DeclaredType::of(field) {
        Some(declared) => declared.modifier(),
        None => modifier_of(field.data_type()),
    }
}

fn modifier_of(data_type: &DataType) -> i32 {
    match data_type {
        of if *of == NUMERIC => -1,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let scale = i32::from(*scale).max(0);
            ((i32::from(*precision) << 16) | scale) + 4
        }
        DataType::Dictionary(_, values) => modifier_of(values),
        _ => -1,
    }
}

/// The Arrow type that values of a wire type are bound as; `None` where the planner must infer it.
pub(crate) fn to_arrow(of: PgType) -> Option<DataType> {
    Some(match of {
        PgType::Bool => DataType::Boolean,
        PgType::Bytea => DataType::Binary,
        PgType::Int2 => DataType::Int16,
        PgType::Int4
        | PgType::Oid
        | PgType::Regproc
        | PgType::Regclass
        | PgType::Regtype
        | PgType::Regnamespace
        | PgType::Regrole => DataType::Int32,
        PgType::Int8 => DataType::Int64,
        PgType::Float4 => DataType::Float32,
        PgType::Float8 => DataType::Float64,
        PgType::Char
        | PgType::Name
        | PgType::Text
        | PgType::Bpchar
        | PgType::Varchar
        | PgType::Json
        | PgType::Jsonb => DataType::Utf8,
        PgType::Date => DataType::Date32,
        PgType::Time => DataType::Time64(TimeUnit::Microsecond),
        PgType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        PgType::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        PgType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        // Precision and scale are the value's own; the planner infers from the place it stands in.
        PgType::Numeric
        | PgType::Unknown
        | PgType::Timetz
        | PgType::Record
        | PgType::Int2vector
        | PgType::Oidvector => return None,
        PgType::Uuid => DataType::FixedSizeBinary(16),
        PgType::Array(_) => {
            let element = to_arrow(of.element()?)?;
            DataType::List(Arc::new(Field::new_list_field(element, true)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_lists_and_structs_are_json() {
        let ints = DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)));
        assert_eq!(data_type(&ints), PgType::Int4.array().unwrap());
        let nested = DataType::List(Arc::new(Field::new_list_field(ints, true)));
        assert_eq!(data_type(&nested), PgType::Json);
    }

    #[test]
    fn decimals_carry_their_modifier() {
        assert_eq!(modifier_of(&DataType::Decimal128(10, 2)), ((10 << 16) | 2) + 4);
        assert_eq!(modifier_of(&DataType::Int32), -1);
        let text = DeclaredType::Varchar(Some(3)).declare(Field::new("v", DataType::Utf8, true));
        assert_eq!((field_type(&text), type_modifier(&text)), (PgType::Varchar, 7));
    }

    #[test]
    fn marked_columns_are_oids() {
        let field = Field::new("oid", DataType::Int32, false)
            .with_metadata([(OID_ALIAS_KEY.to_owned(), "regclass".to_owned())].into());
        assert_eq!(field_type(&field), PgType::Regclass);
    }
}
