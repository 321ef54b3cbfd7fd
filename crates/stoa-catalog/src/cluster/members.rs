//! Changes of members. Each is [`MemberTable`](stoa_cluster::membership::MemberTable)'s of the same name.

use std::time::Duration;

use stoa_cluster::lease::Holder;
use stoa_cluster::membership::{MemberState, SUSPICIONS_NEEDED};
use stoa_cluster::{DaemonId, DatabaseTime, Incarnation};
use stoa_error::{Condition, Error, Result};

use super::sql::{CLOCK, code, count, daemon, instant, integer, micros};
use super::{Cluster, DaemonInfo, FORMAT};
use crate::database::Lane;
use crate::sql_text::{bytes, literal};

const DEAD: i64 = code(MemberState::Dead);

/// Columns that a daemon fills when it joins.
const INFO: &str = "host_name, peer_address, pg_address, http_address, flight_address, zone, build, \
                    protocol_min, protocol_max, cores, cache_bytes, certificate";

impl Cluster {
    /// Adds a daemon as joining, under a new incarnation, with a lease of `ttl`. An earlier life of it is dead
    /// from now on.
    ///
    /// # Errors
    /// `Unsupported` where a newer version of Stoa has changed the cluster's format; `Unavailable` where the
    /// database does not answer within a few seconds: the daemon may have joined, or may do so later.
    pub async fn join(&self, info: &DaemonInfo, ttl: Duration) -> Result<Incarnation> {
        let catalog = &self.catalog;
        let known = format!("catalog_name = {catalog} AND format <= {FORMAT}");
        let joining = code(MemberState::Joining);
        // The row of the cluster is locked by the count before, so that no two take the same.
        let free = format!(
            "(SELECT min(free) FROM generate_series(0, (SELECT count(*) FROM stoa_daemons)) AS free
              WHERE free NOT IN (SELECT number FROM stoa_daemons WHERE catalog_name = {catalog}
                                 AND state <> {DEAD} AND daemon <> {}))",
            daemon(info.id)
        );
        let excluded = INFO.split(", ").map(|column| format!("{column} = excluded.{column}"));
        let statements = vec![
            format!(
                "INSERT INTO stoa_cluster (catalog_name, epoch, removed, format)
                 VALUES ({catalog}, 0, 0, {FORMAT}) ON CONFLICT (catalog_name) DO NOTHING"
            ),
            format!("UPDATE stoa_cluster SET epoch = epoch + 1 WHERE {known}"),
            format!(
                "DELETE FROM stoa_suspicions WHERE {}
                 AND EXISTS (SELECT FROM stoa_cluster WHERE {known})",
                self.of_daemon(info.id)
            ),
            format!(
                "WITH joined AS (
                     INSERT INTO stoa_daemons AS earlier (catalog_name, daemon, incarnation, state,
                         until, joined_at, state_since, number, {INFO})
                     SELECT {catalog}, {}, removed + 1, {joining}, at + {}, at, at, {free}, {}
                     FROM stoa_cluster, (SELECT {CLOCK} AS at) AS clock WHERE {known}
                     ON CONFLICT (catalog_name, daemon) DO UPDATE
                     SET incarnation = earlier.incarnation + 1, state = excluded.state,
                         until = excluded.until, joined_at = excluded.joined_at,
                         state_since = excluded.state_since, number = excluded.number, {}
                     RETURNING incarnation)
                 SELECT format, (SELECT incarnation FROM joined) FROM stoa_cluster
                 WHERE catalog_name = {catalog}",
                daemon(info.id),
                micros(ttl),
                values(info),
                excluded.collect::<Vec<_>>().join(", ")
            ),
        ];
        let rows = self.transact(Lane::Changes, statements).await?;
        let Some(row) = rows.first() else {
            return Err(Error::internal("a daemon has joined and there is no cluster"));
        };
        let (format, incarnation): (i64, Option<i64>) = (self.value(row, 0)?, self.value(row, 1)?);
        let incarnation = incarnation.and_then(|number| Incarnation::try_from(number).ok());
        let incarnation = incarnation.ok_or_else(|| self.newer_format(format))?;
        self.database.notify();
        Ok(incarnation)
    }

    /// Extends a member's lease; false if it is dead, which is how it learns that.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer within a few seconds.
    pub async fn renew(&self, me: Holder, ttl: Duration) -> Result<bool> {
        let update = format!(
            "UPDATE stoa_daemons SET until = {CLOCK} + {} WHERE {} RETURNING 1",
            micros(ttl),
            self.living(me)
        );
        self.gives_row(Lane::Renewals, vec![update]).await
    }

    /// Changes a member's own state, forwards only; false if it is dead. [`MemberState::Dead`] means that it
    /// leaves: it must have stopped to answer before it asks for that.
    ///
    /// # Errors
    /// As [`Self::join`].
    pub async fn set_state(&self, who: Holder, state: MemberState) -> Result<bool> {
        let (living, state) = (self.living(who), code(state));
        let statements = vec![
            self.lock(),
            format!("SELECT 1 FROM stoa_daemons WHERE {living}"),
            self.counting(&format!(
                "UPDATE stoa_daemons
                 SET state = {state}, state_since = {CLOCK},
                     until = CASE WHEN {state} = {DEAD} THEN 0 ELSE until END
                 WHERE {living} AND state < {state} RETURNING daemon"
            )),
        ];
        let rows = self.database.transact(Lane::Changes, statements).await?;
        let [_, lives, changed] = &rows[..] else { return Ok(false) };
        if !changed.is_empty() {
            self.database.notify();
        }
        Ok(!lives.is_empty())
    }

    /// Takes note that `by` cannot reach `victim`. Two such notes within `window` declare it dead; in a
    /// cluster of two, one does. True if this one has.
    ///
    /// # Errors
    /// As [`Self::join`].
    pub async fn suspect(&self, victim: Holder, by: Holder, window: Duration) -> Result<bool> {
        if victim.daemon == by.daemon {
            return Ok(false);
        }
        let of_victim = self.of_daemon(victim.daemon);
        let heard = format!("EXISTS (SELECT FROM stoa_daemons WHERE {})", self.living(by));
        let lives = format!("EXISTS (SELECT FROM stoa_daemons WHERE {})", self.living(victim));
        let (up, draining) = (code(MemberState::Up), code(MemberState::Draining));
        let statements = vec![
            self.lock(),
            format!(
                "DELETE FROM stoa_suspicions WHERE {of_victim} AND {heard} AND {lives}
                 AND (suspected_by = {} OR greatest({CLOCK} - noted_at, 0) >= {})",
                daemon(by.daemon),
                micros(window)
            ),
            format!(
                "INSERT INTO stoa_suspicions (catalog_name, daemon, suspected_by, noted_at)
                 SELECT {}, {}, {}, {CLOCK} WHERE {heard} AND {lives}",
                self.catalog,
                daemon(victim.daemon),
                daemon(by.daemon)
            ),
            self.counting(&format!(
                "UPDATE stoa_daemons SET state = {DEAD}, state_since = {CLOCK}
                 WHERE {} AND {heard}
                   AND (SELECT count(*) FROM stoa_suspicions WHERE {of_victim})
                    >= (SELECT least({SUSPICIONS_NEEDED}, greatest(1, count(*))) FROM stoa_daemons
                        WHERE catalog_name = {} AND daemon <> {} AND state IN ({up}, {draining}))
                 RETURNING daemon",
                self.living(victim),
                self.catalog,
                daemon(victim.daemon)
            )),
        ];
        self.changes(Lane::Changes, statements).await
    }

    /// `by` reaches `peer` again: its note of [`Self::suspect`] goes. False if there is none.
    ///
    /// # Errors
    /// As [`Self::join`].
    pub async fn trust(&self, peer: Holder, by: Holder) -> Result<bool> {
        let note = format!(
            "DELETE FROM stoa_suspicions WHERE {} AND suspected_by = {}
             AND EXISTS (SELECT FROM stoa_daemons WHERE {})
             AND EXISTS (SELECT FROM stoa_daemons WHERE {}) RETURNING daemon",
            self.of_daemon(peer.daemon),
            daemon(by.daemon),
            self.living(peer),
            self.living(by)
        );
        self.gives_row(Lane::Changes, vec![self.lock(), note]).await
    }

    /// Declares a member dead whose lease has expired and is still as the caller `observed` it. True if this
    /// call has.
    ///
    /// # Errors
    /// As [`Self::join`].
    pub async fn expire(&self, victim: Holder, observed: DatabaseTime) -> Result<bool> {
        let change = self.counting(&format!(
            "UPDATE stoa_daemons SET state = {DEAD}, state_since = {CLOCK}
             WHERE {} AND until < {CLOCK} AND until = {} RETURNING daemon",
            self.living(victim),
            instant(Some(observed))
        ));
        self.changes(Lane::Changes, vec![self.lock(), change]).await
    }

    /// Removes the row of a dead daemon, for an operator; false if there is none. Should the daemon come
    /// back, it gets an incarnation that it has not had.
    ///
    /// # Errors
    /// `Conflict` (55006) while it is not dead; otherwise as [`Self::join`].
    pub async fn remove(&self, id: DaemonId) -> Result<bool> {
        let (catalog, of_daemon) = (&self.catalog, self.of_daemon(id));
        let statements = vec![
            self.lock(),
            format!("SELECT state, host_name FROM stoa_daemons WHERE {of_daemon}"),
            format!(
                "UPDATE stoa_cluster SET epoch = epoch + 1, removed = greatest(removed, incarnation)
                 FROM stoa_daemons AS daemons
                 WHERE stoa_cluster.catalog_name = {catalog} AND daemons.catalog_name = {catalog}
                   AND daemon = {} AND state = {DEAD}",
                daemon(id)
            ),
            format!("DELETE FROM stoa_daemons WHERE {of_daemon} AND state = {DEAD}"),
            format!(
                "DELETE FROM stoa_suspicions WHERE {of_daemon}
                 AND NOT EXISTS (SELECT FROM stoa_daemons WHERE {of_daemon})"
            ),
        ];
        let rows = self.database.transact(Lane::Changes, statements).await?;
        let Some(row) = rows.get(1).and_then(|rows| rows.first()) else { return Ok(false) };
        if self.value::<i64>(row, 0)? != DEAD {
            let name: &str = self.value(row, 1)?;
            return Err(Error::conflict(format!("daemon {id} ({name}) is not dead"))
                .with_condition(Condition::ObjectInUse)
                .with_hint("stop it first; it is declared dead a few seconds later"));
        }
        self.database.notify();
        Ok(true)
    }

    fn newer_format(&self, format: i64) -> Error {
        let place = self.database.place();
        Error::unsupported(format!("the cluster in catalog {place} has the newer format {format}"))
            .with_detail(format!("this version of Stoa knows formats up to {FORMAT}"))
            .with_hint("install the version of Stoa that the other daemons run")
    }
}

/// The values of [`INFO`].
fn values(info: &DaemonInfo) -> String {
    let texts = [
        &info.name,
        &info.peer_address,
        &info.pg_address,
        &info.http_address,
        &info.flight_address,
        &info.zone,
        &info.build,
    ];
    let mut values: Vec<String> = texts.into_iter().map(|text| literal(text)).collect();
    let numbers = [
        i64::from(info.protocol_min),
        i64::from(info.protocol_max),
        i64::from(info.cores),
        count(info.cache_bytes),
    ];
    values.extend(numbers.map(integer));
    values.push(bytes(&info.certificate));
    values.join(", ")
}
