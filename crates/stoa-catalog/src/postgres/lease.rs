//! A connection that is lent to one read or change.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;
use stoa_env::timer::{self, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Shared;
use super::rows::{fetch, run, within};
use super::sessions::{Session, Writer, open};
use crate::database::{Row, Statement};

/// How long the beginning of a change may take, beside its wait for the lock.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(5);

/// As long as PostgreSQL lets a change wait for the lock, and a little.
const LOCK_TIMEOUT: Duration = Duration::from_secs(35);

/// A session that is lent. Dropped without being given back, its connection is closed.
pub(super) struct Lease {
    shared: Arc<Shared>,
    session: Option<Session>,
    is_new: bool,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    pub(super) async fn reading(
        shared: &Arc<Shared>,
        deadline: Instant,
        may_be_old: bool,
    ) -> sqlx::Result<Self> {
        Self::of(shared, &shared.sessions.reading, deadline, may_be_old).await
    }

    pub(super) async fn changing(
        shared: &Arc<Shared>,
        deadline: Instant,
        may_be_old: bool,
    ) -> sqlx::Result<Self> {
        Self::of(shared, &shared.sessions.changing, deadline, may_be_old).await
    }

    async fn of(
        shared: &Arc<Shared>,
        permits: &Arc<Semaphore>,
        deadline: Instant,
        may_be_old: bool,
    ) -> sqlx::Result<Self> {
        let wait = deadline.saturating_duration_since(timer::now());
        let permit = timer::timeout(wait, Arc::clone(permits).acquire_owned()).await;
        let permit = permit.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let permit = permit.map_err(|_| sqlx::Error::PoolClosed)?;
        let old = if may_be_old { shared.sessions.take() } else { None };
        let (session, is_new) = match old {
            Some(session) => (session, false),
            None => (open(shared).await?, true),
        };
        Ok(Self { shared: Arc::clone(shared), session: Some(session), is_new, _permit: permit })
    }

    /// Whether the connection was opened for this lease.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn connection(&mut self) -> sqlx::Result<&mut PgConnection> {
        self.session.as_mut().map(Session::connection).ok_or(sqlx::Error::WorkerCrashed)
    }

    /// The number of the change that was begun last.
    pub(super) fn writer(&self) -> Option<Writer> {
        self.session.as_ref().map(|session| session.writer)
    }

    /// Begins a transaction and numbers it, in one message: one round trip. Then, if `key` is given, waits
    /// for the lock of that number, which the transaction keeps.
    ///
    /// PostgreSQL must not end a commit that takes long: where it waits for a standby, it would answer
    /// as if the standby had it. So only this side has a time-out, after which it looks.
    pub(super) async fn begin(&mut self, key: Option<i64>) -> sqlx::Result<()> {
        let session = self.session.as_mut().ok_or(sqlx::Error::WorkerCrashed)?;
        session.writer.change += 1;
        let Writer { id, change } = session.writer;
        let text = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0;
             INSERT INTO stoa_writers (writer, change) VALUES ('{id}', {change})
             ON CONFLICT (writer)
             DO UPDATE SET change = excluded.change, changed_at = clock_timestamp()"
        );
        within(BEGIN_TIMEOUT, run(session.connection(), &text)).await?;
        let Some(key) = key else { return Ok(()) };
        let text = format!("SELECT pg_advisory_xact_lock({key})");
        within(LOCK_TIMEOUT, run(session.connection(), &text)).await
    }

    /// The rows that each query finds, all as of one moment.
    pub(super) async fn fetch_all(&mut self, queries: &[Statement]) -> sqlx::Result<Vec<Vec<Row>>> {
        let connection = self.connection()?;
        if let [query] = queries {
            return Ok(vec![fetch(connection, query.clone()).await?]);
        }
        run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let mut found = Vec::with_capacity(queries.len());
        for query in queries {
            found.push(fetch(connection, query.clone()).await?);
        }
        run(connection, "COMMIT").await?;
        Ok(found)
    }

    /// Gives the session back, which is in no transaction.
    pub(super) fn give_back(mut self) {
        if let Some(session) = self.session.take() {
            self.shared.sessions.put(session);
        }
    }
}
