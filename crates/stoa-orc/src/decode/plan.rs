//! What to read: columns of the file and the Arrow types they become.
//!
//! In: the file's types and a [`Projection`]. Out: a [`Plan`]. **Invariant:** a plan reads only
//! promotions that keep every value (int to long, float to double, wider decimals).
//! Not here: decoding (the column decoders).

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use crate::error::{Result, unsupported};
use crate::options::{Projection, ReadOptions};
use crate::schema::{ArrowOptions, FIELD_ID_KEY, OrcType, TypeKind, TypeTree, arrow_type};

/// A column to read.
#[derive(Clone, Debug)]
pub(crate) struct PlanNode {
    pub(crate) column: u32,
    pub(crate) data_type: DataType,
    pub(crate) children: Vec<PlanChild>,
}

/// A child of a column.
#[derive(Clone, Debug)]
pub(crate) enum PlanChild {
    Read(PlanNode),
    /// Not in the file: NULL.
    Missing(DataType),
}

/// All that is read.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) schema: SchemaRef,
    pub(crate) root: PlanNode,
    /// Whether the root is the only column (else its children are the columns).
    pub(crate) is_wrapped: bool,
    /// All columns read, ascending.
    pub(crate) columns: Vec<u32>,
}

impl Plan {
    pub(crate) fn new(types: &TypeTree, options: &ReadOptions) -> Result<Self> {
        let arrow = ArrowOptions { strings: options.strings, timestamps: options.timestamps };
        let file = types.to_arrow(&arrow)?;
        let is_wrapped = types.types()[0].kind != TypeKind::Struct;
        let schema = match &options.projection {
            Projection::All => file,
            Projection::Columns(_) if is_wrapped => file,
            Projection::Columns(columns) => select(types, &file, columns)?,
            Projection::Fields(schema) => schema.clone(),
        };
        let root = if is_wrapped {
            let data_type = schema.fields().first().map(|field| field.data_type().clone());
            let data_type = match data_type {
                Some(data_type) if schema.fields().len() == 1 => data_type,
                _ => return Err(unsupported("a file that is not a struct has one column")),
            };
            node(types, 0, &data_type, false)?
        } else {
            let by_id =
                matches!(options.projection, Projection::Fields(_)) && types.has_field_ids();
            let data_type = DataType::Struct(schema.fields().clone());
            match &options.projection {
                Projection::Columns(columns) => by_column(types, columns, data_type)?,
                _ => node(types, 0, &data_type, by_id)?,
            }
        };
        let mut columns = Vec::new();
        collect(&root, &mut columns);
        columns.sort_unstable();
        Ok(Self { schema, root, is_wrapped, columns })
    }
}

fn collect(node: &PlanNode, columns: &mut Vec<u32>) {
    columns.push(node.column);
    for child in &node.children {
        if let PlanChild::Read(child) = child {
            collect(child, columns);
        }
    }
}

/// The fields of some top-level columns.
fn select(types: &TypeTree, file: &Schema, columns: &[u32]) -> Result<SchemaRef> {
    let children = &types.types()[0].children;
    let fields = columns.iter().map(|column| {
        let index = children.iter().position(|child| child == column);
        index.and_then(|index| file.fields().get(index).cloned()).ok_or_else(|| {
            stoa_error::Error::invalid(format!("column {column} is not a top-level column"))
        })
    });
    Ok(Arc::new(Schema::new(fields.collect::<Result<Fields>>()?)))
}

/// A root that reads just `columns`.
fn by_column(types: &TypeTree, columns: &[u32], data_type: DataType) -> Result<PlanNode> {
    let DataType::Struct(fields) = &data_type else {
        return Err(unsupported("a root that is not a struct"));
    };
    let children = columns
        .iter()
        .zip(fields)
        .map(|(column, field)| node(types, *column, field.data_type(), false).map(PlanChild::Read));
    let children = children.collect::<Result<_>>()?;
    Ok(PlanNode { column: 0, data_type, children })
}

/// Plans to read `column` as `to`.
fn node(types: &TypeTree, column: u32, to: &DataType, by_id: bool) -> Result<PlanNode> {
    let Some(ty) = types.get(column) else {
        return Err(unsupported(format!("column {column} does not exist")));
    };
    let child = |index: usize, field: &Field| {
        let column = ty.children.get(index).copied().unwrap_or(u32::MAX);
        node(types, column, field.data_type(), by_id).map(PlanChild::Read)
    };
    let children = match (ty.kind, to) {
        (TypeKind::Struct, DataType::Struct(fields)) => fields
            .iter()
            .map(|field| struct_child(types, ty, field, by_id))
            .collect::<Result<_>>()?,
        (TypeKind::List, DataType::List(field)) => vec![child(0, field)?],
        (TypeKind::Map, DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                vec![child(0, &fields[0])?, child(1, &fields[1])?]
            }
            _ => return Err(mismatch(types, column, to)),
        },
        (TypeKind::Union, DataType::Union(fields, mode)) => {
            let is_dense = *mode == arrow_schema::UnionMode::Dense;
            let in_order = fields.iter().enumerate().all(|(i, (tag, _))| i == tag as usize);
            if !is_dense || !in_order || fields.len() != ty.children.len() {
                return Err(mismatch(types, column, to));
            }
            let fields = fields.iter().enumerate();
            fields.map(|(i, (_, field))| child(i, field)).collect::<Result<_>>()?
        }
        _ if can_read(types, column, ty, to)? => Vec::new(),
        _ => return Err(mismatch(types, column, to)),
    };
    Ok(PlanNode { column, data_type: to.clone(), children })
}

/// The child of a struct that a wanted field is: by id, or else by name.
fn struct_child(
    types: &TypeTree,
    parent: &OrcType,
    field: &FieldRef,
    by_id: bool,
) -> Result<PlanChild> {
    let wanted = field.metadata().get(FIELD_ID_KEY).and_then(|id| id.parse::<i32>().ok());
    let found = match wanted.filter(|_| by_id) {
        Some(id) => parent.children.iter().copied().find(|c| types.field_id(*c) == Some(id)),
        None => {
            let index = parent.field_names.iter().position(|name| name == field.name());
            index.and_then(|index| parent.children.get(index).copied())
        }
    };
    match found {
        Some(column) => node(types, column, field.data_type(), by_id).map(PlanChild::Read),
        None if field.is_nullable() => Ok(PlanChild::Missing(field.data_type().clone())),
        None => {
            let name = field.name();
            Err(stoa_error::Error::invalid(format!("required column {name} is not in the file"))
                .with_hint("columns that a file may lack must be nullable"))
        }
    }
}

/// Whether a column without children can be read as `to` without losing a value.
fn can_read(types: &TypeTree, column: u32, ty: &OrcType, to: &DataType) -> Result<bool> {
    let width = |data_type: &DataType| match data_type {
        DataType::Int8 => 1,
        DataType::Int16 => 2,
        DataType::Int32 => 4,
        DataType::Int64 => 8,
        _ => 0,
    };
    Ok(match ty.kind {
        TypeKind::Byte => width(to) >= 1,
        TypeKind::Short => width(to) >= 2,
        TypeKind::Int => width(to) >= 4,
        TypeKind::Long => width(to) >= 8 || *to == DataType::Time64(TimeUnit::Microsecond),
        TypeKind::Float => matches!(to, DataType::Float32 | DataType::Float64),
        TypeKind::String | TypeKind::Varchar | TypeKind::Char => match to {
            DataType::Dictionary(key, value) => {
                **key == DataType::Int32 && **value == DataType::Utf8
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary => true,
            _ => false,
        },
        TypeKind::Binary | TypeKind::Geometry => {
            matches!(to, DataType::Binary | DataType::FixedSizeBinary(1..))
        }
        TypeKind::Timestamp => matches!(to, DataType::Timestamp(unit, None) if is_read(*unit)),
        TypeKind::TimestampInstant => {
            matches!(to, DataType::Timestamp(unit, Some(_)) if is_read(*unit))
        }
        TypeKind::Decimal => match (arrow_type(types, column, &ArrowOptions::default())?, to) {
            (DataType::Decimal128(p, s), DataType::Decimal128(to_p, to_s)) => {
                let whole = i16::from(p) - i16::from(s);
                *to_s >= s && i16::from(*to_p) - i16::from(*to_s) >= whole
            }
            _ => false,
        },
        TypeKind::Boolean => *to == DataType::Boolean,
        TypeKind::Double => *to == DataType::Float64,
        TypeKind::Date => *to == DataType::Date32,
        TypeKind::List | TypeKind::Map | TypeKind::Struct | TypeKind::Union => false,
    })
}

fn is_read(unit: TimeUnit) -> bool {
    matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond)
}

#[cold]
fn mismatch(types: &TypeTree, column: u32, to: &DataType) -> stoa_error::Error {
    let kind = types.get(column).map(|ty| ty.kind);
    let path = types.path(column);
    let kind = kind.map_or_else(String::new, |kind| format!("{kind:?} "));
    unsupported(format!("column {column} ({path}): {kind}cannot be read as {to}"))
        .with_hint("only promotions that keep every value are made while reading")
}
