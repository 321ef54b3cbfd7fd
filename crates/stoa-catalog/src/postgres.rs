//! The catalog in a PostgreSQL database, which several daemons and other engines share.
//!
//! ```text
//! reports ─► read_lease: known, and nobody moves it
//!    └─► check ──────── one query in flight for all of them ─┐
//! listings, policy ──── reading sessions ────────────────────┼─► PostgreSQL
//! changes ───────────── changing sessions, one transaction ──┤
//! cluster ───────────── lanes, one message per transaction ──┘
//!            memory ◄── what was read; answers while `reach` says that PostgreSQL is away
//! ```
//!
//! In: changes and reads of `database`. Out: their answers; errors that never show the password.
//!
//! **Invariants:** while PostgreSQL answers, every read is sent after it was asked for, or answered under a lease that
//! changes wait for, so it sees every change that was committed before; nothing is answered from memory that PostgreSQL has not
//! confirmed in the last ten minutes, or that was read before it was last away; a commit whose
//! connection is lost is looked up before anything is said about it.
//!
//! Not here: notifications of changes of the catalog. They could only save reads that cost little already.

mod address;
mod change;
mod check;
mod failure;
mod lanes;
mod lease;
mod memory;
mod notices;
mod reach;
mod read_lease;
mod rows;
mod sessions;
mod settle;
mod tables;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use stoa_env::timer::{self, Instant};
use stoa_error::{Error, Result};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, mpsc};

use self::address::Address;
use self::change::PostgresChange;
use self::check::{Answer, Question};
use self::lanes::Lanes;
use self::lease::Lease;
use self::memory::Memory;
use self::notices::Notices;
use self::reach::Reach;
use self::read_lease::ReadLease;
use self::sessions::Sessions;
use crate::database::{Change, Database, Row, Scope, SharedDatabase, Statement};
use crate::relation::Relation;
use crate::{CatalogState, TableIdent, lookup};

/// How long a change waits for PostgreSQL to come back, or for another change to end.
const CHANGE_WAIT: Duration = Duration::from_secs(30);

/// How long a read that cannot be answered from memory waits for PostgreSQL to come back.
const READ_WAIT: Duration = Duration::from_secs(5);

/// How long PostgreSQL may take to answer a read before it counts as away.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a daemon that starts waits for PostgreSQL.
const START_WAIT: Duration = Duration::from_secs(10);

/// Questions that wait for the next check; more wait to be taken.
const QUESTIONS_MAX: usize = 1024;

/// One catalog of one database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PostgresDatabase {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    name: String,
    /// Where connections are made and tasks run, whatever runtime a caller is on.
    home: Handle,
    sessions: Sessions,
    lanes: Lanes,
    notices: Notices,
    reach: Reach,
    memory: Memory,
    read_lease: ReadLease,
    /// Of this process's changes of the whole catalog one asks PostgreSQL for the lock, so that the
    /// others take no connection while they wait.
    alone: Arc<Mutex<()>>,
    questions: mpsc::Sender<Question>,
}

impl PostgresDatabase {
    pub(crate) async fn connect(url: &str, name: &str) -> Result<Self> {
        let address = Address::parse(url)?;
        let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
        let shared = Arc::new(Shared {
            address,
            name: name.to_owned(),
            home: Handle::current(),
            sessions: Sessions::default(),
            lanes: Lanes::default(),
            notices: Notices::default(),
            reach: Reach::default(),
            memory: Memory::default(),
            read_lease: ReadLease::default(),
            alone: Arc::default(),
            questions,
        });
        shared.start().await?;
        stoa_env::task::spawn(check::serve(Arc::downgrade(&shared), asked));
        Ok(Self { shared })
    }
}

impl Shared {
    /// Makes the first connection, and what tables are missing.
    async fn start(self: &Arc<Self>) -> Result<()> {
        let deadline = timer::now() + START_WAIT;
        let mut session = loop {
            match sessions::open(self).await {
                Ok(session) => break session,
                Err(error) if failure::may_pass(&error) && timer::now() < deadline => {
                    timer::sleep(reach::PAUSE_MIN).await;
                }
                Err(error) => return Err(self.failed(error)),
            }
        };
        tables::ensure(session.connection()).await.map_err(|source| self.failed(source))?;
        if let Err(error) = read_lease::ensure(session.connection()).await {
            let place = self.address.place();
            tracing::warn!(%error, place, "every report will ask the catalog for its table: moves are not announced");
        }
        self.sessions.put(session);
        Ok(())
    }

    /// A number of the catalog's name, the same everywhere: FNV-1a.
    fn lock_key(&self) -> i64 {
        let hash = self.name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        hash.cast_signed()
    }

    fn failed(&self, source: sqlx::Error) -> Error {
        failure::describe(self.address.place(), source)
    }

    /// Waits until PostgreSQL answers again, at most until `deadline`.
    async fn wait_until_here(&self, deadline: Instant) -> Result<()> {
        match self.reach.wait_until_here(deadline).await {
            true => Ok(()),
            false => Err(failure::away(self.address.place(), &self.reach.state())),
        }
    }

    async fn begin(self: &Arc<Self>, scope: Scope) -> Result<PostgresChange> {
        let deadline = timer::now() + CHANGE_WAIT;
        let alone = match scope {
            Scope::Rows | Scope::Pointers => None,
            Scope::Catalog => {
                let lock = Arc::clone(&self.alone).lock_owned();
                let lock = timer::timeout(deadline - timer::now(), lock).await;
                Some(lock.map_err(|_| failure::locked(self.address.place()))?)
            }
        };
        let key = alone.is_some().then(|| self.lock_key());
        let mut may_be_old = true;
        loop {
            self.wait_until_here(deadline).await?;
            let lease = Lease::changing(self, deadline, may_be_old).await;
            let mut lease = match lease {
                Ok(lease) => lease,
                Err(error) if failure::is_lost(&error) => {
                    self.reach.mark_away(self, &error);
                    continue;
                }
                Err(error) => return Err(self.failed(error)),
            };
            // Nothing is done yet, so that it may be tried again.
            match lease.begin(key).await {
                Ok(()) => return Ok(PostgresChange::new(lease, scope, alone)),
                Err(error) if failure::is_lost(&error) || failure::is_outdated(&error) => {
                    self.lost(&lease, error);
                }
                Err(error) => return Err(self.failed(error)),
            }
            may_be_old = false;
        }
    }

    /// Notes that a connection failed. Where it was new, PostgreSQL is away.
    fn lost(self: &Arc<Self>, lease: &Lease, error: sqlx::Error) {
        match lease.is_new() {
            true => self.reach.mark_away(self, &error),
            false => self.sessions.forget_idle(),
        }
    }

    /// The rows that `queries` find, asked of PostgreSQL; `None` where it is away.
    async fn read(self: &Arc<Self>, queries: &[Statement]) -> Result<Option<Vec<Vec<Row>>>> {
        let mut may_be_old = true;
        loop {
            let deadline = timer::now() + READ_TIMEOUT;
            let mut lease = match Lease::reading(self, deadline, may_be_old).await {
                Ok(lease) => lease,
                Err(error) if failure::is_lost(&error) => {
                    self.reach.mark_away(self, &error);
                    return Ok(None);
                }
                Err(error) => return Err(self.failed(error)),
            };
            match rows::within(READ_TIMEOUT, lease.fetch_all(queries)).await {
                Ok(rows) => {
                    lease.give_back();
                    return Ok(Some(rows));
                }
                Err(error) if failure::is_lost(&error) || failure::is_outdated(&error) => {
                    let was_new = lease.is_new();
                    self.lost(&lease, error);
                    if was_new {
                        return Ok(None);
                    }
                    may_be_old = false;
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// The answer to a question that one check after another is asked until PostgreSQL answers, or until
    /// `remembered` has it while PostgreSQL is away.
    async fn ask<T>(
        self: &Arc<Self>,
        ident: Option<&TableIdent>,
        remembered: impl Fn(&Memory) -> Option<T>,
        answered: impl Fn(Answer) -> Result<T>,
    ) -> Result<T> {
        let deadline = timer::now() + READ_WAIT;
        loop {
            if !self.reach.is_here()
                && let Some(remembered) = remembered(&self.memory)
            {
                return Ok(remembered);
            }
            self.wait_until_here(deadline).await?;
            if let Some(answer) = check::ask(&self.questions, ident).await? {
                return answered(answer);
            }
        }
    }
}

#[async_trait]
impl Database for PostgresDatabase {
    fn place(&self) -> &str {
        self.shared.address.place()
    }

    fn state(&self) -> CatalogState {
        let (reads_asked, reads_known) = self.shared.read_lease.reads();
        CatalogState { reads_asked, reads_known, ..self.shared.reach.state() }
    }

    async fn begin(&self, scope: Scope) -> Result<Box<dyn Change>> {
        Ok(Box::new(self.shared.begin(scope).await?))
    }

    async fn fetch_all(&self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>> {
        let shared = &self.shared;
        let deadline = timer::now() + READ_WAIT;
        loop {
            if !shared.reach.is_here()
                && let Some(rows) = shared.memory.rows(&queries)
            {
                return Ok(rows);
            }
            shared.wait_until_here(deadline).await?;
            let age = shared.memory.age();
            if let Some(rows) = shared.read(&queries).await? {
                shared.memory.put_rows(queries, &rows, age);
                return Ok(rows);
            }
        }
    }

    async fn fetch_now(&self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>> {
        let deadline = timer::now() + CHANGE_WAIT;
        loop {
            self.shared.wait_until_here(deadline).await?;
            if let Some(rows) = self.shared.read(&queries).await? {
                return Ok(rows);
            }
        }
    }

    async fn relation(&self, ident: &TableIdent) -> Result<Option<Relation>> {
        if let Some(relation) = self.shared.read_lease.relation(ident) {
            return Ok(Some(relation));
        }
        let remembered = |memory: &Memory| memory.relation(ident).map(Some);
        let answered =
            |answer: Answer| answer.found.map(|row| lookup::of_row(&row, ident)).transpose();
        self.shared.ask(Some(ident), remembered, answered).await
    }

    async fn policy_version(&self) -> Result<i64> {
        if let Some(version) = self.shared.read_lease.policy_version() {
            return Ok(version);
        }
        self.shared.ask(None, Memory::policy_version, |answer| Ok(answer.policy_version)).await
    }

    fn forget(&self, idents: &[&TableIdent]) {
        self.shared.memory.forget_relations(idents);
        self.shared.read_lease.forget(idents);
    }

    fn shared(&self) -> Option<Arc<dyn SharedDatabase>> {
        Some(Arc::new(self.clone()))
    }

    async fn close(&self) {
        self.shared.lanes.close();
        self.shared.notices.close();
        self.shared.sessions.close().await;
    }
}

impl fmt::Debug for PostgresDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresDatabase")
            .field("place", &self.shared.address.place())
            .finish_non_exhaustive()
    }
}
