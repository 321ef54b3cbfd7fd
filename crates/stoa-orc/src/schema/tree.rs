//! The type tree of a file.

use std::collections::BTreeMap;

use super::{TypeKind, attribute};
use stoa_error::Place;

use crate::error::{Result, corrupt, unsupported};
use crate::proto;

/// Deepest nesting that is read or written.
const DEPTH_MAX: usize = 100;

/// One ORC type: a column of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct OrcType {
    /// Its kind.
    pub kind: TypeKind,
    /// Column ids of the children, ascending.
    pub children: Vec<u32>,
    /// Names of a STRUCT's children.
    pub field_names: Vec<String>,
    /// Digits of a DECIMAL; 0 in files of Hive 0.11, which did not say.
    pub precision: u32,
    /// Digits after the point of a DECIMAL.
    pub scale: u32,
    /// Longest value of a CHAR or VARCHAR in characters.
    pub max_length: u32,
    /// Attributes, such as Iceberg's (see [`attribute`]).
    pub attributes: BTreeMap<String, String>,
}

impl OrcType {
    /// A type without children and attributes.
    pub fn new(kind: TypeKind) -> Self {
        Self {
            kind,
            children: Vec::new(),
            field_names: Vec::new(),
            precision: 0,
            scale: 0,
            max_length: 0,
            attributes: BTreeMap::new(),
        }
    }

    /// The Iceberg field id, if there is one.
    pub fn field_id(&self) -> Option<i32> {
        self.attributes.get(attribute::ID)?.parse().ok()
    }

    /// Whether the Iceberg schema says that the column is never NULL.
    pub fn is_required(&self) -> bool {
        self.attributes.get(attribute::REQUIRED).is_some_and(|v| v.eq_ignore_ascii_case("true"))
    }
}

/// All types of a file in pre-order: the index is the column id, the root is column 0 and may be
/// of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeTree {
    types: Vec<OrcType>,
    /// Per column: one past the last column id of its subtree.
    ends: Vec<u32>,
}

impl TypeTree {
    /// A column, as messages name it.
    #[cold]
    pub(crate) fn place(&self, column: u32) -> Place {
        Place::Column { id: column, path: self.path(column) }
    }

    /// Makes a tree from types in pre-order.
    ///
    /// # Errors
    /// `Corrupt` if child ids are not a pre-order tree or a kind has the wrong number of children;
    /// `Unsupported` if nested deeper than 100.
    pub fn new(types: Vec<OrcType>) -> Result<Self> {
        let mut tree = Self { ends: vec![0; types.len()], types };
        if tree.types.is_empty() {
            return Err(corrupt("type tree: no types"));
        }
        let end = tree.check(0, 0)?;
        if end as usize != tree.types.len() {
            let count = tree.types.len();
            return Err(corrupt(format!("type tree: {count} types, but only {end} in the tree")));
        }
        Ok(tree)
    }

    /// The tree of a footer.
    pub(crate) fn from_proto(types: &[proto::Type]) -> Result<Self> {
        Self::new(types.iter().enumerate().map(from_proto).collect::<Result<_>>()?)
    }

    /// The types as a footer holds them.
    pub fn to_proto(&self) -> Vec<proto::Type> {
        self.types.iter().map(to_proto).collect()
    }

    /// Number of columns, nested ones and the root included.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Always false: a tree has a root.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The types, index = column id.
    pub fn types(&self) -> &[OrcType] {
        &self.types
    }

    /// The type of a column.
    pub fn get(&self, column: u32) -> Option<&OrcType> {
        self.types.get(column as usize)
    }

    /// One past the last column id of the subtree of `column`.
    pub fn subtree_end(&self, column: u32) -> u32 {
        self.ends.get(column as usize).copied().unwrap_or(column)
    }

    /// The Iceberg field id of a column.
    pub fn field_id(&self, column: u32) -> Option<i32> {
        self.get(column)?.field_id()
    }

    /// The column with an Iceberg field id.
    pub fn column_of_field(&self, field_id: i32) -> Option<u32> {
        let index = self.types.iter().position(|t| t.field_id() == Some(field_id))?;
        u32::try_from(index).ok()
    }

    /// Whether any column has an Iceberg field id.
    pub fn has_field_ids(&self) -> bool {
        self.types.iter().any(|t| t.field_id().is_some())
    }

    /// Names from the root to a column, for messages: `a.b.item`; the root is `(root)`.
    pub fn path(&self, column: u32) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut at = 0u32;
        while at != column {
            let Some(ty) = self.get(at) else { break };
            // Children ascend: the last one that does not start behind the column.
            let behind = ty.children.partition_point(|child| *child <= column);
            let Some(index) = behind.checked_sub(1) else { break };
            parts.push(match ty.kind {
                TypeKind::Struct => ty.field_names.get(index).cloned().unwrap_or_default(),
                TypeKind::List => "item".to_owned(),
                TypeKind::Map => if index == 0 { "key" } else { "value" }.to_owned(),
                _ => index.to_string(),
            });
            at = ty.children[index];
        }
        if parts.is_empty() { "(root)".to_owned() } else { parts.join(".") }
    }

    /// Checks the subtree at `column` and returns its end.
    fn check(&mut self, column: u32, depth: usize) -> Result<u32> {
        if depth > DEPTH_MAX {
            return Err(unsupported(format!("type tree: nested deeper than {DEPTH_MAX} levels")));
        }
        let Some(ty) = self.types.get(column as usize) else {
            return Err(corrupt(format!("type tree: column {column} does not exist")));
        };
        let (kind, children) = (ty.kind, ty.children.clone());
        let right = match kind {
            TypeKind::Struct => ty.field_names.len() == children.len(),
            TypeKind::List => children.len() == 1,
            TypeKind::Map => children.len() == 2,
            TypeKind::Union => (1..=256).contains(&children.len()),
            _ => children.is_empty(),
        };
        if !right {
            let count = children.len();
            return Err(corrupt(format!(
                "type tree: column {column} ({kind:?}) has {count} children"
            )));
        }
        let mut end = column + 1;
        for child in children {
            if child != end {
                let message =
                    format!("type tree: child {child} of column {column} should be {end}");
                return Err(corrupt(message));
            }
            end = self.check(child, depth + 1)?;
        }
        self.ends[column as usize] = end;
        Ok(end)
    }
}

fn from_proto((column, ty): (usize, &proto::Type)) -> Result<OrcType> {
    let number = ty.kind.unwrap_or(0);
    let kind = TypeKind::try_from(number)
        .map_err(|_| unsupported(format!("column {column}: unknown type kind {number}")))?;
    Ok(OrcType {
        kind,
        children: ty.subtypes.clone(),
        field_names: ty.field_names.clone(),
        precision: ty.precision.unwrap_or(0),
        scale: ty.scale.unwrap_or(0),
        max_length: ty.maximum_length.unwrap_or(0),
        attributes: ty
            .attributes
            .iter()
            .map(|a| (a.key.clone().unwrap_or_default(), a.value.clone().unwrap_or_default()))
            .collect(),
    })
}

fn to_proto(ty: &OrcType) -> proto::Type {
    let decimal = ty.kind == TypeKind::Decimal;
    let text = matches!(ty.kind, TypeKind::Char | TypeKind::Varchar);
    proto::Type {
        kind: Some(ty.kind as i32),
        subtypes: ty.children.clone(),
        field_names: ty.field_names.clone(),
        maximum_length: text.then_some(ty.max_length),
        precision: decimal.then_some(ty.precision),
        scale: decimal.then_some(ty.scale),
        attributes: ty
            .attributes
            .iter()
            .map(|(k, v)| proto::StringPair { key: Some(k.clone()), value: Some(v.clone()) })
            .collect(),
    }
}
