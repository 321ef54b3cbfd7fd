//! Who may do what: asked before anything is read, written or given again.
//!
//! In: the catalog's [`Policy`] and who asks. Out: nothing, or the error that says what is missing.
//!
//! ```text
//! Session ─► Caller ─┬─ the short path, before the report runs
//!                    ├─ StoaTable::scan and insert_into, whatever plan leads there
//!                    ├─ statements on rows, tables, roles, before they begin
//!                    └─ part of the key of answers that are given again
//! ```
//!
//! **Invariants:** no column of a table is read for a caller who may not read it, by whatever
//! protocol, template or cache; a change of rights, whichever process made it, holds for the next
//! statement.
//!
//! Not here: what a policy says (`stoa-access`), where it is kept (`stoa-catalog`), how a client proves
//! who it is (the protocols).

mod attempts;
pub(crate) mod file_access;
mod gate;
mod logins;
mod names;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session as EngineSession;
use datafusion::prelude::SessionConfig;
use parking_lot::{Mutex, RwLock};
use stoa_access::{Access, Columns, Policy, Privilege};
use stoa_catalog::{Catalog, TableIdent};
use stoa_error::{Error, ErrorKind, Result};
use stoa_orc::FIELD_ID_KEY;
use stoa_table::Table;
use uuid::Uuid;

pub use file_access::FileAccess;
pub(crate) use gate::Gate;
use logins::Logins;
pub use logins::login_error;

/// A table or view, as far as rights go.
pub(crate) trait Relation {
    /// What it is called in messages.
    const KIND: &'static str;

    /// Its name.
    fn ident(&self) -> &TableIdent;

    /// Under what its owner and grants are kept.
    fn uuid(&self) -> Uuid;

    /// Its columns, each with its field id.
    fn schema(&self) -> SchemaRef;
}

impl Relation for Table {
    const KIND: &'static str = "table";

    fn ident(&self) -> &TableIdent {
        Self::ident(self)
    }

    fn uuid(&self) -> Uuid {
        Self::uuid(self)
    }

    fn schema(&self) -> SchemaRef {
        Self::schema(self)
    }
}

/// Tables of which a caller remembers what it may do.
const KNOWN_MAX: usize = 1024;

/// The policy, as of now.
#[derive(Debug)]
pub(crate) struct Rights {
    catalog: Catalog,
    policy: RwLock<Arc<Policy>>,
    /// Whether anybody is asked who they are.
    enforced: bool,
}

impl Rights {
    pub(crate) async fn open(catalog: &Catalog, enforced: bool) -> Result<Self> {
        let policy = RwLock::new(Arc::new(catalog.policy().await?));
        Ok(Self { catalog: catalog.clone(), policy, enforced })
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read())
    }

    pub(crate) fn enforced(&self) -> bool {
        self.enforced
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Reads the policy again if it was changed, which takes less than a microsecond to find out while
    /// nothing else is.
    pub(crate) async fn refresh(&self) -> Result<()> {
        if self.catalog.policy_version().await? == self.policy().version() {
            return Ok(());
        }
        let policy = Arc::new(self.catalog.policy().await?);
        let mut known = self.policy.write();
        if policy.version() > known.version() {
            *known = policy;
        }
        Ok(())
    }
}

/// Who asks.
#[derive(Debug)]
pub(crate) struct Caller {
    rights: Arc<Rights>,
    role: Box<str>,
    /// Whether nothing is asked: work of the server itself, or of whoever owns the files.
    is_trusted: bool,
    known: Mutex<Known>,
}

/// What answers depend on of who asks: the policy's version and the role; `None` where nobody is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallerKey(Option<(u64, Box<str>)>);

/// What was found out under one version of the policy.
#[derive(Debug, Default)]
struct Known {
    version: u64,
    by_table: HashMap<(Uuid, Box<str>), Arc<Access>>,
}

impl Caller {
    pub(crate) fn new(rights: Arc<Rights>, role: &str, is_trusted: bool) -> Self {
        Self { rights, role: role.into(), is_trusted, known: Mutex::default() }
    }

    /// Who runs a plan of this state.
    pub(crate) fn of(state: &dyn EngineSession) -> Result<Arc<Self>> {
        Self::within(state.config())
    }

    /// Who runs plans with this configuration.
    pub(crate) fn within(config: &SessionConfig) -> Result<Arc<Self>> {
        config
            .get_extension::<Self>()
            .ok_or_else(|| Error::internal("a plan without a caller reads a table"))
    }

    pub(crate) fn role(&self) -> &str {
        &self.role
    }

    /// Whether rights are asked of this caller at all, or of nobody.
    pub(crate) fn is_asked(&self) -> bool {
        !self.is_trusted && self.rights.enforced
    }

    /// The policy, as of now.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.rights.policy()
    }

    /// The policy, read again if somebody changed it.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn policy_now(&self) -> Result<Arc<Policy>> {
        self.rights.refresh().await?;
        Ok(self.policy())
    }

    /// Brings what is known of rights up to date; before each statement.
    pub(crate) async fn refresh(&self) -> Result<()> {
        match self.is_asked() {
            true => self.rights.refresh().await,
            false => Ok(()),
        }
    }

    /// Whether nothing is forbidden.
    pub(crate) fn may_everything(&self) -> bool {
        !self.is_asked() || {
            self.rights.policy().role(&self.role).is_some_and(|role| role.is_superuser)
        }
    }

    /// What answers depend on beside what was asked; the same for all callers where nobody is asked
    /// who they are.
    pub(crate) fn key(&self) -> CallerKey {
        match self.is_asked() {
            true => CallerKey(Some((self.rights.policy().version(), self.role.clone()))),
            false => CallerKey(None),
        }
    }

    /// Whether columns of a table may be read; with none, as for `count(*)`, any of them.
    pub(crate) fn may_select(
        &self,
        table: &impl Relation,
        columns: impl Iterator<Item = i32>,
    ) -> Result<()> {
        if self.may_everything() {
            return Ok(());
        }
        let access = self.access(table);
        let mut none = true;
        for column in columns {
            none = false;
            if !access.select.allows(column) {
                return Err(self.no_column(table, column, &access));
            }
        }
        match none && access.select == Columns::None {
            true => Err(self.no_privilege(table, Privilege::Select)),
            false => Ok(()),
        }
    }

    /// Whether all columns of a table may be read.
    pub(crate) fn may_select_all(&self, table: &impl Relation) -> Result<()> {
        let everything = self.may_everything() || self.access(table).select == Columns::All;
        match everything {
            true => Ok(()),
            false => self.may_select(table, fields_of(table)),
        }
    }

    /// Whether something about a table may be known that is of no column.
    pub(crate) fn may_see(&self, table: &impl Relation) -> Result<()> {
        self.may_select(table, std::iter::empty())
    }

    /// Whether rows of a table may be written.
    pub(crate) fn may_write(&self, table: &impl Relation, privilege: Privilege) -> Result<()> {
        if self.may_everything() {
            return Ok(());
        }
        let access = self.access(table);
        let may = match privilege {
            Privilege::Select => return self.may_select_all(table),
            Privilege::Insert => access.insert,
            Privilege::Update => access.update,
            Privilege::Delete => access.delete,
        };
        match may {
            true => Ok(()),
            false => Err(self.no_privilege(table, privilege)),
        }
    }

    /// Whether a table may be altered, looked after and dropped.
    pub(crate) fn must_own<R: Relation>(&self, table: &R) -> Result<()> {
        if self.may_everything() || self.access(table).is_owner {
            return Ok(());
        }
        let message = format!("must be owner of {} {}", R::KIND, table.ident());
        Err(forbidden(message).with_hint(format!("ask the {}'s owner or a superuser", R::KIND)))
    }

    /// Whether a table of one's own may be given to `role`: to oneself, and to roles that one is a
    /// member of, as in PostgreSQL.
    pub(crate) fn may_give_to(&self, role: &str) -> Result<()> {
        if self.may_everything() {
            return Ok(());
        }
        let policy = self.rights.policy();
        policy.require(role)?;
        if policy.memberships().roles_of(&self.role).contains(role) {
            return Ok(());
        }
        let message = format!("permission denied: must be a member of role \"{role}\"");
        Err(forbidden(message).with_hint("a superuser can give tables to any role"))
    }

    /// Whether everything is allowed, which `what` needs.
    pub(crate) fn must_be_superuser(&self, what: &str) -> Result<()> {
        if self.may_everything() {
            return Ok(());
        }
        Err(only_for_superusers(&self.role, what))
    }

    fn access(&self, table: &impl Relation) -> Arc<Access> {
        let policy = self.rights.policy();
        let namespace: Box<str> = table.ident().namespace.as_str().into();
        let key = (table.uuid(), namespace);
        let mut known = self.known.lock();
        if known.version != policy.version() || known.by_table.len() > KNOWN_MAX {
            *known = Known { version: policy.version(), by_table: HashMap::new() };
        }
        if let Some(access) = known.by_table.get(&key) {
            return Arc::clone(access);
        }
        let access = Arc::new(policy.access(&self.role, &key.1, key.0));
        known.by_table.insert(key, Arc::clone(&access));
        access
    }

    fn no_privilege<R: Relation>(&self, table: &R, privilege: Privilege) -> Error {
        let ident = table.ident();
        forbidden(format!("permission denied for {} {ident}", R::KIND))
            .with_hint(self.grant_hint(&privilege.to_string(), ident))
    }

    fn no_column<R: Relation>(&self, table: &R, column: i32, access: &Access) -> Error {
        if access.select == Columns::None {
            return self.no_privilege(table, Privilege::Select);
        }
        let (ident, schema) = (table.ident(), table.schema());
        let field = schema.fields().iter().find(|field| field_id(field) == Some(column));
        let Some(field) = field else { return self.no_privilege(table, Privilege::Select) };
        let name = field.name();
        forbidden(format!("permission denied for column {name} of {} {ident}", R::KIND))
            .with_hint(self.grant_hint(&format!("SELECT ({name})"), ident))
    }

    fn grant_hint(&self, privilege: &str, ident: &TableIdent) -> String {
        format!("its owner or a superuser can GRANT {privilege} ON {ident} TO \"{}\"", self.role)
    }
}

/// 42501: `role` is no superuser, and only those may do `what`.
pub(crate) fn only_for_superusers(role: &str, what: &str) -> Error {
    forbidden(format!("permission denied: only a superuser may {what}"))
        .with_hint(format!("the role is \"{role}\""))
}

/// The field ids of some columns of a table; of all if `None`.
pub(crate) fn fields_at(table: &impl Relation, columns: Option<&BTreeSet<usize>>) -> Vec<i32> {
    let schema = table.schema();
    let fields = schema.fields().iter().enumerate();
    let chosen = fields.filter(|(at, _)| columns.is_none_or(|columns| columns.contains(at)));
    // A column without an id is in no grant.
    chosen.map(|(_, field)| field_id(field).unwrap_or(i32::MIN)).collect()
}

fn fields_of(table: &impl Relation) -> std::vec::IntoIter<i32> {
    fields_at(table, None).into_iter()
}

/// The Iceberg field id of a column; `None` for one that is in no table.
pub(crate) fn field_id(field: &arrow::datatypes::Field) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}

fn forbidden(message: String) -> Error {
    Error::new(ErrorKind::Forbidden, message).with_sqlstate("42501")
}
