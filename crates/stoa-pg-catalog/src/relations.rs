//! What there is: schemas and relations with their columns, under OIDs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use stoa_error::{Error, Result};
use uuid::Uuid;

use crate::server::{Asker, TableDetails, Told};
use crate::{INFORMATION_SCHEMA, PG_CATALOG};

/// OID of the schema `pg_catalog`, which the rows of `pg_type` and `pg_proc` refer to.
const PG_CATALOG_OID: i32 = 11;
/// OID of `information_schema` in a fresh PostgreSQL 16.
const INFORMATION_SCHEMA_OID: i32 = 13_000;
/// The schema of names without one.
const PUBLIC: &str = "public";
/// Its OID.
const PUBLIC_OID: i32 = 2200;
/// The first OID for what users made.
pub(super) const FIRST_USER_OID: u32 = 16_384;

/// A schema.
#[derive(Debug)]
pub(super) struct NamespaceInfo {
    pub(super) oid: i32,
    pub(super) name: String,
}

/// A table or view.
#[derive(Debug)]
pub(super) struct RelationInfo {
    pub(super) oid: i32,
    pub(super) namespace_oid: i32,
    pub(super) namespace: String,
    pub(super) name: String,
    /// `r`, `v`, or `i` for the index that a key is shown with.
    pub(super) kind: &'static str,
    /// The table of an index.
    pub(super) table_oid: i32,
    /// The columns of the primary key, by place in the table.
    pub(super) key: Vec<usize>,
    /// Bytes of the data files.
    pub(super) bytes: Option<i64>,
    /// Rows at the last commit; -1 where nobody counted.
    pub(super) rows: f32,
    pub(super) columns: SchemaRef,
    pub(super) comment: Option<String>,
    /// The query of a view.
    pub(super) definition: Option<String>,
    /// The columns whose names may be told, by place; all if `None`.
    pub(super) known: Option<BTreeSet<usize>>,
    /// Under what rights on it are kept, if its metadata was read.
    pub(super) uuid: Option<Uuid>,
    /// Under what rights on each column are kept, by place.
    pub(super) field_ids: Vec<Option<i32>>,
    /// The defaults of columns, by name.
    pub(super) defaults: BTreeMap<String, String>,
}

impl RelationInfo {
    /// A table of which no more is known.
    pub(super) fn named(namespace: &str, name: &str) -> Self {
        Self {
            oid: 0,
            namespace_oid: 0,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            kind: "r",
            table_oid: 0,
            key: Vec::new(),
            bytes: None,
            rows: -1.0,
            columns: SchemaRef::new(Schema::empty()),
            comment: None,
            definition: None,
            known: None,
            uuid: None,
            field_ids: Vec::new(),
            defaults: BTreeMap::new(),
        }
    }

    fn with(self, details: TableDetails) -> Self {
        Self {
            uuid: Some(details.uuid),
            columns: details.columns,
            field_ids: details.field_ids,
            defaults: details.defaults,
            known: details.known,
            key: details.key,
            rows: details.rows.map_or(-1.0, |rows| rows as f32),
            bytes: details.bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            comment: details.comment,
            definition: details.definition,
            ..self
        }
    }

    /// The columns whose names may be told, with their numbers from 1.
    pub(super) fn known_columns(&self) -> impl Iterator<Item = (usize, &FieldRef)> {
        let known = |place: &usize| self.known.as_ref().is_none_or(|known| known.contains(place));
        let all = self.columns.fields().iter().enumerate();
        all.filter(move |(place, _)| known(place)).map(|(place, field)| (place + 1, field))
    }
}

/// Everything at one moment.
#[derive(Debug, Default)]
pub(super) struct Relations {
    pub(super) namespaces: Vec<NamespaceInfo>,
    pub(super) relations: Vec<RelationInfo>,
}

impl Relations {
    /// Reads what `asker` may know of; `system` are the relations of `pg_catalog`. Without
    /// `with_details`, tables may have no columns and no row count.
    ///
    /// # Errors
    /// The asker's.
    pub(super) async fn read(
        asker: &dyn Asker,
        system: &[(String, SchemaRef)],
        with_details: bool,
    ) -> Result<Self> {
        let mut oids = Oids::default();
        let mut found = Self { namespaces: system_namespaces(), relations: Vec::new() };
        for (name, schema) in system {
            found.relations.push(system_relation(name, schema));
        }
        for namespace in asker.namespaces().await? {
            let namespace_oid = oids.namespace(&namespace);
            for table in asker.tables(&namespace, with_details).await? {
                // Also of one that is not told of: the OIDs of others are the same for everybody.
                let oid = oids.relation(&namespace, &table.name);
                let named = RelationInfo {
                    oid,
                    namespace_oid,
                    kind: if table.is_view { "v" } else { "r" },
                    ..RelationInfo::named(&namespace, &table.name)
                };
                match table.told {
                    Told::Nothing => {}
                    Told::Name => found.relations.push(named),
                    Told::Details(details) => found.relations.push(named.with(details)),
                }
            }
            found.namespaces.push(NamespaceInfo { oid: namespace_oid, name: namespace });
        }
        // After all others, whose OIDs do not depend on who asks.
        let index = |table: &RelationInfo| {
            let oid = oids.relation(&table.namespace, &index_name(&table.name));
            index_of(table, oid)
        };
        let indexes: Vec<_> =
            found.relations.iter().filter(|t| !t.key.is_empty()).filter_map(index).collect();
        found.relations.extend(indexes);
        Ok(found)
    }

    pub(super) fn with_oid(&self, oid: i64) -> Option<&RelationInfo> {
        self.relations.iter().find(|one| i64::from(one.oid) == oid)
    }

    /// A relation by its name as SQL writes it; `namespace` is that of names without one.
    ///
    /// # Errors
    /// There is none (42P01).
    pub(super) fn named(&self, name: &str, namespace: &str) -> Result<&RelationInfo> {
        let parts = name_parts(name);
        let (namespace, table) = match parts.as_slice() {
            [table] => (namespace, table.as_str()),
            [.., namespace, table] => (namespace.as_str(), table.as_str()),
            [] => ("", ""),
        };
        let found = self.relations.iter();
        let mut found = found.filter(|one| one.namespace == namespace && one.name == table);
        found.next().ok_or_else(|| {
            Error::not_found(format!("relation \"{name}\" does not exist")).with_sqlstate("42P01")
        })
    }
}

/// The parts of a name: lower case unless quoted.
pub(super) fn name_parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut chars = name.trim().chars().peekable();
    while let Some(next) = chars.next() {
        let part = match (next, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => {
                chars.next();
                "\"".to_owned()
            }
            ('"', _) => {
                quoted = !quoted;
                continue;
            }
            ('.', false) => {
                parts.push(String::new());
                continue;
            }
            (other, true) => other.to_string(),
            (other, false) => other.to_lowercase().collect(),
        };
        if let Some(last) = parts.last_mut() {
            last.push_str(&part);
        }
    }
    parts
}

fn system_namespaces() -> Vec<NamespaceInfo> {
    vec![
        NamespaceInfo { oid: PG_CATALOG_OID, name: PG_CATALOG.to_owned() },
        NamespaceInfo { oid: INFORMATION_SCHEMA_OID, name: INFORMATION_SCHEMA.to_owned() },
    ]
}

fn system_relation(name: &str, columns: &SchemaRef) -> RelationInfo {
    let well_known = well_known_oid(name);
    RelationInfo {
        oid: well_known.unwrap_or_else(|| system_oid(name)),
        namespace_oid: PG_CATALOG_OID,
        kind: if well_known.is_some() { "r" } else { "v" },
        columns: SchemaRef::clone(columns),
        ..RelationInfo::named(PG_CATALOG, name)
    }
}

/// OIDs of roles, by name; where two names meet, the later in order moves on.
pub(super) fn role_oids<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<&'a str, i32> {
    let mut oids = Oids::default();
    names.map(|name| (name, oids.free(hash(&["role", name])))).collect()
}

/// The OID of a schema, unless another name has it, too.
pub(super) fn namespace_oid(name: &str) -> i32 {
    Oids::default().namespace(name)
}

/// OIDs that clients write into their queries.
pub(super) fn well_known_oid(name: &str) -> Option<i32> {
    Some(match name {
        "pg_type" => 1247,
        "pg_attribute" => 1249,
        "pg_proc" => 1255,
        "pg_class" => 1259,
        "pg_authid" => 1260,
        "pg_database" => 1262,
        "pg_attrdef" => 2604,
        "pg_constraint" => 2606,
        "pg_description" => 2609,
        "pg_index" => 2610,
        "pg_inherits" => 2611,
        "pg_namespace" => 2615,
        "pg_rewrite" => 2618,
        "pg_trigger" => 2620,
        _ => return None,
    })
}

/// OIDs below those of users, spread by name.
fn system_oid(name: &str) -> i32 {
    13_100 + (hash(&[name]) % 3000) as i32
}

/// Gives out OIDs that depend on names; where two names meet, the later in order moves on.
#[derive(Default)]
struct Oids {
    used: HashSet<u32>,
    namespaces: BTreeSet<String>,
}

impl Oids {
    fn namespace(&mut self, name: &str) -> i32 {
        self.namespaces.insert(name.to_owned());
        if name == PUBLIC {
            return PUBLIC_OID;
        }
        self.free(hash(&[name]))
    }

    fn relation(&mut self, namespace: &str, name: &str) -> i32 {
        self.free(hash(&[namespace, name]))
    }

    fn free(&mut self, hash: u32) -> i32 {
        let span = i32::MAX as u32 - FIRST_USER_OID;
        let mut oid = FIRST_USER_OID + hash % span;
        while !self.used.insert(oid) {
            oid = if oid == i32::MAX as u32 { FIRST_USER_OID } else { oid + 1 };
        }
        oid as i32
    }
}

/// FNV-1a, which stays the same over versions and machines.
fn hash(parts: &[&str]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The index that a key is shown with. `None` where there is no key, or one of its columns may not be told.
fn index_of(table: &RelationInfo, oid: i32) -> Option<RelationInfo> {
    let known = |place: &usize| table.known.as_ref().is_none_or(|known| known.contains(place));
    if table.key.is_empty() || !table.key.iter().all(known) {
        return None;
    }
    let field = |place: &usize| {
        let field: &Field = table.columns.fields().get(*place)?;
        let mut metadata = field.metadata().clone();
        metadata.remove("comment");
        Some(field.clone().with_metadata(metadata))
    };
    let fields = table.key.iter().map(field).collect::<Option<Vec<_>>>()?;
    Some(RelationInfo {
        oid,
        namespace_oid: table.namespace_oid,
        kind: "i",
        table_oid: table.oid,
        columns: Arc::new(Schema::new(fields)),
        key: table.key.clone(),
        rows: table.rows,
        ..RelationInfo::named(&table.namespace, &index_name(&table.name))
    })
}

/// The name of a key, and of its index.
fn index_name(table: &str) -> String {
    format!("{table}_pkey")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oids_depend_on_names_only() {
        let (mut one, mut other) = (Oids::default(), Oids::default());
        other.relation("public", "another");
        assert_eq!(one.relation("public", "events"), other.relation("public", "events"));
        assert_eq!(one.namespace("public"), PUBLIC_OID);
        assert_ne!(hash(&["a", "bc"]), hash(&["ab", "c"]));
        assert!(one.relation("public", "t") >= FIRST_USER_OID as i32);
    }
}
