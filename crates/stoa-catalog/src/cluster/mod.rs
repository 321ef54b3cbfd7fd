//! What daemons that share a catalog agree on: who is a member, and who has which lease.
//!
//! In: what a daemon says of itself, and the statements that [`stoa_cluster`] asks for. Out: whether the
//! database accepted them, and all rows as of one moment. The rules are those of
//! [`MemberTable`](stoa_cluster::membership::MemberTable) and [`Arbiter`](stoa_cluster::lease::Arbiter);
//! a test compares each answer of the statements here with them.
//!
//! **Invariants:** only the database's clock is asked; each change is one transaction, and changes of
//! members are one after another, because each locks the row of `stoa_cluster`, whose epoch it increments;
//! renewals do not touch that row; a daemon never gets an incarnation twice, and nothing is answered
//! from memory.
//!
//! Not here: when to renew, suspect or take over (`stoa-cluster`), connections (`postgres`).

mod hints;
mod info;
mod leases;
mod members;
mod sql;
mod state;

use std::fmt;
use std::sync::Arc;

use stoa_error::Result;

pub use self::hints::ClusterHints;
pub use self::info::{DaemonInfo, DaemonLife};
pub use self::state::{ClusterState, Lease};
use crate::database::{FromValue, Lane, Row, SharedDatabase};
use crate::{Catalog, error, sql_text};

/// The format of what daemons share that this build knows. A daemon does not join a cluster of a higher one.
const FORMAT: i64 = 1;

/// Members and leases of the daemons that share one catalog. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    database: Arc<dyn SharedDatabase>,
    /// The catalog's name as text of SQL.
    catalog: Arc<str>,
}

impl Catalog {
    /// What the daemons that share this catalog agree on; `None` where the catalog is in no database that
    /// several daemons can share (SQLite).
    pub fn cluster(&self) -> Option<Cluster> {
        let database = self.database().shared()?;
        Some(Cluster { database, catalog: sql_text::literal(self.name()).into() })
    }
}

impl Cluster {
    /// Runs a transaction; gives the rows of its last statement.
    async fn transact(&self, lane: Lane, statements: Vec<String>) -> Result<Vec<Row>> {
        let mut rows = self.database.transact(lane, statements).await?;
        Ok(rows.pop().unwrap_or_default())
    }

    /// Runs a transaction; whether its last statement gives a row.
    async fn gives_row(&self, lane: Lane, statements: Vec<String>) -> Result<bool> {
        Ok(!self.transact(lane, statements).await?.is_empty())
    }

    /// As [`Self::gives_row`], which says that something has changed: others are told.
    async fn changes(&self, lane: Lane, statements: Vec<String>) -> Result<bool> {
        let has_changed = self.gives_row(lane, statements).await?;
        if has_changed {
            self.database.notify();
        }
        Ok(has_changed)
    }

    /// The value of a row in the column `index`, counted from 0.
    fn value<'r, T: FromValue<'r>>(&self, row: &'r Row, index: usize) -> Result<T> {
        row.get(index).ok_or_else(|| {
            let found = row.0.get(index);
            let place = self.database.place();
            error::damaged(place, format!("column {index} of {row:?} is {found:?}"))
        })
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("place", &self.database.place()).finish_non_exhaustive()
    }
}
