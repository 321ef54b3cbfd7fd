//! Which commit logs have rows for the tables, so that one that is gone is missed.
//!
//! A log is noted before the first row goes into it, and noted as closed once all of its rows are in
//! files. Positions are those of `stoa-ingest`; here they are numbers.

use sqlx::SqliteConnection;
use stoa_error::Result;

use crate::Catalog;

/// A commit log that was opened for this catalog's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownLog {
    /// Its id.
    pub id: String,
    /// Where it was: a directory or a URL.
    pub place: String,
    /// Its end when it was closed with all of its rows in files; `None` while it may hold others.
    pub closed_at: Option<u64>,
}

impl Catalog {
    /// All logs that were noted and not forgotten, by place.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer.
    pub async fn known_logs(&self) -> Result<Vec<KnownLog>> {
        let query = sqlx::query(
            "SELECT log_id, place, closed_at FROM stoa_logs WHERE catalog_name = ? ORDER BY 2, 1",
        );
        let mut connection =
            self.inner.pool.acquire().await.map_err(|source| self.failed(source))?;
        let rows = self.fetch_all(&mut connection, query.bind(self.name())).await?;
        let known = |row| {
            let closed_at: Option<i64> = self.value(row, 2)?;
            Ok(KnownLog {
                id: self.value(row, 0)?,
                place: self.value(row, 1)?,
                closed_at: closed_at.and_then(|position| u64::try_from(position).ok()),
            })
        };
        rows.iter().map(known).collect()
    }

    /// Notes a log as it is now.
    ///
    /// # Errors
    /// As every change.
    pub async fn note_log(&self, log: &KnownLog) -> Result<()> {
        let mut transaction = self.begin().await?;
        self.put_log(&mut transaction, log).await?;
        self.commit(transaction).await
    }

    /// Forgets a log that is gone.
    ///
    /// # Errors
    /// As every change.
    pub async fn forget_log(&self, id: &str) -> Result<()> {
        let mut transaction = self.begin().await?;
        let delete = sqlx::query("DELETE FROM stoa_logs WHERE catalog_name = ? AND log_id = ?");
        self.execute(&mut transaction, delete.bind(self.name()).bind(id)).await?;
        self.commit(transaction).await
    }

    async fn put_log(&self, connection: &mut SqliteConnection, log: &KnownLog) -> Result<()> {
        let closed_at = log.closed_at.map(|position| i64::try_from(position).unwrap_or(i64::MAX));
        let put = sqlx::query(
            "INSERT OR REPLACE INTO stoa_logs (catalog_name, log_id, place, closed_at)
             VALUES (?, ?, ?, ?)",
        );
        let put = put.bind(self.name()).bind(&log.id).bind(&log.place).bind(closed_at);
        self.execute(connection, put).await?;
        Ok(())
    }
}
