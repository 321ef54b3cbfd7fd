//! Values of columns that a file lacks.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int32Array, Int64Array, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampNanosecondArray, UInt32Array, new_null_array,
};
use arrow_schema::{DataType, Field, TimeUnit};
use arrow_select::take::take;
use iceberg::spec::{NestedField, PrimitiveLiteral, PrimitiveType, Type};
use stoa_error::{Error, Result};
use stoa_orc::Literal;

use crate::scan::{PartitionResult, ScanFile};
use crate::schema::FIELD_ID_KEY;
use crate::{Table, Transform, value};

/// What a file's rows have in columns that are not in it, by field id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fill {
    /// `None` for a value that no [`Literal`] holds.
    values: Arc<HashMap<i32, Option<Literal>>>,
}

impl Fill {
    /// For the rows of `file`, by the current schema of `table`.
    pub(crate) fn of(table: &Table, file: &ScanFile) -> Result<Self> {
        let mut values = HashMap::new();
        if file.has_defaults {
            for field in table.metadata().current_schema().as_struct().fields() {
                add_defaults(field, &mut values)?;
            }
        }
        for part in file.partition.iter().filter(|part| part.transform == Transform::Identity) {
            match &part.value {
                PartitionResult::Null => {}
                PartitionResult::Value(value) => {
                    values.insert(part.source_id, Some(value.clone()));
                }
                PartitionResult::Unknown => {
                    values.insert(part.source_id, None);
                }
            }
        }
        Ok(Self { values: Arc::new(values) })
    }

    /// Whether a column has a value where a file lacks it.
    pub(crate) fn has(&self, id: i32) -> bool {
        self.values.contains_key(&id)
    }

    /// The array of a column that the file lacks.
    pub(crate) fn array(&self, field: &Field, rows: usize) -> Result<ArrayRef> {
        let id = field.metadata().get(FIELD_ID_KEY).and_then(|id| id.parse::<i32>().ok());
        let Some(literal) = id.and_then(|id| self.values.get(&id)) else {
            if !field.is_nullable() && rows > 0 {
                return Err(Error::corrupt(format!(
                    "the file lacks the column {:?}, which is never NULL",
                    field.name()
                )));
            }
            return Ok(new_null_array(field.data_type(), rows));
        };
        let one = literal.as_ref().and_then(|literal| array_of(literal, field.data_type()));
        let one = one.ok_or_else(|| {
            Error::unsupported(format!(
                "column {:?}: its default cannot be given to rows",
                field.name()
            ))
        })?;
        take(&one, &UInt32Array::from_value(0, rows), None)
            .map_err(|source| Error::internal("a default cannot be repeated").with_source(source))
    }
}

/// Whether a schema has values for rows that were written before a column was added.
pub(crate) fn has_defaults(fields: &[Arc<NestedField>]) -> bool {
    fields.iter().any(|field| field.initial_default.is_some() || type_has(&field.field_type))
}

fn type_has(field_type: &Type) -> bool {
    match field_type {
        Type::Primitive(_) => false,
        Type::Struct(fields) => has_defaults(fields.fields()),
        Type::List(list) => has_defaults(std::slice::from_ref(&list.element_field)),
        Type::Map(map) => has_defaults(&[map.key_field.clone(), map.value_field.clone()]),
    }
}

fn add_defaults(field: &NestedField, values: &mut HashMap<i32, Option<Literal>>) -> Result<()> {
    if let Some(default) = &field.initial_default {
        let literal = default.as_primitive_literal().zip(field.field_type.as_primitive_type());
        let literal = literal.and_then(|(value, primitive)| literal_of(&value, primitive));
        let literal = literal.ok_or_else(|| {
            Error::unsupported(format!(
                "column {:?}: its initial default cannot be read",
                field.name
            ))
        })?;
        values.insert(field.id, Some(literal));
    }
    match field.field_type.as_ref() {
        Type::Primitive(_) => Ok(()),
        Type::Struct(fields) => fields.fields().iter().try_for_each(|f| add_defaults(f, values)),
        Type::List(list) => add_defaults(&list.element_field, values),
        Type::Map(map) => {
            add_defaults(&map.key_field, values)?;
            add_defaults(&map.value_field, values)
        }
    }
}

fn literal_of(value: &PrimitiveLiteral, primitive: &PrimitiveType) -> Option<Literal> {
    match (value, primitive) {
        // In nanoseconds, which no literal says exactly.
        (_, PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs) => None,
        _ => value::from_primitive(value, primitive),
    }
}

/// One row.
fn array_of(literal: &Literal, data_type: &DataType) -> Option<ArrayRef> {
    Some(match (literal, data_type) {
        (Literal::Boolean(v), DataType::Boolean) => Arc::new(BooleanArray::from(vec![*v])),
        (Literal::Int(v), DataType::Int32) => {
            Arc::new(Int32Array::from(vec![i32::try_from(*v).ok()?]))
        }
        (Literal::Int(v), DataType::Int64) => Arc::new(Int64Array::from(vec![*v])),
        (Literal::Float(v), DataType::Float32) => Arc::new(Float32Array::from(vec![*v as f32])),
        (Literal::Float(v), DataType::Float64) => Arc::new(Float64Array::from(vec![*v])),
        (Literal::Decimal(v, from), DataType::Decimal128(precision, scale)) => {
            let v = value::rescale(*v, *from, *scale)?;
            let array = Decimal128Array::from(vec![v]);
            Arc::new(array.with_precision_and_scale(*precision, *scale).ok()?)
        }
        (Literal::String(v), DataType::Utf8) => Arc::new(StringArray::from(vec![v.as_str()])),
        (Literal::Binary(v), DataType::Binary) => Arc::new(BinaryArray::from(vec![v.as_slice()])),
        (Literal::Binary(v), DataType::FixedSizeBinary(width)) => {
            Arc::new(FixedSizeBinaryArray::try_new(*width, v.clone().into(), None).ok()?)
        }
        (Literal::Int(v), DataType::Time64(TimeUnit::Microsecond)) => {
            Arc::new(Time64MicrosecondArray::from(vec![*v]))
        }
        (Literal::Date(v), DataType::Date32) => Arc::new(Date32Array::from(vec![*v])),
        (Literal::TimestampMicros(v), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            Arc::new(TimestampMicrosecondArray::from(vec![*v]).with_timezone_opt(zone.clone()))
        }
        (Literal::TimestampMicros(v), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
            let nanos = v.checked_mul(1000)?;
            Arc::new(TimestampNanosecondArray::from(vec![nanos]).with_timezone_opt(zone.clone()))
        }
        _ => return None,
    })
}
