//! `system.roles` and `system.grants`: who there is, and who may do what.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_access::{Grant, Object};
use stoa_error::Result;
use stoa_table::Table;
use uuid::Uuid;

use super::rows::Rows;
use crate::access::{Caller, field_id};
use crate::engine::Engine;

/// One row per role.
pub(super) fn roles(engine: &Engine) -> Rows {
    let policy = engine.rights.policy();
    let all: Vec<_> = policy.roles().collect();
    let member_of: Vec<String> = all
        .iter()
        .map(|role| {
            let of = policy.memberships().iter().filter(|m| m.member == role.name);
            of.map(|membership| membership.role).collect::<Vec<_>>().join(", ")
        })
        .collect();
    let of = || all.iter();
    Rows::of(all.len())
        .text("role", of().map(|role| Some(role.name.as_str())))
        .bool("login", of().map(|role| role.can_login))
        .bool("superuser", of().map(|role| role.is_superuser))
        .bool("password", of().map(|role| role.secret.is_some()))
        .text("member_of", member_of.iter().map(|names| Some(names.as_str())))
}

/// No grants.
pub(super) fn no_grants() -> Rows {
    rows(&[])
}

/// One row per grant and per owner, of what the caller may see: tables that it may read something of,
/// and its own grants.
pub(super) fn grants(engine: Arc<Engine>, caller: Arc<Caller>) -> BoxFuture<'static, Result<Rows>> {
    async move {
        engine.rights.refresh().await?;
        let policy = engine.rights.policy();
        let mut tables = tables(&engine).await?;
        tables.retain(|_, table| caller.may_see(table).is_ok());
        let mut shown: Vec<Shown> = policy.grants().map(|grant| shown(grant, &tables)).collect();
        shown.extend(policy.owners().map(|(uuid, owner)| Shown {
            grantee: owner.to_owned(),
            privilege: "OWNER",
            columns: None,
            ..place(&Object::Table(uuid), &tables)
        }));
        let is_seen =
            |one: &Shown| caller.may_everything() || one.is_known || one.grantee == caller.role();
        shown.retain(is_seen);
        Ok(rows(&shown))
    }
    .boxed()
}

type Tables = HashMap<Uuid, Table>;

async fn tables(engine: &Engine) -> Result<Tables> {
    let mut tables = Tables::new();
    for namespace in engine.warehouse().namespaces().await? {
        for ident in engine.warehouse().tables(&namespace).await? {
            // One that cannot be read is shown by its number.
            if let Ok(table) = engine.warehouse().table(&ident).await {
                tables.insert(table.uuid(), table);
            }
        }
    }
    Ok(tables)
}

#[derive(Default)]
struct Shown {
    grantee: String,
    privilege: &'static str,
    namespace: Option<String>,
    table: Option<String>,
    columns: Option<String>,
    /// Whether it is a table that may be seen.
    is_known: bool,
}

fn place(object: &Object, tables: &Tables) -> Shown {
    let (namespace, table, is_known) = match object {
        Object::Namespace(name) => (Some(name.clone()), None, false),
        Object::Table(uuid) => match tables.get(uuid).map(Table::ident) {
            Some(ident) => (Some(ident.namespace.clone()), Some(ident.name.clone()), true),
            None => (None, Some(uuid.to_string()), false),
        },
    };
    Shown { namespace, table, is_known, ..Shown::default() }
}

fn shown(grant: &Grant, tables: &Tables) -> Shown {
    let names: BTreeMap<i32, String> = match &grant.object {
        Object::Table(uuid) => tables.get(uuid).map(columns_by_id).unwrap_or_default(),
        Object::Namespace(_) => BTreeMap::new(),
    };
    let name = |id: &i32| names.get(id).cloned().unwrap_or_else(|| format!("(dropped, id {id})"));
    let columns = grant.columns.as_ref();
    Shown {
        grantee: match &grant.grantee {
            stoa_access::Grantee::Role(name) => name.clone(),
            stoa_access::Grantee::Public => "PUBLIC".to_owned(),
        },
        privilege: grant.privilege.name(),
        columns: columns.map(|ids| ids.iter().map(name).collect::<Vec<_>>().join(", ")),
        ..place(&grant.object, tables)
    }
}

fn columns_by_id(table: &Table) -> BTreeMap<i32, String> {
    let schema = table.schema();
    let fields = schema.fields().iter();
    fields.filter_map(|field| Some((field_id(field)?, field.name().clone()))).collect()
}

fn rows(all: &[Shown]) -> Rows {
    let of = || all.iter();
    Rows::of(all.len())
        .text("grantee", of().map(|one| Some(one.grantee.as_str())))
        .text("privilege", of().map(|one| Some(one.privilege)))
        .text("namespace", of().map(|one| one.namespace.as_deref()))
        .text("table", of().map(|one| one.table.as_deref()))
        .text("columns", of().map(|one| one.columns.as_deref()))
}
