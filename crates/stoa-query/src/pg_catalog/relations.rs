//! What there is: schemas and relations with their columns, under OIDs.

use std::collections::{BTreeSet, HashSet};

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use futures::StreamExt;
use stoa_catalog::TableIdent;
use stoa_error::{ErrorKind, Result};
use stoa_table::{Table, Warehouse};

use super::provider::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::access::Caller;

/// OID of the schema `pg_catalog`, which the rows of `pg_type` and `pg_proc` refer to.
const PG_CATALOG_OID: i32 = 11;
/// OID of `information_schema` in a fresh PostgreSQL 16.
const INFORMATION_SCHEMA_OID: i32 = 13_000;
/// OID of the schema `public`.
const PUBLIC_OID: i32 = 2200;
/// The first OID for what users made.
pub(super) const FIRST_USER_OID: u32 = 16_384;
/// Tables whose metadata is read at the same time.
const TABLES_AT_ONCE: usize = 16;

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
    /// `r` or `v`.
    pub(super) kind: &'static str,
    /// Rows at the last commit; -1 where nobody counted.
    pub(super) rows: f32,
    pub(super) columns: SchemaRef,
    pub(super) comment: Option<String>,
    /// The columns whose names may be told, by place; all if `None`.
    pub(super) known: Option<BTreeSet<usize>>,
    /// The table of the warehouse, if its metadata was read and can be.
    pub(super) table: Option<Table>,
}

impl RelationInfo {
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
    /// Reads the catalog; `system` are the relations of `pg_catalog`. With `columns`, also reads
    /// the metadata of every table; without, tables have no columns and no row count. With a caller,
    /// only what it may know of.
    pub(super) async fn read(
        warehouse: &Warehouse,
        system: &[(String, SchemaRef)],
        columns: bool,
        caller: Option<&Caller>,
    ) -> Result<Self> {
        let caller = caller.filter(|caller| !caller.may_everything());
        let columns = columns || caller.is_some();
        let names = warehouse.namespaces().await?;
        let mut oids = Oids::default();
        let mut found = Self { namespaces: system_namespaces(), relations: Vec::new() };
        for (name, schema) in system {
            found.relations.push(system_relation(name, schema));
        }
        for name in names {
            let oid = oids.namespace(&name);
            let tables = warehouse.tables(&name).await?;
            let loads = tables.into_iter().map(|ident| load(warehouse, ident, columns));
            let loaded: Vec<_> =
                futures::stream::iter(loads).buffered(TABLES_AT_ONCE).collect().await;
            for mut relation in loaded.into_iter().flatten() {
                relation.oid = oids.relation(&relation.namespace, &relation.name);
                relation.namespace_oid = oid;
                if let Some(caller) = caller {
                    let Some(table) = &relation.table else { continue };
                    if !caller.may_know(table) {
                        continue;
                    }
                    relation.known = Some(caller.known_columns(table, &relation.columns));
                }
                found.relations.push(relation);
            }
            found.namespaces.push(NamespaceInfo { oid, name });
        }
        Ok(found)
    }
}

/// Loads one table; `None` if it is gone meanwhile. A table whose metadata cannot be read is
/// listed without columns, so that it does not hide all others.
async fn load(warehouse: &Warehouse, ident: TableIdent, columns: bool) -> Option<RelationInfo> {
    let mut relation = RelationInfo {
        oid: 0,
        namespace_oid: 0,
        namespace: ident.namespace.clone(),
        name: ident.name.clone(),
        kind: "r",
        rows: -1.0,
        columns: SchemaRef::new(Schema::empty()),
        comment: None,
        known: None,
        table: None,
    };
    if !columns {
        return Some(relation);
    }
    match warehouse.table(&ident).await {
        Ok(table) => {
            let cells = crate::cells::view_columns(&table).ok().flatten();
            // The table counts cells, the relation rows.
            let rows = if cells.is_some() { None } else { table.row_count() };
            relation.columns = cells.unwrap_or_else(|| table.schema());
            relation.comment = table.comment().map(str::to_owned);
            relation.rows = rows.map_or(-1.0, |rows| rows as f32);
            relation.table = Some(table);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(
                namespace = ident.namespace,
                table = ident.name,
                ?error,
                "cannot read a table's metadata for the system catalog"
            );
        }
    }
    Some(relation)
}

fn system_namespaces() -> Vec<NamespaceInfo> {
    vec![
        NamespaceInfo { oid: PG_CATALOG_OID, name: PG_CATALOG.to_owned() },
        NamespaceInfo { oid: INFORMATION_SCHEMA_OID, name: INFORMATION_SCHEMA.to_owned() },
    ]
}

fn system_relation(name: &str, columns: &SchemaRef) -> RelationInfo {
    RelationInfo {
        oid: well_known_oid(name).unwrap_or_else(|| system_oid(name)),
        namespace_oid: PG_CATALOG_OID,
        namespace: PG_CATALOG.to_owned(),
        name: name.to_owned(),
        kind: if well_known_oid(name).is_some() { "r" } else { "v" },
        rows: -1.0,
        columns: SchemaRef::clone(columns),
        comment: None,
        known: None,
        table: None,
    }
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
        if name == crate::DEFAULT_NAMESPACE {
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
