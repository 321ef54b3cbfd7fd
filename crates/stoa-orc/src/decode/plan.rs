//! What to read: columns of the file and the Arrow types they become.
//!
//! In: the file's types and a [`Projection`]. Out: a [`Plan`]. **Invariant:** a plan reads only
//! promotions that keep every value (int to long, float to double, wider decimals).
//! Not here: decoding (the column decoders).

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit, UnionMode};

use crate::error::{Error, Result, unsupported};
use crate::options::{FieldMatching, Projection, ReadOptions};
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
    /// Whether Iceberg field ids of the file mean anything.
    pub(crate) has_ids: bool,
    /// All columns read, ascending.
    pub(crate) columns: Vec<u32>,
}

/// How a child of a struct is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    /// By Iceberg field id; by name where a wanted field has none.
    Id,
    Name,
    Position,
}

impl Plan {
    pub(crate) fn new(types: &TypeTree, options: &ReadOptions) -> Result<Self> {
        let arrow = ArrowOptions { strings: options.strings, timestamps: options.timestamps };
        let file = types.to_arrow(&arrow)?;
        let is_wrapped = types.types()[0].kind != TypeKind::Struct;
        let (root, below) = match &options.projection {
            Projection::All | Projection::Columns(_) => (Match::Position, Match::Position),
            Projection::Fields(_) => matching(types, options.matching),
        };
        let planner = Planner { types, below };
        let (schema, root) = match &options.projection {
            Projection::Columns(columns) if !is_wrapped => planner.columns(&file, columns)?,
            Projection::Fields(schema) => (schema.clone(), planner.root(schema, root)?),
            _ => (file.clone(), planner.root(&file, root)?),
        };
        let mut columns = Vec::new();
        collect(&root, &mut columns);
        columns.sort_unstable();
        let has_ids = options.matching == FieldMatching::Auto && types.has_field_ids();
        Ok(Self { schema, root, is_wrapped, has_ids, columns })
    }

    /// The column that a top-level field of the schema is read from; `None` if there is none.
    pub(crate) fn column_of(&self, field: usize) -> Option<u32> {
        if self.is_wrapped {
            return Some(self.root.column);
        }
        match self.root.children.get(field) {
            Some(PlanChild::Read(node)) => Some(node.column),
            _ => None,
        }
    }
}

/// How children of the root and of structs below it are found.
fn matching(types: &TypeTree, wanted: FieldMatching) -> (Match, Match) {
    match wanted {
        FieldMatching::Auto if types.has_field_ids() => (Match::Id, Match::Id),
        FieldMatching::Auto if has_no_names(types) => (Match::Position, Match::Name),
        FieldMatching::Auto | FieldMatching::Name => (Match::Name, Match::Name),
        FieldMatching::Position => (Match::Position, Match::Name),
    }
}

/// Whether top-level columns are just numbered.
fn has_no_names(types: &TypeTree) -> bool {
    let names = &types.types()[0].field_names;
    let is_number = |(at, name): (usize, &String)| {
        name.strip_prefix("_col").is_some_and(|number| number.parse() == Ok(at))
    };
    !names.is_empty() && names.iter().enumerate().all(is_number)
}

fn collect(node: &PlanNode, columns: &mut Vec<u32>) {
    columns.push(node.column);
    for child in &node.children {
        if let PlanChild::Read(child) = child {
            collect(child, columns);
        }
    }
}

/// Finds the columns of a file that wanted fields are read from.
struct Planner<'a> {
    types: &'a TypeTree,
    /// How children of structs are found that are not the root.
    below: Match,
}

impl Planner<'_> {
    /// The root, to be read as the fields of `schema`.
    fn root(&self, schema: &Schema, how: Match) -> Result<PlanNode> {
        if self.types.types()[0].kind == TypeKind::Struct {
            return self.node(0, &DataType::Struct(schema.fields().clone()), how);
        }
        match schema.fields().as_ref() {
            [field] => self.node(0, field.data_type(), how),
            _ => Err(unsupported("a file that is not a struct has one column")),
        }
    }

    /// A root that reads just some top-level columns, in their order.
    fn columns(&self, file: &Schema, columns: &[u32]) -> Result<(SchemaRef, PlanNode)> {
        let all = &self.types.types()[0].children;
        let mut fields = Vec::with_capacity(columns.len());
        let mut children = Vec::with_capacity(columns.len());
        for column in columns {
            let index = all.binary_search(column).map_err(|_| {
                Error::invalid(format!("column {column} is not a top-level column"))
            })?;
            let field = &file.fields()[index];
            children.push(PlanChild::Read(self.node(*column, field.data_type(), self.below)?));
            fields.push(field.clone());
        }
        let schema = Arc::new(Schema::new(fields));
        let data_type = DataType::Struct(schema.fields().clone());
        Ok((schema, PlanNode { column: 0, data_type, children }))
    }

    /// Plans to read `column` as `to`; `how` its children are found, if it is a struct.
    fn node(&self, column: u32, to: &DataType, how: Match) -> Result<PlanNode> {
        let types = self.types;
        let Some(ty) = types.get(column) else {
            return Err(unsupported(format!("column {column} does not exist")));
        };
        let child = |index: usize, field: &Field| {
            let column = ty.children.get(index).copied().unwrap_or(u32::MAX);
            self.node(column, field.data_type(), self.below).map(PlanChild::Read)
        };
        let children = match (ty.kind, to) {
            (TypeKind::Struct, DataType::Struct(fields)) => {
                let fields = fields.iter().enumerate();
                fields
                    .map(|(index, field)| self.struct_child(ty, index, field, how))
                    .collect::<Result<_>>()?
            }
            (TypeKind::List, DataType::List(field)) => vec![child(0, field)?],
            (TypeKind::Map, DataType::Map(entries, _)) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    vec![child(0, &fields[0])?, child(1, &fields[1])?]
                }
                _ => return Err(mismatch(types, column, to)),
            },
            (TypeKind::Union, DataType::Union(fields, mode)) => {
                let is_dense = *mode == UnionMode::Dense;
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

    /// The child of a struct that the wanted field at `index` is.
    fn struct_child(
        &self,
        parent: &OrcType,
        index: usize,
        field: &FieldRef,
        how: Match,
    ) -> Result<PlanChild> {
        let by_name = || {
            let index = parent.field_names.iter().position(|name| name == field.name())?;
            parent.children.get(index).copied()
        };
        let by_id = |id: i32| {
            parent.children.iter().copied().find(|child| self.types.field_id(*child) == Some(id))
        };
        let id = field.metadata().get(FIELD_ID_KEY).and_then(|id| id.parse::<i32>().ok());
        let found = match (how, id) {
            (Match::Position, _) => parent.children.get(index).copied(),
            (Match::Id, Some(id)) => by_id(id),
            (Match::Id, None) | (Match::Name, _) => by_name(),
        };
        match found {
            Some(column) => self.node(column, field.data_type(), self.below).map(PlanChild::Read),
            None if field.is_nullable() => Ok(PlanChild::Missing(field.data_type().clone())),
            None => {
                let name = field.name();
                Err(Error::invalid(format!("required column {name} is not in the file"))
                    .with_hint("columns that a file may lack must be nullable"))
            }
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
        TypeKind::Binary | TypeKind::Geometry | TypeKind::Geography => {
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
fn mismatch(types: &TypeTree, column: u32, to: &DataType) -> Error {
    let kind = types.get(column).map(|ty| ty.kind);
    let path = types.path(column);
    let kind = kind.map_or_else(String::new, |kind| format!("{kind:?} "));
    unsupported(format!("column {column} ({path}): {kind}cannot be read as {to}"))
        .with_hint("only promotions that keep every value are made while reading")
}
