//! A client's session: parse, prepare, execute.
//!
//! In: text and parameters. Out: [`Outcome`]s. **Invariants:** each execution reads, for every
//! table it names, one snapshot: the one that is current when it starts. A statement prepared
//! earlier sees what was committed since, and means the tables that have its names now; it fails
//! clearly if that changes the columns of its answer.

mod allowed;
mod block;
mod options;
mod prepare;
mod renew;
mod run;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use futures::StreamExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use stoa_catalog::TableIdent;
use stoa_error::{Error, ErrorKind, Result};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::access::Caller;
use crate::dialect::{self, name_parts};
use crate::engine::{DATABASE, Engine};
use crate::memory;
use crate::outcome::{Completion, Outcome, RowStream};
use crate::pg_catalog::{self, KnownTables};
use crate::pools::Pool;
use crate::registry::QueryGuard;
use crate::results;
use crate::seen::SeenCatalogs;
use crate::settings::Settings;
use crate::statement::{Statement, StatementKind};
use crate::stop;
use crate::transaction::Block;

pub(crate) use allowed::check as check_plan;
pub(crate) use options::path_of;
pub use prepare::Prepared;
pub(crate) use run::{Ran, count_written};

/// Who asks, and how.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Name of the user, as the client gave it.
    pub user: String,
    /// `postgresql`, `http`, `flight`, `shell`.
    pub protocol: &'static str,
    /// Name of the client program.
    pub application: String,
    /// Namespace of names without one; [`DEFAULT_NAMESPACE`] if `None`.
    pub namespace: Option<String>,
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
            is_trusted: false,
        }
    }
}

/// A client's session. Statements of one session may run at the same time.
pub struct Session {
    /// Itself, for work on other threads.
    own: Weak<Session>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) options: SessionOptions,
    pub(crate) settings: Mutex<Settings>,
    /// Who asks, as far as rights go.
    pub(crate) caller: Arc<Caller>,
    /// The tables of which functions like `has_table_privilege` know.
    known_tables: Arc<KnownTables>,
    /// The transaction that the session is in, if it is.
    pub(crate) block: Arc<Block>,
    planner: Mutex<Planner>,
    running: Mutex<Vec<CancellationToken>>,
    /// Wakes who waits for a statement to be parsed or planned when that is cancelled.
    planning_cancelled: Notify,
    /// Whose slots, queue and memory its statements share.
    pool: Mutex<Arc<Pool>>,
    /// Whether transactions refuse writes unless they say otherwise.
    read_only: AtomicBool,
    /// Whether reports that are recognised skip the planner.
    short_path: AtomicBool,
    /// Whether plans are used again with other values.
    plan_templates: AtomicBool,
}

/// The engine's state for this session, and what is derived from it.
#[derive(Clone)]
struct Planner {
    state: Arc<SessionState>,
    tasks: Arc<TaskContext>,
    /// What templates and answers depend on: the options that differ from the engine's own, namespace
    /// and time zone among them.
    context: Arc<str>,
    /// Whether only namespace and time zone differ, which is what the short path knows of.
    is_plain: bool,
}

/// Bytes of texts that are parsed where they arrive, if they are not deep either.
const SHORT_TEXT: usize = 4096;

/// Tokens of a session's latest statements that are kept for [`Session::cancel`].
const RUNNING_MAX: usize = 16;

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, options: SessionOptions) -> Arc<Self> {
        let block = Arc::new(Block::new(Arc::clone(engine.memory_pool())));
        Self::within(engine, options, block)
    }

    /// A session whose writes belong to a transaction of another one.
    pub(crate) fn within(
        engine: Arc<Engine>,
        options: SessionOptions,
        block: Arc<Block>,
    ) -> Arc<Self> {
        let mut settings = Settings::default();
        let _ = settings.begin("application_name", &options.application);
        let mut state = engine.new_state();
        if let Some(namespace) = &options.namespace {
            let _ = settings.begin("search_path", &path_of(namespace));
            state.config_mut().options_mut().catalog.default_schema.clone_from(namespace);
        }
        let rights = Arc::clone(&engine.rights);
        let caller = Arc::new(Caller::new(rights, &options.user, options.is_trusted));
        // Plans take it along to where tables are read.
        state.config_mut().set_extension(Arc::clone(&caller));
        state.config_mut().set_extension(Arc::clone(&block));
        // A session without it would say that there is no such function.
        let _ = pg_catalog::set_user(&mut state, &options.user);
        let known_tables = Arc::<KnownTables>::default();
        if caller.is_asked() {
            let all = Arc::clone(state.catalog_list());
            state.register_catalog_list(Arc::new(SeenCatalogs::new(all, Arc::clone(&caller))));
            let _ = pg_catalog::set_rights(&mut state, &caller, &known_tables);
        }
        let pool = engine.pools.find(&options.user, &options.application, options.protocol);
        Arc::new_cyclic(|own| Self {
            own: Weak::clone(own),
            pool: Mutex::new(pool),
            planner: Mutex::new(Planner::new(state, &engine)),
            engine,
            options,
            caller,
            known_tables,
            block,
            settings: Mutex::new(settings),
            running: Mutex::default(),
            planning_cancelled: Notify::new(),
            read_only: AtomicBool::new(false),
            short_path: AtomicBool::new(true),
            plan_templates: AtomicBool::new(true),
        })
    }

    /// Parses a text of any number of statements; an empty text gives one empty statement. Long ones are
    /// parsed on the threads that plan.
    ///
    /// # Errors
    /// Syntax errors (42601), with their place; texts that are too long (54000) or too complex (54001);
    /// 53200 where a long text takes more memory than there is; 57014 as for [`Session::prepare`].
    pub async fn parse(&self, sql: &str) -> Result<Vec<Statement>> {
        let context = self.options_context();
        if self.takes_short_path()
            && let Some(report) = self.engine.templates.find(&context, sql)
        {
            let text = sql.trim().trim_end_matches(';').to_owned();
            return Ok(vec![Statement { text, kind: StatementKind::Report(report), memory: None }]);
        }
        if self.plan_templates.load(Ordering::Relaxed)
            && let Some(lifted) = self.engine.plan_templates.find(&context, sql)
        {
            let text = sql.trim().trim_end_matches(';').to_owned();
            return Ok(vec![Statement { text, kind: StatementKind::Lifted(lifted), memory: None }]);
        }
        self.parse_text(sql).await.inspect_err(|error| {
            self.record_failure(sql, error);
        })
    }

    async fn parse_text(&self, sql: &str) -> Result<Vec<Statement>> {
        if sql.len() <= SHORT_TEXT && dialect::measure(sql)?.is_small {
            return dialect::parse(sql);
        }
        let memory = memory::of_text(self.engine.memory_pool(), sql)?;
        let text = sql.to_owned();
        let mut statements = self.on_planners(async move { dialect::parse(&text) }).await?;
        statements.iter_mut().for_each(|statement| statement.memory.clone_from(&memory));
        Ok(statements)
    }

    /// Plans a statement, on the threads for that. `parameter_types` are those the client declared;
    /// missing ones are inferred. Who goes away meanwhile, or is cancelled, does not wait.
    ///
    /// # Errors
    /// Unknown tables (42P01), columns (42703), functions (42883), and what else planning finds; 57014
    /// where it was cancelled, or took longer than `statement_timeout`.
    pub async fn prepare(
        &self,
        statement: Statement,
        parameter_types: Vec<Option<DataType>>,
    ) -> Result<Prepared> {
        // Taken before: what changes meanwhile makes it to be planned again.
        let context = self.options_context();
        if self.needs_no_plan(&statement).await {
            let known = self.must_know_of(&statement).await;
            known.inspect_err(|error| self.record_failure(&statement.text, error))?;
            return Ok(Prepared::without_plan(statement, Some(context)));
        }
        let text = statement.text.clone();
        let session = self.shared()?;
        // Large futures are kept off the stacks of those who wait for them, and their types out of the
        // types of those: whether something so deep is `Send` takes the compiler minutes to find out.
        let plan: BoxFuture<'static, Result<Prepared>> =
            Box::pin(async move { session.plan(statement, parameter_types).await });
        let planned = self.on_planners(plan);
        planned.await.inspect_err(|error| self.record_failure(&text, error))
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
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut cancelled => Err(stop::stopped()),
            result = self.engine.planners.run(stoa_store::also_charged(work)) => result?,
            () = passed => {
                Err(Error::new(ErrorKind::Timeout, "canceling statement due to statement timeout")
                    .with_sqlstate("57014")
                    .with_hint("raise statement_timeout, or set it to 0 for no limit"))
            }
        }
    }

    /// The setting `statement_timeout`; `None` is no limit.
    fn statement_timeout(&self) -> Option<Duration> {
        let text = self.settings.lock().get("statement_timeout").ok()?;
        let milliseconds: u64 = text.parse().ok()?;
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// Itself.
    ///
    /// # Errors
    /// None while somebody has it.
    pub(crate) fn shared(&self) -> Result<Arc<Self>> {
        self.own.upgrade().ok_or_else(|| Error::internal("a session ended while it was used"))
    }

    /// Registers a statement of this session.
    pub(crate) fn start_query(&self, text: &str) -> QueryGuard {
        let (queries, pool) = (self.engine.queries(), Arc::clone(&self.pool.lock()));
        queries.start(text, &self.options.user, self.options.protocol, pool)
    }

    /// A statement that fails before it runs shows among the ended queries all the same.
    fn record_failure(&self, text: &str, error: &Error) {
        self.block.fail();
        self.start_query(text).end(Err(error));
    }

    /// What templates depend on, beside tables.
    pub(crate) fn options_context(&self) -> Arc<str> {
        Arc::clone(&self.planner.lock().context)
    }

    /// Executes a prepared statement. Values are cast to the parameters' types.
    ///
    /// # Errors
    /// A wrong number of parameters (08P01), values that do not fit (22P02), and what execution
    /// finds before the first row. Later errors come with the rows.
    pub async fn execute(
        &self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
    ) -> Result<Outcome> {
        if self.engine.is_closing() {
            return Err(Error::unavailable("the server is shutting down").with_sqlstate("57P01"));
        }
        self.caller.refresh().await?;
        let mut guard = self.start_query(prepared.statement.text());
        self.remember(guard.cancel_token().clone());
        let (cancel, charge) = (guard.cancel_token().clone(), guard.charge());
        let run: BoxFuture<'_, Result<Ran>> = Box::pin(self.run(prepared, parameters, &mut guard));
        let run = stoa_store::charged(charge, run);
        let result = match prepared.statement.transaction() {
            // What was begun to be committed cannot be called back.
            Some(_) => Some(run.await),
            None => tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                result = run => Some(result),
            },
        };
        let result = result.unwrap_or_else(|| Err(guard.cancelled_error()));
        match result {
            Ok(Ran::Stream(stream)) => {
                let block = self.block.is_open().then(|| Arc::clone(&self.block));
                Ok(Outcome::Rows(RowStream::new(stream, guard, block)))
            }
            Ok(Ran::Done(completion)) => {
                guard.end(Ok(()));
                Ok(Outcome::Done(completion))
            }
            Ok(Ran::CopyIn(copy)) => Ok(Outcome::CopyIn(copy.with_guard(guard))),
            Err(error) => {
                self.block.fail();
                guard.end(Err(&error));
                Err(error)
            }
        }
    }

    /// Parses, plans and executes one statement.
    ///
    /// # Errors
    /// As [`Session::parse`], [`Session::prepare`] and [`Session::execute`].
    pub async fn run_one(&self, statement: Statement) -> Result<Outcome> {
        let prepared = self.prepare(statement, Vec::new()).await?;
        self.execute(&prepared, Vec::new()).await
    }

    /// Runs all statements of a text one after another and returns the last one's outcome; rows
    /// of those before are read and dropped.
    ///
    /// # Errors
    /// The first error; statements before it have taken effect.
    pub async fn sql(&self, sql: &str) -> Result<Outcome> {
        let mut last = Outcome::Done(Completion::of(""));
        for statement in self.parse(sql).await? {
            if let Outcome::Rows(mut rows) = last {
                while let Some(batch) = rows.next().await {
                    batch?;
                }
            }
            last = self.run_one(statement).await?;
        }
        Ok(last)
    }

    /// Cancels what this session runs now.
    pub fn cancel(&self) {
        self.planning_cancelled.notify_waiters();
        self.running.lock().drain(..).for_each(|token| token.cancel());
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

    /// The namespace of names without one.
    pub fn namespace(&self) -> String {
        self.planner.lock().state.config_options().catalog.default_schema.clone()
    }

    /// The table that `name` means in this session.
    pub(crate) fn table_ident(
        &self,
        name: &datafusion::sql::sqlparser::ast::ObjectName,
    ) -> Result<TableIdent> {
        let mut parts = name_parts(name)?;
        if parts.len() == 3 && parts[0] == DATABASE {
            parts.remove(0);
        }
        match parts.as_slice() {
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

    fn planner(&self) -> Planner {
        self.planner.lock().clone()
    }

    /// Whether reports that are recognised skip the planner: not under options that it does not know.
    pub(crate) fn takes_short_path(&self) -> bool {
        self.short_path.load(Ordering::Relaxed) && self.planner.lock().is_plain
    }

    pub(crate) fn remember(&self, token: CancellationToken) {
        let mut running = self.running.lock();
        if running.len() == RUNNING_MAX {
            running.remove(0);
        }
        running.push(token);
    }
}

impl Planner {
    fn new(state: SessionState, engine: &Engine) -> Self {
        let tasks = state.task_ctx();
        let (context, is_plain) =
            options::difference(engine.base_options(), state.config_options());
        Self { state: Arc::new(state), tasks, context: context.into(), is_plain }
    }

    /// The state for a plan; one that asks for the time knows when it started.
    fn state_for(&self, plan: &LogicalPlan) -> Arc<SessionState> {
        if !results::reads_clock(plan) {
            return Arc::clone(&self.state);
        }
        let mut state = (*self.state).clone();
        state.mark_start_execution();
        Arc::new(state)
    }
}
