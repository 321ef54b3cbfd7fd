//! Arrow schemas to Iceberg schemas and back.
//!
//! Arrow fields carry their Iceberg field id in the metadata key [`FIELD_ID_KEY`] and a comment in
//! `comment`. Types that Iceberg does not tell apart come back as the plain one: every text type as
//! `Utf8`, every binary type but UUIDs as `Binary`, small integers as `Int32`, timestamps in microseconds.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, SchemaRef, TimeUnit};
use iceberg::spec::{
    ListType, MapType, NestedField, NestedFieldRef, PrimitiveType, Schema, StructType, Type,
};
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};

use crate::error::{self, undefined_column};

/// Metadata key of an Arrow field for its Iceberg field id.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// Metadata key of an Arrow field for its comment.
pub(crate) const COMMENT_KEY: &str = "comment";

/// Bytes of a UUID; the engine's binary values of this size are none else.
pub(crate) const UUID_BYTES: i32 = 16;

/// The time zone of Arrow columns that hold instants.
const UTC: &str = "+00:00";

/// Gives out field ids, counting up.
#[derive(Debug)]
pub(crate) struct FieldIds {
    last: i32,
}

impl FieldIds {
    /// Starts after `last`.
    pub(crate) fn after(last: i32) -> Self {
        Self { last }
    }

    /// The last id given out.
    pub(crate) fn last(&self) -> i32 {
        self.last
    }

    fn next(&mut self) -> i32 {
        self.last += 1;
        self.last
    }
}

/// The Iceberg schema of a new table; ids start at 1, breadth first like Iceberg's Java.
pub(crate) fn to_iceberg(schema: &arrow_schema::Schema) -> Result<Schema> {
    if schema.fields().is_empty() {
        return Err(Error::invalid("a table needs at least one column").with_sqlstate("42P16"));
    }
    let mut names = std::collections::HashSet::new();
    for field in schema.fields() {
        if field.name().is_empty() {
            return Err(Error::invalid("a column has an empty name").with_sqlstate("42602"));
        }
        if !names.insert(field.name()) {
            return Err(Error::invalid(format!("column {:?} is named twice", field.name()))
                .with_sqlstate("42701"));
        }
    }
    let fields = fields_to_iceberg(schema.fields(), &mut FieldIds::after(0))?;
    Schema::builder().with_fields(fields).build().map_err(|e| error::invalid_request("schema", e))
}

/// A schema whose rows are identified by these columns.
///
/// # Errors
/// Unknown columns (42703), columns of types that cannot identify a row (42804), and columns that may be NULL (42P16).
pub(crate) fn with_identifiers(
    ident: &TableIdent,
    schema: Schema,
    identifiers: &[String],
) -> Result<Schema> {
    let mut ids = Vec::with_capacity(identifiers.len());
    for name in identifiers {
        let field = schema.field_by_name(name).ok_or_else(|| undefined_column(ident, name))?;
        let what = |what: &str| {
            Error::invalid(format!("table {ident}: column {name:?} of the primary key {what}"))
        };
        match field.field_type.as_primitive_type() {
            None | Some(PrimitiveType::Float | PrimitiveType::Double) => {
                return Err(what(&format!("has the type {}", field.field_type))
                    .with_sqlstate("42804")
                    .with_hint("a key has neither floating-point nor nested columns"));
            }
            Some(_) if !field.required => {
                return Err(what("may be NULL").with_sqlstate("42P16").with_hint("write NOT NULL"));
            }
            Some(_) => ids.push(field.id),
        }
    }
    if ids.is_empty() {
        return Ok(schema);
    }
    schema
        .into_builder()
        .with_identifier_field_ids(ids)
        .build()
        .map_err(|e| error::invalid_request(format!("table {ident}"), e))
}

/// One Arrow field as Iceberg's, with fresh ids throughout.
pub(crate) fn field_to_iceberg(field: &Field, ids: &mut FieldIds) -> Result<NestedFieldRef> {
    let id = ids.next();
    nested(field, id, ids)
}

fn fields_to_iceberg(fields: &Fields, ids: &mut FieldIds) -> Result<Vec<NestedFieldRef>> {
    let own: Vec<i32> = fields.iter().map(|_| ids.next()).collect();
    fields.iter().zip(own).map(|(field, id)| nested(field, id, ids)).collect()
}

fn nested(field: &Field, id: i32, ids: &mut FieldIds) -> Result<NestedFieldRef> {
    let field_type = type_to_iceberg(field.name(), field.data_type(), ids)?;
    let nested = NestedField::new(id, field.name(), field_type, !field.is_nullable());
    Ok(Arc::new(match field.metadata().get(COMMENT_KEY) {
        Some(comment) => nested.with_doc(comment),
        None => nested,
    }))
}

fn type_to_iceberg(column: &str, data_type: &DataType, ids: &mut FieldIds) -> Result<Type> {
    if let Some(primitive) = primitive_to_iceberg(data_type) {
        return Ok(Type::Primitive(primitive));
    }
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => {
            let id = ids.next();
            let element = type_to_iceberg(item.name(), item.data_type(), ids)?;
            let element = NestedField::list_element(id, element, !item.is_nullable());
            Ok(Type::List(ListType::new(Arc::new(element))))
        }
        DataType::Struct(fields) => {
            Ok(Type::Struct(StructType::new(fields_to_iceberg(fields, ids)?)))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let (key_id, value_id) = (ids.next(), ids.next());
                let (key, value) = (&pair[0], &pair[1]);
                let key_type = type_to_iceberg(column, key.data_type(), ids)?;
                let value_type = type_to_iceberg(column, value.data_type(), ids)?;
                Ok(Type::Map(MapType::new(
                    Arc::new(NestedField::map_key_element(key_id, key_type)),
                    Arc::new(NestedField::map_value_element(
                        value_id,
                        value_type,
                        !value.is_nullable(),
                    )),
                )))
            }
            _ => Err(unsupported(column, data_type)),
        },
        DataType::Dictionary(_, values) => type_to_iceberg(column, values, ids),
        other => Err(unsupported(column, other)),
    }
}

/// The primitive Iceberg type that stores `data_type`, if one does.
pub(crate) fn primitive_to_iceberg(data_type: &DataType) -> Option<PrimitiveType> {
    Some(match data_type {
        DataType::Boolean => PrimitiveType::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            PrimitiveType::Int
        }
        DataType::Int64 | DataType::UInt32 => PrimitiveType::Long,
        DataType::Float16 | DataType::Float32 => PrimitiveType::Float,
        DataType::Float64 => PrimitiveType::Double,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => PrimitiveType::Decimal {
            precision: u32::from(*precision),
            scale: u32::try_from(*scale).ok()?,
        },
        DataType::Date32 | DataType::Date64 => PrimitiveType::Date,
        DataType::Time32(_) | DataType::Time64(_) => PrimitiveType::Time,
        DataType::Timestamp(_, None) => PrimitiveType::Timestamp,
        DataType::Timestamp(_, Some(_)) => PrimitiveType::Timestamptz,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => PrimitiveType::String,
        DataType::FixedSizeBinary(UUID_BYTES) => PrimitiveType::Uuid,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => PrimitiveType::Binary,
        DataType::Dictionary(_, values) => return primitive_to_iceberg(values),
        _ => return None,
    })
}

/// The Arrow schema of an Iceberg one, with field ids and comments.
pub(crate) fn to_arrow(schema: &Schema) -> Result<SchemaRef> {
    let fields = fields_to_arrow(schema.as_struct())?;
    Ok(Arc::new(arrow_schema::Schema::new(fields)))
}

fn fields_to_arrow(fields: &StructType) -> Result<Fields> {
    fields.fields().iter().map(|field| field_to_arrow(field)).collect()
}

fn field_to_arrow(field: &NestedField) -> Result<Field> {
    let data_type = type_to_arrow(&field.name, &field.field_type)?;
    let mut metadata = HashMap::from([(FIELD_ID_KEY.to_owned(), field.id.to_string())]);
    if let Some(comment) = &field.doc {
        metadata.insert(COMMENT_KEY.to_owned(), comment.clone());
    }
    Ok(Field::new(&field.name, data_type, !field.required).with_metadata(metadata))
}

fn type_to_arrow(column: &str, field_type: &Type) -> Result<DataType> {
    Ok(match field_type {
        Type::Primitive(primitive) => primitive_to_arrow(column, primitive)?,
        Type::Struct(fields) => DataType::Struct(fields_to_arrow(fields)?),
        Type::List(list) => DataType::List(Arc::new(field_to_arrow(&list.element_field)?)),
        Type::Map(map) => {
            let pair = Fields::from(vec![
                field_to_arrow(&map.key_field)?,
                field_to_arrow(&map.value_field)?,
            ]);
            let entries = Field::new("key_value", DataType::Struct(pair), false);
            DataType::Map(Arc::new(entries), false)
        }
    })
}

fn primitive_to_arrow(column: &str, primitive: &PrimitiveType) -> Result<DataType> {
    Ok(match primitive {
        PrimitiveType::Boolean => DataType::Boolean,
        PrimitiveType::Int => DataType::Int32,
        PrimitiveType::Long => DataType::Int64,
        PrimitiveType::Float => DataType::Float32,
        PrimitiveType::Double => DataType::Float64,
        PrimitiveType::Decimal { precision, scale } => {
            match (u8::try_from(*precision), i8::try_from(*scale)) {
                (Ok(precision), Ok(scale)) => DataType::Decimal128(precision, scale),
                _ => return Err(unsupported_iceberg(column, primitive)),
            }
        }
        PrimitiveType::Date => DataType::Date32,
        PrimitiveType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        PrimitiveType::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        PrimitiveType::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
        PrimitiveType::TimestamptzNs => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
        PrimitiveType::String => DataType::Utf8,
        PrimitiveType::Uuid => DataType::FixedSizeBinary(UUID_BYTES),
        PrimitiveType::Binary | PrimitiveType::Fixed(_) => DataType::Binary,
        PrimitiveType::Time => DataType::Time64(TimeUnit::Microsecond),
    })
}

fn unsupported(column: &str, data_type: &DataType) -> Error {
    let named: &dyn std::fmt::Display = match data_type {
        DataType::Interval(_) => &"interval",
        other => other,
    };
    let error = Error::unsupported(format!("column {column:?}: type {named} cannot be stored"));
    match data_type {
        DataType::UInt64 => error.with_hint("cast it to BIGINT or DECIMAL(20, 0)"),
        DataType::Null => error.with_hint("give the column a type, as in CAST(NULL AS INT)"),
        DataType::Interval(_) => error.with_hint("store it as text or as a number"),
        _ => error,
    }
}

fn unsupported_iceberg(column: &str, primitive: &PrimitiveType) -> Error {
    Error::unsupported(format!("column {column:?}: Iceberg type {primitive} cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_schema_comes_back_with_ids() {
        let item = Arc::new(Field::new("item", DataType::Int8, true));
        let pair = Fields::from(vec![
            Field::new("keys", DataType::LargeUtf8, false),
            Field::new("values", DataType::Float64, true),
        ]);
        let schema = arrow_schema::Schema::new(vec![
            Field::new("a", DataType::Int16, false)
                .with_metadata(HashMap::from([("comment".to_owned(), "first".to_owned())])),
            Field::new("b", DataType::List(item), true),
            Field::new(
                "c",
                DataType::Map(Arc::new(Field::new("e", DataType::Struct(pair), false)), false),
                true,
            ),
            Field::new("d", DataType::Timestamp(TimeUnit::Second, Some("Asia/Tokyo".into())), true),
        ]);
        let arrow = to_arrow(&to_iceberg(&schema).unwrap()).unwrap();
        let id = |field: &Field| field.metadata()[FIELD_ID_KEY].clone();
        let ids: Vec<_> = arrow.fields().iter().map(|field| id(field)).collect();
        assert_eq!(ids, ["1", "2", "3", "4"]);
        assert_eq!(arrow.field(0).data_type(), &DataType::Int32);
        assert_eq!(arrow.field(0).metadata()[COMMENT_KEY], "first");
        assert!(!arrow.field(0).is_nullable());
        let DataType::List(element) = arrow.field(1).data_type() else { panic!("no list") };
        assert_eq!((id(element), element.data_type()), ("5".to_owned(), &DataType::Int32));
        assert_eq!(
            arrow.field(3).data_type(),
            &DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))
        );
        assert_eq!(to_iceberg(&arrow).unwrap(), to_iceberg(&schema).unwrap());
    }

    #[test]
    fn what_cannot_be_stored_says_so() {
        let check = |fields: Vec<Field>, code: &str| {
            let error = to_iceberg(&arrow_schema::Schema::new(fields)).unwrap_err();
            assert_eq!(error.sqlstate(), code, "{error:?}");
        };
        check(vec![], "42P16");
        check(vec![Field::new("a", DataType::Null, true)], "0A000");
        check(vec![Field::new("a", DataType::UInt64, true)], "0A000");
        let a = Field::new("a", DataType::Int32, true);
        check(vec![a.clone(), a], "42701");
    }
}
