//! The catalog: opening it, and changes of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stoa_error::Result;

use crate::database::{Change, Database, FromValue, Row, Scope, Statement};
use crate::postgres::PostgresDatabase;
use crate::sqlite::SqliteDatabase;
use crate::{CatalogState, error};

/// Namespaces, table pointers, roles and grants in one database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalog {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    database: Box<dyn Database>,
    name: String,
    file: PathBuf,
}

impl Catalog {
    /// Opens a SQLite file, making it if need be; `name` is the key under which this catalog's
    /// rows are kept, which other engines must use too.
    ///
    /// # Errors
    /// `Unavailable` where the file cannot be opened or is locked for longer than 30 s.
    pub async fn open(file: &Path, name: &str) -> Result<Self> {
        let database = SqliteDatabase::open(file, name).await?;
        Ok(Self::of(Box::new(database), name, file))
    }

    /// Opens a PostgreSQL database, making what tables are missing: `postgres://account@host/database`
    /// with, if need be, `currentSchema`, `sslmode`, `sslrootcert`, `connect_timeout` and others of
    /// PostgreSQL's parameters. `name` is as in [`Self::open`].
    ///
    /// Call it on the runtime that is to do the catalog's I/O; others may then use the catalog.
    ///
    /// # Errors
    /// `Invalid` where the URL is wrong, `Forbidden` where the account may not log in or not make the
    /// tables that are missing, `Unavailable` (57P03) where the server does not answer for 10 s.
    pub async fn connect(url: &str, name: &str) -> Result<Self> {
        let database = PostgresDatabase::connect(url, name).await?;
        Ok(Self::of(Box::new(database), name, Path::new("")))
    }

    fn of(database: Box<dyn Database>, name: &str, file: &Path) -> Self {
        let inner = Inner { database, name: name.to_owned(), file: file.to_owned() };
        Self { inner: Arc::new(inner) }
    }

    /// The key of this catalog's rows.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The SQLite file; empty for a catalog in PostgreSQL.
    pub fn file(&self) -> &Path {
        &self.inner.file
    }

    /// Where the catalog is, for people: the file, or the URL without its password.
    pub fn place(&self) -> &str {
        self.inner.database.place()
    }

    /// Whether the database answers, since when, and what the last failure was. Costs nothing.
    pub fn state(&self) -> CatalogState {
        self.inner.database.state()
    }

    /// Waits for running statements and closes all connections. Later calls fail.
    pub async fn close(&self) {
        self.inner.database.close().await;
    }

    pub(crate) fn database(&self) -> &dyn Database {
        &*self.inner.database
    }

    /// Begins a change that checks before it writes: until it commits, nobody else changes the catalog
    /// but for moving pointers.
    pub(crate) async fn begin(&self) -> Result<Box<dyn Change>> {
        self.inner.database.begin(Scope::Catalog).await
    }

    /// Begins a change whose statements check what they need themselves.
    pub(crate) async fn begin_rows(&self) -> Result<Box<dyn Change>> {
        self.inner.database.begin(Scope::Rows).await
    }

    /// Begins a change that only moves pointers, each from where it must be.
    pub(crate) async fn begin_moves(&self) -> Result<Box<dyn Change>> {
        self.inner.database.begin(Scope::Pointers).await
    }

    /// The rows that `query` finds.
    pub(crate) async fn fetch(&self, query: Statement) -> Result<Vec<Row>> {
        let found = self.inner.database.fetch_all(vec![query]).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The value of a row in the column `index`, counted from 0.
    pub(crate) fn value<'r, T: FromValue<'r>>(&self, row: &'r Row, index: usize) -> Result<T> {
        row.get(index).ok_or_else(|| {
            let found = row.0.get(index);
            error::damaged(self.place(), format!("column {index} of {row:?} is {found:?}"))
        })
    }
}
