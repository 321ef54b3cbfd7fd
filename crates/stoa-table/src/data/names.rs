//! Field ids of files that have none: by the table's name mapping, else by the names of columns.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use serde_json::Value;
use stoa_error::{Error, Result};

use crate::Table;
use crate::schema::FIELD_ID_KEY;

/// The property that holds the mapping (spec, "column projection").
const MAPPING_KEY: &str = "schema.name-mapping.default";

/// Ids by name.
#[derive(Clone, Debug, Default)]
pub(super) struct NameMap {
    fields: Vec<Named>,
}

#[derive(Clone, Debug)]
struct Named {
    id: Option<i32>,
    names: Vec<String>,
    fields: NameMap,
}

impl NameMap {
    /// That of `table`; without one the names of `wanted`.
    pub(super) fn of(table: &Table, wanted: &Schema) -> Result<Self> {
        let Some(json) = table.property(MAPPING_KEY) else {
            return Ok(Self::of_fields(wanted.fields()));
        };
        let mapping = serde_json::from_str(json).ok().and_then(|json: Value| Self::of_json(&json));
        mapping.ok_or_else(|| {
            Error::corrupt(format!("table {}: property {MAPPING_KEY} is not valid", table.ident()))
                .with_hint(
                    "set it to a name mapping as Iceberg's specification has it, or unset it",
                )
        })
    }

    fn of_json(json: &Value) -> Option<Self> {
        let named = |json: &Value| {
            let id = match json.get("field-id") {
                None | Some(Value::Null) => None,
                Some(id) => Some(i32::try_from(id.as_i64()?).ok()?),
            };
            let names = json.get("names")?.as_array()?.iter();
            let names =
                names.map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
            let fields = match json.get("fields") {
                None | Some(Value::Null) => Self::default(),
                Some(fields) => Self::of_json(fields)?,
            };
            Some(Named { id, names, fields })
        };
        let fields = json.as_array()?.iter().map(named).collect::<Option<_>>()?;
        Some(Self { fields })
    }

    fn of_fields(fields: &Fields) -> Self {
        let named = |field: &FieldRef| Named {
            id: field.metadata().get(FIELD_ID_KEY).and_then(|id| id.parse().ok()),
            names: vec![field.name().clone()],
            fields: Self::inside(field.data_type()),
        };
        Self { fields: fields.iter().map(named).collect() }
    }

    fn inside(data_type: &DataType) -> Self {
        let called = |field: &FieldRef, name: &str| {
            let field = field.as_ref().clone().with_name(name);
            Self::of_fields(&Fields::from(vec![field])).fields
        };
        match data_type {
            DataType::Struct(fields) => Self::of_fields(fields),
            DataType::List(item) => Self { fields: called(item, "element") },
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) if pair.len() == 2 => {
                    let mut fields = called(&pair[0], "key");
                    fields.extend(called(&pair[1], "value"));
                    Self { fields }
                }
                _ => Self::default(),
            },
            _ => Self::default(),
        }
    }

    /// The id of the field called `name`, and the names inside of it.
    pub(super) fn get(&self, name: &str) -> Option<(Option<i32>, &Self)> {
        let named = self.fields.iter().find(|named| named.names.iter().any(|own| own == name))?;
        Some((named.id, &named.fields))
    }

    /// `fields` with ids at every level.
    pub(super) fn mark(&self, fields: &Fields) -> Fields {
        fields.iter().map(|field| self.mark_as(field, field.name())).collect()
    }

    fn mark_as(&self, field: &FieldRef, name: &str) -> FieldRef {
        let Some((id, inside)) = self.get(name) else { return field.clone() };
        let data_type = match field.data_type() {
            DataType::Struct(fields) => DataType::Struct(inside.mark(fields)),
            DataType::List(item) => DataType::List(inside.mark_as(item, "element")),
            DataType::Map(entries, sorted) => {
                let marked = match entries.data_type() {
                    DataType::Struct(pair) if pair.len() == 2 => {
                        let key = inside.mark_as(&pair[0], "key");
                        DataType::Struct([key, inside.mark_as(&pair[1], "value")].into())
                    }
                    other => other.clone(),
                };
                DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(marked)), *sorted)
            }
            other => other.clone(),
        };
        let mut metadata = field.metadata().clone();
        if let Some(id) = id {
            metadata.insert(FIELD_ID_KEY.to_owned(), id.to_string());
        }
        Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
    }
}

/// Whether any field, at any level, has an id.
pub(super) fn has_ids(fields: &Fields) -> bool {
    fields.iter().any(|field| field_has_id(field))
}

fn field_has_id(field: &Field) -> bool {
    field.metadata().contains_key(FIELD_ID_KEY)
        || match field.data_type() {
            DataType::Struct(fields) => has_ids(fields),
            DataType::List(item) | DataType::Map(item, _) => field_has_id(item),
            _ => false,
        }
}
