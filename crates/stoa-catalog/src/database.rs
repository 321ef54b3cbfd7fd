//! What the catalog needs of a database: changes, each one transaction, and reads.
//!
//! In: statements with their values, in the SQL that SQLite and PostgreSQL share. Out: rows of typed
//! values; errors that name the database and never its password. The catalog's rules are written
//! above this, once; `sqlite` and `postgres` are what is below.
//!
//! **Invariants:** a change that was not committed does nothing; an error of a commit means that
//! nothing was done, or says that nobody knows (08007); the rows of one read are of one moment.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use stoa_error::Result;
use tokio::sync::watch;

use crate::relation::Relation;
use crate::{CatalogState, TableIdent};

/// A database that holds the rows of one catalog.
#[async_trait]
pub(crate) trait Database: fmt::Debug + Send + Sync {
    /// Where it is, for people: a file, or a URL without its password.
    fn place(&self) -> &str;

    /// Whether it answers.
    fn state(&self) -> CatalogState;

    /// Begins a change.
    async fn begin(&self, scope: Scope) -> Result<Box<dyn Change>>;

    /// The rows that each of `queries` finds, all as of one moment. While the database is away, they
    /// may be those of the last time that the same was asked.
    async fn fetch_all(&self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>>;

    /// As [`Self::fetch_all`], but never from memory.
    async fn fetch_now(&self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>>;

    /// What `ident` stands for, if anything. Fit for asking before each report.
    async fn relation(&self, ident: &TableIdent) -> Result<Option<Relation>>;

    /// The version of the policy as it is stored, 0 where none is. Fit for asking before each report.
    async fn policy_version(&self) -> Result<i64>;

    /// Notes that this process has moved, made or removed these: what is remembered of them is not to be
    /// used.
    fn forget(&self, _idents: &[&TableIdent]) {}

    /// The same database for what its daemons have to agree on; `None` where several cannot share it.
    fn shared(&self) -> Option<Arc<dyn SharedDatabase>> {
        None
    }

    /// Closes all connections. Later calls fail.
    async fn close(&self);
}

/// A database that several daemons share. Short transactions on connections of their own, so that
/// nothing that the catalog does keeps them waiting.
#[async_trait]
pub(crate) trait SharedDatabase: fmt::Debug + Send + Sync {
    /// Where it is, for people.
    fn place(&self) -> &str;

    /// Runs `statements` as one transaction, sent in one message, and commits it. Gives the rows of each.
    /// No lock is held while this process does something else, or is stopped.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer within a few seconds. The transaction may have been
    /// committed, or may be later.
    async fn transact(&self, lane: Lane, statements: Vec<String>) -> Result<Vec<Vec<Row>>>;

    /// Tells listeners on the channel `stoa_cluster` that something has changed: soon, or never. A hint, sent
    /// in a transaction of its own, because a commit that notifies keeps all other commits waiting.
    fn notify(&self);

    /// Counts what [`Self::notify`] sends, of this process or another, and new connections, before which some
    /// may have been missed.
    fn listen(&self) -> watch::Receiver<u64>;
}

/// What transactions wait for a connection together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Reads only, as of one moment.
    Reads,
    /// Renewals of a membership. May be run again.
    Renewals,
    /// Leases. May be run again.
    Leases,
    /// Changes that must not be run twice unasked.
    Changes,
}

/// A change that has begun. Dropped without a commit, it is taken back.
#[async_trait]
pub(crate) trait Change: Send {
    /// Runs a statement that changes rows; gives back how many.
    async fn execute(&mut self, statement: Statement) -> Result<u64>;

    /// Runs a statement that gives rows.
    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>>;

    /// Makes the change durable.
    ///
    /// # Errors
    /// With 08007, nobody knows whether the change was made; with any other code it was not.
    async fn commit(self: Box<Self>) -> Result<()>;
}

/// What a change must be alone with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The whole catalog: what the change has read stays true until it commits, but for pointers, which
    /// others may move (see [`Catalog::hold`](crate::Catalog)).
    Catalog,
    /// The rows that it writes.
    Rows,
    /// The pointers that it moves, which are rows, too. Any number of such changes may commit at once.
    Pointers,
}

/// A statement and its values: `$1` is the first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Statement {
    pub(crate) sql: &'static str,
    pub(crate) values: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::new() }
    }

    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }
}

/// A value of a column, or `None` for NULL.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
    Bytes(Option<Vec<u8>>),
}

/// Without the value, which may be a secret.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(None) | Self::Integer(None) | Self::Bytes(None) => "NULL",
            Self::Text(_) => "a text",
            Self::Integer(_) => "an integer",
            Self::Bytes(_) => "bytes",
        })
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(Some(value))
    }
}

impl From<Option<String>> for Value {
    fn from(value: Option<String>) -> Self {
        Self::Text(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Integer(Some(i64::from(value)))
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(Some(value))
    }
}

/// A row that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row(pub(crate) Vec<Value>);

impl Row {
    /// The value of the column `index`, counted from 0, if it is there and is a `T`.
    pub(crate) fn get<'r, T: FromValue<'r>>(&'r self, index: usize) -> Option<T> {
        T::from_value(self.0.get(index)?)
    }
}

/// What a column's value can be read as.
pub(crate) trait FromValue<'r>: Sized {
    fn from_value(value: &'r Value) -> Option<Self>;
}

impl<'r> FromValue<'r> for &'r str {
    fn from_value(value: &'r Value) -> Option<Self> {
        let Value::Text(Some(text)) = value else { return None };
        Some(text)
    }
}

impl FromValue<'_> for String {
    fn from_value(value: &Value) -> Option<Self> {
        <&str>::from_value(value).map(str::to_owned)
    }
}

impl FromValue<'_> for i64 {
    fn from_value(value: &Value) -> Option<Self> {
        let Value::Integer(number) = value else { return None };
        *number
    }
}

impl FromValue<'_> for i32 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue<'_> for bool {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value).map(|number| number != 0)
    }
}

impl FromValue<'_> for Vec<u8> {
    fn from_value(value: &Value) -> Option<Self> {
        let Value::Bytes(bytes) = value else { return None };
        bytes.clone()
    }
}

impl<'r, T: FromValue<'r>> FromValue<'r> for Option<T> {
    fn from_value(value: &'r Value) -> Option<Self> {
        match value {
            Value::Text(None) | Value::Integer(None) | Value::Bytes(None) => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}
