//! A client's session: who asks, with which settings, in which transaction, and how names are read.
//!
//! In: who asks. Out: what statements need of that: the planner's state, rights, tables as they are to be
//! read. **Invariant:** options that change what a statement means are part of `context`, by which plans and
//! answers are shared.
//!
//! Not here: from a text to an answer (`dispatch`), what each statement does (`statements`).

mod backend_functions;
mod decorated_calls;
mod ending;
mod options;
pub(crate) mod outcome;
mod own_functions;
mod rights;
mod sleep;
pub(crate) mod statement;
mod temporary;
mod transaction;
pub(crate) mod views;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;
use stoa_catalog::TableIdent;
use stoa_error::{Error, ErrorKind, Result};
use stoa_pg_catalog::KnownTables;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::access::{Caller, Gate};
use crate::engine::{DATABASE, Engine, EngineOptions, Handles};
use crate::reuse::{Reuse, results};
use crate::run::advisory::{LockSpan, SessionLocks};
use crate::run::backends::{Backend, Ends, SessionInfo, SharedByAll};
use crate::run::kept::{Kept, KeptBySession};
use crate::run::memory;
use crate::run::pool::Pool;
use crate::run::pools::Pools;
use crate::run::registry::{Asker, PlanningGuard, QueryGuard};
use crate::run::runner::Runner;
use crate::run::stop;
use crate::scripts::SessionScripts;
use crate::settings::Settings;
use crate::tables::data::Data;
use crate::tables::seen::SeenCatalogs;
use crate::tables::temporary::Temporary;
use crate::tables::transaction::Block;
use stoa_sql::fingerprint::SharedFingerprint;
use stoa_sql::{name_parts, path_of};

/// Who asks, and how.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Name of the user, as the client gave it.
    pub user: String,
    /// `postgresql`, `http`, `flight`, `hive`, `shell`.
    pub protocol: &'static str,
    /// Name of the client program.
    pub application: String,
    /// Namespace of names without one; [`DEFAULT_NAMESPACE`] if `None`.
    pub namespace: Option<String>,
    /// The pool of the active resource plan that it asks for.
    pub pool: Option<String>,
    /// Whether everything is allowed: for work of the server itself.
    pub is_trusted: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            user: "stoa".to_owned(),
            protocol: "shell",
            application: String::new(),
            namespace: None,
            pool: None,
            is_trusted: false,
        }
    }
}

/// The pool of a session, as long as nobody changes who goes where.
struct SessionPool {
    application: String,
    generation: u64,
    pool: Arc<Pool>,
}

impl SessionPool {
    fn find(pools: &Pools, options: &SessionOptions, application: &str) -> Self {
        // Before: what changes meanwhile is found by the next statement.
        let generation = pools.generation();
        let pool = {
            let SessionOptions { user, protocol, pool, .. } = options;
            pools.find_for(user, application, protocol, pool.as_deref())
        };
        Self { application: application.to_owned(), generation, pool }
    }
}

/// A client's session. Statements of one session may run at the same time.
pub struct Session {
    /// Itself, for work on other threads.
    itself: Weak<Session>,
    /// What the server knows it by.
    own: Arc<Identity>,
    /// Which lives as long as this, and is asked for what is of all sessions. Statements have the handles below.
    engine: Arc<Engine>,
    pub(crate) data: Arc<Data>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) runner: Arc<Runner>,
    pub(crate) reuse: Arc<Reuse>,
    pub(crate) options: SessionOptions,
    pub(crate) settings: Mutex<Settings>,
    /// What the settings will be when the transaction ends, if it has changed some.
    block_settings: Mutex<Option<options::BlockSettings>>,
    /// Who asks, as far as rights go.
    pub(crate) caller: Arc<Caller>,
    /// The tables of which functions like `has_table_privilege` know.
    pub(crate) known_tables: Arc<KnownTables>,
    /// The transaction that the session is in, if it is.
    pub(crate) block: Arc<Block>,
    /// Its temporary tables.
    temporary: Arc<Temporary>,
    /// The files that it has added for scripts.
    pub(crate) scripts: Arc<SessionScripts>,
    pub(crate) planner: Mutex<Planner>,
    running: Mutex<Vec<CancellationToken>>,
    /// What its client keeps from call to call.
    kept: Arc<KeptBySession>,
    /// Wakes who waits for a statement to be parsed or planned when that is cancelled.
    planning_cancelled: Notify,
    /// Whose slots, queue and memory its statements share.
    /// Where its statements go.
    pool: Mutex<SessionPool>,
    /// Whether transactions refuse writes unless they say otherwise.
    pub(crate) read_only: AtomicBool,
    /// Whether reports that are recognised skip the planner.
    pub(crate) short_path: AtomicBool,
    /// Whether plans are used again with other values.
    pub(crate) plan_templates: AtomicBool,
    /// Whether its statements are HiveQL.
    speaks_hive: AtomicBool,
}

/// What a server knows a session by, and sessions within its transactions.
struct Identity {
    backend: Backend,
    locks: SessionLocks,
    /// Cancelled when the session is to end.
    ends: CancellationToken,
    /// When the server started, microseconds since 1970-01-01 UTC.
    started_unix_us: i64,
    /// When the session began, and when its latest statement began, milliseconds since 1970-01-01 UTC.
    opened_unix_ms: i64,
    used_unix_ms: AtomicI64,
}

impl Identity {
    fn new(shared: &SharedByAll, session: &Weak<Session>) -> Arc<Self> {
        let backend = shared.enter(Weak::clone(session) as Weak<dyn Ends>);
        let locks = SessionLocks::new(shared.locks(), backend.id());
        let started_unix_us = shared.started_unix_us();
        let opened_unix_ms = stoa_env::clock::unix_ms();
        let used_unix_ms = AtomicI64::new(opened_unix_ms);
        let ends = CancellationToken::new();
        Arc::new(Self { backend, locks, ends, started_unix_us, opened_unix_ms, used_unix_ms })
    }
}

/// The engine's state for this session, and what is derived from it.
#[derive(Clone)]
pub(crate) struct Planner {
    pub(crate) state: Arc<SessionState>,
    pub(crate) tasks: Arc<TaskContext>,
    /// What templates and answers depend on: the options that differ from the engine's own, namespace
    /// and time zone among them.
    pub(crate) context: Arc<str>,
    /// Whether only namespace and time zone differ, which is what the short path knows of.
    is_plain: bool,
}

/// What a session is made of that writes within the transaction of another one. Most such work ends without a session, and making
/// one costs as much as writing some hundred rows.
pub(crate) struct WithinTransaction {
    engine: Arc<Engine>,
    options: SessionOptions,
    block: Arc<Block>,
    temporary: Arc<Temporary>,
    own: Arc<Identity>,
}

impl WithinTransaction {
    /// Makes it. Its user has the rights of this moment.
    pub(crate) fn session(self) -> Arc<Session> {
        let Self { engine, options, block, temporary, own } = self;
        Session::within(engine, options, block, temporary, Some(own))
    }
}

/// Tokens of a session's latest statements that are kept for [`Session::cancel`].
const RUNNING_MAX: usize = 16;

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, options: SessionOptions) -> Arc<Self> {
        let block = Arc::new(Block::new(Arc::clone(engine.memory_pool())));
        let temporary = Arc::new(temporary::none(&engine));
        Self::within(engine, options, block, temporary, None)
    }

    /// What a session like this one as it began is made of, whose writes belong to the transaction of this one.
    pub(crate) fn within_its_transaction(&self) -> WithinTransaction {
        WithinTransaction {
            engine: Arc::clone(&self.engine),
            options: self.options.clone(),
            block: Arc::clone(&self.block),
            temporary: Arc::clone(&self.temporary),
            own: Arc::clone(&self.own),
        }
    }

    fn within(
        engine: Arc<Engine>,
        options: SessionOptions,
        block: Arc<Block>,
        temporary: Arc<Temporary>,
        identity: Option<Arc<Identity>>,
    ) -> Arc<Self> {
        let mut settings = Settings::default();
        let _ = settings.begin("application_name", &options.application);
        let mut state = engine.new_state();
        if let Some(namespace) = &options.namespace {
            let _ = settings.begin("search_path", &path_of(namespace));
            state.config_mut().options_mut().catalog.default_schema.clone_from(namespace);
        }
        let Handles { data, gate, runner, reuse } = engine.handles().clone();
        let caller = Arc::new(gate.caller(&options.user, options.is_trusted));
        // Plans take it along to where tables are read.
        state.config_mut().set_extension(Arc::clone(&caller));
        state.config_mut().set_extension(Arc::clone(&block));
        state.config_mut().set_extension(Arc::clone(&temporary));
        let scripts = Arc::new(SessionScripts::new(state.config(), &caller));
        state.config_mut().set_extension(Arc::clone(&scripts));
        let known_tables = Arc::<KnownTables>::default();
        if caller.is_asked() {
            let all = Arc::clone(state.catalog_list());
            state.register_catalog_list(Arc::new(SeenCatalogs::new(all, Arc::clone(&caller))));
        }
        let pool = SessionPool::find(runner.pools(), &options, &options.application);
        Arc::new_cyclic(|itself| {
            own_functions::install(&mut state, itself, &options, &caller, &known_tables);
            Self {
                itself: Weak::clone(itself),
                own: identity.unwrap_or_else(|| Identity::new(engine.shared(), itself)),
                pool: Mutex::new(pool),
                planner: Mutex::new(Planner::new(state, &engine).with_temporary(&temporary)),
                kept: KeptBySession::new(runner.kept()),
                engine,
                data,
                gate,
                runner,
                reuse,
                options,
                caller,
                known_tables,
                block,
                temporary,
                scripts,
                settings: Mutex::new(settings),
                block_settings: Mutex::default(),
                running: Mutex::default(),
                planning_cancelled: Notify::new(),
                read_only: AtomicBool::new(false),
                short_path: AtomicBool::new(true),
                plan_templates: AtomicBool::new(true),
                speaks_hive: AtomicBool::new(false),
            }
        })
    }

    /// Waits for what `work` comes to on the threads that parse and plan.
    ///
    /// # Errors
    /// Its own; 57014 where the session is cancelled, or its `statement_timeout` has passed.
    pub(crate) async fn on_planners<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let cancelled = self.planning_cancelled.notified();
        tokio::pin!(cancelled);
        // From here on; a cancel that came before was for another statement.
        cancelled.as_mut().enable();
        let limit = self.statement_timeout();
        let passed = async {
            match limit {
                Some(limit) => stoa_env::timer::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut cancelled => Err(stop::stopped()),
            result = self.runner.planners().run(stoa_store::also_charged(work)) => result?,
            () = passed => {
                Err(Error::new(ErrorKind::Timeout, "canceling statement due to statement timeout")
                    .with_sqlstate("57014")
                    .with_hint("raise statement_timeout, or set it to 0 for no limit"))
            }
        }
    }

    /// The setting `statement_timeout`; `None` is no limit.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.settings.lock().statement_timeout()
    }

    /// Itself.
    ///
    /// # Errors
    /// None while somebody has it.
    pub(crate) fn shared(&self) -> Result<Arc<Self>> {
        self.itself.upgrade().ok_or_else(|| Error::internal("a session ended while it was used"))
    }

    /// Refuses what begins while the engine ends.
    ///
    /// # Errors
    /// 57P01.
    pub(crate) fn must_be_open(&self) -> Result<()> {
        self.engine.must_be_open()
    }

    /// What the engine was opened with.
    pub(crate) fn engine_options(&self) -> &EngineOptions {
        self.engine.options()
    }

    /// Registers a statement of this session; `fingerprint` is that of its text, if it has one.
    pub(crate) fn start_query(
        &self,
        text: &str,
        fingerprint: Option<&SharedFingerprint>,
    ) -> QueryGuard {
        self.own.used_unix_ms.store(stoa_env::clock::unix_ms(), Ordering::Relaxed);
        let (queries, pool) = (self.runner.queries(), self.current_pool());
        queries.start(text, fingerprint, self.asker(), pool)
    }

    /// The text of the statement of this session that began last, without passwords.
    pub(crate) fn running_text(&self) -> Option<String> {
        self.runner.queries().newest_of(self.backend_id())
    }

    /// Shows a statement that is being parsed or planned.
    pub(crate) fn start_planning(&self, text: &str) -> PlanningGuard {
        let (queries, pool) = (self.runner.queries(), self.current_pool());
        queries.start_planning(text, self.asker(), pool)
    }

    /// Whether it may have the pool that it asks for, if it does.
    ///
    /// # Errors
    /// `Forbidden` (42501) if the active resource plan has no mapping of it to that pool.
    pub fn check_pool(&self) -> Result<()> {
        let SessionOptions { user, application, pool, .. } = &self.options;
        let Some(pool) = pool else { return Ok(()) };
        self.runner.pools().check_wish(user, application, pool)
    }

    /// The pool of its next statement, by the resource plan that is active now.
    fn current_pool(&self) -> Arc<Pool> {
        let pools = self.runner.pools();
        let mut own = self.pool.lock();
        if own.generation != pools.generation() {
            *own = SessionPool::find(pools, &self.options, &own.application);
        }
        Arc::clone(&own.pool)
    }

    fn asker(&self) -> Asker<'_> {
        let SessionOptions { user, protocol, .. } = &self.options;
        Asker { user, protocol, backend_id: self.backend_id() }
    }

    /// A statement that fails before it runs shows among the ended queries all the same.
    pub(crate) fn record_failure(
        &self,
        text: &str,
        fingerprint: Option<&SharedFingerprint>,
        error: &Error,
    ) {
        self.block.fail();
        self.start_query(text, fingerprint).end(Err(error));
    }

    /// What templates depend on, beside tables.
    pub(crate) fn options_context(&self) -> Arc<str> {
        Arc::clone(&self.planner.lock().context)
    }

    /// Counts about `bytes` bytes that the client keeps beyond this call: a prepared statement, values bound to
    /// one. They count until the receipt is dropped.
    ///
    /// # Errors
    /// The session, or all clients together, keep too much (53200).
    pub fn keep(&self, bytes: usize) -> Result<Kept> {
        self.kept.keep(bytes)
    }

    /// Cancels what this session runs now.
    pub fn cancel(&self) {
        self.planning_cancelled.notify_waiters();
        self.running.lock().drain(..).for_each(|token| token.cancel());
    }

    /// The process id that its client knows it by; no two open sessions of a server share one.
    pub fn backend_id(&self) -> i32 {
        self.own.backend.id()
    }

    /// Cancels what this session runs now, and asks its connection to close.
    pub fn terminate(&self) {
        self.own.ends.cancel();
        self.cancel();
    }

    /// Waits until the session is to end.
    pub async fn terminated(&self) {
        self.own.ends.cancelled().await;
    }

    /// Whether the session is to end.
    pub fn is_terminated(&self) -> bool {
        self.own.ends.is_cancelled()
    }

    /// Gives up all advisory locks, as `DISCARD ALL` does.
    pub(crate) fn unlock_all(&self) {
        self.own.locks.give_up_all(LockSpan::Session);
    }

    /// The value of a setting, as `SHOW` gives it.
    ///
    /// # Errors
    /// No such setting (42704).
    pub fn setting(&self, name: &str) -> Result<String> {
        match self.transaction_setting(name) {
            Some(value) => Ok(value),
            None => self.settings.lock().get(name),
        }
    }

    /// The session's time zone as the engine calls it: a name, or an offset to the east such as `+02:00`.
    pub fn engine_zone(&self) -> String {
        stoa_semantics::engine_zone(&self.setting("timezone").unwrap_or_default())
    }

    /// The namespace of names without one.
    pub fn namespace(&self) -> String {
        self.planner.lock().state.config_options().catalog.default_schema.clone()
    }

    /// The table that `name` means in this session.
    pub(crate) fn table_ident(
        &self,
        name: &datafusion::sql::sqlparser::ast::ObjectName,
    ) -> Result<TableIdent> {
        match self.temporary_ident(&self.parts_within(name)?)? {
            Some(own) => Ok(own),
            None => self.permanent_ident(name),
        }
    }

    /// The parts of a name without the database.
    fn parts_within(
        &self,
        name: &datafusion::sql::sqlparser::ast::ObjectName,
    ) -> Result<Vec<String>> {
        let mut parts = name_parts(name)?;
        if parts.len() == 3 && parts[0] == DATABASE {
            parts.remove(0);
        }
        Ok(parts)
    }

    /// The table that `name` means where none is temporary.
    fn permanent_ident(
        &self,
        name: &datafusion::sql::sqlparser::ast::ObjectName,
    ) -> Result<TableIdent> {
        match self.parts_within(name)?.as_slice() {
            [name] => Ok(TableIdent { namespace: self.namespace(), name: name.clone() }),
            [namespace, name] => {
                Ok(TableIdent { namespace: namespace.clone(), name: name.clone() })
            }
            _ => Err(Error::invalid(format!("{name} names no table of database {DATABASE}"))
                .with_sqlstate("3D000")
                .with_hint("write table, or namespace.table")),
        }
    }

    pub(crate) fn state(&self) -> Arc<SessionState> {
        Arc::clone(&self.planner.lock().state)
    }

    pub(crate) fn planner(&self) -> Planner {
        self.planner.lock().clone()
    }

    /// Whether reports that are recognised skip the planner: not under options that it does not know.
    pub(crate) fn takes_short_path(&self) -> bool {
        self.short_path.load(Ordering::Relaxed) && self.planner.lock().is_plain
    }

    /// Whether its statements are HiveQL (`SET dialect = hive`).
    pub fn speaks_hive(&self) -> bool {
        self.speaks_hive.load(Ordering::Relaxed)
    }

    pub(crate) fn remember(&self, token: CancellationToken) {
        let mut running = self.running.lock();
        if running.len() == RUNNING_MAX {
            running.remove(0);
        }
        running.push(token);
    }
}

impl Ends for Session {
    fn info(&self) -> SessionInfo {
        SessionInfo {
            process_id: self.own.backend.id(),
            user: self.options.user.clone(),
            protocol: self.options.protocol,
            opened_unix_ms: self.own.opened_unix_ms,
            used_unix_ms: self.own.used_unix_ms.load(Ordering::Relaxed),
        }
    }

    fn user(&self) -> &str {
        &self.options.user
    }

    fn cancel(&self) {
        Self::cancel(self);
    }

    fn terminate(&self) {
        Self::terminate(self);
    }
}

impl Planner {
    fn new(state: SessionState, engine: &Engine) -> Self {
        let tasks = memory::tasks_of(&state);
        let (context, is_plain) =
            options::difference(engine.base_options(), state.config_options());
        Self { state: Arc::new(state), tasks, context: context.into(), is_plain }
    }

    /// The state for a plan; one that asks for the time knows when it started.
    pub(crate) fn state_for(&self, plan: &LogicalPlan) -> Arc<SessionState> {
        if !results::reads_clock(plan) {
            return Arc::clone(&self.state);
        }
        let mut state = (*self.state).clone();
        state.mark_start_execution();
        Arc::new(state)
    }
}
