//! Sequences: numbers that are given out once each, to whatever server of the catalog asks.
//!
//! **Invariant:** a number that was taken is never given out again, whatever becomes of who took it.

use stoa_error::{Error, Result};
use uuid::Uuid;

use crate::Catalog;
use crate::database::Statement;

impl Catalog {
    /// Makes a sequence whose first number is `start`.
    ///
    /// # Errors
    /// As every change.
    pub async fn create_sequence(&self, id: Uuid, start: i64, step: i64) -> Result<()> {
        let mut change = self.begin_rows().await?;
        let insert = Statement::new(
            "INSERT INTO stoa_sequences (catalog_name, sequence_id, next_value, step)
             VALUES ($1, $2, $3, $4)",
        );
        let insert = insert.bind(self.name()).bind(id.to_string()).bind(start).bind(step);
        change.execute(insert).await?;
        change.commit().await
    }

    /// Takes `count` numbers: gives the first, and how far they are apart.
    ///
    /// # Errors
    /// `NotFound` (42P01) where there is no such sequence, `Invalid` (2200H) where it has not as many numbers left.
    pub async fn take_numbers(&self, id: Uuid, count: u32) -> Result<(i64, i64)> {
        let mut change = self.begin_rows().await?;
        // Written, so that it stays as it is until the commit.
        let query = Statement::new(
            "UPDATE stoa_sequences SET next_value = next_value
             WHERE catalog_name = $1 AND sequence_id = $2 RETURNING next_value, step",
        );
        let query = query.bind(self.name()).bind(id.to_string());
        let rows = change.fetch(query).await?;
        let Some(row) = rows.first() else {
            return Err(Error::not_found(format!("there is no sequence {id}"))
                .with_sqlstate("42P01")
                .with_hint(
                    "the table of an identity column was dropped, or is of another catalog",
                ));
        };
        let (first, step): (i64, i64) = (self.value(row, 0)?, self.value(row, 1)?);
        let next = step.checked_mul(i64::from(count)).and_then(|by| first.checked_add(by));
        let next = next.ok_or_else(|| {
            Error::invalid("an identity column has no numbers left").with_sqlstate("2200H")
        })?;
        let update = Statement::new(
            "UPDATE stoa_sequences SET next_value = $1 WHERE catalog_name = $2 AND sequence_id = $3",
        );
        let update = update.bind(next).bind(self.name()).bind(id.to_string());
        change.execute(update).await?;
        change.commit().await?;
        Ok((first, step))
    }

    /// Removes a sequence; none is removed if there is none.
    ///
    /// # Errors
    /// As every change.
    pub async fn drop_sequence(&self, id: Uuid) -> Result<()> {
        let mut change = self.begin_rows().await?;
        let delete = Statement::new(
            "DELETE FROM stoa_sequences WHERE catalog_name = $1 AND sequence_id = $2",
        );
        change.execute(delete.bind(self.name()).bind(id.to_string())).await?;
        change.commit().await
    }
}
