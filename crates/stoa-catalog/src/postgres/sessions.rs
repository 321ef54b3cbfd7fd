//! Connections: opened, lent to one read or change at a time, and used again.
//!
//! A connection has a *writer*: a row of `stoa_writers` that each of its changes numbers, by which
//! another connection learns whether a change was committed (`settle`). Numbers that the database
//! gives to transactions would not do: after a crash it may give those of lost ones again.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::{ConnectOptions, Executor, PgConnection, Row as _};
use stoa_env::random;
use stoa_env::timer::{self, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use super::rows::{fetch, run, within};
use super::{Shared, failure};
use crate::database::{Row, Statement};

/// Changes at once; more wait. Several are needed so that PostgreSQL can sync the commits of many in one go.
const CHANGING_MAX: usize = 8;

/// Listings and the like at once; more wait.
const READING_MAX: usize = 4;

/// A connection that was idle for longer is not used again: something between may have dropped it.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// How long the beginning of a change may take, beside its wait for the lock.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(5);

/// As long as PostgreSQL lets a change wait for the lock, and a little.
const LOCK_TIMEOUT: Duration = Duration::from_secs(35);

pub(super) struct Sessions {
    state: Mutex<State>,
    reading: Arc<Semaphore>,
    changing: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    idle: Vec<Session>,
    /// Of connections that have ended, each at rest.
    writers: Vec<Writer>,
    /// Counts the times at which all connections were given up.
    era: u64,
    closed: bool,
    cluster: Option<Cluster>,
}

/// Which PostgreSQL it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cluster {
    system: String,
    timeline: i32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Writer {
    pub(super) id: Uuid,
    pub(super) change: i64,
}

pub(super) struct Session {
    connection: PgConnection,
    writer: Writer,
    era: u64,
    used: Instant,
}

impl Session {
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            reading: Arc::new(Semaphore::new(READING_MAX)),
            changing: Arc::new(Semaphore::new(CHANGING_MAX)),
        }
    }
}

impl Sessions {
    /// Takes a session back that is in no transaction.
    pub(super) fn put(&self, mut session: Session) {
        let mut state = self.state.lock();
        if session.era == state.era && !state.closed {
            session.used = timer::now();
            state.idle.push(session);
        } else {
            state.writers.push(session.writer);
        }
    }

    fn take(&self) -> Option<Session> {
        let mut state = self.state.lock();
        let session = state.idle.pop()?;
        if session.used.elapsed() < IDLE_MAX {
            return Some(session);
        }
        // The others were idle for longer.
        let old = std::mem::take(&mut state.idle);
        state.writers.extend(old.iter().chain([&session]).map(|session| session.writer));
        None
    }

    /// Gives up all connections: those that are lent are not used again.
    pub(super) fn forget_idle(&self) {
        let mut state = self.state.lock();
        state.era += 1;
        let old = std::mem::take(&mut state.idle);
        state.writers.extend(old.iter().map(|session| session.writer));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Waits for what is under way.
    pub(super) async fn close(&self) {
        self.state.lock().closed = true;
        let all = [(&self.changing, CHANGING_MAX), (&self.reading, READING_MAX)];
        for (permits, most) in all {
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            let _ = timer::timeout(BEGIN_TIMEOUT, permits.acquire_many(most)).await;
            permits.close();
        }
        self.state.lock().idle.clear();
    }

    /// Whether a session is of the time since all connections were last given up.
    pub(super) fn is_current(&self, session: &Session) -> bool {
        self.state.lock().era == session.era
    }

    /// Notes which PostgreSQL answers; gives back whether another server has taken over since.
    ///
    /// # Errors
    /// Where it is not the one from before, or a server that another one has taken over from.
    fn note(&self, cluster: Cluster) -> sqlx::Result<bool> {
        let mut state = self.state.lock();
        let Some(known) = &state.cluster else {
            state.cluster = Some(cluster);
            return Ok(false);
        };
        if known.system != cluster.system {
            return Err(sqlx::Error::Protocol(format!(
                "another PostgreSQL answers: its system identifier is {}, and was {} when Stoa \
                 started; restart Stoa if that is meant",
                cluster.system, known.system
            )));
        }
        if known.timeline > cluster.timeline {
            return Err(sqlx::Error::Protocol(format!(
                "a server of PostgreSQL answers from which another one has taken over: its timeline \
                 is {}, that of the other {}",
                cluster.timeline, known.timeline
            )));
        }
        let has_changed = known.timeline != cluster.timeline;
        state.cluster = Some(cluster);
        Ok(has_changed)
    }
}

/// Opens a connection, on the runtime that has the catalog's I/O.
pub(super) async fn open(shared: &Arc<Shared>) -> sqlx::Result<Session> {
    let owned = Arc::clone(shared);
    let opened = shared.home.spawn(async move {
        let limit = owned.address.connect_timeout();
        within(limit, open_here(&owned)).await
    });
    opened.await.unwrap_or_else(|error| Err(sqlx::Error::Io(io::Error::other(error))))
}

async fn open_here(shared: &Arc<Shared>) -> sqlx::Result<Session> {
    let (era, writer) = {
        let mut state = shared.sessions.state.lock();
        if state.closed {
            return Err(sqlx::Error::PoolClosed);
        }
        (state.era, state.writers.pop())
    };
    let mut connection = shared.address.options().connect().await?;
    // What was answered must be durable, whatever the server's default is.
    run(
        &mut connection,
        "SELECT set_config('synchronous_commit', 'on', false)
         WHERE current_setting('synchronous_commit') = 'off'",
    )
    .await?;
    check_cluster(shared, &mut connection).await?;
    let writer = writer.unwrap_or_else(|| Writer { id: random::uuid(), change: 0 });
    Ok(Session { connection, writer, era, used: timer::now() })
}

/// Asks which PostgreSQL it is, where the account may know.
async fn check_cluster(shared: &Arc<Shared>, connection: &mut PgConnection) -> sqlx::Result<()> {
    let query = sqlx::query(
        "SELECT system.system_identifier::text, checkpoint.timeline_id
         FROM pg_control_system() AS system, pg_control_checkpoint() AS checkpoint",
    );
    let asked = connection.fetch_one(query).await;
    let row = match asked {
        Ok(row) => row,
        Err(error) if failure::is_lost(&error) => return Err(error),
        Err(error) => {
            tracing::debug!(%error, "which PostgreSQL the catalog is in cannot be checked");
            return Ok(());
        }
    };
    let cluster = Cluster { system: row.try_get(0)?, timeline: row.try_get(1)? };
    let timeline = cluster.timeline;
    if shared.sessions.note(cluster)? {
        tracing::warn!(timeline, "another server of PostgreSQL has taken over the catalog");
        shared.sessions.forget_idle();
        shared.memory.forget_all();
    }
    Ok(())
}

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
        within(BEGIN_TIMEOUT, run(&mut session.connection, &text)).await?;
        let Some(key) = key else { return Ok(()) };
        let text = format!("SELECT pg_advisory_xact_lock({key})");
        within(LOCK_TIMEOUT, run(&mut session.connection, &text)).await
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
