//! Which commit logs have rows for the tables, so that one that is gone is missed.
//!
//! A log is noted before the first row goes into it, and noted as closed once all of its rows are in
//! files. Positions are those of `stoa-ingest`; here they are numbers.

use stoa_error::Result;

use crate::Catalog;
use crate::database::Statement;

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
        let query = Statement::new(
            "SELECT log_id, place, closed_at FROM stoa_logs WHERE catalog_name = $1",
        );
        let rows = self.fetch(query.bind(self.name())).await?;
        let known = |row| {
            let closed_at: Option<i64> = self.value(row, 2)?;
            Ok(KnownLog {
                id: self.value(row, 0)?,
                place: self.value(row, 1)?,
                closed_at: closed_at.and_then(|position| u64::try_from(position).ok()),
            })
        };
        let mut logs = rows.iter().map(known).collect::<Result<Vec<KnownLog>>>()?;
        logs.sort_by(|a, b| (&a.place, &a.id).cmp(&(&b.place, &b.id)));
        Ok(logs)
    }

    /// Notes a log as it is now.
    ///
    /// # Errors
    /// As every change.
    pub async fn note_log(&self, log: &KnownLog) -> Result<()> {
        let closed_at = log.closed_at.map(|position| i64::try_from(position).unwrap_or(i64::MAX));
        let mut change = self.begin_rows().await?;
        let put = Statement::new(
            "INSERT INTO stoa_logs (catalog_name, log_id, place, closed_at)
             VALUES ($1, $2, $3, $4)
             ON CONFLICT (catalog_name, log_id)
             DO UPDATE SET place = excluded.place, closed_at = excluded.closed_at",
        );
        let put = put.bind(self.name()).bind(log.id.as_str()).bind(log.place.as_str());
        change.execute(put.bind(closed_at)).await?;
        change.commit().await
    }

    /// Forgets a log that is gone.
    ///
    /// # Errors
    /// As every change.
    pub async fn forget_log(&self, id: &str) -> Result<()> {
        let mut change = self.begin_rows().await?;
        let delete =
            Statement::new("DELETE FROM stoa_logs WHERE catalog_name = $1 AND log_id = $2");
        change.execute(delete.bind(self.name()).bind(id)).await?;
        change.commit().await
    }
}
