//! Parts of the statements, and their values as text of SQL.

use std::time::Duration;

use stoa_cluster::lease::Holder;
use stoa_cluster::membership::MemberState;
use stoa_cluster::{DaemonId, DatabaseTime};

use super::Cluster;

/// Microseconds since the Unix epoch. Not `now()`, which is when the transaction began.
pub(super) const CLOCK: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// The longest time that is stored, so that sums with the clock do not overflow: about 300 years.
const MICROS_MAX: i64 = 10_000_000_000_000_000;

/// A duration in microseconds.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(MICROS_MAX).min(MICROS_MAX)
}

/// A point in time as it was read; NULL, which is equal to none, where there was no row.
pub(super) fn instant(at: Option<DatabaseTime>) -> String {
    match at.map(|at| i64::try_from(at.0.as_micros()).unwrap_or(i64::MAX)) {
        Some(micros) => integer(micros),
        None => "NULL".to_owned(),
    }
}

/// Any integer, the least one included.
pub(super) fn integer(number: i64) -> String {
    format!("'{number}'::bigint")
}

/// A number that is counted up from 0, or an amount.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn daemon(id: DaemonId) -> String {
    integer(id.bits().cast_signed())
}

/// A state as it is stored. They are in the order in which a member goes through them.
pub(super) const fn code(state: MemberState) -> i64 {
    match state {
        MemberState::Joining => 0,
        MemberState::Up => 1,
        MemberState::Draining => 2,
        MemberState::Dead => 3,
    }
}

/// The state that is stored as `code`.
pub(super) fn state(code: i64) -> Option<MemberState> {
    use MemberState::{Dead, Draining, Joining, Up};
    [Joining, Up, Draining, Dead].into_iter().find(|state| self::code(*state) == code)
}

impl Cluster {
    /// The condition for rows of a daemon.
    pub(super) fn of_daemon(&self, id: DaemonId) -> String {
        format!("catalog_name = {} AND daemon = {}", self.catalog, daemon(id))
    }

    /// The condition for rows of one life of a daemon.
    pub(super) fn of_life(&self, life: Holder) -> String {
        format!("{} AND incarnation = {}", self.of_daemon(life.daemon), count(life.incarnation))
    }

    /// The condition for the row of a member that is not dead.
    pub(super) fn living(&self, member: Holder) -> String {
        format!("{} AND state <> {}", self.of_life(member), code(MemberState::Dead))
    }

    /// Waits until no other change of members is under way. A statement of its own: the next one then sees what
    /// that change has committed.
    pub(super) fn lock(&self) -> String {
        format!("SELECT epoch FROM stoa_cluster WHERE catalog_name = {} FOR UPDATE", self.catalog)
    }

    /// Runs `change`, which gives a row for each member that it has changed, and counts up the epoch if it has
    /// changed any.
    pub(super) fn counting(&self, change: &str) -> String {
        format!(
            "WITH changed AS ({change}),
             counted AS (UPDATE stoa_cluster SET epoch = epoch + 1
                         WHERE catalog_name = {} AND EXISTS (SELECT FROM changed))
             SELECT 1 FROM changed",
            self.catalog
        )
    }
}
