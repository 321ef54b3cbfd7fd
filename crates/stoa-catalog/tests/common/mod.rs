//! Databases for tests: each test runs over SQLite and over PostgreSQL.
#![allow(clippy::unwrap_used, dead_code)]

pub mod proxy;

use sqlx::{Connection, Executor, PgConnection, SqliteConnection};
use stoa_catalog::Catalog;
use stoa_testkit::PostgresServer;

/// A new database that any number of catalogs can be opened in.
pub enum Database {
    Sqlite(tempfile::TempDir),
    /// The URL of a database of PostgreSQL.
    Postgres(String),
}

impl Database {
    pub fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    /// `None` where PostgreSQL is not installed.
    pub fn postgres() -> Option<Self> {
        Some(Self::Postgres(PostgresServer::shared()?.database()))
    }

    pub async fn open(&self) -> Catalog {
        self.open_as("stoa").await
    }

    pub async fn open_as(&self, name: &str) -> Catalog {
        match self {
            Self::Sqlite(directory) => {
                Catalog::open(&directory.path().join("catalog.db"), name).await.unwrap()
            }
            Self::Postgres(url) => Catalog::connect(url, name).await.unwrap(),
        }
    }

    /// Runs statements as another program would.
    pub async fn run(&self, statements: &str) {
        match self {
            Self::Sqlite(directory) => {
                let file = directory.path().join("catalog.db");
                let url = format!("sqlite://{}?mode=rwc", file.display());
                let mut connection = SqliteConnection::connect(&url).await.unwrap();
                connection.execute(statements).await.unwrap();
                connection.close().await.unwrap();
            }
            Self::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await.unwrap();
                connection.execute(statements).await.unwrap();
                connection.close().await.unwrap();
            }
        }
    }

    /// A new one of the same kind.
    pub fn another(&self) -> Self {
        match self {
            Self::Sqlite(_) => Self::sqlite(),
            Self::Postgres(_) => Self::postgres().unwrap(),
        }
    }

    /// A new one of each kind.
    pub fn each() -> Vec<Self> {
        [Some(Self::sqlite()), Self::postgres()].into_iter().flatten().collect()
    }

    /// Of PostgreSQL.
    pub fn url(&self) -> &str {
        match self {
            Self::Sqlite(_) => "",
            Self::Postgres(url) => url,
        }
    }
}

/// Makes two tests of each function that takes a [`Database`].
#[macro_export]
macro_rules! over_both {
    ($($name:ident),* $(,)?) => {
        mod over_sqlite {
            use super::common::Database;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $name() {
                    super::$name(Database::sqlite()).await;
                }
            )*
        }

        mod over_postgres {
            use super::common::Database;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $name() {
                    let Some(database) = Database::postgres() else { return };
                    super::$name(database).await;
                }
            )*
        }
    };
}
