//! ORC types to Arrow types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{
    DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit, UnionFields, UnionMode,
};

use super::{FIELD_ID_KEY, OrcType, TypeKind, TypeTree, attribute};
use crate::error::{Result, unsupported};

/// Name of the only column where the root is not a STRUCT.
const ROOT_NAME: &str = "value";

/// Largest precision of a 128-bit decimal.
const DECIMAL_PRECISION_MAX: u32 = 38;

/// How Hive 0.11 decimals are read, whose precision is 0 (as ORC C++ does).
const HIVE_DECIMAL: (u8, i8) = (38, 6);

/// Arrow type of STRING, VARCHAR and CHAR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StringOutput {
    /// `Utf8`
    #[default]
    Utf8,
    /// `Utf8View`
    Utf8View,
    /// `Dictionary(Int32, Utf8)`
    Dictionary,
}

/// Arrow unit of TIMESTAMP and TIMESTAMP_INSTANT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampOutput {
    /// Microseconds where `iceberg.timestamp-unit` says so, else nanoseconds.
    #[default]
    Declared,
    /// Microseconds; smaller digits are cut off (towards the past).
    Micros,
    /// Nanoseconds; a value outside of 1677-09-21 … 2262-04-11 is an error.
    Nanos,
}

/// Choices among Arrow types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrowOptions {
    /// For strings.
    pub strings: StringOutput,
    /// For timestamps.
    pub timestamps: TimestampOutput,
}

impl TypeTree {
    /// The Arrow schema of the whole file: the fields of a root STRUCT, else one column `value`.
    ///
    /// # Errors
    /// `Unsupported` for a decimal of more than 38 digits or a union of more than 127 variants.
    pub fn to_arrow(&self, options: &ArrowOptions) -> Result<SchemaRef> {
        let root = &self.types()[0];
        let fields = match root.kind {
            TypeKind::Struct => children(self, root, options)?,
            _ => Fields::from(vec![field(self, 0, ROOT_NAME, options)?]),
        };
        Ok(Arc::new(Schema::new(fields)))
    }
}

/// The Arrow field of a column, named `name`.
fn field(tree: &TypeTree, column: u32, name: &str, options: &ArrowOptions) -> Result<FieldRef> {
    let ty = &tree.types()[column as usize];
    let data_type = arrow_type(tree, column, options)?;
    let mut field = Field::new(name, data_type, !ty.is_required());
    if let Some(id) = ty.field_id() {
        field.set_metadata(HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]));
    }
    Ok(Arc::new(field))
}

fn children(tree: &TypeTree, ty: &OrcType, options: &ArrowOptions) -> Result<Fields> {
    let pairs = ty.children.iter().zip(&ty.field_names);
    pairs.map(|(child, name)| field(tree, *child, name, options)).collect()
}

/// The Arrow type of a column.
pub(crate) fn arrow_type(tree: &TypeTree, column: u32, options: &ArrowOptions) -> Result<DataType> {
    let ty = &tree.types()[column as usize];
    Ok(match ty.kind {
        TypeKind::Boolean => DataType::Boolean,
        TypeKind::Byte => DataType::Int8,
        TypeKind::Short => DataType::Int16,
        TypeKind::Int => DataType::Int32,
        TypeKind::Long => match ty.attributes.get(attribute::LONG_TYPE).map(String::as_str) {
            Some(attribute::TIME) => DataType::Time64(TimeUnit::Microsecond),
            _ => DataType::Int64,
        },
        TypeKind::Float => DataType::Float32,
        TypeKind::Double => DataType::Float64,
        TypeKind::String | TypeKind::Varchar | TypeKind::Char => with_strings(options.strings),
        TypeKind::Binary => binary_type(ty),
        TypeKind::Geometry | TypeKind::Geography => DataType::Binary,
        TypeKind::Date => DataType::Date32,
        TypeKind::Timestamp => DataType::Timestamp(unit(ty, options), None),
        TypeKind::TimestampInstant => DataType::Timestamp(unit(ty, options), Some("+00:00".into())),
        TypeKind::Decimal => decimal_type(ty, column)?,
        TypeKind::List => DataType::List(field(tree, ty.children[0], "item", options)?),
        TypeKind::Map => map_type(tree, ty, options)?,
        TypeKind::Struct => DataType::Struct(children(tree, ty, options)?),
        TypeKind::Union => union_type(tree, ty, column, options)?,
    })
}

/// The Arrow type of strings.
fn with_strings(strings: StringOutput) -> DataType {
    match strings {
        StringOutput::Utf8 => DataType::Utf8,
        StringOutput::Utf8View => DataType::Utf8View,
        StringOutput::Dictionary => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
    }
}

fn binary_type(ty: &OrcType) -> DataType {
    match ty.attributes.get(attribute::BINARY_TYPE).map(String::as_str) {
        Some(attribute::UUID) => DataType::FixedSizeBinary(16),
        Some(attribute::FIXED) => {
            let length = ty.attributes.get(attribute::LENGTH).and_then(|v| v.parse().ok());
            length
                .filter(|n| (1..=i32::from(u16::MAX)).contains(n))
                .map_or(DataType::Binary, DataType::FixedSizeBinary)
        }
        _ => DataType::Binary,
    }
}

fn unit(ty: &OrcType, options: &ArrowOptions) -> TimeUnit {
    let declared = ty.attributes.get(attribute::TIMESTAMP_UNIT).map(String::as_str);
    match (options.timestamps, declared) {
        (TimestampOutput::Micros, _) | (TimestampOutput::Declared, Some(attribute::MICROS)) => {
            TimeUnit::Microsecond
        }
        _ => TimeUnit::Nanosecond,
    }
}

fn decimal_type(ty: &OrcType, column: u32) -> Result<DataType> {
    let (precision, scale) = (ty.precision, ty.scale);
    if precision == 0 {
        return Ok(DataType::Decimal128(HIVE_DECIMAL.0, HIVE_DECIMAL.1));
    }
    if precision > DECIMAL_PRECISION_MAX || scale > precision {
        let message = format!("column {column}: decimal({precision},{scale}) is not supported");
        return Err(unsupported(message).with_hint("at most 38 digits, scale not above them"));
    }
    Ok(DataType::Decimal128(precision as u8, scale as i8))
}

fn map_type(tree: &TypeTree, ty: &OrcType, options: &ArrowOptions) -> Result<DataType> {
    let key = field(tree, ty.children[0], "key", options)?;
    let key = Arc::new(key.as_ref().clone().with_nullable(false));
    let value = field(tree, ty.children[1], "value", options)?;
    let entries = Field::new("entries", DataType::Struct(Fields::from(vec![key, value])), false);
    Ok(DataType::Map(Arc::new(entries), false))
}

fn union_type(
    tree: &TypeTree,
    ty: &OrcType,
    column: u32,
    options: &ArrowOptions,
) -> Result<DataType> {
    let count = ty.children.len();
    if count > 127 {
        let message = format!("column {column}: union of {count} variants is not supported");
        return Err(unsupported(message).with_hint("Arrow unions have at most 127 variants"));
    }
    let fields = ty.children.iter().enumerate().map(|(tag, child)| {
        let field = field(tree, *child, &tag.to_string(), options)?;
        // A NULL union is a NULL of the first variant: Arrow unions have no validity.
        Ok((tag as i8, Arc::new(field.as_ref().clone().with_nullable(true))))
    });
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let fields: UnionFields = fields.into_iter().collect();
    Ok(DataType::Union(fields, UnionMode::Dense))
}
