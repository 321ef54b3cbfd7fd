//! Connections: opened, kept while nobody uses them, and given up. `lease` lends them.
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
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::rows::{run, within};
use super::{Shared, failure};

/// Changes at once; more wait. Several are needed so that PostgreSQL can sync the commits of many in one go.
const CHANGING_MAX: usize = 8;

/// Listings and the like at once; more wait.
const READING_MAX: usize = 4;

/// A connection that was idle for longer is not used again: something between may have dropped it.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// How long closing waits for what is under way.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

pub(super) struct Sessions {
    state: Mutex<State>,
    pub(super) reading: Arc<Semaphore>,
    pub(super) changing: Arc<Semaphore>,
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
    pub(super) writer: Writer,
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

    /// A session that nobody uses, if there is one.
    pub(super) fn take(&self) -> Option<Session> {
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
            let _ = timer::timeout(CLOSE_WAIT, permits.acquire_many(most)).await;
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

/// Opens a connection that is lent to reads and changes.
pub(super) async fn open(shared: &Arc<Shared>) -> sqlx::Result<Session> {
    let (era, writer) = {
        let mut state = shared.sessions.state.lock();
        if state.closed {
            return Err(sqlx::Error::PoolClosed);
        }
        (state.era, state.writers.pop())
    };
    let connection = connect(shared).await?;
    let writer = writer.unwrap_or_else(|| Writer { id: random::uuid(), change: 0 });
    Ok(Session { connection, writer, era, used: timer::now() })
}

/// Connects, on the runtime that has the catalog's I/O.
pub(super) async fn connect(shared: &Arc<Shared>) -> sqlx::Result<PgConnection> {
    let owned = Arc::clone(shared);
    let connected = shared.home.spawn(async move {
        let limit = owned.address.connect_timeout();
        within(limit, connect_here(&owned)).await
    });
    connected.await.unwrap_or_else(|error| Err(sqlx::Error::Io(io::Error::other(error))))
}

async fn connect_here(shared: &Arc<Shared>) -> sqlx::Result<PgConnection> {
    let mut connection = shared.address.options().connect().await?;
    // What was answered must be durable, whatever the server's default is.
    run(
        &mut connection,
        "SELECT set_config('synchronous_commit', 'on', false)
         WHERE current_setting('synchronous_commit') = 'off'",
    )
    .await?;
    check_cluster(shared, &mut connection).await?;
    Ok(connection)
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
        shared.read_lease.start_again();
    }
    Ok(())
}
