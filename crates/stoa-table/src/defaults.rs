//! What a column holds where a statement gives no value: the text of an expression.
//!
//! Iceberg v2 has no place for it, so it is a property of the table, by the column's field id: it stays with a column
//! that is renamed, and goes with one that is dropped. Other engines ignore it. Not here: what the text means
//! (`stoa-query`).

use std::collections::{BTreeMap, HashMap};

use arrow_schema::Schema;
use iceberg::spec::Schema as IcebergSchema;

use crate::Table;
use crate::declared::is_declared_type;

/// What such properties begin with; the field id follows.
const PREFIX: &str = "stoa.default.";

/// Metadata of an Arrow field: the default of the column that it becomes.
pub const DEFAULT_KEY: &str = "default";

impl Table {
    /// The defaults of columns, by name, as they were written.
    pub fn defaults(&self) -> BTreeMap<String, String> {
        let properties = self.metadata().properties();
        if !properties.keys().any(|key| is_default(key)) {
            return BTreeMap::new();
        }
        let columns = self.metadata().current_schema().as_struct().fields().iter();
        let default = |id: i32| properties.get(&key_of(id)).cloned();
        columns.filter_map(|column| Some((column.name.clone(), default(column.id)?))).collect()
    }
}

/// Whether a property is that of a column, which `ALTER COLUMN` alone may set.
pub(crate) fn is_of_column(key: &str) -> bool {
    is_default(key) || is_declared_type(key)
}

fn is_default(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// The property of the column with this id.
pub(crate) fn key_of(field_id: i32) -> String {
    format!("{PREFIX}{field_id}")
}

/// The properties for the columns of a new table.
pub(crate) fn of_columns(columns: &Schema, made: &IcebergSchema) -> HashMap<String, String> {
    let default = |field: &arrow_schema::FieldRef| {
        let text = field.metadata().get(DEFAULT_KEY)?.clone();
        Some((key_of(made.field_by_name(field.name())?.id), text))
    };
    columns.fields().iter().filter_map(default).collect()
}
