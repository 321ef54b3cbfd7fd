//! The tables of `pg_catalog` that depend on the warehouse.
//!
//! Each is a function from what there is to a batch; its columns are those of PostgreSQL 16.

use std::iter::repeat_n;

use arrow::array::RecordBatch;
use arrow::datatypes::Field;
use datafusion::error::Result;

use super::batch::Batch;
use super::relations::Relations;
use super::type_info::{TypeInfo, type_info};
use crate::DATABASE;
use crate::settings::Settings;

/// OID of the one role.
const OWNER_OID: i32 = 10;
/// OID of the one database.
const DATABASE_OID: i32 = 5;
/// OID of `pg_class`, under which comments on relations and columns are kept.
const PG_CLASS_OID: i32 = 1259;
/// Default table space of PostgreSQL.
const TABLESPACE_OID: i32 = 1663;

/// Makes the rows of one table.
pub(super) type Build = fn(&Relations) -> Result<RecordBatch>;

/// A table of `pg_catalog` that is built when it is read.
pub(super) struct SystemTable {
    pub(super) name: &'static str,
    pub(super) build: Build,
    /// Whether it needs the tables' metadata, not only their names.
    pub(super) reads_columns: bool,
}

const fn table(name: &'static str, build: Build, reads_columns: bool) -> SystemTable {
    SystemTable { name, build, reads_columns }
}

/// All of them.
pub(super) const TABLES: [SystemTable; 13] = [
    table("pg_attribute", pg_attribute, true),
    table("pg_class", pg_class, true),
    table("pg_cursors", pg_cursors, false),
    table("pg_database", pg_database, false),
    table("pg_description", pg_description, true),
    table("pg_namespace", pg_namespace, false),
    table("pg_prepared_statements", pg_prepared_statements, false),
    table("pg_roles", pg_roles, false),
    table("pg_settings", pg_settings, false),
    table("pg_shdescription", pg_shdescription, false),
    table("pg_tables", pg_tables, false),
    table("pg_tablespace", pg_tablespace, false),
    table("pg_user", pg_user, false),
];

fn pg_namespace(all: &Relations) -> Result<RecordBatch> {
    let of = &all.namespaces;
    Batch::new(of.len())
        .oid("oid", "oid", of.iter().map(|n| n.oid))
        .text("nspname", of.iter().map(|n| Some(n.name.as_str())))
        .oid_const("nspowner", "oid", OWNER_OID)
        .null_texts("nspacl")
        .finish()
}

fn pg_class(all: &Relations) -> Result<RecordBatch> {
    let of = &all.relations;
    Batch::new(of.len())
        .oid("oid", "oid", of.iter().map(|r| r.oid))
        .text("relname", of.iter().map(|r| Some(r.name.as_str())))
        .oid("relnamespace", "oid", of.iter().map(|r| r.namespace_oid))
        .oid_const("reltype", "oid", 0)
        .oid_const("reloftype", "oid", 0)
        .oid_const("relowner", "oid", OWNER_OID)
        .oid_const("relam", "oid", 0)
        .oid("relfilenode", "oid", of.iter().map(|r| r.oid))
        .oid_const("reltablespace", "oid", 0)
        .int4_const("relpages", 0)
        .float4("reltuples", of.iter().map(|r| r.rows))
        .int4_const("relallvisible", 0)
        .oid_const("reltoastrelid", "oid", 0)
        .bool_const("relhasindex", false)
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
        .null_texts("relacl")
        .null_texts("reloptions")
        .text_const("relpartbound", None)
        .finish()
}

fn pg_attribute(all: &Relations) -> Result<RecordBatch> {
    let mut columns: Vec<(i32, i16, &Field, TypeInfo)> = Vec::new();
    for relation in &all.relations {
        for (number, field) in relation.known_columns() {
            let number = i16::try_from(number).unwrap_or(i16::MAX);
            columns.push((relation.oid, number, field, type_info(field)));
        }
    }
    let of = &columns;
    Batch::new(of.len())
        .oid("attrelid", "oid", of.iter().map(|c| c.0))
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
        .bool_const("atthasdef", false)
        .bool_const("atthasmissing", false)
        .char_const("attidentity", "")
        .char_const("attgenerated", "")
        .bool_const("attisdropped", false)
        .bool_const("attislocal", true)
        .int2_const("attinhcount", 0)
        .int2_const("attstattarget", -1)
        .oid("attcollation", "oid", of.iter().map(|c| c.3.collation))
        .null_texts("attacl")
        .null_texts("attoptions")
        .null_texts("attfdwoptions")
        .null_texts("attmissingval")
        .finish()
}

fn pg_description(all: &Relations) -> Result<RecordBatch> {
    let mut comments: Vec<(i32, i32, &str)> = Vec::new();
    for relation in &all.relations {
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

fn pg_shdescription(_: &Relations) -> Result<RecordBatch> {
    Batch::new(0)
        .oid_const("objoid", "oid", 0)
        .oid_const("classoid", "oid", 0)
        .text_const("description", None)
        .finish()
}

fn pg_tables(all: &Relations) -> Result<RecordBatch> {
    let of: Vec<_> = all.relations.iter().filter(|r| r.kind == "r").collect();
    Batch::new(of.len())
        .text("schemaname", of.iter().map(|r| Some(r.namespace.as_str())))
        .text("tablename", of.iter().map(|r| Some(r.name.as_str())))
        .text_const("tableowner", Some(DATABASE))
        .text_const("tablespace", None)
        .bool_const("hasindexes", false)
        .bool_const("hasrules", false)
        .bool_const("hastriggers", false)
        .bool_const("rowsecurity", false)
        .finish()
}

fn pg_database(_: &Relations) -> Result<RecordBatch> {
    Batch::new(1)
        .oid_const("oid", "oid", DATABASE_OID)
        .text_const("datname", Some(DATABASE))
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

fn pg_tablespace(_: &Relations) -> Result<RecordBatch> {
    Batch::new(1)
        .oid_const("oid", "oid", TABLESPACE_OID)
        .text_const("spcname", Some("pg_default"))
        .oid_const("spcowner", "oid", OWNER_OID)
        .null_texts("spcacl")
        .null_texts("spcoptions")
        .finish()
}

/// One role owns all, whoever owns what by rights (`system.grants`).
fn pg_roles(_: &Relations) -> Result<RecordBatch> {
    Batch::new(1)
        .oid_const("oid", "oid", OWNER_OID)
        .text_const("rolname", Some(DATABASE))
        .bool_const("rolsuper", true)
        .bool_const("rolinherit", true)
        .bool_const("rolcreaterole", false)
        .bool_const("rolcreatedb", false)
        .bool_const("rolcanlogin", true)
        .bool_const("rolreplication", false)
        .int4_const("rolconnlimit", -1)
        .text_const("rolpassword", Some("********"))
        .text_const("rolvaliduntil", None)
        .bool_const("rolbypassrls", false)
        .null_texts("rolconfig")
        .finish()
}

fn pg_user(_: &Relations) -> Result<RecordBatch> {
    Batch::new(1)
        .text_const("usename", Some(DATABASE))
        .oid_const("usesysid", "oid", OWNER_OID)
        .bool_const("usecreatedb", false)
        .bool_const("usesuper", true)
        .bool_const("userepl", false)
        .bool_const("usebypassrls", false)
        .text_const("passwd", Some("********"))
        .text_const("valuntil", None)
        .null_texts("useconfig")
        .finish()
}

fn pg_settings(_: &Relations) -> Result<RecordBatch> {
    let all = Settings::default().all();
    let of = &all;
    Batch::new(of.len())
        .text("name", of.iter().map(|s| Some(s.0)))
        .text("setting", of.iter().map(|s| Some(s.1.as_str())))
        .text_const("unit", None)
        .text_const("category", Some("Stoa"))
        .text("short_desc", of.iter().map(|s| Some(s.2)))
        .text_const("extra_desc", None)
        .text_const("context", Some("user"))
        .text_const("vartype", Some("string"))
        .text_const("source", Some("default"))
        .text_const("min_val", None)
        .text_const("max_val", None)
        .null_texts("enumvals")
        .text("boot_val", of.iter().map(|s| Some(s.1.as_str())))
        .text("reset_val", of.iter().map(|s| Some(s.1.as_str())))
        .text_const("sourcefile", None)
        .int4("sourceline", repeat_n(0, of.len()))
        .bool_const("pending_restart", false)
        .finish()
}

/// Cursors belong to a connection, which no table sees: always empty.
fn pg_cursors(_: &Relations) -> Result<RecordBatch> {
    Batch::new(0)
        .text_const("name", None)
        .text_const("statement", None)
        .bool_const("is_holdable", false)
        .bool_const("is_binary", false)
        .bool_const("is_scrollable", false)
        .finish()
}

/// As [`pg_cursors`].
fn pg_prepared_statements(_: &Relations) -> Result<RecordBatch> {
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
            let batch = (table.build)(&Relations::default()).unwrap();
            assert!(batch.num_columns() > 2, "{}", table.name);
        }
    }
}
