//! The catalog database: opening it, and transactions on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteRow, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, Decode, Row, Sqlite, SqliteConnection, Transaction, Type};
use stoa_env::{clock, private_files};
use stoa_error::{Error, Result};

use crate::known::RememberedPointers;
use crate::{error, schema};

/// How long a change waits for another process that is changing the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Between two attempts to change the journal mode.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Readers beside the one writer that SQLite allows.
const CONNECTIONS_MAX: u32 = 4;

/// A statement with its values bound.
pub(crate) type Statement<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments<'q>>;

/// Namespaces, table pointers, roles and grants in one SQLite file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalog {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) pool: SqlitePool,
    pub(crate) name: String,
    pub(crate) known: RememberedPointers,
    file: PathBuf,
}

impl Catalog {
    /// Opens the database file, making it if need be; `name` is the key under which this catalog's
    /// rows are kept, which other engines must use too.
    ///
    /// The journal is a write-ahead log (readers never wait for a writer; other SQLite clients
    /// follow the file's own setting), and every commit is fsynced.
    ///
    /// # Errors
    /// `Unavailable` where the file cannot be opened or is locked for longer than 30 s.
    pub async fn open(file: &Path, name: &str) -> Result<Self> {
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
        let inner = Inner { pool, name: name.to_owned(), known, file: file.to_owned() };
        let catalog = Self { inner: Arc::new(inner) };
        let mut transaction = catalog.begin_immediate(catalog.acquire().await?).await?;
        schema::ensure(&mut transaction).await.map_err(|source| catalog.failed(source))?;
        catalog.commit(transaction).await?;
        Ok(catalog)
    }

    /// The key of this catalog's rows.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The database file.
    pub fn file(&self) -> &Path {
        &self.inner.file
    }

    /// Waits for running statements and closes the file. Later calls fail.
    pub async fn close(&self) {
        self.inner.pool.close().await;
    }

    /// Begins a change: takes the write lock at once, so that what it reads stays true until it
    /// commits.
    ///
    /// Where a file cannot be opened for writing, SQLite opens it for reading only, and begins what
    /// is to write as if it only read. A connection that was opened while the disk was ill must not
    /// stay so when it is well again: such a one is closed, and the next is tried.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Sqlite>> {
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

    /// Makes a change durable.
    ///
    /// # Errors
    /// With 08007, nobody knows whether the change was made; with any other code it was not.
    pub(crate) async fn commit(&self, transaction: Transaction<'static, Sqlite>) -> Result<()> {
        let Err(source) = transaction.commit().await else { return Ok(()) };
        if error::is_undone(&source) {
            return Err(self.failed(source));
        }
        match self.settle().await {
            Ok(()) => Err(self.failed(source)),
            Err(also) => {
                tracing::error!(error = %also, "what became of a commit cannot be settled");
                Err(error::unknown_outcome(&self.place(), source))
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
        let mut transaction = self.begin().await?;
        let count = sqlx::query(
            "INSERT INTO stoa_settled (catalog_name, times) VALUES (?, 1)
             ON CONFLICT (catalog_name) DO UPDATE SET times = times + 1",
        );
        self.execute(&mut transaction, count.bind(self.name())).await?;
        transaction.commit().await.map_err(|source| self.failed(source))
    }

    /// Runs a statement that changes rows; gives back how many.
    pub(crate) async fn execute(
        &self,
        connection: &mut SqliteConnection,
        statement: Statement<'_>,
    ) -> Result<u64> {
        let done = statement.execute(connection).await.map_err(|source| self.failed(source))?;
        Ok(done.rows_affected())
    }

    /// Runs a query that finds rows.
    pub(crate) async fn fetch_all(
        &self,
        connection: &mut SqliteConnection,
        query: Statement<'_>,
    ) -> Result<Vec<SqliteRow>> {
        query.fetch_all(connection).await.map_err(|source| self.failed(source))
    }

    /// The value of a row in the column `index`, counted from 0.
    pub(crate) fn value<'r, T>(&self, row: &'r SqliteRow, index: usize) -> Result<T>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        row.try_get(index).map_err(|source| self.failed(source))
    }

    /// An error of the database, naming the file.
    pub(crate) fn failed(&self, source: sqlx::Error) -> Error {
        error::database(&self.place(), source)
    }

    fn place(&self) -> String {
        self.inner.file.display().to_string()
    }
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
