//! A client's session: parse, prepare, execute.
//!
//! In: text and parameters. Out: [`Outcome`]s. **Invariants:** each execution reads, for every
//! table it names, one snapshot: the one that is current when it starts. A statement prepared
//! earlier sees what was committed since, and fails clearly if the table's columns changed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, Statement as PlanStatement};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::ObjectName;
use futures::StreamExt;
use parking_lot::Mutex;
use stoa_catalog::TableIdent;
use stoa_env::clock;
use stoa_error::{Error, ErrorKind, Result};
use tokio_util::sync::CancellationToken;

use crate::cells;
use crate::dialect::{self, CopySource, CopyStatement, name_parts, normalise};
use crate::engine::{DATABASE, DEFAULT_NAMESPACE, Engine};
use crate::error::from_datafusion;
use crate::execution::{self, Work};
use crate::outcome::{Completion, Outcome, RowStream};
use crate::pools::Pool;
use crate::registry::QueryGuard;
use crate::report::{self, ReportStatement};
use crate::results::{self, Found};
use crate::settings::Settings;
use crate::statement::{Statement, StatementKind};
use crate::template::{self, PlanTemplate};
use crate::{ddl, dml, insert_values, maintain, memory, parameters, show, table};

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
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            user: "stoa".to_owned(),
            protocol: "shell",
            application: String::new(),
            namespace: None,
        }
    }
}

/// A client's session. Statements of one session may run at the same time.
pub struct Session {
    pub(crate) engine: Arc<Engine>,
    pub(crate) options: SessionOptions,
    pub(crate) settings: Mutex<Settings>,
    planner: Mutex<Planner>,
    running: Mutex<Vec<CancellationToken>>,
    /// Whose slots, queue and memory its statements share.
    pool: Mutex<Arc<Pool>>,
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
    /// What templates of plans depend on: namespace and time zone.
    context: Arc<str>,
}

/// Tokens of a session's latest statements that are kept for [`Session::cancel`].
const RUNNING_MAX: usize = 16;

/// A statement that was planned, to be executed any number of times.
#[derive(Clone)]
pub struct Prepared {
    statement: Statement,
    plan: Option<Arc<LogicalPlan>>,
    parameter_types: Vec<DataType>,
    schema: Option<SchemaRef>,
    /// For `INSERT OVERWRITE … PARTITION (…)`: the condition on the rows that go.
    overwritten: Option<Expr>,
    /// The report that it is, if it was recognised.
    pub(crate) report: Option<ReportStatement>,
    /// The report that it explains, and whether that is executed.
    explained: Option<(ReportStatement, bool)>,
    /// The plan of a statement that was recognised by its text, made when it is needed.
    long_way: Arc<tokio::sync::OnceCell<Prepared>>,
    /// Its plan with places for its parameters, if it is one that can be used again.
    template: Arc<OnceLock<Option<PlanTemplate>>>,
}

impl Prepared {
    fn unplanned(
        statement: Statement,
        parameter_types: Vec<DataType>,
        schema: Option<SchemaRef>,
    ) -> Self {
        Self {
            statement,
            plan: None,
            parameter_types,
            schema,
            overwritten: None,
            report: None,
            explained: None,
            long_way: Arc::default(),
            template: Arc::default(),
        }
    }

    /// The statement.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Types of the parameters `$1`, `$2`, …, as the plan wants them.
    pub fn parameter_types(&self) -> &[DataType] {
        &self.parameter_types
    }

    /// Columns of the result; `None` for a statement that gives no rows.
    pub fn schema(&self) -> Option<SchemaRef> {
        self.schema.clone()
    }
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, options: SessionOptions) -> Arc<Self> {
        let mut settings = Settings::default();
        let _ = settings.set("application_name", Some(&options.application));
        let mut state = engine.new_state();
        if let Some(namespace) = &options.namespace {
            let _ = settings.set("search_path", Some(namespace));
            state.config_mut().options_mut().catalog.default_schema.clone_from(namespace);
        }
        let pool = engine.pools.find(&options.user, &options.application, options.protocol);
        Arc::new(Self {
            pool: Mutex::new(pool),
            planner: Mutex::new(Planner::new(state)),
            engine,
            options,
            settings: Mutex::new(settings),
            running: Mutex::default(),
            short_path: AtomicBool::new(true),
            plan_templates: AtomicBool::new(true),
        })
    }

    /// Parses a text of any number of statements; an empty text gives one empty statement.
    ///
    /// # Errors
    /// Syntax errors (42601), with their place.
    pub fn parse(&self, sql: &str) -> Result<Vec<Statement>> {
        if self.short_path.load(Ordering::Relaxed)
            && let Some(report) = self.engine.templates.find(&self.namespace(), sql)
        {
            let text = sql.trim().trim_end_matches(';').to_owned();
            return Ok(vec![Statement { text, kind: StatementKind::Report(report) }]);
        }
        if self.plan_templates.load(Ordering::Relaxed)
            && let Some(lifted) = self.engine.plan_templates.find(&self.options_context(), sql)
        {
            let text = sql.trim().trim_end_matches(';').to_owned();
            return Ok(vec![Statement { text, kind: StatementKind::Lifted(lifted) }]);
        }
        dialect::parse(sql).inspect_err(|error| self.record_failure(sql, error))
    }

    /// Plans a statement. `parameter_types` are those the client declared; missing ones are
    /// inferred.
    ///
    /// # Errors
    /// Unknown tables (42P01), columns (42703), functions (42883), and what else planning finds.
    pub async fn prepare(
        &self,
        statement: Statement,
        parameter_types: Vec<Option<DataType>>,
    ) -> Result<Prepared> {
        let text = statement.text.clone();
        let prepared = self.plan(statement, parameter_types).await;
        prepared.inspect_err(|error| self.record_failure(&text, error))
    }

    /// Registers a statement of this session.
    pub(crate) fn start_query(&self, text: &str) -> QueryGuard {
        let (queries, pool) = (self.engine.queries(), Arc::clone(&self.pool.lock()));
        queries.start(text, &self.options.user, self.options.protocol, pool)
    }

    /// A statement that fails before it runs shows among the ended queries all the same.
    fn record_failure(&self, text: &str, error: &Error) {
        self.start_query(text).end(Err(error));
    }

    async fn plan(
        &self,
        statement: Statement,
        parameter_types: Vec<Option<DataType>>,
    ) -> Result<Prepared> {
        let is_known = match &statement.kind {
            StatementKind::Report(report) => report.shape.table.is_current(&self.engine).await,
            StatementKind::Lifted(lifted) => lifted.template().is_current(&self.engine).await,
            _ => true,
        };
        if !is_known {
            // It was another table's.
            let parsed = dialect::parse(statement.text())?.swap_remove(0);
            return Box::pin(self.plan(parsed, parameter_types)).await;
        }
        if let StatementKind::Report(report) = &statement.kind {
            let (types, schema) = (report.parameter_types().to_vec(), report.schema().clone());
            let report = Some(report.clone());
            return Ok(Prepared { report, ..Prepared::unplanned(statement, types, Some(schema)) });
        }
        if let StatementKind::Lifted(lifted) = &statement.kind {
            let schema = lifted.schema().clone();
            return Ok(Prepared::unplanned(statement, Vec::new(), Some(schema)));
        }
        if let StatementKind::Plan(parsed) = &statement.kind {
            let planner = self.planner_for(statement.text());
            if reads_names(statement.text()) {
                self.engine.catalog.refresh().await?;
            }
            if let Some(plan) = dml::plan_aliased_delete(self, parsed).await? {
                return prepared_plan(statement, plan, &parameter_types);
            }
            if let Some(plan) = insert_values::plan(self, parsed).await? {
                return prepared_plan(statement, plan, &parameter_types);
            }
            let (parsed, overwritten) = match dml::resolve_partition(self, parsed).await? {
                Some((parsed, overwritten)) => (Box::new(parsed), overwritten),
                None => (parsed.clone(), None),
            };
            let mut plan = planner.state.statement_to_plan((*parsed).clone()).await;
            if plan.as_ref().is_err_and(|e| e.to_string().contains("unique expression names")) {
                let mut named = *parsed;
                dialect::adapt::name_repeated_columns(&mut named);
                plan = planner.state.statement_to_plan(named).await;
            }
            let plan = plan.map_err(from_datafusion)?;
            check_supported(&plan)?;
            let prepared = prepared_plan(statement, plan, &parameter_types)?;
            let report = report::learn(self, &prepared).await;
            if report.is_none() {
                self.learn_form(&prepared).await;
            }
            let explained = self.explained_report(prepared.statement.text()).await;
            return Ok(Prepared { overwritten, report, explained, ..prepared });
        }
        if let Some(query) = statement.copy().and_then(copied_query) {
            let inner = dialect::parse(&query)?.swap_remove(0);
            let prepared = Box::pin(self.plan(inner, parameter_types)).await?;
            return Ok(Prepared { statement, ..prepared });
        }
        let schema = show::schema_of(&statement.kind);
        Ok(Prepared::unplanned(statement, Vec::new(), schema))
    }

    /// The report that an EXPLAIN is about.
    async fn explained_report(&self, text: &str) -> Option<(ReportStatement, bool)> {
        let (query, analyses) = report::explain::explained(text)?;
        if !self.takes_short_path() {
            return None;
        }
        if let Some(known) = self.engine.templates.find(&self.namespace(), query) {
            return Some((known, analyses));
        }
        let statement = dialect::parse(query).ok()?.pop()?;
        let planned = Box::pin(self.plan(statement, Vec::new())).await.ok()?;
        Some((planned.report?, analyses))
    }

    /// Plans a statement once more without its values, if that was not done yet and it comes again.
    async fn learn_form(&self, prepared: &Prepared) {
        let text = prepared.statement.text();
        let (Some(_), true) = (&prepared.plan, self.plan_templates.load(Ordering::Relaxed)) else {
            return;
        };
        let context = self.options_context();
        let Some(wanted) = self.engine.plan_templates.wanted(&context, text) else { return };
        let template = match Box::pin(self.plan_form(wanted.text(), wanted.parameters())).await {
            Some(planned) if planned.schema == prepared.schema => {
                let template = self.make_template(&planned, context);
                template.zip(planned.schema.clone())
            }
            _ => None,
        };
        self.engine.plan_templates.learn(wanted, template);
    }

    /// A statement whose values were lifted, planned; `None` if that makes it another one.
    async fn plan_form(&self, text: &str, parameters: usize) -> Option<Prepared> {
        let statement = dialect::parse(text).ok()?.pop()?;
        let planned = self.plan(statement, Vec::new()).await.ok()?;
        (planned.parameter_types.len() == parameters).then_some(planned)
    }

    fn make_template(&self, prepared: &Prepared, context: Arc<str>) -> Option<PlanTemplate> {
        if reads_clock(prepared.statement.text()) {
            return None;
        }
        let (plan, state) = (prepared.plan.as_ref()?, self.state());
        PlanTemplate::of(plan, &prepared.parameter_types, &state, context)
    }

    /// What templates depend on, beside tables.
    fn options_context(&self) -> Arc<str> {
        let planner = self.planner.lock();
        Arc::clone(&planner.context)
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
        let mut guard = self.start_query(prepared.statement.text());
        self.remember(guard.cancel_token().clone());
        let cancel = guard.cancel_token().clone();
        let run = self.run(prepared, parameters, &mut guard);
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            result = run => Some(result),
        };
        let result = result.unwrap_or_else(|| Err(guard.cancelled_error()));
        match result {
            Ok(Ran::Stream(stream)) => Ok(Outcome::Rows(RowStream::new(stream, guard))),
            Ok(Ran::Done(completion)) => {
                guard.end(Ok(()));
                Ok(Outcome::Done(completion))
            }
            Ok(Ran::CopyIn(copy)) => Ok(Outcome::CopyIn(copy.with_guard(guard))),
            Err(error) => {
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
        for statement in self.parse(sql)? {
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
        self.running.lock().drain(..).for_each(|token| token.cancel());
    }

    /// The value of a setting, as `SHOW` gives it.
    ///
    /// # Errors
    /// No such setting (42704).
    pub fn setting(&self, name: &str) -> Result<String> {
        self.settings.lock().get(name)
    }

    /// Sets a setting, as `SET` does; `None` resets it.
    ///
    /// # Errors
    /// No such setting (42704), or a value it does not take (22023).
    pub fn set(&self, name: &str, value: Option<&str>) -> Result<()> {
        if let Some(engine_option) = name.to_ascii_lowercase().strip_prefix("datafusion.") {
            return self.set_engine_option(engine_option, value);
        }
        self.settings.lock().set(name, value)?;
        self.apply(name);
        Ok(())
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

    fn planner_for(&self, text: &str) -> Planner {
        let planner = self.planner.lock().clone();
        if !reads_clock(text) {
            return planner;
        }
        let mut state = (*planner.state).clone();
        state.mark_start_execution();
        Planner { state: Arc::new(state), ..planner }
    }

    async fn run(
        &self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
        guard: &mut QueryGuard,
    ) -> Result<Ran> {
        if self.takes_short_path()
            && let Some(report) = &prepared.report
            && let Some(stream) = self.run_report(report, &parameters, guard).await?
        {
            return Ok(Ran::Stream(stream));
        }
        if let StatementKind::Lifted(lifted) = &prepared.statement.kind
            && let Some(plan) = self.bind_template(lifted.template(), lifted.values()).await?
        {
            let text = prepared.statement.text();
            let context = self.context(text, &parameters);
            return self.run_plan(QueryPlan::Optimised(plan), text, context, guard).await;
        }
        if let StatementKind::Report(_) | StatementKind::Lifted(_) = &prepared.statement.kind {
            let planned = prepared.long_way.get_or_try_init(|| self.plan_anew(prepared)).await?;
            return Box::pin(self.run(planned, parameters, guard)).await;
        }
        if let Some((report, analyses)) = &prepared.explained
            && let Some(schema) = &prepared.schema
            && let Some(batch) = self.explain_report(report, *analyses, schema).await?
        {
            let rows = futures::stream::iter(std::iter::once(Ok(batch)));
            let schema = SchemaRef::clone(schema);
            return Ok(Ran::Stream(Box::pin(RecordBatchStreamAdapter::new(schema, rows))));
        }
        if let Some(plan) = &prepared.plan {
            let context = self.context(prepared.statement.text(), &parameters);
            if let Some(template) = self.template_of(prepared)
                && let Some(plan) = self.bind_template(template, &parameters).await?
            {
                let text = prepared.statement.text();
                return self.run_plan(QueryPlan::Optimised(plan), text, context, guard).await;
            }
            let plan = parameters::bind(plan, &prepared.parameter_types, parameters)?;
            if dml::changes_rows(&plan) {
                let overwritten = prepared.overwritten.as_ref();
                return dml::run(self, plan, overwritten, guard).await.map(Ran::Done);
            }
            let plan = table::pin_snapshots(plan, &self.engine).await?;
            let plan = QueryPlan::Logical(plan);
            return self.run_plan(plan, prepared.statement.text(), context, guard).await;
        }
        match &prepared.statement.kind {
            StatementKind::Show(show) => Ok(Ran::Stream(show::run(self, show).await?)),
            StatementKind::Kill(id) => match self.engine.queries().cancel(*id) {
                true => Ok(Ran::Done(Completion::of("KILL"))),
                false => Err(Error::not_found(format!("no query {id} is running"))
                    .with_sqlstate("42704")
                    .with_hint("SELECT id, state, sql FROM system.queries lists them")),
            },
            StatementKind::CacheTable(name) => self.cache_table(name).await.map(Ran::Done),
            StatementKind::PurgeCache => {
                self.engine.reports.clear();
                self.engine.results.clear();
                Ok(Ran::Done(Completion::of("PURGE CACHE")))
            }
            StatementKind::Maintain(maintenance) => {
                maintain::run(self, maintenance).await.map(Ran::Done)
            }
            StatementKind::Copy(copy) => crate::copy::run(self, copy, guard).await,
            StatementKind::Set { name, value } => self.run_set(name.as_deref(), value.as_deref()),
            StatementKind::Transaction(control) => Ok(Ran::Done(Completion::of(control.tag()))),
            StatementKind::Accepted { tag } => {
                if *tag == "DISCARD ALL" {
                    self.run_set(None, None)?;
                }
                Ok(Ran::Done(Completion::of(tag)))
            }
            StatementKind::Empty => Ok(Ran::Done(Completion::of(""))),
            other => ddl::run(self, other, guard).await.map(Ran::Done),
        }
    }

    /// The template of a prepared statement, made when it is first executed.
    fn template_of<'a>(&self, prepared: &'a Prepared) -> Option<&'a PlanTemplate> {
        if !self.plan_templates.load(Ordering::Relaxed) {
            return None;
        }
        let context = self.options_context();
        let template =
            prepared.template.get_or_init(|| self.make_template(prepared, Arc::clone(&context)));
        template.as_ref().filter(|template| template.is_of(&context))
    }

    /// A template with values and the current snapshots; `None` where it must be planned in full.
    async fn bind_template(
        &self,
        template: &PlanTemplate,
        values: &[ScalarValue],
    ) -> Result<Option<LogicalPlan>> {
        let Some(plan) = template.bind(values)? else { return Ok(None) };
        let plan = template::bind_to_snapshots(plan, &self.engine).await;
        self.engine.plan_templates_used.fetch_add(u64::from(plan.is_some()), Ordering::Relaxed);
        Ok(plan)
    }

    pub(crate) fn takes_short_path(&self) -> bool {
        self.short_path.load(Ordering::Relaxed)
    }

    /// Answers a report; `None` where the planner must.
    async fn run_report(
        &self,
        report: &ReportStatement,
        parameters: &[ScalarValue],
        guard: &QueryGuard,
    ) -> Result<Option<SendableRecordBatchStream>> {
        let shape = &report.shape;
        let Some(bound) = report.bind(parameters) else { return Ok(None) };
        let snapshot = match self.engine.catalog.snapshot(&shape.table.ident).await {
            // The planner says it in the user's words.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            snapshot => snapshot?,
        };
        let (table, fresh) = (&snapshot.table, &snapshot.fresh);
        if table.uuid() != shape.table.uuid || table.schema_id() != shape.table.schema_id {
            return Ok(None);
        }
        let Some(answer) = self.engine.reports.run(table, fresh, &bound).await? else {
            return Ok(None);
        };
        let (progress, work) = (guard.progress(), &answer.work);
        progress.set_short_path();
        self.engine.reports_answered.fetch_add(1, Ordering::Relaxed);
        progress.bytes_read.fetch_add(work.bytes_read, Ordering::Relaxed);
        progress.requests.fetch_add(work.requests, Ordering::Relaxed);
        let (schema, batch) = (bound.schema.clone(), answer.batch);
        let rows = futures::stream::iter(std::iter::once(Ok(batch)));
        Ok(Some(Box::pin(RecordBatchStreamAdapter::new(schema, rows))))
    }

    /// Says how a report is answered; `None` where the planner must.
    async fn explain_report(
        &self,
        report: &ReportStatement,
        analyses: bool,
        schema: &SchemaRef,
    ) -> Result<Option<RecordBatch>> {
        let shape = &report.shape;
        let Some(bound) = report.bind(&[]) else { return Ok(None) };
        if !shape.table.is_current(&self.engine).await {
            return Ok(None);
        }
        let snapshot = self.engine.catalog.snapshot(&shape.table.ident).await?;
        let columns = snapshot.table.schema();
        if !analyses {
            let plan = report::explain::operator(shape, &columns);
            return report::explain::row(schema, "physical_plan", plan).map(Some);
        }
        let started = clock::monotonic();
        let answer = self.engine.reports.run(&snapshot.table, &snapshot.fresh, &bound).await?;
        let Some(answer) = answer else { return Ok(None) };
        let plan = report::explain::analysed(shape, &columns, &answer, started.elapsed());
        report::explain::row(schema, "Plan with Metrics", plan).map(Some)
    }

    /// Brings a table into the memory of reports, as far as there is room.
    async fn cache_table(&self, name: &ObjectName) -> Result<Completion> {
        let ident = self.table_ident(name)?;
        let table = self.engine.catalog.snapshot(&ident).await?.table;
        cells::refuse_rows(&table)?;
        let warmed = self.engine.reports.warm(&table).await?;
        let notice = match warmed.complete {
            true => format!("{ident}: {} chunks are in memory", warmed.chunks),
            false => format!(
                "{ident}: {} chunks are in memory; there is no room for more",
                warmed.chunks
            ),
        };
        Ok(Completion::of("CACHE TABLE").with_notice(notice))
    }

    /// Plans a statement that was recognised by its text.
    async fn plan_anew(&self, prepared: &Prepared) -> Result<Prepared> {
        let mut statements = dialect::parse(prepared.statement.text())?;
        let statement = statements.swap_remove(0);
        let types = prepared.parameter_types.iter().cloned().map(Some).collect();
        let planned = Box::pin(self.plan(statement, types)).await?;
        // What the client was told of the answer still holds.
        match planned.schema == prepared.schema {
            true => Ok(Prepared { report: None, ..planned }),
            false => {
                Err(Error::unsupported("the columns changed since the statement was prepared")
                    .with_sqlstate("0A000")
                    .with_hint("prepare the statement again"))
            }
        }
    }

    /// Plans physically and starts a bound logical plan.
    pub(crate) async fn run_plan(
        &self,
        plan: QueryPlan,
        text: &str,
        context: Option<String>,
        guard: &mut QueryGuard,
    ) -> Result<Ran> {
        let writes = matches!(plan, QueryPlan::Logical(LogicalPlan::Dml(_)));
        if writes {
            let rows = count_written(self.start(&plan, text, guard, false).await?).await?;
            return Ok(Ran::Done(Completion::rows("INSERT", rows)));
        }
        let key = context.and_then(|context| results::key_of(plan.plan(), context));
        let Some(key) = key else {
            return self.admitted(&plan, text, guard).await.map(Ran::Stream);
        };
        match self.engine.results.find(key).await {
            Found::Answer(answer) => Ok(Ran::Stream(answer)),
            Found::Compute(computing) => {
                let stream = self.admitted(&plan, text, guard).await?;
                computing.keep(stream).await.map(Ran::Stream)
            }
        }
    }

    /// Starts a plan that must be let in first.
    async fn admitted(
        &self,
        plan: &QueryPlan,
        text: &str,
        guard: &QueryGuard,
    ) -> Result<SendableRecordBatchStream> {
        if table::reads_tables(plan.plan())? {
            guard.pool().admission.refuse_if_full()?;
        }
        self.start(plan, text, guard, true).await
    }

    /// What an answer depends on beside the tables; `None` where answers are not to be given again.
    fn context(&self, text: &str, parameters: &[ScalarValue]) -> Option<String> {
        let reuses = self.setting("result_reuse").ok()?;
        if !reuses.eq_ignore_ascii_case("on") {
            return None;
        }
        let context = self.options_context();
        Some(format!("{context}\0{parameters:?}\0{text}"))
    }

    /// Plans physically and starts a plan that is, or is part of, the statement `text`.
    pub(crate) async fn stream(
        &self,
        plan: &LogicalPlan,
        text: &str,
        guard: &QueryGuard,
    ) -> Result<SendableRecordBatchStream> {
        self.start(&QueryPlan::Logical(plan.clone()), text, guard, false).await
    }

    async fn start(
        &self,
        plan: &QueryPlan,
        text: &str,
        guard: &QueryGuard,
        needs_slot: bool,
    ) -> Result<SendableRecordBatchStream> {
        let Planner { state, tasks, .. } = self.planner_for(text);
        let is_optimised = matches!(plan, QueryPlan::Optimised(_));
        let (plan, progress) = (plan.plan().clone(), Arc::clone(guard.progress()));
        let pool = Arc::clone(guard.pool());
        let tasks = memory::counted(&tasks, &pool, &progress);
        let work = Work { plan, is_optimised, state, tasks, progress, pool, needs_slot };
        execution::start(self.engine.executors(), work).await
    }

    fn run_set(&self, name: Option<&str>, value: Option<&str>) -> Result<Ran> {
        match name {
            Some(name) => self.set(name, value)?,
            None => {
                self.settings.lock().reset_all();
                self.apply("search_path");
                self.apply("timezone");
                self.apply("short_path");
                self.apply("plan_templates");
            }
        }
        let tag = if value.is_some() { "SET" } else { "RESET" };
        Ok(Ran::Done(Completion::of(tag)))
    }

    /// Carries a setting over to the engine's configuration.
    fn apply(&self, name: &str) {
        let name = name.to_ascii_lowercase();
        let Ok(value) = self.setting(&name) else { return };
        match name.as_str() {
            "application_name" => {
                let (user, protocol) = (&self.options.user, self.options.protocol);
                *self.pool.lock() = self.engine.pools.find(user, &value, protocol);
            }
            "search_path" => {
                let first = first_namespace(&value);
                self.change_state(|state| {
                    state.config_mut().options_mut().catalog.default_schema.clone_from(&first);
                });
            }
            "short_path" => {
                self.short_path.store(value.eq_ignore_ascii_case("on"), Ordering::Relaxed);
            }
            "plan_templates" => {
                self.plan_templates.store(value.eq_ignore_ascii_case("on"), Ordering::Relaxed);
            }
            "timezone" => self.change_state(|state| {
                state.config_mut().options_mut().execution.time_zone = Some(value.clone());
            }),
            _ => {}
        }
    }

    fn set_engine_option(&self, option: &str, value: Option<&str>) -> Result<()> {
        let name = format!("datafusion.{option}");
        let Some(value) = value else {
            return Err(Error::unsupported(format!("cannot reset {name}"))
                .with_hint("set it to the value you want"));
        };
        if option.starts_with("catalog.") || option.starts_with("runtime.") {
            return Err(Error::new(ErrorKind::Forbidden, format!("{name} cannot be changed"))
                .with_sqlstate("42501"));
        }
        // Other rules for plans are not those of templates, nor of answers to others.
        self.short_path.store(false, Ordering::Relaxed);
        self.plan_templates.store(false, Ordering::Relaxed);
        self.settings.lock().set("result_reuse", Some("off"))?;
        let mut result = Ok(());
        self.change_state(|state| result = state.config_mut().options_mut().set(&name, value));
        result.map_err(from_datafusion)
    }

    fn change_state(&self, change: impl FnOnce(&mut SessionState)) {
        let mut planner = self.planner.lock();
        let mut state = (*planner.state).clone();
        change(&mut state);
        *planner = Planner::new(state);
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
    fn new(state: SessionState) -> Self {
        let tasks = state.task_ctx();
        let options = state.config_options();
        let (namespace, zone) = (&options.catalog.default_schema, &options.execution.time_zone);
        let context = format!("{namespace}\0{}", zone.as_deref().unwrap_or("")).into();
        Self { state: Arc::new(state), tasks, context }
    }
}

/// A plan, and how far it is.
pub(crate) enum QueryPlan {
    Logical(LogicalPlan),
    Optimised(LogicalPlan),
}

impl QueryPlan {
    fn plan(&self) -> &LogicalPlan {
        match self {
            Self::Logical(plan) | Self::Optimised(plan) => plan,
        }
    }
}

/// How far a statement got before its outcome is handed out.
pub(crate) enum Ran {
    Stream(SendableRecordBatchStream),
    Done(Completion),
    CopyIn(crate::copy::CopyIn),
}

/// Reads the one number that a writing plan returns.
pub(crate) async fn count_written(mut stream: SendableRecordBatchStream) -> Result<u64> {
    use arrow::array::{Array, UInt64Array};
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(from_datafusion)?;
        let counts = batch.column(0).as_any().downcast_ref::<UInt64Array>();
        rows += counts.map_or(0, |counts| counts.iter().flatten().sum::<u64>());
    }
    Ok(rows)
}

/// The query whose rows a `COPY … TO STDOUT` sends; `None` for a copy into a table.
fn copied_query(copy: &CopyStatement) -> Option<String> {
    match &copy.source {
        CopySource::QueryToStdout(query) => Some(query.to_string()),
        CopySource::TableToStdout(name) if copy.columns.is_empty() => {
            Some(format!("SELECT * FROM {name}"))
        }
        CopySource::TableToStdout(name) => {
            let quoted = |column: &String| format!("\"{}\"", column.replace('"', "\"\""));
            let columns: Vec<String> = copy.columns.iter().map(quoted).collect();
            Some(format!("SELECT {} FROM {name}", columns.join(", ")))
        }
        CopySource::FromStdin(_) | CopySource::FromFiles(..) => None,
    }
}

fn prepared_plan(
    statement: Statement,
    plan: LogicalPlan,
    declared: &[Option<DataType>],
) -> Result<Prepared> {
    let (plan, parameter_types) = parameters::resolve(plan, declared)?;
    let schema = match &plan {
        LogicalPlan::Dml(_) => None,
        other => Some(SchemaRef::new(other.schema().as_arrow().clone())),
    };
    let plan = Some(Arc::new(plan));
    Ok(Prepared { plan, ..Prepared::unplanned(statement, parameter_types, schema) })
}

/// Refuses what the engine could plan but a report server must not do, or does not yet do.
fn check_supported(plan: &LogicalPlan) -> Result<()> {
    let refuse = |what: &str, hint: &str| {
        Err(Error::unsupported(format!("{what} is not supported")).with_hint(hint.to_owned()))
    };
    match plan {
        LogicalPlan::Copy(_) => refuse("COPY to a file", "use COPY … TO STDOUT"),
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(_)) => {
            refuse("CREATE EXTERNAL TABLE", "load the files with COPY … FROM or stoa load")
        }
        LogicalPlan::Ddl(_) => refuse("this statement", "docs/sql.md lists the statements"),
        LogicalPlan::Statement(PlanStatement::Prepare(_) | PlanStatement::Execute(_)) => refuse(
            "PREPARE and EXECUTE as statements",
            "use the protocol's prepared statements, as drivers do",
        ),
        LogicalPlan::Statement(_) => refuse("this statement", "docs/sql.md lists the statements"),
        _ => Ok(()),
    }
}

/// Whether a statement asks for the time, and so needs a state that knows when it started.
fn reads_clock(text: &str) -> bool {
    contains_ignore_case(text, "now") || contains_ignore_case(text, "current_")
}

/// Whether a statement reads the lists of names.
fn reads_names(text: &str) -> bool {
    contains_ignore_case(text, "information_schema")
        || contains_ignore_case(text, "pg_")
        || contains_ignore_case(text, "regclass")
}

fn contains_ignore_case(text: &str, part: &str) -> bool {
    text.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// The first namespace of a search path that is not the user's own.
fn first_namespace(path: &str) -> String {
    path.split(',')
        .map(|name| name.trim().trim_matches('"'))
        .find(|name| !name.is_empty() && *name != "$user" && *name != "pg_catalog")
        .map_or_else(
            || DEFAULT_NAMESPACE.to_owned(),
            |name| normalise(&datafusion::sql::sqlparser::ast::Ident::new(name)),
        )
}
