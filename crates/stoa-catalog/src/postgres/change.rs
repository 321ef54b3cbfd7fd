//! A change: one transaction in READ COMMITTED.
//!
//! Each statement sees what was committed before it, and waits for rows that others are changing. So a
//! swap of a pointer is one UPDATE with the old location in its condition: the second of two finds no
//! row. Changes that check before they write hold the lock of the catalog's name, taken before their
//! first check, so what they check stays true until they commit.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use stoa_error::{Error, Result};
use tokio::sync::OwnedMutexGuard;

use super::lease::Lease;
use super::rows::{execute, fetch, run, within};
use super::settle::{Outcome, settle};
use super::{Shared, failure};
use crate::database::{Change, Row, Scope, Statement};

/// For a statement or a commit: a little longer than PostgreSQL itself lets one run.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(45);

/// For taking back a change that was dropped.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct PostgresChange {
    /// `None` when the connection was lost.
    lease: Option<Lease>,
    scope: Scope,
    alone: Option<OwnedMutexGuard<()>>,
    /// Whether no statement is under way.
    is_at_rest: bool,
    has_failed: bool,
}

impl PostgresChange {
    pub(super) fn new(lease: Lease, scope: Scope, alone: Option<OwnedMutexGuard<()>>) -> Self {
        Self { lease: Some(lease), scope, alone, is_at_rest: true, has_failed: false }
    }

    fn lease(&mut self) -> Result<&mut Lease> {
        let lost =
            || Error::internal("a change of the catalog went on after its connection was lost");
        self.lease.as_mut().ok_or_else(lost)
    }

    /// Notes how a statement ended.
    fn settle_statement<T>(&mut self, outcome: sqlx::Result<T>) -> Result<T> {
        self.is_at_rest = true;
        let error = match outcome {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        self.has_failed = true;
        let Some(lease) = &self.lease else { return Err(Error::internal("no connection")) };
        let shared = Arc::clone(lease.shared());
        if failure::is_lost(&error) || failure::is_outdated(&error) {
            self.lease = None;
            shared.sessions.forget_idle();
            return Err(failure::undone(shared.address.place(), error));
        }
        Err(shared.failed(error))
    }
}

#[async_trait]
impl Change for PostgresChange {
    async fn execute(&mut self, statement: Statement) -> Result<u64> {
        self.is_at_rest = false;
        let work = async { execute(self.lease_connection()?, statement).await };
        let outcome = within(STATEMENT_TIMEOUT, work).await;
        self.settle_statement(outcome)
    }

    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>> {
        self.is_at_rest = false;
        let work = async { fetch(self.lease_connection()?, statement).await };
        let outcome = within(STATEMENT_TIMEOUT, work).await;
        self.settle_statement(outcome)
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        if self.has_failed {
            // PostgreSQL would answer such a COMMIT with a rollback.
            return Err(Error::internal("a change of the catalog went on after an error"));
        }
        self.lease()?;
        let Some(mut lease) = self.lease.take() else { return Ok(()) };
        let shared = Arc::clone(lease.shared());
        let work = async { run(lease.connection()?, "COMMIT").await };
        let outcome = match within(STATEMENT_TIMEOUT, work).await {
            Ok(_) => {
                lease.give_back();
                Ok(())
            }
            Err(error) => look_up(&shared, lease, error).await,
        };
        if self.scope != Scope::Pointers {
            shared.memory.forget_reads();
        }
        outcome
    }
}

impl PostgresChange {
    fn lease_connection(&mut self) -> sqlx::Result<&mut sqlx::PgConnection> {
        self.lease.as_mut().ok_or(sqlx::Error::WorkerCrashed)?.connection()
    }
}

/// What became of a commit that was not answered.
async fn look_up(shared: &Arc<Shared>, lease: Lease, error: sqlx::Error) -> Result<()> {
    let writer = lease.writer();
    drop(lease);
    shared.sessions.forget_idle();
    let Some(writer) = writer else { return Err(shared.failed(error)) };
    match settle(shared, writer).await {
        Outcome::Committed => Ok(()),
        Outcome::Undone => Err(failure::undone(shared.address.place(), error)),
        Outcome::Unknown => {
            tracing::error!(%error, "what became of a commit cannot be settled");
            Err(failure::unknown_outcome(shared.address.place(), error))
        }
    }
}

/// Takes the change back, if that was not done.
impl Drop for PostgresChange {
    fn drop(&mut self) {
        let Some(mut lease) = self.lease.take().filter(|_| self.is_at_rest) else { return };
        let alone = self.alone.take();
        let home = lease.shared().home.clone();
        home.spawn(async move {
            let work = async { run(lease.connection()?, "ROLLBACK").await };
            if within(ROLLBACK_TIMEOUT, work).await.is_ok() {
                lease.give_back();
            }
            drop(alone);
        });
    }
}
