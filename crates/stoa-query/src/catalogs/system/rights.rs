//! `system.roles` and `system.grants`: who there is, and who may do what.

use std::collections::{BTreeMap, HashMap};

use arrow::datatypes::SchemaRef;
use stoa_access::{Grant, Object};
use stoa_catalog::TableIdent;
use stoa_error::Result;
use stoa_figures::{Grant as GrantRow, Role as RoleRow};
use uuid::Uuid;

use crate::access::{Caller, Relation, field_id};
use crate::engine::Engine;
use crate::tables::view::StoredView;

/// One row per role.
pub(super) fn roles(engine: &Engine) -> Vec<RoleRow> {
    let policy = engine.rights().policy();
    let row = |role: &stoa_access::Role| {
        let of = policy.memberships().iter().filter(|m| m.member == role.name);
        RoleRow {
            role: role.name.clone(),
            login: role.can_login,
            superuser: role.is_superuser,
            password: role.secret.is_some(),
            member_of: of.map(|membership| membership.role).collect(),
        }
    };
    policy.roles().map(row).collect()
}

/// One row per grant and per owner, of what the caller may see: tables and views that it may read something of,
/// and its own grants.
pub(super) async fn grants(engine: &Engine, caller: &Caller) -> Result<Vec<GrantRow>> {
    engine.rights().refresh().await?;
    let policy = engine.rights().policy();
    let tables = relations(engine, caller).await?;
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
    Ok(shown.into_iter().map(row).collect())
}

/// Names and columns of tables and views.
type Relations = HashMap<Uuid, (TableIdent, SchemaRef)>;

/// Those that the caller may see. One that cannot be read is shown by its number.
async fn relations(engine: &Engine, caller: &Caller) -> Result<Relations> {
    let warehouse = engine.warehouse();
    let mut found = Relations::new();
    for listing in warehouse.listing().await? {
        let ident = |name| TableIdent::new(&listing.namespace, name);
        for ident in listing.tables.iter().map(ident) {
            if let Ok(table) = warehouse.table(&ident).await {
                note(&table, caller, &mut found);
            }
        }
        for ident in listing.views.iter().map(ident) {
            if let Ok(view) = warehouse.view(&ident).await.and_then(StoredView::new) {
                note(&view, caller, &mut found);
            }
        }
    }
    Ok(found)
}

fn note(relation: &impl Relation, caller: &Caller, found: &mut Relations) {
    if caller.may_see(relation).is_ok() {
        found.insert(relation.uuid(), (relation.ident().clone(), relation.schema()));
    }
}

#[derive(Default)]
struct Shown {
    grantee: String,
    privilege: &'static str,
    namespace: Option<String>,
    table: Option<String>,
    columns: Option<Vec<String>>,
    /// Whether it is a table that may be seen.
    is_known: bool,
}

fn place(object: &Object, tables: &Relations) -> Shown {
    let (namespace, table, is_known) = match object {
        Object::Namespace(name) => (Some(name.clone()), None, false),
        Object::Table(uuid) => match tables.get(uuid) {
            Some((ident, _)) => (Some(ident.namespace.clone()), Some(ident.name.clone()), true),
            None => (None, Some(uuid.to_string()), false),
        },
    };
    Shown { namespace, table, is_known, ..Shown::default() }
}

fn shown(grant: &Grant, tables: &Relations) -> Shown {
    let names: BTreeMap<i32, String> = match &grant.object {
        Object::Table(uuid) => {
            tables.get(uuid).map(|(_, columns)| columns_by_id(columns)).unwrap_or_default()
        }
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
        columns: columns.map(|ids| ids.iter().map(name).collect()),
        ..place(&grant.object, tables)
    }
}

fn columns_by_id(columns: &SchemaRef) -> BTreeMap<i32, String> {
    let fields = columns.fields().iter();
    fields.filter_map(|field| Some((field_id(field)?, field.name().clone()))).collect()
}

fn row(shown: Shown) -> GrantRow {
    let Shown { grantee, privilege, namespace, table, columns, .. } = shown;
    GrantRow { grantee, privilege, namespace, table, columns }
}
