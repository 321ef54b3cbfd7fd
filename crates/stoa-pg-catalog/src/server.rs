//! What the catalog has to know of its server, and of who asks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::TableProvider;
use datafusion::prelude::SessionConfig;
use stoa_access::Policy;
use stoa_error::Result;
use uuid::Uuid;

/// The server.
pub trait Server: Debug + Send + Sync {
    /// Who runs plans with this configuration.
    ///
    /// # Errors
    /// `Internal` where the configuration does not tell.
    fn asker(&self, config: &SessionConfig) -> Result<Arc<dyn Asker>>;

    /// The value of the setting `name`, of any case, as `SHOW` gives it in such a session.
    ///
    /// # Errors
    /// No such setting (42704).
    fn setting(&self, name: &str) -> Result<String>;
}

/// Who asks, and what it may know of the server's tables.
#[async_trait]
pub trait Asker: Debug + Send + Sync {
    /// Whether it may know everything, now.
    fn may_know_all(&self) -> bool;

    /// All namespaces.
    ///
    /// # Errors
    /// The catalog's.
    async fn namespaces(&self) -> Result<Vec<String>>;

    /// Whether it may be told of a namespace: not of those of others' temporary tables.
    fn may_know_namespace(&self, _namespace: &str) -> bool {
        true
    }

    /// All tables and views of a namespace, each with what may be told of it. Without `with_details`, names
    /// are enough where they need not be kept from the asker.
    ///
    /// # Errors
    /// The catalog's; a table that cannot be read is none.
    async fn tables(&self, namespace: &str, with_details: bool) -> Result<Vec<TableInfo>>;

    /// The settings, as the asker's session has them.
    fn settings(&self) -> Vec<Setting>;

    /// Who may do what.
    ///
    /// # Errors
    /// The catalog's.
    async fn policy(&self) -> Result<Arc<Policy>>;

    /// The statements that run or wait, of those that the asker may see.
    fn running(&self) -> Vec<Running>;

    /// The columns of a table that was found by name whose names may be told, by place; `None` where
    /// it may not be known that there is such a table.
    fn known_columns(&self, found: &Arc<dyn TableProvider>) -> Option<BTreeSet<usize>>;
}

/// The settings of a session, for functions that tell and change them.
pub trait SessionSettings: Debug + Send + Sync {
    /// The value of the setting `name`, of any case, as `SHOW` gives it.
    ///
    /// # Errors
    /// No such setting (42704).
    fn get(&self, name: &str) -> Result<String>;

    /// Sets it, as `SET` does, or `SET LOCAL` if `is_local`; `None` resets it. Gives back its new value.
    ///
    /// # Errors
    /// No such setting (42704), or a value that it does not take (22023).
    fn set(&self, name: &str, value: Option<&str>, is_local: bool) -> Result<String>;

    /// All of them.
    fn rows(&self) -> Vec<Setting>;
}

/// The role of a session, for functions that tell what roles may do.
pub trait Role: Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Who may do what, as of now.
    fn policy(&self) -> Arc<Policy>;
}

/// A table or view, and what may be told of it.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// Its name, which is never told by itself: numbers of others depend on it.
    pub name: String,
    /// Whether it is a view.
    pub is_view: bool,
    /// What may be told.
    pub told: Told,
}

/// What may be told of a table or view.
#[derive(Clone, Debug)]
pub enum Told {
    /// Not even its name.
    Nothing,
    /// Its name: its metadata were not asked for, or cannot be read.
    Name,
    /// Its name, and these.
    Details(TableDetails),
}

/// What a table's metadata say.
#[derive(Clone, Debug)]
pub struct TableDetails {
    /// Under what rights on it are kept.
    pub uuid: Uuid,
    /// The columns, as SQL has them.
    pub columns: SchemaRef,
    /// Under what rights on each column are kept, by place; `None` for one on which there are none of
    /// its own.
    pub field_ids: Vec<Option<i32>>,
    /// The columns whose names may be told, by place; all if `None`.
    pub known: Option<BTreeSet<usize>>,
    /// The defaults of columns, by name, as they were written.
    pub defaults: BTreeMap<String, String>,
    /// The columns of its primary key, by place; empty where none is declared.
    pub key: Vec<usize>,
    /// Rows at the last commit; `None` where nobody counted.
    pub rows: Option<u64>,
    /// Bytes of its data files at the last commit; `None` where nobody counted.
    pub bytes: Option<u64>,
    /// Its comment.
    pub comment: Option<String>,
    /// The query of a view, for those who may know it.
    pub definition: Option<String>,
}

/// A statement that runs, as `pg_stat_activity` shows it.
#[derive(Clone, Debug)]
pub struct Running {
    /// The process id of its session.
    pub pid: i32,
    /// Who asked.
    pub user: String,
    /// Its text.
    pub sql: String,
    /// The protocol over which it was asked.
    pub protocol: &'static str,
    /// Its start, microseconds since 1970-01-01 UTC.
    pub started_unix_us: i64,
    /// Whether it waits for others to end.
    pub is_waiting: bool,
}

/// A setting of sessions, as `pg_settings` shows it.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name as PostgreSQL spells it.
    pub name: &'static str,
    /// The value as it is kept: numbers in the setting's unit.
    pub value: String,
    /// To what `RESET` goes back.
    pub reset: String,
    /// The value where none is set.
    pub default: &'static str,
    /// The unit of bare numbers.
    pub unit: Option<&'static str>,
    /// One line for users.
    pub docs: &'static str,
    /// Who may set it: `user`, `internal`.
    pub context: &'static str,
    /// Its type: `bool`, `integer`, `enum`, ….
    pub type_name: &'static str,
    /// The smallest and the largest value.
    pub bounds: Option<(i32, i32)>,
    /// The values there are to choose from; empty for other types.
    pub choices: &'static [&'static str],
}
