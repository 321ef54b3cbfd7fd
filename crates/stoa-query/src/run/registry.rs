//! What runs now, what ran lately, and how fast: the numbers that console, `system` tables and
//! `/metrics` show.
//!
//! In: start, progress and end of queries. Out: snapshots of them. Bounded: at most
//! [`RECENT_MAX`] ended queries are kept, and statement texts are cut at [`SQL_TEXT_MAX`] bytes.
//! **Invariant:** no text shows a password, whichever way the statement came.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use stoa_env::clock;
use stoa_error::{Error, ErrorKind};
use stoa_store::Charge;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::run::journal::{self, Journal};
use crate::run::latency::LatencyHistogram;
use crate::run::live_plan::{Execution, PlanNode};
use crate::run::paths::{PathLatencies, QueryPath};
use crate::run::pool::{Pool, QueryCounters};
use crate::run::pools::Pools;
use crate::run::progress::Progress;
use crate::run::query_pool::QueryPool;
use crate::run::refusals::{RefusalStatus, Statements};
use crate::run::shapes::{Ended, QueryShape, QueryShapes};
use crate::run::spent::Spent;
use stoa_sql::fingerprint::{Fingerprint, SharedFingerprint};
use stoa_sql::secrets::without_secrets;

/// Ended queries that are remembered.
pub const RECENT_MAX: usize = 256;
/// Bytes of a statement's text that are remembered.
pub const SQL_TEXT_MAX: usize = 4096;

/// Where a query is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryState {
    /// Being parsed or planned; it is executed under another id.
    Planning,
    /// Waiting for an executor.
    Queued,
    /// Executing, or planning what only its execution shows.
    Running,
    /// All rows were taken, or the client asked for no more.
    Finished,
    /// Ended with an error.
    Failed,
    /// Ended because somebody cancelled it.
    Cancelled,
}

impl QueryState {
    /// The name as users see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One query as it stands at the moment of asking.
#[derive(Clone, Debug)]
pub struct QueryInfo {
    /// Unique within this process and among the daemons of a cluster. Counted from 1, on the nth daemon (from 0)
    /// from n · 10¹² + 1.
    pub id: u64,
    /// Statement text, cut at [`SQL_TEXT_MAX`] bytes.
    pub sql: String,
    /// Who asked.
    pub user: String,
    /// Over which protocol: `postgresql`, `http`, `flight`, `hive`, `shell`.
    pub protocol: &'static str,
    /// The process id of its session; 0 for work of the server itself.
    pub backend_id: i32,
    /// Where it is in its life.
    pub state: QueryState,
    /// Start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: i64,
    /// Time from start to now or to the end, microseconds.
    pub elapsed_us: u64,
    /// Rows returned (or written) so far.
    pub rows: u64,
    /// Bytes read from storage so far.
    pub bytes_read: u64,
    /// Read requests sent to storage so far.
    pub requests: u64,
    /// What it took of caches and object stores so far.
    pub spent: Spent,
    /// On which way it is answered; [`QueryPath::Other`] until that is known.
    pub path: QueryPath,
    /// What it waited for a slot, microseconds; `None` where it needed none.
    pub wait_us: Option<u64>,
    /// The pool whose slots, queue and memory it shares.
    pub pool: String,
    /// Memory of its sorts, joins and groups now, bytes.
    pub memory_bytes: u64,
    /// The most that this came to, bytes.
    pub memory_peak_bytes: u64,
    /// The share of its files' rows that it has scanned, 0 to 1; `None` if it scans none.
    pub progress: Option<f64>,
    /// Message of the error it ended with.
    pub error: Option<String>,
    /// SQLSTATE of that error.
    pub sqlstate: Option<&'static str>,
}

/// Who asks a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    /// The role.
    pub(crate) user: &'a str,
    /// As in [`QueryInfo::protocol`].
    pub(crate) protocol: &'static str,
    /// The process id of the session; 0 for work of the server itself.
    pub(crate) backend_id: i32,
}

/// Sums since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Queries that were started.
    pub started: u64,
    /// Queries that finished without an error.
    pub finished: u64,
    /// Queries that ended with an error other than a cancel.
    pub failed: u64,
    /// Queries that were cancelled.
    pub cancelled: u64,
    /// Rows returned or written.
    pub rows: u64,
    /// Bytes read from storage by scans.
    pub bytes_read: u64,
    /// Read requests sent to storage by scans.
    pub requests: u64,
}

/// All queries of an engine.
#[derive(Clone, Default)]
pub struct QueryRegistry(Arc<Shared>);

#[derive(Default)]
struct Shared {
    next_id: AtomicU64,
    started: AtomicU64,
    running: Mutex<BTreeMap<u64, Arc<Running>>>,
    recent: Mutex<VecDeque<Recent>>,
    finished: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    rows: AtomicU64,
    bytes_read: AtomicU64,
    requests: AtomicU64,
    latency: LatencyHistogram,
    paths: PathLatencies,
    shapes: QueryShapes,
    refused: Statements,
    journal: Journal<QueryInfo>,
}

/// A query that ended.
struct Recent {
    info: QueryInfo,
    execution: Execution,
}

struct Running {
    id: u64,
    /// Without passwords.
    sql: String,
    /// Whether the statement has one, which an error may repeat.
    has_secret: bool,
    /// That of `sql`, by which it counts with others of its shape.
    fingerprint: Option<SharedFingerprint>,
    user: String,
    protocol: &'static str,
    backend_id: i32,
    started_unix_ms: i64,
    started: Instant,
    progress: Arc<Progress>,
    cancel: CancellationToken,
    pool: Arc<QueryPool>,
    /// Whether it is only planned.
    is_planning: bool,
    /// Why it was cancelled, if not because somebody asked for it.
    reason: Mutex<Option<Error>>,
}

/// Ids that a daemon of a cluster gives to queries before they could be another's. More than it comes to in a
/// hundred days at a hundred thousand a second; nine thousand daemons have ids that JavaScript reads exactly.
const IDS_EACH: u64 = 1_000_000_000_000;

/// The number of the daemon that gave the id to a query.
pub(crate) fn number_of_query(id: u64) -> u32 {
    u32::try_from(id / IDS_EACH).unwrap_or(u32::MAX)
}

impl QueryRegistry {
    /// Gives ids from now on that tell the number of the daemon.
    pub(crate) fn begin_at(&self, daemon: u32) {
        self.0.next_id.fetch_max(u64::from(daemon) * IDS_EACH, Ordering::Relaxed);
    }

    /// Queries that run now, oldest first.
    pub fn running(&self) -> Vec<QueryInfo> {
        self.0.running.lock().values().map(|q| q.info(q.state(), None)).collect()
    }

    /// The text of the newest query of a session.
    pub(crate) fn newest_of(&self, backend_id: i32) -> Option<String> {
        let running = self.0.running.lock();
        let own = running.values().filter(|q| q.backend_id == backend_id);
        own.max_by_key(|q| q.id).map(|q| q.sql.clone())
    }

    /// Queries that ended lately, newest first, at most [`RECENT_MAX`].
    pub fn recent(&self) -> Vec<QueryInfo> {
        self.0.recent.lock().iter().rev().map(|ended| ended.info.clone()).collect()
    }

    /// Query `id` with its plan and what that has counted so far; of plans that ended, those that took
    /// a while are known.
    ///
    /// # Errors
    /// `NotFound` (42704) for a query that is not known, or has no plan.
    pub fn plan(&self, id: u64) -> stoa_error::Result<(QueryInfo, PlanNode)> {
        let running = self.0.running.lock().get(&id).cloned();
        let found = match running {
            Some(query) => Some((query.info(query.state(), None), query.progress.execution())),
            None => self.recent_execution(id),
        };
        let Some((info, execution)) = found else {
            return Err(Error::not_found(format!("no query {id} runs or ended lately"))
                .with_sqlstate("42704")
                .with_hint("SELECT id, state, sql FROM system.queries lists them"));
        };
        let plan = execution.describe().ok_or_else(|| no_plan(&info))?;
        Ok((info, plan))
    }

    /// Ended queries from now on, for one reader: all that failed, were cancelled or took `slow_us` or longer, and some
    /// of the others. `None` if somebody reads them already.
    pub fn journal(&self, slow_us: u64) -> Option<mpsc::Receiver<QueryInfo>> {
        self.0.journal.read(slow_us)
    }

    fn recent_execution(&self, id: u64) -> Option<(QueryInfo, Execution)> {
        let recent = self.0.recent.lock();
        let ended = recent.iter().rev().find(|ended| ended.info.id == id)?;
        Some((ended.info.clone(), ended.execution.clone()))
    }

    /// Asks query `id` to stop; `false` if no such query runs.
    pub fn cancel(&self, id: u64) -> bool {
        let found = self.0.running.lock().get(&id).cloned();
        if let Some(query) = &found {
            query.cancel.cancel();
        }
        found.is_some()
    }

    /// Who runs the query; `None` if it is not running.
    pub fn user_of(&self, id: u64) -> Option<String> {
        self.0.running.lock().get(&id).map(|query| query.user.clone())
    }

    /// Asks all running queries to stop; returns how many.
    pub fn cancel_all(&self) -> usize {
        let running = self.0.running.lock();
        running.values().for_each(|query| query.cancel.cancel());
        running.len()
    }

    /// Ends statements that take longer or read more than their pool allows, and does what triggers of resource plans
    /// say.
    pub(crate) fn end_what_is_not_allowed(&self, pools: &Pools) {
        let running: Vec<Arc<Running>> = self.0.running.lock().values().cloned().collect();
        for query in running.iter().filter(|query| !query.cancel.is_cancelled()) {
            if let Err(error) = query.check(pools) {
                *query.reason.lock() = Some(error);
                query.cancel.cancel();
            }
        }
    }

    /// Queries that run or wait now; those that are only planned are not among them.
    pub fn running_count(&self) -> usize {
        self.0.running.lock().values().filter(|query| !query.is_planning).count()
    }

    /// Whether nothing runs, waits or is planned.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.running.lock().is_empty()
    }

    /// Sums since the process started.
    pub fn totals(&self) -> Totals {
        let shared = &self.0;
        Totals {
            started: shared.started.load(Ordering::Relaxed),
            finished: shared.finished.load(Ordering::Relaxed),
            failed: shared.failed.load(Ordering::Relaxed),
            cancelled: shared.cancelled.load(Ordering::Relaxed),
            rows: shared.rows.load(Ordering::Relaxed),
            bytes_read: shared.bytes_read.load(Ordering::Relaxed),
            requests: shared.requests.load(Ordering::Relaxed),
        }
    }

    /// Statements that were refused since the start.
    pub(crate) fn refusals(&self) -> RefusalStatus {
        self.0.refused.status()
    }

    /// Statements that ended, by shape; those that took most time first.
    pub fn shapes(&self) -> Vec<QueryShape> {
        self.0.shapes.all()
    }

    /// How long finished queries took.
    pub fn latency(&self) -> &LatencyHistogram {
        &self.0.latency
    }

    /// How long they took by the way on which they were answered.
    pub(crate) fn paths(&self) -> &PathLatencies {
        &self.0.paths
    }

    /// Registers a query with the fingerprint of its text, if that has one; it ends when the guard is ended or
    /// dropped.
    pub(crate) fn start(
        &self,
        sql: &str,
        fingerprint: Option<&SharedFingerprint>,
        asker: Asker<'_>,
        pool: Arc<Pool>,
    ) -> QueryGuard {
        self.0.started.fetch_add(1, Ordering::Relaxed);
        let mut query = Running::new(sql, asker, pool);
        // A text that is shown otherwise than it was sent counts as it is shown.
        query.fingerprint = match query.sql == sql {
            true => fingerprint.cloned(),
            false => Fingerprint::shared(&query.sql),
        };
        let query = self.enter(query);
        QueryGuard { registry: self.clone(), query, ended: false }
    }

    /// Shows a statement that is planned, until the guard is dropped. It is no query yet: it counts in no
    /// sum, and is not remembered.
    pub(crate) fn start_planning(
        &self,
        sql: &str,
        asker: Asker<'_>,
        pool: Arc<Pool>,
    ) -> PlanningGuard {
        let query = Running { is_planning: true, ..Running::new(sql, asker, pool) };
        let query = self.enter(query);
        PlanningGuard { registry: self.clone(), query }
    }

    fn enter(&self, mut query: Running) -> Arc<Running> {
        query.id = self.0.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let query = Arc::new(query);
        self.0.running.lock().insert(query.id, Arc::clone(&query));
        query
    }

    fn end(&self, query: &Running, state: QueryState, error: Option<&Error>) {
        let shared = &self.0;
        shared.running.lock().remove(&query.id);
        let info = query.info(state, error);
        if let Some(sqlstate) = info.sqlstate {
            shared.refused.count(sqlstate);
        }
        let counter = match state {
            QueryState::Failed => &shared.failed,
            QueryState::Cancelled => &shared.cancelled,
            _ => &shared.finished,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        shared.rows.fetch_add(info.rows, Ordering::Relaxed);
        shared.bytes_read.fetch_add(info.bytes_read, Ordering::Relaxed);
        shared.requests.fetch_add(info.requests, Ordering::Relaxed);
        if state == QueryState::Finished {
            shared.latency.record(info.elapsed_us);
            shared.paths.record(info.path, info.elapsed_us, info.wait_us);
            let pool = query.pool.now();
            pool.latency.record(info.elapsed_us);
            if let Some(wait_us) = info.wait_us {
                pool.waits.record(wait_us);
            }
        }
        shared.shapes.add(
            &query.sql,
            query.fingerprint.as_deref(),
            Ended {
                failed: state != QueryState::Finished,
                path: info.path,
                rows: info.rows,
                bytes_read: info.bytes_read,
                requests: info.requests,
                spent: info.spent,
                elapsed_us: info.elapsed_us,
            },
        );
        let ended = journal::Ended {
            failed: state != QueryState::Finished,
            elapsed_us: info.elapsed_us,
            at_unix_ms: info.started_unix_ms.unsigned_abs() + info.elapsed_us / 1000,
        };
        shared.journal.offer(ended, || info.clone());
        let execution = query.progress.execution().ended(query.started.elapsed());
        let mut recent = shared.recent.lock();
        if recent.len() == RECENT_MAX {
            recent.pop_front();
        }
        recent.push_back(Recent { info, execution });
    }
}

impl Running {
    /// A query that is in no registry yet.
    fn new(sql: &str, asker: Asker<'_>, pool: Arc<Pool>) -> Self {
        let sql = without_secrets(cut(sql));
        let has_secret = matches!(sql, Cow::Owned(_));
        Self {
            id: 0,
            sql: sql.into_owned(),
            has_secret,
            fingerprint: None,
            user: asker.user.to_owned(),
            protocol: asker.protocol,
            backend_id: asker.backend_id,
            started_unix_ms: clock::unix_ms(),
            started: clock::monotonic(),
            progress: Arc::default(),
            cancel: CancellationToken::new(),
            pool: QueryPool::new(pool),
            is_planning: false,
            reason: Mutex::default(),
        }
    }

    fn state(&self) -> QueryState {
        match self.progress.queued.load(Ordering::Relaxed) {
            _ if self.is_planning => QueryState::Planning,
            true => QueryState::Queued,
            false => QueryState::Running,
        }
    }

    /// Whether it may go on; it may be in another pool then.
    ///
    /// # Errors
    /// Why it must end.
    fn check(&self, pools: &Pools) -> Result<(), Error> {
        let done = self.progress.done();
        let spent = QueryCounters {
            elapsed: self.started.elapsed(),
            executing: self.progress.execution_time(),
            bytes_read: done.bytes_read,
        };
        let pool = self.pool.now();
        pool.check(spent.elapsed, spent.bytes_read)?;
        pool.check_elsewhere(self.progress.memory_elsewhere())?;
        match pools.triggered(&pool, &spent)? {
            // What waits or is planned is moved once it runs.
            Some(to) if self.state() == QueryState::Running => self.move_to(&pool, &to),
            _ => Ok(()),
        }
    }

    fn move_to(&self, from: &Pool, to: &Arc<Pool>) -> Result<(), Error> {
        if self.pool.try_move(to) {
            tracing::info!(
                query = self.id,
                from = from.options.name,
                to = to.options.name,
                "a trigger moved a query"
            );
            return Ok(());
        }
        Err(from.killed(&format!("a trigger moves it to pool {}, which is full", to.options.name)))
    }

    /// The error of a query that was cancelled.
    fn cancelled_error(&self) -> Error {
        self.reason.lock().take().unwrap_or_else(|| {
            Error::new(ErrorKind::Cancelled, "canceling statement due to user request")
                .with_sqlstate("57014")
        })
    }

    fn info(&self, state: QueryState, error: Option<&Error>) -> QueryInfo {
        let done = self.progress.done();
        QueryInfo {
            id: self.id,
            sql: self.sql.clone(),
            user: self.user.clone(),
            protocol: self.protocol,
            backend_id: self.backend_id,
            state,
            started_unix_ms: self.started_unix_ms,
            elapsed_us: u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX),
            rows: self.progress.rows.load(Ordering::Relaxed),
            bytes_read: done.bytes_read,
            requests: done.requests,
            spent: self.progress.spent(),
            path: self.progress.path(),
            wait_us: self.progress.wait_us(),
            pool: self.pool.now().options.name.clone(),
            memory_bytes: done.memory_bytes,
            memory_peak_bytes: done.memory_peak_bytes,
            progress: self.progress.share(),
            error: error.map(|error| match self.has_secret {
                true => "… (the statement has a password)".to_owned(),
                false => error.message_with_sources(),
            }),
            sqlstate: error.map(Error::sqlstate),
        }
    }
}

/// Ends its query in the registry exactly once, at the latest when dropped.
pub(crate) struct QueryGuard {
    registry: QueryRegistry,
    query: Arc<Running>,
    ended: bool,
}

impl QueryGuard {
    pub(crate) fn id(&self) -> u64 {
        self.query.id
    }

    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.query.progress
    }

    pub(crate) fn cancel_token(&self) -> &CancellationToken {
        &self.query.cancel
    }

    /// Where its requests to object stores are counted.
    pub(crate) fn charge(&self) -> Arc<Charge> {
        Arc::clone(&self.query.progress.charge)
    }

    /// Whose slots, queue and memory it shares.
    pub(crate) fn pool(&self) -> &Arc<QueryPool> {
        &self.query.pool
    }

    /// The error of a query that was cancelled.
    pub(crate) fn cancelled_error(&self) -> Error {
        self.query.cancelled_error()
    }

    /// Does a part of the query: what it asks of stores is counted for it, and it stops when the query is
    /// cancelled.
    ///
    /// # Errors
    /// Those of `work`; why it was cancelled.
    pub(crate) async fn run<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.query.cancel.cancelled() => Err(self.cancelled_error()),
            result = self.run_to_its_end(work) => result,
        }
    }

    /// Does a part of the query that cannot be called back once it has begun, such as a commit.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) async fn run_to_its_end<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        stoa_store::charged(self.charge(), work).await
    }

    /// Ends the query with what it came to.
    ///
    /// # Errors
    /// That of `result`.
    pub(crate) fn ended<T>(mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.end(result.as_ref().map(|_| ()));
        result
    }

    /// Ends a query that went well and wrote so many rows.
    pub(crate) fn ended_after(mut self, rows: u64) {
        self.progress().rows.fetch_max(rows, Ordering::Relaxed);
        self.end(Ok(()));
    }

    /// Ends a query that wrote rows.
    ///
    /// # Errors
    /// That of `result`.
    pub(crate) fn ended_with_rows(self, result: Result<u64, Error>) -> Result<u64, Error> {
        if let Ok(rows) = &result {
            self.progress().rows.store(*rows, Ordering::Relaxed);
        }
        self.ended(result)
    }

    /// Ends the query; later calls change nothing.
    pub(crate) fn end(&mut self, outcome: Result<(), &Error>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let state = match &outcome {
            Ok(()) => QueryState::Finished,
            Err(error) if error.kind() == ErrorKind::Cancelled => QueryState::Cancelled,
            Err(_) => QueryState::Failed,
        };
        self.registry.end(&self.query, state, outcome.err());
    }
}

impl Drop for QueryGuard {
    fn drop(&mut self) {
        self.end(Ok(()));
    }
}

/// Shows a statement that is planned, as long as it is there.
pub(crate) struct PlanningGuard {
    registry: QueryRegistry,
    query: Arc<Running>,
}

impl PlanningGuard {
    /// Waits until somebody ends the statement; why.
    pub(crate) async fn cancelled(&self) -> Error {
        self.query.cancel.cancelled().await;
        self.query.cancelled_error()
    }
}

impl Drop for PlanningGuard {
    fn drop(&mut self) {
        self.registry.0.running.lock().remove(&self.query.id);
    }
}

fn no_plan(query: &QueryInfo) -> Error {
    let why = match query.state {
        QueryState::Planning | QueryState::Queued | QueryState::Running => {
            "it is being planned, or needs no plan"
        }
        _ => {
            "it needed none, was given a kept answer, or ended too quickly for its plan to be kept"
        }
    };
    Error::not_found(format!("query {} has no plan: {why}", query.id))
        .with_sqlstate("42704")
        .with_hint("EXPLAIN ANALYZE runs a statement and shows its plan with times")
}

fn cut(sql: &str) -> &str {
    let mut end = sql.len().min(SQL_TEXT_MAX);
    while !sql.is_char_boundary(end) {
        end -= 1;
    }
    &sql[..end]
}

#[cfg(test)]
mod tests {
    const ME: Asker<'_> = Asker { user: "me", protocol: "http", backend_id: 1 };

    use super::*;

    #[test]
    fn a_query_ends_once_and_is_remembered() {
        let registry = QueryRegistry::default();
        let pool = Pools::new(&[], &[], 1, 1, 1000).unwrap().find("me", "", "http");
        let mut guard = registry.start("SELECT 1", None, ME, pool);
        assert_eq!(registry.running_count(), 1);
        guard.end(Err(&Error::invalid("no")));
        drop(guard);
        assert_eq!(registry.running_count(), 0);
        let totals = registry.totals();
        assert_eq!((totals.started, totals.finished, totals.failed), (1, 0, 1));
        assert_eq!(registry.recent()[0].error.as_deref(), Some("no"));
    }

    #[test]
    fn what_is_planned_is_shown_and_leaves_no_trace() {
        let registry = QueryRegistry::default();
        let pool = Pools::new(&[], &[], 1, 1, 1000).unwrap().find("me", "", "http");
        let planning = registry.start_planning("SELECT 1", ME, pool);
        let shown = registry.running().remove(0);
        assert_eq!((shown.state.name(), shown.sql.as_str()), ("planning", "SELECT 1"));
        assert!(registry.cancel(shown.id));
        let error = futures::executor::block_on(planning.cancelled());
        assert_eq!(error.sqlstate(), "57014");
        drop(planning);
        assert_eq!(registry.running_count() + registry.recent().len(), 0);
        assert_eq!(registry.totals(), Totals::default());
    }

    #[test]
    fn a_statement_counts_by_the_fingerprint_it_came_with() {
        let registry = QueryRegistry::default();
        let pool = || Pools::new(&[], &[], 1, 1, 1000).unwrap().find("me", "", "http");
        let run = |text: &str, fingerprint: Option<&SharedFingerprint>| {
            drop(registry.start(text, fingerprint, ME, pool()));
            let all = registry.shapes();
            all.iter().map(|shape| shape.sql.to_string()).collect::<Vec<_>>()
        };
        // Another one than the text's own: the registry takes none itself.
        let other = Fingerprint::shared("SELECT b FROM other WHERE c = 1").unwrap();
        let shapes = run("SELECT a FROM t WHERE b = 1", Some(&other));
        assert_eq!(shapes, ["SELECT b FROM other WHERE c = $L0i"]);
        // No text of it was kept.
        assert_eq!(Arc::strong_count(&other), 1);
        // What is hidden in the text is hidden in its shape.
        let text = "SELECT password = \"brush\" FROM t";
        let shapes = run(text, Fingerprint::shared(text).as_ref());
        assert!(shapes.len() == 2 && !shapes.concat().contains("brush"), "{shapes:?}");
    }

    #[test]
    fn neither_text_nor_error_nor_shape_shows_a_password() {
        let registry = QueryRegistry::default();
        let pool = || Pools::new(&[], &[], 1, 1, 1000).unwrap().find("me", "", "http");
        for text in [
            "EXPLAIN ALTER ROLE ann PASSWORD 'brush'",
            "PREPARE p AS ALTER ROLE ann PASSWORD $$brush$$",
            "CREATE USER ann IDENTIFIED BY 'brush'",
        ] {
            let mut guard = registry.start(text, None, ME, pool());
            assert!(!registry.running()[0].sql.contains("brush"), "{text}");
            guard.end(Err(&Error::invalid("syntax error, found: 'brush'")));
        }
        let seen = format!("{:?} {:?}", registry.recent(), registry.shapes());
        assert!(seen.contains("ann") && !seen.contains("brush"), "{seen}");
    }

    #[test]
    fn long_statements_are_cut_between_characters() {
        let text = "ä".repeat(SQL_TEXT_MAX);
        assert!(cut(&text).len() <= SQL_TEXT_MAX);
    }
}
