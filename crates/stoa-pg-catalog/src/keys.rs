//! Primary keys as `pg_constraint`, `pg_index` and `pg_class` show them.
//!
//! A key is declared and not enforced, and there is no index behind it. PostgreSQL has no way to say so, and clients
//! find keys by their index only: so each key has one, `t_pkey`, as `information_schema` names its constraint.

use arrow::array::RecordBatch;
use datafusion::error::Result;

use crate::batch::Batch;
use crate::contents::Contents;
use crate::relations::{RelationInfo, Relations};

fn indexes(relations: &Relations) -> Vec<&RelationInfo> {
    relations.relations.iter().filter(|relation| relation.kind == "i").collect()
}

fn numbers(index: &RelationInfo) -> Vec<i16> {
    index.key.iter().map(|place| i16::try_from(place + 1).unwrap_or(i16::MAX)).collect()
}

pub(super) fn pg_index(all: &Contents) -> Result<RecordBatch> {
    let of = indexes(&all.relations);
    let count = |index: &&RelationInfo| index.key.len() as i16;
    let zeros = |index: &&RelationInfo| vec![0_i16; index.key.len()];
    Batch::new(of.len())
        .oid("indexrelid", "oid", of.iter().map(|i| i.oid))
        .oid("indrelid", "oid", of.iter().map(|i| i.table_oid))
        .int2("indnatts", of.iter().map(count))
        .int2("indnkeyatts", of.iter().map(count))
        .bool_const("indisunique", true)
        .bool_const("indnullsnotdistinct", false)
        .bool_const("indisprimary", true)
        .bool_const("indisexclusion", false)
        .bool_const("indimmediate", true)
        .bool_const("indisclustered", false)
        .bool_const("indisvalid", true)
        .bool_const("indcheckxmin", false)
        .bool_const("indisready", true)
        .bool_const("indislive", true)
        .bool_const("indisreplident", false)
        .int2_vectors("indkey", of.iter().map(|i| numbers(i)))
        .zero_vectors("indcollation", of.iter().map(|i| i.key.len()))
        .zero_vectors("indclass", of.iter().map(|i| i.key.len()))
        .int2_vectors("indoption", of.iter().map(zeros))
        .text_const("indexprs", None)
        .text_const("indpred", None)
        .finish()
}

pub(super) fn pg_constraint(all: &Contents) -> Result<RecordBatch> {
    let of = indexes(&all.relations);
    Batch::new(of.len())
        .oid("oid", "oid", of.iter().map(|i| i.oid))
        .text("conname", of.iter().map(|i| Some(i.name.as_str())))
        .oid("connamespace", "oid", of.iter().map(|i| i.namespace_oid))
        .char_const("contype", "p")
        .bool_const("condeferrable", false)
        .bool_const("condeferred", false)
        .bool_const("convalidated", true)
        .oid("conrelid", "oid", of.iter().map(|i| i.table_oid))
        .oid_const("contypid", "oid", 0)
        .oid("conindid", "oid", of.iter().map(|i| i.oid))
        .oid_const("conparentid", "oid", 0)
        .oid_const("confrelid", "oid", 0)
        .char_const("confupdtype", " ")
        .char_const("confdeltype", " ")
        .char_const("confmatchtype", " ")
        .bool_const("conislocal", true)
        .int2_const("coninhcount", 0)
        .bool_const("connoinherit", true)
        .int2_lists("conkey", of.iter().map(|i| numbers(i)))
        .int2_lists("confkey", of.iter().map(|_| Vec::new()))
        .null_texts("conpfeqop")
        .null_texts("conppeqop")
        .null_texts("conffeqop")
        .int2_lists("confdelsetcols", of.iter().map(|_| Vec::new()))
        .null_texts("conexclop")
        .text_const("conbin", None)
        .finish()
}

/// What `pg_get_constraintdef` says of a key's index; `None` of any other relation.
pub(super) fn constraint_definition(index: &RelationInfo) -> Option<String> {
    (index.kind == "i").then(|| format!("PRIMARY KEY ({})", columns_of(index)))
}

/// What `pg_get_indexdef` says.
pub(super) fn index_definition(index: &RelationInfo) -> Option<String> {
    let table = index.name.strip_suffix("_pkey").unwrap_or(&index.name);
    let (name, schema, table) = (quoted(&index.name), quoted(&index.namespace), quoted(table));
    let columns = columns_of(index);
    let text = || format!("CREATE UNIQUE INDEX {name} ON {schema}.{table} USING btree ({columns})");
    (index.kind == "i").then(text)
}

fn columns_of(index: &RelationInfo) -> String {
    let names: Vec<_> = index.columns.fields().iter().map(|field| quoted(field.name())).collect();
    names.join(", ")
}

/// A name as it must be written.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}
