//! Arrow types to ORC types.

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use stoa_error::Place;

use super::{FIELD_ID_KEY, OrcType, TypeKind, TypeTree, attribute};
use crate::error::{Result, unsupported};

impl TypeTree {
    /// The types of a file that holds `schema`: a STRUCT of its fields.
    ///
    /// Fields with a `PARQUET:field_id` get Iceberg's attributes; without it none.
    /// `Timestamp(_, None)` becomes TIMESTAMP, with a zone TIMESTAMP_INSTANT.
    ///
    /// # Errors
    /// `Unsupported` for Arrow types ORC has no counterpart for (unsigned integers, intervals,
    /// 256-bit decimals, …), naming the field.
    pub fn from_arrow(schema: &Schema) -> Result<Self> {
        let mut types = vec![OrcType::new(TypeKind::Struct)];
        for field in schema.fields() {
            add_child(&mut types, 0, field).map_err(|e| e.at(format!("field {}", field.name())))?;
        }
        Self::new(types)
    }
}

/// Adds `field` as the next child of `parent`.
fn add_child(types: &mut Vec<OrcType>, parent: usize, field: &Field) -> Result<()> {
    let column = types.len();
    types[parent].children.push(column as u32);
    if types[parent].kind == TypeKind::Struct {
        types[parent].field_names.push(field.name().clone());
    }
    add(types, field)
}

/// Adds the type of `field` and its children.
fn add(types: &mut Vec<OrcType>, field: &Field) -> Result<()> {
    let column = types.len();
    let mut ty = OrcType::new(kind(field.data_type())?);
    if let DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) =
        field.data_type()
    {
        let Ok(scale) = u32::try_from(*s) else {
            return Err(unsupported(format!("decimal({p},{s}): negative scale")));
        };
        (ty.precision, ty.scale) = (u32::from(*p), scale);
    }
    if let Some(id) = field.metadata().get(FIELD_ID_KEY) {
        ty.attributes.insert(attribute::ID.to_owned(), id.clone());
        let required = if field.is_nullable() { "false" } else { "true" };
        ty.attributes.insert(attribute::REQUIRED.to_owned(), required.to_owned());
        for (key, value) in type_attributes(field.data_type()) {
            ty.attributes.insert(key.to_owned(), value);
        }
    }
    types.push(ty);
    match field.data_type() {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => add_child(types, column, item)?,
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(unsupported("map without a struct of entries"));
            };
            for field in fields {
                add_child(types, column, field)?;
            }
        }
        DataType::Struct(fields) => {
            for field in fields {
                add_child(types, column, field).map_err(|e| e.at(Place::field(field.name())))?;
            }
        }
        DataType::Union(fields, _) => {
            for (_, field) in fields.iter() {
                add_child(types, column, field)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn kind(data_type: &DataType) -> Result<TypeKind> {
    Ok(match data_type {
        DataType::Boolean => TypeKind::Boolean,
        DataType::Int8 => TypeKind::Byte,
        DataType::Int16 => TypeKind::Short,
        DataType::Int32 => TypeKind::Int,
        DataType::Int64 | DataType::Time64(TimeUnit::Microsecond) => TypeKind::Long,
        DataType::Float32 => TypeKind::Float,
        DataType::Float64 => TypeKind::Double,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => TypeKind::String,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => TypeKind::Binary,
        DataType::Dictionary(_, values) => match values.as_ref() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => TypeKind::String,
            other => return Err(unsupported(format!("dictionary of {other} has no ORC type"))),
        },
        DataType::Date32 => TypeKind::Date,
        DataType::Timestamp(_, None) => TypeKind::Timestamp,
        DataType::Timestamp(_, Some(_)) => TypeKind::TimestampInstant,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
            TypeKind::Decimal
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => TypeKind::List,
        DataType::Map(..) => TypeKind::Map,
        DataType::Struct(_) => TypeKind::Struct,
        DataType::Union(..) => TypeKind::Union,
        other => {
            return Err(unsupported(format!("{other} has no ORC type"))
                .with_hint("cast the column to a type that ORC has"));
        }
    })
}

/// Attributes that tell what an ORC type means to Iceberg.
fn type_attributes(data_type: &DataType) -> Vec<(&'static str, String)> {
    match data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            vec![(attribute::TIMESTAMP_UNIT, attribute::NANOS.to_owned())]
        }
        DataType::Timestamp(..) => vec![(attribute::TIMESTAMP_UNIT, attribute::MICROS.to_owned())],
        DataType::Time64(_) => vec![(attribute::LONG_TYPE, attribute::TIME.to_owned())],
        DataType::FixedSizeBinary(length) => vec![
            (attribute::BINARY_TYPE, attribute::FIXED.to_owned()),
            (attribute::LENGTH, length.to_string()),
        ],
        _ => Vec::new(),
    }
}
