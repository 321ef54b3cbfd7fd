//! The catalog in a SQLite file.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteRow, SqliteSynchronous,
};
use sqlx::{
    ConnectOptions, Connection, Row as _, Sqlite, SqliteConnection, Transaction, TypeInfo, ValueRef,
};
use stoa_env::{clock, private_files};
use stoa_error::{Error, Result};

use crate::database::{Change, Database, Row, Scope, Statement, Value};
use crate::known::RememberedPointers;
use crate::relation::Relation;
use crate::{CatalogState, TableIdent, error, lookup, policy, schema};

/// How long a change waits for another process that is changing the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Between two attempts to change the journal mode.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Readers beside the one writer that SQLite allows.
const CONNECTIONS_MAX: u32 = 4;

/// One catalog of one file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SqliteDatabase {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: SqlitePool,
    name: String,
    place: String,
    known: RememberedPointers,
    opened: SystemTime,
}

impl SqliteDatabase {
    /// Opens the file, making it if need be. The journal is a write-ahead log (readers never wait for
    /// a writer; other SQLite clients follow the file's own setting), and every commit is fsynced.
    pub(crate) async fn open(file: &Path, name: &str) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT);
        let place = file.display().to_string();
        make_private(file);
        keep_write_ahead_log(&options).await.map_err(|source| error::database(&place, source))?;
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(BUSY_TIMEOUT)
            .after_release(|connection, _| Box::pin(is_fit(connection)))
            .connect_with(options)
            .await
            .map_err(|source| error::database(&place, source))?;
        let known = RememberedPointers::of(file);
        let inner = Inner { pool, name: name.to_owned(), place, known, opened: clock::now() };
        let database = Self { inner: Arc::new(inner) };
        let mut transaction = database.begin_immediate(database.acquire().await?).await?;
        schema::ensure_in_sqlite(&mut transaction)
            .await
            .map_err(|source| database.failed(source))?;
        database.commit(transaction).await?;
        Ok(database)
    }

    /// Begins a change: takes the write lock at once, so that what it reads stays true until it
    /// commits.
    ///
    /// Where a file cannot be opened for writing, SQLite opens it for reading only, and begins what
    /// is to write as if it only read. A connection that was opened while the disk was ill must not
    /// stay so when it is well again: such a one is closed, and the next is tried.
    async fn begin_change(&self) -> Result<Transaction<'static, Sqlite>> {
        let mut tries = 0;
        loop {
            let mut connection = self.acquire().await?;
            match probe(&mut connection).await {
                Ok(()) => return self.begin_immediate(connection).await,
                Err(source) if error::is_read_only(&source) && tries <= CONNECTIONS_MAX => {
                    tries += 1;
                    if let Err(error) = connection.close().await {
                        tracing::warn!(%error, "a connection to the catalog did not close");
                    }
                }
                Err(source) => return Err(self.failed(source)),
            }
        }
    }

    async fn acquire(&self) -> Result<PoolConnection<Sqlite>> {
        self.inner.pool.acquire().await.map_err(|source| self.failed(source))
    }

    async fn begin_immediate(
        &self,
        connection: PoolConnection<Sqlite>,
    ) -> Result<Transaction<'static, Sqlite>> {
        let begun = Transaction::begin(connection, Some("BEGIN IMMEDIATE".into())).await;
        begun.map_err(|source| self.failed(source))
    }

    async fn commit(&self, transaction: Transaction<'static, Sqlite>) -> Result<()> {
        let Err(source) = transaction.commit().await else { return Ok(()) };
        if error::is_undone(&source) {
            return Err(self.failed(source));
        }
        match self.settle().await {
            Ok(()) => Err(self.failed(source)),
            Err(also) => {
                tracing::error!(error = %also, "what became of a commit cannot be settled");
                Err(error::unknown_outcome(self.place(), source))
            }
        }
    }

    /// Makes certain that a change whose commit has failed was not made.
    ///
    /// SQLite takes it back: no connection sees it. But when the sync of the write-ahead log failed,
    /// its frames are whole in the file, whether on the disk or in the system's cache only, and a
    /// process that reads that log anew, after a crash, would take them for committed. Reading again
    /// settles nothing, therefore. What does is a commit after it: that begins at the same place of
    /// the log, and each frame's checksum goes over all frames before it, so that once it is synced
    /// nothing of the failed one can ever count again.
    async fn settle(&self) -> Result<()> {
        let mut transaction = self.begin_change().await?;
        let count = Statement::new(
            "INSERT INTO stoa_settled (catalog_name, times) VALUES ($1, 1)
             ON CONFLICT (catalog_name) DO UPDATE SET times = stoa_settled.times + 1",
        );
        let count = prepare(count.bind(self.inner.name.as_str()));
        count.execute(&mut *transaction).await.map_err(|source| self.failed(source))?;
        transaction.commit().await.map_err(|source| self.failed(source))
    }

    /// The first row that `query` finds, on a connection of its own.
    async fn first(&self, query: Statement) -> Result<Option<Row>> {
        let mut connection = self.acquire().await?;
        let row = prepare(query).fetch_optional(&mut *connection).await;
        row.and_then(|row| row.as_ref().map(row_of).transpose())
            .map_err(|source| self.failed(source))
    }

    fn failed(&self, source: sqlx::Error) -> Error {
        error::database(&self.inner.place, source)
    }
}

#[async_trait]
impl Database for SqliteDatabase {
    fn place(&self) -> &str {
        &self.inner.place
    }

    /// A file is always there; where its disk fails, each statement says so.
    fn state(&self) -> CatalogState {
        CatalogState {
            reachable: true,
            since: self.inner.opened,
            remembered_until: None,
            last_error: None,
            reconnections: 0,
            reads_asked: 0,
            reads_known: 0,
        }
    }

    async fn begin(&self, _scope: Scope) -> Result<Box<dyn Change>> {
        let transaction = self.begin_change().await?;
        Ok(Box::new(SqliteChange { database: self.clone(), transaction }))
    }

    async fn fetch_all(&self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>> {
        // A transaction that only reads sees one state of the database.
        let mut transaction =
            self.inner.pool.begin().await.map_err(|source| self.failed(source))?;
        let mut found = Vec::with_capacity(queries.len());
        for query in queries {
            let rows = fetch(&mut transaction, query).await;
            found.push(rows.map_err(|source| self.failed(source))?);
        }
        transaction.rollback().await.map_err(|source| self.failed(source))?;
        Ok(found)
    }

    async fn fetch_now(&self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>> {
        self.fetch_all(queries).await
    }

    async fn relation(&self, ident: &TableIdent) -> Result<Option<Relation>> {
        let version = match self.inner.known.relation(ident) {
            Some(Ok(known)) => return Ok(Some(known)),
            Some(Err(version)) => Some(version),
            None => None,
        };
        let row = self.first(lookup::find(&self.inner.name, ident)).await?;
        let Some(row) = row else { return Ok(None) };
        let relation = lookup::of_row(&row, ident)?;
        if let Some(version) = version {
            self.inner.known.put_relation(ident, &relation, version);
        }
        Ok(Some(relation))
    }

    async fn policy_version(&self) -> Result<i64> {
        let version = match self.inner.known.policy_version() {
            Some(Ok(known)) => return Ok(known),
            Some(Err(version)) => Some(version),
            None => None,
        };
        let row = self.first(policy::version_query(&self.inner.name)).await?;
        let policy_version = row.and_then(|row| row.get(0)).unwrap_or(0);
        if let Some(version) = version {
            self.inner.known.put_policy_version(policy_version, version);
        }
        Ok(policy_version)
    }

    async fn close(&self) {
        self.inner.pool.close().await;
    }
}

struct SqliteChange {
    database: SqliteDatabase,
    transaction: Transaction<'static, Sqlite>,
}

#[async_trait]
impl Change for SqliteChange {
    async fn execute(&mut self, statement: Statement) -> Result<u64> {
        let done = prepare(statement).execute(&mut *self.transaction).await;
        Ok(done.map_err(|source| self.database.failed(source))?.rows_affected())
    }

    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>> {
        let rows = fetch(&mut self.transaction, statement).await;
        rows.map_err(|source| self.database.failed(source))
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.database.commit(self.transaction).await
    }
}

fn prepare(statement: Statement) -> sqlx::query::Query<'static, Sqlite, SqliteArguments<'static>> {
    statement.values.into_iter().fold(sqlx::query(statement.sql), |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Integer(number) => query.bind(number),
        Value::Bytes(bytes) => query.bind(bytes),
    })
}

async fn fetch(connection: &mut SqliteConnection, query: Statement) -> sqlx::Result<Vec<Row>> {
    let rows = prepare(query).fetch_all(connection).await?;
    rows.iter().map(row_of).collect()
}

fn row_of(row: &SqliteRow) -> sqlx::Result<Row> {
    (0..row.len()).map(|index| value_of(row, index)).collect::<sqlx::Result<_>>().map(Row)
}

/// A value has the type that it was stored with; NULL that of its column.
fn value_of(row: &SqliteRow, index: usize) -> sqlx::Result<Value> {
    let raw = row.try_get_raw(index)?;
    let info = raw.type_info();
    Ok(match info.name() {
        "INTEGER" | "BOOLEAN" | "INT4" | "INT8" | "BIGINT" => {
            Value::Integer(row.try_get_unchecked(index)?)
        }
        "BLOB" => Value::Bytes(row.try_get_unchecked(index)?),
        _ => Value::Text(row.try_get_unchecked(index)?),
    })
}

/// Writes nothing, which fails on a connection that can only read.
async fn probe(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM stoa_settled WHERE 0").execute(connection).await.map(|_| ())
}

/// Whether a connection that comes back to the pool may serve again. After a commit or a rollback
/// that failed it may count itself inside of a transaction for ever; then another one takes its place.
async fn is_fit(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    // What is queued, such as the rollback of a transaction that was dropped, is done before this.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

/// Makes a new file, which holds secrets of passwords, for this account only. SQLite's own files beside it
/// get its mode. Where it cannot be made, opening it says so.
fn make_private(file: &Path) {
    let _ = private_files::options().write(true).create_new(true).open(file);
}

/// Makes the file's journal a write-ahead log, which the file then remembers.
///
/// While two connections change the mode of a new file at once, SQLite refuses one of them without
/// asking its busy handler (it could be a deadlock), so the wait is made here.
async fn keep_write_ahead_log(options: &SqliteConnectOptions) -> sqlx::Result<()> {
    let options = options.clone().journal_mode(SqliteJournalMode::Wal);
    let deadline = clock::monotonic() + BUSY_TIMEOUT;
    loop {
        match options.connect().await {
            Ok(connection) => return connection.close().await,
            Err(error) if error::is_busy(&error) && clock::monotonic() < deadline => {
                stoa_env::timer::sleep(BUSY_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}
