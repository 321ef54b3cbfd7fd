//! The metadata of a view's next version, from what it shall be.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow_schema::Field;
use iceberg::spec::{NestedField, NestedFieldRef, Schema, Type};
use stoa_catalog::TableIdent;
use stoa_error::{Condition, Error, Result};

use super::metadata::{Representation, VersionLogEntry, ViewMetadata, ViewSql, ViewVersion};
use super::{VIEW_SECURITY_INVOKER, ViewChange, ViewSpec};
use crate::error;
use crate::schema::{self, COMMENT_KEY, FieldIds, field_to_iceberg};

/// View property: how many versions stay.
const HISTORY_ENTRIES: &str = "version.history.num-entries";

const HISTORY_ENTRIES_DEFAULT: usize = 10;

/// View property: whether a replacement may lose a dialect.
const DROP_DIALECT: &str = "replace.drop-dialect.allowed";

/// View property: old metadata files are deleted unless it is `false`.
pub(super) const DELETE_OLD: &str = "write.metadata.delete-after-commit.enabled";

/// Summary key: the highest field id that any version ever had.
const LAST_COLUMN_ID: &str = "stoa-last-column-id";

/// Beyond it, a metadata file of another engine leaves no ids for new columns.
const LAST_COLUMN_ID_MAX: i32 = i32::MAX - 1_000_000;

/// What `old`, which has no version yet if the view is new, becomes when it is defined by `spec`. There is a
/// new version only where more than the properties changes.
pub(super) fn defined(
    ident: &TableIdent,
    old: &ViewMetadata,
    spec: &ViewSpec,
    now_ms: i64,
) -> Result<ViewMetadata> {
    check(ident, spec)?;
    check_dialects(ident, old, spec)?;
    let mut metadata = old.clone();
    metadata.properties = spec.properties.clone();
    let (columns, last_id) = columns(ident, old, spec)?;
    let sql = spec.sql.iter().cloned().map(Representation::Sql).collect();
    let version = ViewVersion {
        version_id: 0,
        timestamp_ms: now_ms,
        schema_id: 0,
        summary: summary(last_id),
        default_catalog: None,
        default_namespace: spec.default_namespace.split('.').map(str::to_owned).collect(),
        representations: sql,
    };
    advance(ident, metadata, version, columns)
}

/// What `old` becomes by `change`.
pub(super) fn altered(
    ident: &TableIdent,
    old: &ViewMetadata,
    change: &ViewChange,
    now_ms: i64,
) -> Result<ViewMetadata> {
    let mut metadata = old.clone();
    match change {
        ViewChange::Properties(changes) => {
            for (key, value) in changes {
                match value {
                    Some(value) => metadata.properties.insert(key.clone(), value.clone()),
                    None => metadata.properties.remove(key),
                };
            }
            check_properties(ident, &metadata.properties)?;
            Ok(metadata)
        }
        ViewChange::ColumnComments(changes) => {
            let (version, schema) = current(ident, old)?;
            let fields = schema.as_struct().fields();
            if let Some(name) = changes.keys().find(|name| !fields.iter().any(|f| f.name == **name))
            {
                return Err(Error::not_found(format!("view {ident} has no column {name:?}"))
                    .with_sqlstate("42703"));
            }
            let commented = |field: &NestedFieldRef| match changes.get(&field.name) {
                None => field.clone(),
                Some(comment) => {
                    Arc::new(NestedField { doc: comment.clone(), ..NestedField::clone(field) })
                }
            };
            let columns = fields.iter().map(commented).collect();
            let mut version = ViewVersion { timestamp_ms: now_ms, ..version.clone() };
            version.summary.extend(summary(last_column_id(old)));
            advance(ident, metadata, version, columns)
        }
    }
}

/// Takes the oldest version away, if there is another one than the current; gives back whether it was.
pub(super) fn forget_oldest(metadata: &mut ViewMetadata) -> bool {
    let current = metadata.current_version_id;
    let others = metadata.versions.iter().map(|version| version.version_id);
    match others.filter(|id| *id != current).min() {
        None => false,
        Some(oldest) => {
            metadata.versions.retain(|version| version.version_id != oldest);
            forget_unreferenced(metadata);
            true
        }
    }
}

/// A Boolean as PostgreSQL writes it.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Some(true),
        "false" | "off" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Makes `version` with `columns` the current one, unless the current one is the same already.
fn advance(
    ident: &TableIdent,
    mut metadata: ViewMetadata,
    mut version: ViewVersion,
    columns: Vec<NestedFieldRef>,
) -> Result<ViewMetadata> {
    let same = metadata.schemas.iter().find(|schema| schema.as_struct().fields() == columns);
    version.schema_id = match same {
        Some(schema) => schema.schema_id(),
        None => {
            let id = next_id(ident, metadata.schemas.iter().map(Schema::schema_id), 0)?;
            let schema = Schema::builder().with_schema_id(id).with_fields(columns).build();
            metadata.schemas.push(schema.map_err(|e| error::invalid_request(place(ident), e))?);
            id
        }
    };
    if metadata.current().is_some_and(|current| defines_the_same(current, &version)) {
        return Ok(metadata);
    }
    let last = metadata.versions.iter().map(|version| version.timestamp_ms).max();
    version.timestamp_ms = last.map_or(version.timestamp_ms, |last| last.max(version.timestamp_ms));
    version.version_id = next_id(ident, metadata.versions.iter().map(|v| v.version_id), 1)?;
    let (timestamp_ms, version_id) = (version.timestamp_ms, version.version_id);
    metadata.version_log.push(VersionLogEntry { timestamp_ms, version_id });
    metadata.current_version_id = version_id;
    metadata.versions.push(version);
    let keep = history_entries(ident, &metadata.properties)?;
    while metadata.versions.len() > keep && forget_oldest(&mut metadata) {}
    forget_unreferenced(&mut metadata);
    Ok(metadata)
}

fn defines_the_same(one: &ViewVersion, other: &ViewVersion) -> bool {
    let definition = |version: &ViewVersion| {
        let ViewVersion { schema_id, default_namespace, representations, .. } = version.clone();
        (schema_id, default_namespace, version.default_catalog.clone(), representations)
    };
    definition(one) == definition(other)
}

/// Drops schemas and log entries of versions that are gone. As in Iceberg, the log goes back to the last
/// version that is gone and no further; it has no more entries than there are versions.
fn forget_unreferenced(metadata: &mut ViewMetadata) {
    let schemas: HashSet<i32> = metadata.versions.iter().map(|v| v.schema_id).collect();
    metadata.schemas.retain(|schema| schemas.contains(&schema.schema_id()));
    let versions: HashSet<i32> = metadata.versions.iter().map(|v| v.version_id).collect();
    let log = &mut metadata.version_log;
    let gone = log.iter().rposition(|entry| !versions.contains(&entry.version_id));
    let first = gone.map_or(0, |gone| gone + 1).max(log.len().saturating_sub(versions.len()));
    log.drain(..first);
}

/// The columns of `spec`, and the highest id that was ever given. A column has the id of the old one of
/// its name, and its comment where it brings none.
fn columns(
    ident: &TableIdent,
    old: &ViewMetadata,
    spec: &ViewSpec,
) -> Result<(Vec<NestedFieldRef>, i32)> {
    let at = |error: Error| error.at(place(ident));
    if spec.schema.fields().is_empty() {
        let none = Error::invalid("a view needs at least one column").with_sqlstate("42P16");
        return Err(at(none));
    }
    // For what it says of names and types.
    let fresh = schema::to_iceberg(&spec.schema).map_err(at)?;
    let Some(current) = old.current().and_then(|version| old.schema(version.schema_id)) else {
        return Ok((fresh.as_struct().fields().to_vec(), fresh.highest_field_id()));
    };
    let last = last_column_id(old);
    if last > LAST_COLUMN_ID_MAX {
        let what = format!("view {ident} has no field ids left for its columns");
        return Err(Error::unsupported(what).with_hint("drop it and create it again"));
    }
    let mut ids = FieldIds::after(last);
    let before = current.as_struct().fields();
    let column = |field: &Arc<Field>| {
        let old = before.iter().find(|old| old.name == *field.name());
        column(field, old, &mut ids)
    };
    let columns = spec.schema.fields().iter().map(column).collect::<Result<_>>().map_err(at)?;
    Ok((columns, ids.last()))
}

fn column(
    field: &Field,
    old: Option<&NestedFieldRef>,
    ids: &mut FieldIds,
) -> Result<NestedFieldRef> {
    let Some(old) = old else { return field_to_iceberg(field, ids) };
    let field_type = match schema::primitive_to_iceberg(field.data_type()) {
        Some(primitive) => Type::Primitive(primitive),
        None => (*field_to_iceberg(field, ids)?.field_type).clone(),
    };
    let mut column = NestedField::new(old.id, field.name(), field_type, !field.is_nullable());
    column.doc = field.metadata().get(COMMENT_KEY).or(old.doc.as_ref()).cloned();
    Ok(Arc::new(column))
}

fn last_column_id(metadata: &ViewMetadata) -> i32 {
    let noted =
        metadata.versions.iter().filter_map(|v| v.summary.get(LAST_COLUMN_ID)?.parse::<i32>().ok());
    let schemas = metadata.schemas.iter().map(Schema::highest_field_id);
    noted.chain(schemas).max().unwrap_or(0)
}

fn summary(last_column_id: i32) -> BTreeMap<String, String> {
    let entry = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    BTreeMap::from([
        entry("engine-name", "stoa"),
        entry("engine-version", env!("CARGO_PKG_VERSION")),
        entry(LAST_COLUMN_ID, &last_column_id.to_string()),
    ])
}

/// One more than the highest of `ids`; `first` where there are none.
fn next_id(ident: &TableIdent, ids: impl Iterator<Item = i32>, first: i32) -> Result<i32> {
    let next = ids.max().map_or(Some(first), |last| last.checked_add(1));
    next.ok_or_else(|| {
        Error::unsupported(format!("view {ident} has no numbers left for its versions"))
            .with_hint("drop it and create it again")
    })
}

fn current<'a>(
    ident: &TableIdent,
    metadata: &'a ViewMetadata,
) -> Result<(&'a ViewVersion, &'a Schema)> {
    let version = metadata.current();
    let schema = version.and_then(|version| metadata.schema(version.schema_id));
    version
        .zip(schema)
        .ok_or_else(|| Error::internal(format!("view {ident} lacks its current version")))
}

fn check(ident: &TableIdent, spec: &ViewSpec) -> Result<()> {
    let refused = |what: &str| Err(Error::invalid(format!("view {ident}: {what}")));
    if spec.sql.is_empty() {
        return refused("there is no query");
    }
    let mut dialects = HashSet::new();
    for ViewSql { dialect, sql } in &spec.sql {
        if dialect.trim().is_empty() {
            return refused("a query has no dialect");
        }
        if sql.trim().is_empty() {
            return refused(&format!("the query for {dialect} is empty"));
        }
        if !dialects.insert(dialect.to_lowercase()) {
            return refused(&format!("there are two queries for {dialect}"));
        }
    }
    if spec.default_namespace.is_empty() {
        return refused("it has no schema to look for names in");
    }
    check_properties(ident, &spec.properties)
}

fn check_properties(ident: &TableIdent, properties: &BTreeMap<String, String>) -> Result<()> {
    history_entries(ident, properties)?;
    for key in [VIEW_SECURITY_INVOKER, DROP_DIALECT, DELETE_OLD] {
        let Some(value) = properties.get(key) else { continue };
        if boolean(value).is_none() {
            return Err(unusable(ident, key, value).with_hint("set it to true or false"));
        }
    }
    Ok(())
}

fn history_entries(ident: &TableIdent, properties: &BTreeMap<String, String>) -> Result<usize> {
    let Some(value) = properties.get(HISTORY_ENTRIES) else { return Ok(HISTORY_ENTRIES_DEFAULT) };
    value.parse().ok().filter(|entries| *entries > 0).ok_or_else(|| {
        unusable(ident, HISTORY_ENTRIES, value).with_hint("set it to a whole number from 1 on")
    })
}

fn unusable(ident: &TableIdent, key: &str, value: &str) -> Error {
    Error::invalid(format!("view {ident}: property {key} = {value:?} cannot be used"))
}

/// A query in another engine's dialect would no longer mean the same as ours; as in Iceberg, it is lost only
/// where the view says that it may be.
fn check_dialects(ident: &TableIdent, old: &ViewMetadata, spec: &ViewSpec) -> Result<()> {
    let allowed = spec.properties.get(DROP_DIALECT).and_then(|value| boolean(value));
    let Some(current) = old.current().filter(|_| allowed != Some(true)) else { return Ok(()) };
    let stays =
        |dialect: &str| spec.sql.iter().any(|sql| sql.dialect.eq_ignore_ascii_case(dialect));
    let lost: Vec<&str> = current
        .representations
        .iter()
        .filter_map(|representation| match representation {
            Representation::Sql(sql) if !stays(&sql.dialect) => Some(sql.dialect.as_str()),
            Representation::Sql(_) | Representation::Other(_) => None,
        })
        .collect();
    if lost.is_empty() {
        return Ok(());
    }
    let what =
        format!("view {ident} also has its query for {}, which would be lost", lost.join(", "));
    Err(Error::invalid(what)
        .with_condition(Condition::DependentObjects)
        .with_hint(format!("drop the view first, or set its property {DROP_DIALECT} to true")))
}

fn place(ident: &TableIdent) -> String {
    format!("view {ident}")
}
