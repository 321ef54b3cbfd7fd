//! Leases. Each change is [`Arbiter`](stoa_cluster::lease::Arbiter)'s of the same name.

use std::time::Duration;

use stoa_cluster::DatabaseTime;
use stoa_cluster::lease::Holder;
use stoa_error::Result;

use super::Cluster;
use super::sql::{CLOCK, count, daemon, instant, micros};
use crate::database::Lane;
use crate::sql_text::literal;

impl Cluster {
    /// Grants a lease that nobody has, or that has expired and is still as the caller `observed` it; gives
    /// its epoch. Whoever has it gets it again under the same epoch, a later life of the same daemon at
    /// once under the next one. `about` says what it is for, for people.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer within a few seconds: the lease may have been
    /// granted. `Invalid` (22001) for a name of more than 255 characters.
    pub async fn acquire(
        &self,
        name: &str,
        about: &str,
        holder: Holder,
        observed: Option<DatabaseTime>,
        ttl: Duration,
    ) -> Result<Option<u64>> {
        let (id, incarnation) = (daemon(holder.daemon), count(holder.incarnation));
        let insert = format!(
            "INSERT INTO stoa_leases AS lease (catalog_name, name, about, daemon, incarnation, epoch, until)
             VALUES ({}, {}, {}, {id}, {incarnation}, 1, {CLOCK} + {ttl})
             ON CONFLICT (catalog_name, name) DO UPDATE
             SET about = excluded.about, daemon = {id}, incarnation = {incarnation}, until = {CLOCK} + {ttl},
                 epoch = lease.epoch + CASE WHEN lease.daemon = {id} AND lease.incarnation = {incarnation}
                                            THEN 0 ELSE 1 END
             WHERE lease.daemon = {id} AND lease.incarnation <= {incarnation}
                OR lease.until < {CLOCK} AND lease.until = {}
             RETURNING epoch",
            self.catalog,
            literal(name),
            literal(about),
            instant(observed),
            ttl = micros(ttl)
        );
        let rows = self.transact(Lane::Leases, vec![insert]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        self.database.notify();
        Ok(u64::try_from(self.value::<i64>(row, 0)?).ok())
    }

    /// Extends a lease; false if it is not `holder`'s under `epoch` any more.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer within a few seconds.
    pub async fn renew_lease(
        &self,
        name: &str,
        holder: Holder,
        epoch: u64,
        ttl: Duration,
    ) -> Result<bool> {
        let held = self.held(name, holder, epoch);
        let until = micros(ttl);
        let update =
            format!("UPDATE stoa_leases SET until = {CLOCK} + {until} WHERE {held} RETURNING 1");
        self.gives_row(Lane::Leases, vec![update]).await
    }

    /// Gives a lease back; the next one gets it at once. False if it is not `holder`'s under `epoch` any more.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub async fn release(&self, name: &str, holder: Holder, epoch: u64) -> Result<bool> {
        let held = self.held(name, holder, epoch);
        let update = format!("UPDATE stoa_leases SET until = 0 WHERE {held} RETURNING 1");
        self.changes(Lane::Leases, vec![update]).await
    }

    /// Removes a lease whose job exists no more. False if it is not `holder`'s under `epoch` any more. Its
    /// epochs would begin anew, so its name must not be used again.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub async fn forget_lease(&self, name: &str, holder: Holder, epoch: u64) -> Result<bool> {
        let held = self.held(name, holder, epoch);
        let delete = format!("DELETE FROM stoa_leases WHERE {held} RETURNING 1");
        self.changes(Lane::Changes, vec![delete]).await
    }

    /// The condition for a lease that is `holder`'s under `epoch`.
    fn held(&self, name: &str, holder: Holder, epoch: u64) -> String {
        let (name, life) = (literal(name), self.of_life(holder));
        format!("{life} AND name = {name} AND epoch = {}", count(epoch))
    }
}
