//! For `stoa-pg-catalog`: tables and views as a caller may know them, its role, and the settings of sessions.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use crate::tables::temporary::Temporary;
use async_trait::async_trait;
use datafusion::catalog::TableProvider;
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use stoa_access::Policy;
use stoa_catalog::TableIdent;
use stoa_error::{ErrorKind, Result};
use stoa_pg_catalog::{
    Asker, Role, Running, Server, SessionSettings, Setting, TableDetails, TableInfo, Told,
};
use stoa_sql::temporary::is_temporary;
use stoa_table::{Table, Warehouse};

use crate::access::{Caller, field_id};
use crate::engine::Engine;
use crate::run::registry::{QueryRegistry, QueryState};
use crate::settings::{SettingRow, Settings};
use crate::tables::cells;
use crate::tables::table::table_shown;
use crate::tables::view::{StoredView, view_shown};

/// Tables whose metadata is read at the same time.
const TABLES_AT_ONCE: usize = 16;

/// The catalogs' server, whose tables are those of `warehouse`.
/// `engine` is set when the engine is there.
pub(crate) fn server(warehouse: &Warehouse, engine: &LateEngine) -> Arc<dyn Server> {
    Arc::new(PgServer { warehouse: warehouse.clone(), engine: Arc::clone(engine) })
}

/// Somebody who may know all tables, for work of the engine itself.
pub(crate) fn all_tables(warehouse: &Warehouse) -> impl Asker {
    let warehouse = warehouse.clone();
    PgAsker { warehouse, queries: None, caller: None, settings: None, temporary: None }
}

/// Somebody who may know what `caller` may.
pub(crate) fn tables_of(warehouse: &Warehouse, caller: &Arc<Caller>) -> impl Asker {
    let (warehouse, caller) = (warehouse.clone(), Some(Arc::clone(caller)));
    PgAsker { warehouse, queries: None, caller, settings: None, temporary: None }
}

/// The engine, once it is there.
type LateEngine = Arc<OnceLock<Weak<Engine>>>;

struct PgServer {
    warehouse: Warehouse,
    engine: LateEngine,
}

impl fmt::Debug for PgServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PgServer")
    }
}

impl Server for PgServer {
    fn asker(&self, config: &SessionConfig) -> Result<Arc<dyn Asker>> {
        let caller = Some(Caller::within(config)?);
        let settings = config.get_extension::<OwnSettings>();
        let temporary = config.get_extension::<Temporary>();
        let engine = self.engine.get().and_then(Weak::upgrade);
        let queries = engine.map(|engine| engine.queries().clone());
        let warehouse = self.warehouse.clone();
        Ok(Arc::new(PgAsker { warehouse, queries, caller, settings, temporary }))
    }

    fn setting(&self, name: &str) -> Result<String> {
        Settings::default().get(name)
    }
}

/// The settings of the session that runs a plan.
#[derive(Debug)]
pub(crate) struct OwnSettings(pub(crate) Arc<dyn SessionSettings>);

/// A setting as `pg_settings` shows it.
pub(crate) fn shown(row: SettingRow) -> Setting {
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
    /// What runs; nothing for work of the engine itself.
    queries: Option<QueryRegistry>,
    /// Who asks; the engine itself if `None`.
    caller: Option<Arc<Caller>>,
    /// Its session's settings, if it has one.
    settings: Option<Arc<OwnSettings>>,
    /// Its temporary tables.
    temporary: Option<Arc<Temporary>>,
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
        let mut all = self.warehouse.namespaces().await?;
        all.retain(|schema| self.may_know_namespace(schema));
        Ok(all)
    }

    fn may_know_namespace(&self, namespace: &str) -> bool {
        match &self.temporary {
            Some(own) => own.shows(namespace),
            None => !is_temporary(namespace),
        }
    }

    async fn tables(&self, namespace: &str, with_details: bool) -> Result<Vec<TableInfo>> {
        let limited = self.limited();
        let (tables, views) =
            (self.warehouse.tables(namespace).await, self.warehouse.views(namespace).await);
        let (tables, views) = match (tables, views) {
            (Ok(tables), Ok(views)) => (tables, views),
            // Dropped since it was listed.
            (Err(error), _) | (_, Err(error)) if error.kind() == ErrorKind::NotFound => {
                return Ok(Vec::new());
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let tables = tables.into_iter().map(|ident| (ident, false));
        let idents = tables.chain(views.into_iter().map(|ident| (ident, true)));
        if limited.is_none() && !with_details {
            let named = |(ident, is_view): (TableIdent, bool)| TableInfo {
                name: ident.name,
                is_view,
                told: Told::Name,
            };
            let mut named: Vec<_> = idents.map(named).collect();
            named.sort_by(|one, other| one.name.cmp(&other.name));
            return Ok(named);
        }
        let loads = idents.map(|(ident, is_view)| load(&self.warehouse, ident, is_view, limited));
        let loaded: Vec<_> = futures::stream::iter(loads).buffered(TABLES_AT_ONCE).collect().await;
        let mut loaded: Vec<_> = loaded.into_iter().flatten().collect();
        // The numbers of names depend on their order.
        loaded.sort_by(|one: &TableInfo, other| one.name.cmp(&other.name));
        Ok(loaded)
    }

    async fn policy(&self) -> Result<Arc<Policy>> {
        match &self.caller {
            Some(caller) => caller.policy_now().await,
            None => Ok(Arc::default()),
        }
    }

    fn running(&self) -> Vec<Running> {
        let limited = self.limited();
        let all = self.queries.iter().flat_map(QueryRegistry::running);
        let seen = all.filter(|query| limited.is_none_or(|caller| caller.role() == query.user));
        seen.map(|query| Running {
            pid: query.backend_id,
            user: query.user,
            sql: query.sql,
            protocol: query.protocol,
            started_unix_us: query.started_unix_ms.saturating_mul(1000),
            is_waiting: query.state == QueryState::Queued,
        })
        .collect()
    }

    fn settings(&self) -> Vec<Setting> {
        match &self.settings {
            Some(own) => own.0.rows(),
            None => Settings::default().rows().into_iter().map(shown).collect(),
        }
    }

    fn known_columns(&self, found: &Arc<dyn TableProvider>) -> Option<BTreeSet<usize>> {
        let columns = found.schema();
        let provider = found.as_ref() as &dyn Any;
        if let (Some(view), Some(caller)) = (view_shown(provider), self.limited()) {
            return caller.may_know(view).then(|| caller.known_columns(view, &columns));
        }
        match (table_shown(provider), self.limited()) {
            (Some(table), Some(caller)) if !caller.may_know(table) => None,
            (Some(table), Some(caller)) => Some(caller.known_columns(table, &columns)),
            // Tables of the engine itself are told of to everybody.
            (None, _) | (_, None) => Some((0..columns.fields().len()).collect()),
        }
    }
}

/// Loads one table or view; `None` if it is gone meanwhile. One whose metadata cannot be read has a name, for
/// those who may know all, so that it does not hide all others.
async fn load(
    warehouse: &Warehouse,
    ident: TableIdent,
    is_view: bool,
    limited: Option<&Caller>,
) -> Option<TableInfo> {
    let found = match is_view {
        true => {
            warehouse.view(&ident).await.and_then(StoredView::new).map(|v| told_view(&v, limited))
        }
        false => warehouse.table(&ident).await.map(|table| told(&table, limited)),
    };
    let told = match found {
        Ok(told) => told,
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
    Some(TableInfo { name: ident.name, is_view, told })
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
    let key = table.identifiers();
    Told::Details(TableDetails {
        uuid: table.uuid(),
        field_ids,
        defaults: table.defaults(),
        key: key.iter().filter_map(|name| columns.index_of(name).ok()).collect(),
        known: limited.map(|caller| caller.known_columns(table, &columns)),
        rows,
        bytes: table.data_bytes(),
        comment: table.comment().map(str::to_owned),
        definition: None,
        columns,
    })
}

fn told_view(view: &StoredView, limited: Option<&Caller>) -> Told {
    if limited.is_some_and(|caller| !caller.may_know(view)) {
        return Told::Nothing;
    }
    let columns = view.columns();
    let known = limited.map(|caller| caller.known_columns(view, columns));
    // It names columns, and the tables behind them.
    let may_read = limited.is_none_or(|caller| caller.may_select_all(view).is_ok());
    let definition = view.view.sql().ok().filter(|_| may_read).map(|sql| format!(" {};", sql.sql));
    Told::Details(TableDetails {
        uuid: view.view.uuid(),
        field_ids: columns.fields().iter().map(|field| field_id(field)).collect(),
        known,
        defaults: BTreeMap::new(),
        key: Vec::new(),
        rows: None,
        bytes: None,
        comment: view.view.comment().map(str::to_owned),
        definition,
        columns: Arc::clone(columns),
    })
}
