//! The tables of `information_schema` about keys and other constraints, and the one of encodings.
//!
//! A table's PRIMARY KEY is declared and not enforced, which `table_constraints.enforced` says. There are no other
//! constraints with names, no triggers and no sequences: the tables about these are there, without rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;
use stoa_semantics::errors::to_datafusion;

use crate::server::{Asker, Told};

/// The table of the one encoding that there is.
const CHARACTER_SETS: &str = "character_sets";

/// Names of the tables, each with its columns in PostgreSQL's order.
const TABLES: [(&str, &[&str]); 8] = [
    (
        CHARACTER_SETS,
        &[
            "character_set_catalog",
            "character_set_schema",
            "character_set_name",
            "character_repertoire",
            "form_of_use",
            "default_collate_catalog",
            "default_collate_schema",
            "default_collate_name",
        ],
    ),
    (
        "check_constraints",
        &["constraint_catalog", "constraint_schema", "constraint_name", "check_clause"],
    ),
    (
        "constraint_column_usage",
        &[
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
        ],
    ),
    (
        "key_column_usage",
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "ordinal_position",
            "position_in_unique_constraint",
        ],
    ),
    (
        "referential_constraints",
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "unique_constraint_catalog",
            "unique_constraint_schema",
            "unique_constraint_name",
            "match_option",
            "update_rule",
            "delete_rule",
        ],
    ),
    (
        "sequences",
        &[
            "sequence_catalog",
            "sequence_schema",
            "sequence_name",
            "data_type",
            "numeric_precision",
            "numeric_precision_radix",
            "numeric_scale",
            "start_value",
            "minimum_value",
            "maximum_value",
            "increment",
            "cycle_option",
        ],
    ),
    (
        "table_constraints",
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "constraint_type",
            "is_deferrable",
            "initially_deferred",
            "enforced",
            "nulls_distinct",
        ],
    ),
    (
        "triggers",
        &[
            "trigger_catalog",
            "trigger_schema",
            "trigger_name",
            "event_manipulation",
            "event_object_catalog",
            "event_object_schema",
            "event_object_table",
            "action_order",
            "action_condition",
            "action_statement",
            "action_orientation",
            "action_timing",
            "action_reference_old_table",
            "action_reference_new_table",
            "action_reference_old_row",
            "action_reference_new_row",
            "created",
        ],
    ),
];

/// Columns that are numbers; all others are texts.
const NUMBERS: [&str; 6] = [
    "action_order",
    "numeric_precision",
    "numeric_precision_radix",
    "numeric_scale",
    "ordinal_position",
    "position_in_unique_constraint",
];

/// Names of the tables.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name)
}

/// The columns of one of the tables; `None` for any other.
pub(super) fn schema(table: &str) -> Option<SchemaRef> {
    let (_, columns) = TABLES.iter().find(|(name, _)| *name == table)?;
    let field = |name: &&str| match NUMBERS.contains(name) {
        true => Field::new(*name, DataType::Int32, true),
        false => Field::new(*name, DataType::Utf8, true),
    };
    Some(Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>())))
}

/// A column of a key.
struct KeyColumn {
    namespace: String,
    table: String,
    column: String,
    /// Its place in the key, from 1.
    place: i32,
}

/// The rows of one of the tables, of the keys that the asker may know.
///
/// # Errors
/// Those of the catalog.
pub(super) async fn rows(
    table: &str,
    columns: &SchemaRef,
    database: &str,
    asker: &dyn Asker,
) -> Result<RecordBatch> {
    let keys = match table {
        "table_constraints" | "key_column_usage" | "constraint_column_usage" => keys(asker).await?,
        CHARACTER_SETS => return encoding(columns, database),
        _ => Vec::new(),
    };
    let of_key = table == "table_constraints";
    let keys: Vec<KeyColumn> = keys.into_iter().filter(|key| !of_key || key.place == 1).collect();
    let column = |field: &Arc<Field>| -> ArrayRef {
        let name = field.name().as_str();
        if field.data_type() == &DataType::Int32 {
            let place = |key: &KeyColumn| (name == "ordinal_position").then_some(key.place);
            return Arc::new(keys.iter().map(place).collect::<Int32Array>());
        }
        let text = |key: &KeyColumn| match name {
            "constraint_catalog" | "table_catalog" => Some(database.to_owned()),
            "constraint_schema" | "table_schema" => Some(key.namespace.clone()),
            "table_name" => Some(key.table.clone()),
            "column_name" => Some(key.column.clone()),
            "constraint_name" => Some(format!("{}_pkey", key.table)),
            "constraint_type" => Some("PRIMARY KEY".to_owned()),
            "is_deferrable" | "initially_deferred" | "enforced" => Some("NO".to_owned()),
            _ => None,
        };
        Arc::new(keys.iter().map(text).collect::<StringArray>())
    };
    Ok(RecordBatch::try_new(Arc::clone(columns), columns.fields().iter().map(column).collect())?)
}

/// The one row of `character_sets`.
fn encoding(columns: &SchemaRef, database: &str) -> Result<RecordBatch> {
    let text = |field: &Arc<Field>| -> ArrayRef {
        let text = match field.name().as_str() {
            "character_set_name" | "form_of_use" => Some("UTF8"),
            "character_repertoire" => Some("UCS"),
            "default_collate_catalog" => Some(database),
            "default_collate_schema" => Some("pg_catalog"),
            "default_collate_name" => Some("C"),
            _ => None,
        };
        Arc::new(StringArray::from(vec![text]))
    };
    Ok(RecordBatch::try_new(Arc::clone(columns), columns.fields().iter().map(text).collect())?)
}

/// The columns of all keys; a key with a column that may not be told is none.
async fn keys(asker: &dyn Asker) -> Result<Vec<KeyColumn>> {
    let mut keys = Vec::new();
    let mut namespaces = asker.namespaces().await.map_err(to_datafusion)?;
    namespaces.retain(|namespace| asker.may_know_namespace(namespace));
    for namespace in namespaces {
        for table in asker.tables(&namespace, true).await.map_err(to_datafusion)? {
            let Told::Details(details) = table.told else { continue };
            let is_told =
                |place: &usize| details.known.as_ref().is_none_or(|known| known.contains(place));
            if !details.key.iter().all(is_told) {
                continue;
            }
            keys.extend((1..).zip(&details.key).filter_map(|(place, at)| {
                let column = details.columns.fields().get(*at)?.name().clone();
                let (namespace, table) = (namespace.clone(), table.name.clone());
                Some(KeyColumn { namespace, table, column, place })
            }));
        }
    }
    Ok(keys)
}
