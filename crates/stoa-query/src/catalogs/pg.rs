//! For `stoa-pg-catalog`: tables as a caller may know them, its role, and the settings of sessions.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::TableProvider;
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use stoa_access::Policy;
use stoa_catalog::TableIdent;
use stoa_error::{ErrorKind, Result};
use stoa_pg_catalog::{Asker, Role, Server, Setting, TableDetails, TableInfo, Told};
use stoa_table::{Table, Warehouse};

use crate::access::{Caller, field_id};
use crate::settings::{SettingRow, Settings};
use crate::tables::cells;
use crate::tables::table::table_shown;

/// Tables whose metadata is read at the same time.
const TABLES_AT_ONCE: usize = 16;

/// The catalogs' server, whose tables are those of `warehouse`.
pub(crate) fn server(warehouse: &Warehouse) -> Arc<dyn Server> {
    Arc::new(PgServer { warehouse: warehouse.clone() })
}

/// Somebody who may know all tables, for work of the engine itself.
pub(crate) fn all_tables(warehouse: &Warehouse) -> impl Asker {
    PgAsker { warehouse: warehouse.clone(), caller: None }
}

struct PgServer {
    warehouse: Warehouse,
}

impl fmt::Debug for PgServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PgServer")
    }
}

impl Server for PgServer {
    fn asker(&self, config: &SessionConfig) -> Result<Arc<dyn Asker>> {
        let caller = Some(Caller::within(config)?);
        Ok(Arc::new(PgAsker { warehouse: self.warehouse.clone(), caller }))
    }

    fn settings(&self) -> Vec<Setting> {
        Settings::default().rows().into_iter().map(shown).collect()
    }

    fn setting(&self, name: &str) -> Result<String> {
        Settings::default().get(name)
    }
}

fn shown(row: SettingRow) -> Setting {
    let SettingRow { setting, value, reset } = row;
    Setting {
        name: setting.name,
        value,
        reset,
        default: setting.default,
        unit: setting.unit(),
        docs: setting.docs,
        context: setting.context(),
        type_name: setting.type_name(),
        bounds: setting.bounds(),
        choices: setting.values(),
    }
}

impl Role for Caller {
    fn name(&self) -> &str {
        self.role()
    }

    fn policy(&self) -> Arc<Policy> {
        Self::policy(self)
    }
}

struct PgAsker {
    warehouse: Warehouse,
    /// Who asks; the engine itself if `None`.
    caller: Option<Arc<Caller>>,
}

impl fmt::Debug for PgAsker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgAsker").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl PgAsker {
    /// Who asks, unless it may know everything.
    fn limited(&self) -> Option<&Caller> {
        self.caller.as_deref().filter(|caller| !caller.may_everything())
    }
}

#[async_trait]
impl Asker for PgAsker {
    fn may_know_all(&self) -> bool {
        self.limited().is_none()
    }

    async fn namespaces(&self) -> Result<Vec<String>> {
        self.warehouse.namespaces().await
    }

    async fn tables(&self, namespace: &str, with_details: bool) -> Result<Vec<TableInfo>> {
        let limited = self.limited();
        let idents = self.warehouse.tables(namespace).await?;
        if limited.is_none() && !with_details {
            let named = |ident: TableIdent| TableInfo { name: ident.name, told: Told::Name };
            return Ok(idents.into_iter().map(named).collect());
        }
        let loads = idents.into_iter().map(|ident| load(&self.warehouse, ident, limited));
        let loaded: Vec<_> = futures::stream::iter(loads).buffered(TABLES_AT_ONCE).collect().await;
        Ok(loaded.into_iter().flatten().collect())
    }

    fn known_columns(&self, found: &Arc<dyn TableProvider>) -> Option<BTreeSet<usize>> {
        let columns = found.schema();
        let table = table_shown(found.as_ref() as &dyn Any);
        match (table, self.limited()) {
            (Some(table), Some(caller)) if !caller.may_know(table) => None,
            (Some(table), Some(caller)) => Some(caller.known_columns(table, &columns)),
            // Tables of the engine itself are told of to everybody.
            (None, _) | (_, None) => Some((0..columns.fields().len()).collect()),
        }
    }
}

/// Loads one table; `None` if it is gone meanwhile. One whose metadata cannot be read has a name, for
/// those who may know all, so that it does not hide all others.
async fn load(
    warehouse: &Warehouse,
    ident: TableIdent,
    limited: Option<&Caller>,
) -> Option<TableInfo> {
    let told = match warehouse.table(&ident).await {
        Ok(table) => told(&table, limited),
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(
                namespace = ident.namespace,
                table = ident.name,
                ?error,
                "cannot read a table's metadata for the system catalog"
            );
            if limited.is_some() { Told::Nothing } else { Told::Name }
        }
    };
    Some(TableInfo { name: ident.name, told })
}

fn told(table: &Table, limited: Option<&Caller>) -> Told {
    if limited.is_some_and(|caller| !caller.may_know(table)) {
        return Told::Nothing;
    }
    let own = table.schema();
    let (columns, field_ids, rows) = match cells::view_columns(table).ok().flatten() {
        None => {
            let ids = own.fields().iter().map(|field| field_id(field)).collect();
            (own, ids, table.row_count())
        }
        // The table counts cells, SQL rows.
        Some(columns) => {
            let of = |name: &str| own.field_with_name(name).ok().and_then(field_id);
            let ids = columns.fields().iter().map(|field| of(field.name())).collect();
            (columns, ids, None)
        }
    };
    Told::Details(TableDetails {
        uuid: table.uuid(),
        field_ids,
        known: limited.map(|caller| caller.known_columns(table, &columns)),
        rows,
        comment: table.comment().map(str::to_owned),
        columns,
    })
}
