//! Connections of short transactions that must not wait behind the catalog's: members and leases.
//!
//! Each transaction is one message with its BEGIN and COMMIT. So a daemon that is stopped in the middle of it
//! holds no lock that others wait for, and each transaction is one round trip.
//!
//! Lanes do not share connections: a change that waits for a row keeps no renewal waiting.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use sqlx::PgConnection;
use stoa_env::timer::{self, Instant};
use stoa_error::{Error, Result};
use tokio::sync::{Semaphore, watch};

use super::rows::{run_each, within};
use super::{PostgresDatabase, Shared, failure, notices, sessions};
use crate::database::{Lane, Row, SharedDatabase};

/// How long a transaction may take, with its wait for a connection and all attempts.
pub(super) const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(5);

/// How long one attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);

/// As long as PostgreSQL lets a statement wait for a row, and run.
const LOCK_TIMEOUT_MS: u32 = 2000;
const STATEMENT_TIMEOUT_MS: u32 = 3000;

/// A connection that was idle for longer is not used again: something between may have dropped it.
const IDLE_MAX: Duration = Duration::from_secs(60);

pub(super) struct Lanes {
    reads: Connections,
    renewals: Connections,
    leases: Connections,
    changes: Connections,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            reads: Connections::of(2),
            renewals: Connections::of(2),
            leases: Connections::of(4),
            changes: Connections::of(2),
        }
    }
}

impl Lanes {
    fn of(&self, lane: Lane) -> &Connections {
        match lane {
            Lane::Reads => &self.reads,
            Lane::Renewals => &self.renewals,
            Lane::Leases => &self.leases,
            Lane::Changes => &self.changes,
        }
    }

    /// Closes what is idle, and what is under way when it is done.
    pub(super) fn close(&self) {
        let all = [&self.reads, &self.renewals, &self.leases, &self.changes];
        all.into_iter().for_each(Connections::close);
    }
}

/// The connections of one lane; more transactions than it may have wait.
pub(super) struct Connections {
    idle: Mutex<Vec<(PgConnection, Instant)>>,
    permits: Semaphore,
}

impl Connections {
    pub(super) fn of(most: usize) -> Self {
        Self { idle: Mutex::default(), permits: Semaphore::new(most) }
    }

    fn take(&self) -> Option<PgConnection> {
        let (connection, used) = self.idle.lock().pop()?;
        if used.elapsed() < IDLE_MAX {
            return Some(connection);
        }
        // The others were idle for longer.
        self.forget_idle();
        None
    }

    fn put(&self, connection: PgConnection) {
        let mut idle = self.idle.lock();
        // Those of a busier time.
        idle.retain(|(_, used)| used.elapsed() < IDLE_MAX);
        if !self.permits.is_closed() {
            idle.push((connection, timer::now()));
        }
    }

    fn forget_idle(&self) {
        let old = std::mem::take(&mut *self.idle.lock());
        drop(old);
    }

    pub(super) fn close(&self) {
        self.permits.close();
        self.forget_idle();
    }

    /// Sends a message; where `may_repeat`, once more if a connection that was idle turns out to be lost.
    pub(super) async fn send(
        &self,
        shared: &Arc<Shared>,
        message: &str,
        may_repeat: bool,
    ) -> sqlx::Result<Vec<Vec<Row>>> {
        let _permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        if let Some(mut connection) = self.take() {
            match within(ATTEMPT_TIMEOUT, run_each(&mut connection, message)).await {
                Ok(rows) => {
                    self.put(connection);
                    return Ok(rows);
                }
                Err(error) if failure::is_lost(&error) => {
                    self.forget_idle();
                    if !may_repeat {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let mut connection = sessions::connect(shared).await?;
        let rows = within(ATTEMPT_TIMEOUT, run_each(&mut connection, message)).await?;
        self.put(connection);
        Ok(rows)
    }
}

#[async_trait]
impl SharedDatabase for PostgresDatabase {
    fn place(&self) -> &str {
        self.shared.address.place()
    }

    async fn transact(&self, lane: Lane, statements: Vec<String>) -> Result<Vec<Vec<Row>>> {
        let shared = &self.shared;
        let begin = match lane {
            Lane::Reads => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Lane::Renewals | Lane::Leases | Lane::Changes => "BEGIN ISOLATION LEVEL READ COMMITTED",
        };
        let message = format!(
            "{begin}; SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS};
             SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}; {}; COMMIT",
            statements.join("; ")
        );
        let work = shared.lanes.of(lane).send(shared, &message, lane != Lane::Changes);
        let rows = within(TRANSACTION_TIMEOUT, work).await.map_err(|error| shared.failed(error))?;
        // Of BEGIN, of two settings, and of COMMIT.
        if rows.len() != statements.len() + 4 {
            return Err(Error::internal("PostgreSQL has answered some statements and not others"));
        }
        Ok(rows.into_iter().skip(3).take(statements.len()).collect())
    }

    fn notify(&self) {
        notices::send_soon(&self.shared);
    }

    fn listen(&self) -> watch::Receiver<u64> {
        notices::listen(&self.shared)
    }
}
