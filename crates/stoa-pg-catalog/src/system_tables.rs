//! The tables of `pg_catalog` that depend on the server.
//!
//! Each is a function from what there is to a batch; its columns are those of PostgreSQL 16.

use std::iter::repeat_n;

use arrow::array::RecordBatch;
use arrow::datatypes::Field;
use datafusion::error::Result;

use stoa_sql::identity::Identity;

use crate::batch::Batch;
use crate::contents::Contents;
use crate::keys;
use crate::relations::RelationInfo;
use crate::roles::OWNER_OID;
use crate::type_info::{TypeInfo, type_info};

/// OID of the one database.
const DATABASE_OID: i32 = 5;
/// OID of `pg_class`, under which comments on relations and columns are kept.
const PG_CLASS_OID: i32 = 1259;
/// The access method of indexes.
const BTREE_OID: i32 = 403;
/// Default table space of PostgreSQL.
const TABLESPACE_OID: i32 = 1663;

/// Makes the rows of one table.
pub(super) type Build = fn(&Contents) -> Result<RecordBatch>;

/// A table of `pg_catalog` that is built when it is read.
pub(super) struct SystemTable {
    pub(super) name: &'static str,
    pub(super) build: Build,
    /// Whether it needs the tables' metadata, not only their names.
    pub(super) reads_details: bool,
}

const fn table(name: &'static str, build: Build, reads_details: bool) -> SystemTable {
    SystemTable { name, build, reads_details }
}

/// All of them.
pub(super) const TABLES: [SystemTable; 19] = [
    table("pg_attrdef", pg_attrdef, true),
    table("pg_attribute", pg_attribute, true),
    table("pg_auth_members", pg_auth_members, false),
    table("pg_class", pg_class, true),
    table("pg_constraint", keys::pg_constraint, true),
    table("pg_cursors", pg_cursors, false),
    table("pg_database", pg_database, false),
    table("pg_description", pg_description, true),
    table("pg_index", keys::pg_index, true),
    table("pg_namespace", pg_namespace, false),
    table("pg_prepared_statements", pg_prepared_statements, false),
    table("pg_roles", pg_roles, false),
    table("pg_settings", pg_settings, false),
    table("pg_shdescription", pg_shdescription, false),
    table("pg_stat_activity", pg_stat_activity, false),
    table("pg_tables", pg_tables, true),
    table("pg_tablespace", pg_tablespace, false),
    table("pg_user", pg_user, false),
    table("pg_views", pg_views, true),
];

fn pg_namespace(all: &Contents) -> Result<RecordBatch> {
    let of = &all.relations.namespaces;
    Batch::new(of.len())
        .oid("oid", "oid", of.iter().map(|n| n.oid))
        .text("nspname", of.iter().map(|n| Some(n.name.as_str())))
        .oid_const("nspowner", "oid", OWNER_OID)
        .null_texts("nspacl")
        .finish()
}

fn pg_class(all: &Contents) -> Result<RecordBatch> {
    let of = &all.relations.relations;
    Batch::new(of.len())
        .oid("oid", "oid", of.iter().map(|r| r.oid))
        .text("relname", of.iter().map(|r| Some(r.name.as_str())))
        .oid("relnamespace", "oid", of.iter().map(|r| r.namespace_oid))
        .oid_const("reltype", "oid", 0)
        .oid_const("reloftype", "oid", 0)
        .oid("relowner", "oid", of.iter().map(|r| all.owner_oid(r)))
        .oid("relam", "oid", of.iter().map(|r| if r.kind == "i" { BTREE_OID } else { 0 }))
        .oid("relfilenode", "oid", of.iter().map(|r| r.oid))
        .oid_const("reltablespace", "oid", 0)
        .int4_const("relpages", 0)
        .float4("reltuples", of.iter().map(|r| r.rows))
        .int4_const("relallvisible", 0)
        .oid_const("reltoastrelid", "oid", 0)
        .bool("relhasindex", of.iter().map(|r| r.kind == "r" && !r.key.is_empty()))
        .bool_const("relisshared", false)
        .char_const("relpersistence", "p")
        .char("relkind", of.iter().map(|r| r.kind))
        .int2("relnatts", of.iter().map(|r| r.columns.fields().len() as i16))
        .int2_const("relchecks", 0)
        .bool_const("relhasrules", false)
        .bool_const("relhastriggers", false)
        .bool_const("relhassubclass", false)
        .bool_const("relrowsecurity", false)
        .bool_const("relforcerowsecurity", false)
        .bool_const("relispopulated", true)
        .char_const("relreplident", "n")
        .bool_const("relispartition", false)
        .oid_const("relrewrite", "oid", 0)
        .int4_const("relfrozenxid", 0)
        .int4_const("relminmxid", 0)
        .lists("relacl", of.iter().map(|r| all.acl(r, None)))
        .null_texts("reloptions")
        .text_const("relpartbound", None)
        .finish()
}

fn pg_attribute(all: &Contents) -> Result<RecordBatch> {
    let mut columns: Vec<(&RelationInfo, i16, &Field, TypeInfo)> = Vec::new();
    for relation in &all.relations.relations {
        for (number, field) in relation.known_columns() {
            let number = i16::try_from(number).unwrap_or(i16::MAX);
            columns.push((relation, number, field, type_info(field)));
        }
    }
    let acl = |relation: &RelationInfo, number: i16| {
        let id = relation.field_ids.get(usize::try_from(number - 1).ok()?).copied()??;
        all.acl(relation, Some(id))
    };
    let of = &columns;
    Batch::new(of.len())
        .oid("attrelid", "oid", of.iter().map(|c| c.0.oid))
        .text("attname", of.iter().map(|c| Some(c.2.name().as_str())))
        .oid("atttypid", "oid", of.iter().map(|c| c.3.oid))
        .int2("attlen", of.iter().map(|c| c.3.length))
        .int2("attnum", of.iter().map(|c| c.1))
        .int4_const("attcacheoff", -1)
        .int4("atttypmod", of.iter().map(|c| c.3.modifier))
        .int2("attndims", of.iter().map(|c| c.3.dimensions as i16))
        .bool("attbyval", of.iter().map(|c| c.3.by_value))
        .char("attalign", of.iter().map(|c| c.3.align))
        .char("attstorage", of.iter().map(|c| c.3.storage))
        .char_const("attcompression", "")
        .bool("attnotnull", of.iter().map(|c| !c.2.is_nullable()))
        .bool(
            "atthasdef",
            of.iter().map(|c| default(c.0, c.2).is_some() && identity(c.0, c.2).is_none()),
        )
        .bool_const("atthasmissing", false)
        .char(
            "attidentity",
            of.iter().map(|c| match identity(c.0, c.2) {
                Some(identity) if identity.is_always => "a",
                Some(_) => "d",
                None => "",
            }),
        )
        .char_const("attgenerated", "")
        .bool_const("attisdropped", false)
        .bool_const("attislocal", true)
        .int2_const("attinhcount", 0)
        .int2_const("attstattarget", -1)
        .oid("attcollation", "oid", of.iter().map(|c| c.3.collation))
        .lists("attacl", of.iter().map(|c| acl(c.0, c.1)))
        .null_texts("attoptions")
        .null_texts("attfdwoptions")
        .null_texts("attmissingval")
        .finish()
}

/// The default of a column.
fn default<'a>(relation: &'a RelationInfo, field: &Field) -> Option<&'a String> {
    relation.defaults.get(field.name())
}

fn identity(relation: &RelationInfo, field: &Field) -> Option<Identity> {
    Identity::of_default(default(relation, field)?).map(|(identity, _)| identity)
}

fn pg_attrdef(all: &Contents) -> Result<RecordBatch> {
    let mut defaults: Vec<(i32, usize, &str)> = Vec::new();
    for relation in &all.relations.relations {
        for (number, field) in relation.known_columns() {
            let default = default(relation, field).filter(|_| identity(relation, field).is_none());
            defaults.extend(default.map(|text| (relation.oid, number, text.as_str())));
        }
    }
    let of = &defaults;
    Batch::new(of.len())
        // A number of its own: tables have at most some thousands of columns.
        .oid("oid", "oid", of.iter().map(|d| d.0.wrapping_add(d.1 as i32) & i32::MAX))
        .oid("adrelid", "oid", of.iter().map(|d| d.0))
        .int2("adnum", of.iter().map(|d| i16::try_from(d.1).unwrap_or(i16::MAX)))
        .text("adbin", of.iter().map(|d| Some(d.2)))
        .finish()
}

fn pg_description(all: &Contents) -> Result<RecordBatch> {
    let mut comments: Vec<(i32, i32, &str)> = Vec::new();
    for relation in &all.relations.relations {
        comments.extend(relation.comment.iter().map(|text| (relation.oid, 0, text.as_str())));
        for (number, field) in relation.known_columns() {
            let comment = field.metadata().get("comment");
            comments.extend(comment.map(|text| (relation.oid, number as i32, text.as_str())));
        }
    }
    Batch::new(comments.len())
        .oid("objoid", "oid", comments.iter().map(|c| c.0))
        .oid_const("classoid", "oid", PG_CLASS_OID)
        .int4("objsubid", comments.iter().map(|c| c.1))
        .text("description", comments.iter().map(|c| Some(c.2)))
        .finish()
}

fn pg_shdescription(_: &Contents) -> Result<RecordBatch> {
    Batch::new(0)
        .oid_const("objoid", "oid", 0)
        .oid_const("classoid", "oid", 0)
        .text_const("description", None)
        .finish()
}

fn pg_tables(all: &Contents) -> Result<RecordBatch> {
    let of: Vec<_> = all.relations.relations.iter().filter(|r| r.kind == "r").collect();
    Batch::new(of.len())
        .text("schemaname", of.iter().map(|r| Some(r.namespace.as_str())))
        .text("tablename", of.iter().map(|r| Some(r.name.as_str())))
        .text("tableowner", of.iter().map(|r| Some(all.owner(r))))
        .text_const("tablespace", None)
        .bool_const("hasindexes", false)
        .bool_const("hasrules", false)
        .bool_const("hastriggers", false)
        .bool_const("rowsecurity", false)
        .finish()
}

fn pg_views(all: &Contents) -> Result<RecordBatch> {
    let of: Vec<_> = all.relations.relations.iter().filter(|r| r.kind == "v").collect();
    Batch::new(of.len())
        .text("schemaname", of.iter().map(|r| Some(r.namespace.as_str())))
        .text("viewname", of.iter().map(|r| Some(r.name.as_str())))
        .text("viewowner", of.iter().map(|r| Some(all.owner(r))))
        .text("definition", of.iter().map(|r| r.definition.as_deref()))
        .finish()
}

fn pg_database(all: &Contents) -> Result<RecordBatch> {
    Batch::new(1)
        .oid_const("oid", "oid", DATABASE_OID)
        .text_const("datname", Some(&all.database))
        .oid_const("datdba", "oid", OWNER_OID)
        .int4_const("encoding", 6)
        .char_const("datlocprovider", "c")
        .bool_const("datistemplate", false)
        .bool_const("datallowconn", true)
        .int4_const("datconnlimit", -1)
        .int4_const("datfrozenxid", 0)
        .int4_const("datminmxid", 0)
        .oid_const("dattablespace", "oid", TABLESPACE_OID)
        .text_const("datcollate", Some("C.UTF-8"))
        .text_const("datctype", Some("C.UTF-8"))
        .text_const("daticulocale", None)
        .text_const("daticurules", None)
        .text_const("datcollversion", None)
        .null_texts("datacl")
        .finish()
}

fn pg_tablespace(_: &Contents) -> Result<RecordBatch> {
    Batch::new(1)
        .oid_const("oid", "oid", TABLESPACE_OID)
        .text_const("spcname", Some("pg_default"))
        .oid_const("spcowner", "oid", OWNER_OID)
        .null_texts("spcacl")
        .null_texts("spcoptions")
        .finish()
}

fn pg_roles(all: &Contents) -> Result<RecordBatch> {
    let of = &all.roles.all;
    Batch::new(of.len())
        .oid("oid", "oid", of.iter().map(|r| r.oid))
        .text("rolname", of.iter().map(|r| Some(r.name.as_str())))
        .bool("rolsuper", of.iter().map(|r| r.is_superuser))
        .bool_const("rolinherit", true)
        // Superusers make roles; there is one database.
        .bool("rolcreaterole", of.iter().map(|r| r.is_superuser))
        .bool_const("rolcreatedb", false)
        .bool("rolcanlogin", of.iter().map(|r| r.can_login))
        .bool_const("rolreplication", false)
        .int4_const("rolconnlimit", -1)
        .text_const("rolpassword", Some("********"))
        .instants("rolvaliduntil", of.iter().map(|_| None))
        .bool_const("rolbypassrls", false)
        .null_texts("rolconfig")
        .finish()
}

fn pg_auth_members(all: &Contents) -> Result<RecordBatch> {
    let of = &all.roles.memberships;
    Batch::new(of.len())
        .oid("oid", "oid", of.iter().map(|m| (m.0 ^ m.1.rotate_left(7)) & i32::MAX))
        .oid("roleid", "oid", of.iter().map(|m| m.0))
        .oid("member", "oid", of.iter().map(|m| m.1))
        .oid_const("grantor", "oid", OWNER_OID)
        .bool_const("admin_option", false)
        .bool_const("inherit_option", true)
        .bool_const("set_option", true)
        .finish()
}

fn pg_user(all: &Contents) -> Result<RecordBatch> {
    let of: Vec<_> = all.roles.all.iter().filter(|role| role.can_login).collect();
    Batch::new(of.len())
        .text("usename", of.iter().map(|r| Some(r.name.as_str())))
        .oid("usesysid", "oid", of.iter().map(|r| r.oid))
        .bool_const("usecreatedb", false)
        .bool("usesuper", of.iter().map(|r| r.is_superuser))
        .bool_const("userepl", false)
        .bool_const("usebypassrls", false)
        .text_const("passwd", Some("********"))
        .instants("valuntil", of.iter().map(|_| None))
        .null_texts("useconfig")
        .finish()
}

/// What runs; sessions that do nothing are not counted.
fn pg_stat_activity(all: &Contents) -> Result<RecordBatch> {
    let of = &all.running;
    let start = || of.iter().map(|r| Some(r.started_unix_us));
    let waits = || of.iter().map(|r| r.is_waiting.then_some("slot"));
    Batch::new(of.len())
        .oid_const("datid", "oid", DATABASE_OID)
        .text_const("datname", Some(&all.database))
        .int4("pid", of.iter().map(|r| r.pid))
        .int4("leader_pid", of.iter().map(|r| r.pid))
        .oid("usesysid", "oid", of.iter().map(|r| all.roles.oid(&r.user).unwrap_or(OWNER_OID)))
        .text("usename", of.iter().map(|r| Some(r.user.as_str())))
        .text("application_name", of.iter().map(|r| Some(r.protocol)))
        .text_const("client_addr", None)
        .text_const("client_hostname", None)
        .int4_const("client_port", -1)
        .instants("backend_start", start())
        .instants("xact_start", start())
        .instants("query_start", start())
        .instants("state_change", start())
        .text("wait_event_type", waits().map(|waits| waits.map(|_| "Extension")))
        .text("wait_event", waits())
        .text_const("state", Some("active"))
        .int4_const("backend_xid", 0)
        .int4_const("backend_xmin", 0)
        .text_const("query_id", None)
        .text("query", of.iter().map(|r| Some(r.sql.as_str())))
        .text_const("backend_type", Some("client backend"))
        .finish()
}

fn pg_settings(all: &Contents) -> Result<RecordBatch> {
    let of = &all.settings;
    let bounds: Vec<_> = of.iter().map(|setting| setting.bounds).collect();
    let (least, most): (Vec<_>, Vec<_>) = bounds
        .iter()
        .map(|bounds| {
            let text = |bound: i32| bound.to_string();
            (bounds.map(|(min, _)| text(min)), bounds.map(|(_, max)| text(max)))
        })
        .unzip();
    Batch::new(of.len())
        .text("name", of.iter().map(|s| Some(s.name)))
        .text("setting", of.iter().map(|s| Some(s.value.as_str())))
        .text("unit", of.iter().map(|s| s.unit))
        .text_const("category", Some("Stoa"))
        .text("short_desc", of.iter().map(|s| Some(s.docs)))
        .text_const("extra_desc", None)
        .text("context", of.iter().map(|s| Some(s.context)))
        .text("vartype", of.iter().map(|s| Some(s.type_name)))
        .text_const("source", Some("default"))
        .text("min_val", least.iter().map(Option::as_deref))
        .text("max_val", most.iter().map(Option::as_deref))
        .text_lists("enumvals", of.iter().map(|s| s.choices))
        .text("boot_val", of.iter().map(|s| Some(s.default)))
        .text("reset_val", of.iter().map(|s| Some(s.reset.as_str())))
        .text_const("sourcefile", None)
        .int4("sourceline", repeat_n(0, of.len()))
        .bool_const("pending_restart", false)
        .finish()
}

/// Cursors belong to a connection, which no table sees: always empty.
fn pg_cursors(_: &Contents) -> Result<RecordBatch> {
    Batch::new(0)
        .text_const("name", None)
        .text_const("statement", None)
        .bool_const("is_holdable", false)
        .bool_const("is_binary", false)
        .bool_const("is_scrollable", false)
        .finish()
}

/// As [`pg_cursors`].
fn pg_prepared_statements(_: &Contents) -> Result<RecordBatch> {
    Batch::new(0)
        .text_const("name", None)
        .text_const("statement", None)
        .bool_const("from_sql", false)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_can_be_built_from_nothing() {
        for table in &TABLES {
            let batch = (table.build)(&Contents::default()).unwrap();
            assert!(batch.num_columns() > 2, "{}", table.name);
        }
    }
}
