//! Execution: the short path, templates, plans; and statements of our own.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::ObjectName;
use stoa_env::clock;
use stoa_error::{Error, ErrorKind, Result};
use stoa_sql::{PartitionStatement, ScriptFilesStatement, StatementKind};

use super::parse;
use super::prepare::{Explained, ExplainedReport, LongWay, PlannedStatement, Prepared, Way};
use super::renew::{RENEWALS_MAX, may_be_outdated};
use crate::reuse::report::explain::{Answered, ReportRun};
use crate::reuse::report::{self, ReportStatement};
use crate::reuse::results::{self, Asked, Found};
use crate::reuse::template::{LiftedStatement, PlanTemplate};
use crate::run::admission::Ticket;
use crate::run::execution::Work;
use crate::run::explained;
use crate::run::live_plan::Execution;
use crate::run::memory::{self, ReportMemory};
use crate::run::paths::QueryPath;
use crate::run::registry::QueryGuard;
use crate::session::outcome::Completion;
use crate::session::{Planner, Session};
use crate::statements::outcome::{Ran, count_written};
use crate::statements::{
    copy, ddl, dml, external as external_statements, maintain, partitions, resource_plans, roles,
    show, truncate,
};
use crate::tables::{external, scan, table};
use stoa_semantics::parameters;

impl Session {
    pub(super) async fn run(
        &self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
        guard: &QueryGuard,
    ) -> Result<Ran> {
        self.check_allowed(prepared)?;
        self.take_snapshot(prepared).await?;
        let ran = self.run_on_its_way(prepared, parameters, guard).await?;
        match ran {
            Ran::Stream(answer) if prepared.way.is_explain() => {
                let format = explained::format_of(prepared.statement.text())?;
                Box::pin(explained::query_plan(answer, format)).await.map(Ran::Stream)
            }
            ran => Ok(ran),
        }
    }

    /// Boxed are all ways but that of reports, which come most often: they are not to make room for the others.
    async fn run_on_its_way(
        &self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
        guard: &QueryGuard,
    ) -> Result<Ran> {
        let means_the_same = self.means_the_same(prepared);
        match &prepared.way {
            Way::Own => Box::pin(self.run_own(prepared, guard)).await,
            Way::Report(report, long_way) => {
                let is_short =
                    means_the_same && self.takes_short_path() && !self.block.reads_its_own();
                match is_short {
                    true => {
                        if let Some(stream) = self.run_report(report, &parameters, guard).await? {
                            return Ok(Ran::Stream(stream));
                        }
                    }
                    false => self.caller.refresh().await?,
                }
                Box::pin(self.run_long_way(prepared, long_way, parameters, guard)).await
            }
            Way::Lifted(lifted, long_way) => {
                if means_the_same {
                    let ran = self.run_lifted(prepared, lifted, &parameters, guard);
                    if let Some(ran) = Box::pin(ran).await? {
                        return Ok(ran);
                    }
                }
                Box::pin(self.run_long_way(prepared, long_way, parameters, guard)).await
            }
            Way::Explain(explained, planned) => {
                if means_the_same
                    && !self.block.reads_its_own()
                    && let Some(batch) =
                        Box::pin(self.explain_report(explained, &parameters, guard)).await?
                {
                    let schema = batch.schema();
                    let rows = futures::stream::iter(std::iter::once(Ok(batch)));
                    let rows = RecordBatchStreamAdapter::new(schema, rows);
                    return Ok(Ran::Stream(Box::pin(rows)));
                }
                Box::pin(self.run_planned(prepared, planned, parameters, guard)).await
            }
            Way::Plan(planned) => {
                Box::pin(self.run_planned(prepared, planned, parameters, guard)).await
            }
        }
    }

    /// Runs the plan of a statement that was recognised.
    async fn run_long_way(
        &self,
        prepared: &Prepared,
        LongWay(planned): &LongWay,
        parameters: Vec<ScalarValue>,
        guard: &QueryGuard,
    ) -> Result<Ran> {
        let planned = planned.get_or_try_init(|| self.plan_anew(prepared)).await?;
        // Boxed, as a plan made anew could be recognised in its turn.
        Box::pin(self.run(planned, parameters, guard)).await
    }

    /// Runs a statement with the plan of one like it; `None` where it must be planned in full.
    async fn run_lifted(
        &self,
        prepared: &Prepared,
        lifted: &LiftedStatement,
        parameters: &[ScalarValue],
        guard: &QueryGuard,
    ) -> Result<Option<Ran>> {
        // How many there must be, planning says.
        let Some(values) = lifted.values(parameters) else { return Ok(None) };
        let template = lifted.template();
        if !self.may_read_views(template).await? {
            return Ok(None);
        }
        if let Some(answer) = self.run_composite(template, &values, guard).await? {
            return Ok(Some(Ran::Stream(answer)));
        }
        let planner = self.planner();
        let asked = self.asked(&planner, prepared, parameters);
        self.run_template(template, &values, asked, &planner, guard).await
    }

    /// Runs one of Stoa's own statements.
    async fn run_own(&self, prepared: &Prepared, guard: &QueryGuard) -> Result<Ran> {
        let Some(kind) = prepared.statement.kind() else {
            return Err(Error::internal("a statement lost its plan"));
        };
        match kind {
            StatementKind::Show(show) => Ok(Ran::Stream(show::run(self, show).await?)),
            StatementKind::Kill(id) => match self.kill(*id).await? {
                true => Ok(Ran::Done(Completion::of("KILL"))),
                false => Err(Error::not_found(format!("no query {id} is running"))
                    .with_sqlstate("42704")
                    .with_hint("SELECT id, state, sql FROM system.queries lists them")),
            },
            StatementKind::Role(role) => {
                let done = roles::run(self, role).await?;
                Ok(Ran::Done(self.note_lasting(prepared, done)))
            }
            StatementKind::ResourcePlan(change) => {
                let done = resource_plans::run(self, change).await?;
                Ok(Ran::Done(self.note_lasting(prepared, done)))
            }
            StatementKind::CacheTable(name) => self.cache_table(name).await.map(Ran::Done),
            StatementKind::PurgeCache => {
                self.caller.must_be_superuser("purge the cache")?;
                self.data.reports().clear();
                self.reuse.results().clear();
                Ok(Ran::Done(Completion::of("PURGE CACHE")))
            }
            StatementKind::InsertAll(inserts) => {
                self.insert_all(inserts, guard).await.map(Ran::Done)
            }
            StatementKind::InsertIfAbsent(statement) => {
                self.insert_if_absent(statement, guard).await.map(Ran::Done)
            }
            StatementKind::LoadData(load) => self.load_data(load, guard).await.map(Ran::Done),
            StatementKind::ScriptFiles(ScriptFilesStatement::Add(paths)) => {
                self.scripts.add(paths).map(|()| Ran::Done(Completion::of("ADD FILES")))
            }
            StatementKind::ScriptFiles(ScriptFilesStatement::Delete(paths)) => {
                self.scripts.remove(paths);
                Ok(Ran::Done(Completion::of("DELETE FILES")))
            }
            StatementKind::WriteDirectory(statement) => {
                external_statements::write_directory(self, statement, guard).await.map(Ran::Done)
            }
            StatementKind::Partitions(statement) => {
                self.change_partitions(statement, guard).await.map(Ran::Done)
            }
            StatementKind::Maintain(maintenance) => {
                maintain::run(self, maintenance).await.map(Ran::Done)
            }
            StatementKind::Truncate { names, restarts } => {
                truncate::run(self, names, *restarts, guard).await.map(Ran::Done)
            }
            StatementKind::Copy(copy) => copy::run(self, copy, guard).await,
            StatementKind::Set { name, value, is_local } => {
                self.run_set(name.as_deref(), value.as_deref(), *is_local)
            }
            StatementKind::Transaction(control) => self.control(control).await.map(Ran::Done),
            StatementKind::Characteristics(modes) => self.run_characteristics(*modes),
            StatementKind::Accepted { tag } => {
                if *tag == "DISCARD ALL" {
                    self.run_set(None, None, false)?;
                    self.unlock_all();
                }
                if ["DISCARD ALL", "DISCARD TEMP"].contains(tag) {
                    self.discard_temporary().await?;
                }
                Ok(Ran::Done(Completion::of(tag)))
            }
            StatementKind::Empty => Ok(Ran::Done(Completion::of(""))),
            other => {
                let done = ddl::run(self, other, guard).await?;
                Ok(Ran::Done(self.note_lasting(prepared, done)))
            }
        }
    }

    /// Runs a statement about partitions.
    async fn change_partitions(
        &self,
        statement: &PartitionStatement,
        guard: &QueryGuard,
    ) -> Result<Completion> {
        match partitions::change(self, statement).await? {
            partitions::Change::Done(done) => Ok(done),
            partitions::Change::Delete(delete, tag) => {
                let rows = self.delete_rows(&delete, guard).await?;
                Ok(Completion { rows, ..Completion::of(tag) })
            }
        }
    }

    /// Runs a DELETE that a statement comes to; says how many rows are gone.
    pub(super) async fn delete_rows(&self, delete: &str, guard: &QueryGuard) -> Result<u64> {
        let session = self.shared()?;
        let statement = parse::statements(delete)?.swap_remove(0);
        let plan = async move { session.plan(statement, Vec::new()).await };
        let prepared = self.on_planners(Box::pin(plan)).await?;
        let Some(planned) = prepared.planned() else {
            return Err(Error::internal("a DELETE has no plan"));
        };
        let plan = planned.plan.as_ref().clone();
        Ok(dml::run(self, plan, None, None, guard).await?.rows)
    }

    /// Runs a statement that has a plan, for the tables that have its names now.
    async fn run_planned(
        &self,
        prepared: &Prepared,
        planned: &PlannedStatement,
        parameters: Vec<ScalarValue>,
        guard: &QueryGuard,
    ) -> Result<Ran> {
        if planned.asks_about_tables {
            self.learn_tables().await?;
        }
        // It looks at its tables itself.
        if let Some(Some(template)) = planned.template.get()
            && self.means_the_same(prepared)
            && template.is_of(&self.options_context())
            && self.may_read_views(template).await?
            && let Some(answer) = self.run_composite(template, &parameters, guard).await?
        {
            return Ok(Ran::Stream(answer));
        }
        for _ in 1..RENEWALS_MAX {
            let renewed = self.renewed(prepared).await?;
            let current = renewed.as_deref().unwrap_or(prepared);
            match self.run_current(current, parameters.clone(), guard).await {
                // A table was replaced since; nothing was done then.
                Err(error) if may_be_outdated(&error) && !self.is_current(current).await? => {}
                ended => return ended,
            }
        }
        let renewed = self.renewed(prepared).await?;
        self.run_current(renewed.as_deref().unwrap_or(prepared), parameters, guard).await
    }

    async fn run_current(
        &self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
        guard: &QueryGuard,
    ) -> Result<Ran> {
        let Some(planned) = prepared.planned() else {
            return Err(Error::internal("a statement lost its plan"));
        };
        self.check_views(&planned.views)?;
        if let Some(returning) = &planned.returning {
            return self.run_returning(prepared, planned, returning, parameters, guard).await;
        }
        let planner = self.planner();
        let asked = self.asked(&planner, prepared, &parameters);
        if let Some(template) = self.template_of(prepared, &planner.context).await {
            let asked = asked.clone();
            let ran = self.run_template(template, &parameters, asked, &planner, guard).await?;
            if let Some(ran) = ran {
                return Ok(ran);
            }
        }
        let plan = parameters::bind(&planned.plan, &prepared.parameter_types, parameters)?;
        if dml::changes_rows(&plan) {
            let overwritten = planned.overwritten.as_ref();
            let plan = dml::at_one_time(plan, &planner.state)?;
            let done = dml::run(self, plan, overwritten, None, guard).await?;
            return Ok(Ran::Done(called_as(prepared.statement.text(), done)));
        }
        let plan = self.with_current_target(plan).await?;
        if let LogicalPlan::Dml(_) = &plan {
            let done = dml::insert(self, plan, None, guard).await?;
            return Ok(Ran::Done(done));
        }
        let plan = QueryPlan::Logical(self.pin_snapshots(plan).await?);
        self.run_plan(plan, asked, planner, guard).await
    }

    /// Runs a statement that changes rows and returns them.
    async fn run_returning(
        &self,
        prepared: &Prepared,
        planned: &PlannedStatement,
        returning: &LogicalPlan,
        parameters: Vec<ScalarValue>,
        guard: &QueryGuard,
    ) -> Result<Ran> {
        let types = &prepared.parameter_types;
        let state = self.planner().state;
        let plan = parameters::bind(&planned.plan, types, parameters.clone())?;
        let query = parameters::bind(returning, types, parameters)?;
        let [plan, query] = dml::both_at_one_time([plan, query], &state)?;
        let returning = dml::Returning::of(&plan, query)?;
        if dml::changes_rows(&plan) {
            let overwritten = planned.overwritten.as_ref();
            dml::run(self, plan, overwritten, Some(&returning), guard).await?;
        } else {
            let plan = self.with_current_target(plan).await?;
            dml::insert(self, plan, Some(&returning), guard).await?;
        }
        returning.into_rows().map(Ran::Stream)
    }

    /// Runs a template with values on the current snapshots; `None` where it must be planned in full.
    async fn run_template(
        &self,
        template: &PlanTemplate,
        values: &[ScalarValue],
        asked: Option<Asked>,
        planner: &Planner,
        guard: &QueryGuard,
    ) -> Result<Option<Ran>> {
        let pool = guard.pool().now();
        let admission = &pool.admission;
        if template.reads_tables() && admission.is_full() {
            // What is kept is still given; all else is refused while that costs little.
            if let Some(asked) = &asked
                && let Some(key) = template.result_key(&self.data, asked).await
                && let Some(answer) = self.reuse.results().kept(&key)
            {
                guard.progress().set_path(QueryPath::Reused);
                return Ok(Some(Ran::Stream(answer)));
            }
            drop(admission.reserve()?);
        }
        let Some(plan) = template.bind(values)? else { return Ok(None) };
        // A table that is gone or has other columns now is planned in full, which says so.
        let Ok(plan) = self.pin_snapshots(plan).await else { return Ok(None) };
        self.reuse.count_plan();
        let plan = QueryPlan::Optimised(plan);
        self.run_plan(plan, asked, planner.clone(), guard).await.map(Some)
    }

    /// Answers a report, with the rights of now; `None` where the planner must.
    async fn run_report(
        &self,
        report: &ReportStatement,
        parameters: &[ScalarValue],
        guard: &QueryGuard,
    ) -> Result<Option<SendableRecordBatchStream>> {
        let shape = &report.shape;
        // Both at once: a catalog that is asked over the network answers both with one query.
        let (policy, snapshot) =
            tokio::join!(self.caller.refresh(), self.data.snapshot(&shape.table.ident));
        policy?;
        let Some(bound) = report.bind(parameters) else { return Ok(None) };
        let snapshot = match snapshot {
            // The planner says it in the user's words.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            snapshot => snapshot?,
        };
        let table = &snapshot.table;
        if table.uuid() != shape.table.uuid || table.schema_id() != shape.table.schema_id {
            return Ok(None);
        }
        self.caller.may_select(table, bound.columns.iter().map(|column| column.field_id))?;
        let progress = guard.progress();
        let (shape, columns) = (Arc::clone(shape), table.schema());
        let mut shown = ReportRun { shape, columns, answered: None };
        progress.set_execution(Execution::ShortPath(Arc::new(shown.clone())));
        let started = clock::monotonic();
        let memory = ReportMemory::of_statement(self.runner.memory(), guard.pool(), progress);
        let answer = self.data.report(&snapshot, &bound, &memory).await?;
        let Some(answer) = answer else { return Ok(None) };
        let (work, rows) = (answer.work, answer.batch.num_rows() as u64);
        let store = progress.charge.charged();
        shown.answered = Some(Answered { rows, work, store, elapsed: started.elapsed() });
        progress.set_execution(Execution::ShortPath(Arc::new(shown)));
        progress.set_path(QueryPath::Short);
        self.reuse.count_report();
        progress.add_work(&work);
        let (schema, batch) = (bound.schema.clone(), answer.batch);
        let rows = futures::stream::once(async move {
            // What the answer takes is given back once it is handed out.
            drop(memory);
            Ok(batch)
        });
        Ok(Some(Box::pin(RecordBatchStreamAdapter::new(schema, rows))))
    }

    /// Says how a report is answered; `None` where the planner must.
    async fn explain_report(
        &self,
        explained: &ExplainedReport,
        parameters: &[ScalarValue],
        guard: &QueryGuard,
    ) -> Result<Option<RecordBatch>> {
        let report = match &explained.of {
            Explained::Report(report) => report,
            Explained::Composite(lifted) => {
                let Some(values) = lifted.values(parameters) else { return Ok(None) };
                let template = lifted.template();
                if !self.may_read_views(template).await? {
                    return Ok(None);
                }
                return self.explain_composite(template, &values, explained.analyses, guard).await;
            }
        };
        let shape = &report.shape;
        let Some(bound) = report.bind(parameters) else { return Ok(None) };
        if !shape.table.is_current(&self.data).await {
            return Ok(None);
        }
        let snapshot = self.data.snapshot(&shape.table.ident).await?;
        let read = bound.columns.iter().map(|column| column.field_id);
        self.caller.may_select(&snapshot.table, read)?;
        let columns = snapshot.table.schema();
        if !explained.analyses {
            let plan = report::explain::operator(shape, &columns);
            return report::explain::row("physical_plan", plan).map(Some);
        }
        let started = clock::monotonic();
        let memory =
            ReportMemory::of_statement(self.runner.memory(), guard.pool(), guard.progress());
        let (table, fresh) = (&snapshot.table, &snapshot.fresh);
        let answer = self.data.reports().run_within(table, fresh, &bound, &memory).await?;
        let Some(answer) = answer else { return Ok(None) };
        guard.progress().add_work(&answer.work);
        let (store, elapsed) = (guard.progress().charge.charged(), started.elapsed());
        let plan = report::explain::analysed(shape, &columns, &answer, &store, elapsed);
        report::explain::row("Plan with Metrics", plan).map(Some)
    }

    /// Brings a table into the memory of reports, as far as there is room.
    async fn cache_table(&self, name: &ObjectName) -> Result<Completion> {
        let ident = self.table_ident(name)?;
        let table = self.data.snapshot(&ident).await?.table;
        external::refuse_rows(&table)?;
        self.caller.must_own(&table)?;
        let warmed = self.data.reports().warm(&table).await?;
        let notice = match warmed.complete {
            true => format!("{ident}: {} chunks are in memory", warmed.chunks),
            false => format!(
                "{ident}: {} chunks are in memory; there is no room for more",
                warmed.chunks
            ),
        };
        Ok(Completion::of("CACHE TABLE").with_notice(notice))
    }

    /// Plans physically and starts a bound logical plan.
    async fn run_plan(
        &self,
        plan: QueryPlan,
        asked: Option<Asked>,
        planner: Planner,
        guard: &QueryGuard,
    ) -> Result<Ran> {
        let writes = matches!(plan, QueryPlan::Logical(LogicalPlan::Dml(_)));
        if writes {
            let rows = count_written(self.start(&plan, planner, guard, None).await?).await?;
            return Ok(Ran::Done(Completion::rows("INSERT", rows)));
        }
        let key = asked.and_then(|asked| results::key_of(plan.plan(), &asked));
        let Some(key) = key else {
            return self.admitted(&plan, planner, guard).await.map(Ran::Stream);
        };
        match self.reuse.results().find(key).await {
            Found::Answer(answer) => {
                guard.progress().set_path(QueryPath::Reused);
                Ok(Ran::Stream(answer))
            }
            Found::Compute(computing) => {
                let stream = self.admitted(&plan, planner, guard).await?;
                computing.keep(stream).await.map(Ran::Stream)
            }
        }
    }

    /// Starts a plan that must be let in first.
    async fn admitted(
        &self,
        plan: &QueryPlan,
        planner: Planner,
        guard: &QueryGuard,
    ) -> Result<SendableRecordBatchStream> {
        let ticket = match table::reads_tables(plan.plan())? {
            true => Some(guard.pool().now().admission.reserve()?),
            false => None,
        };
        self.start(plan, planner, guard, ticket).await
    }

    /// What an answer depends on beside the tables; `None` where answers are not to be given again.
    fn asked(
        &self,
        planner: &Planner,
        prepared: &Prepared,
        parameters: &[ScalarValue],
    ) -> Option<Asked> {
        if self.block.reads_its_own() || self.setting("result_reuse").ok()? != "on" {
            return None;
        }
        // A plan that was made under other options gives no answer to those who have these.
        if prepared.context.as_deref() != Some(&*planner.context) {
            return None;
        }
        // The query of a view is not part of the statement's text.
        let views = match &prepared.way {
            Way::Lifted(lifted, _) => lifted.template().views(),
            _ => prepared.planned().map_or(&[][..], |planned| &planned.views),
        };
        let context = match views {
            [] => Arc::clone(&planner.context),
            views => {
                let versions = views.iter().map(|read| read.view.view.metadata_location());
                let all: Vec<&str> = std::iter::once(&*planner.context).chain(versions).collect();
                all.join("\n").into()
            }
        };
        Some(Asked {
            context,
            caller: self.caller.key(),
            text: prepared.statement.text().into(),
            parameters: Asked::values(prepared.parameter_types(), parameters),
        })
    }

    /// Plans physically and starts a plan that is, or is part of, a statement.
    pub(crate) async fn stream(
        &self,
        plan: &LogicalPlan,
        guard: &QueryGuard,
    ) -> Result<SendableRecordBatchStream> {
        self.start(&QueryPlan::Logical(plan.clone()), self.planner(), guard, None).await
    }

    async fn start(
        &self,
        plan: &QueryPlan,
        planner: Planner,
        guard: &QueryGuard,
        ticket: Option<Ticket>,
    ) -> Result<SendableRecordBatchStream> {
        let is_optimised = matches!(plan, QueryPlan::Optimised(_));
        // A template reads no clock.
        let state = match is_optimised {
            true => Arc::clone(&planner.state),
            false => planner.state_for(plan.plan()),
        };
        let (plan, progress) = (Arc::new(plan.plan().clone()), Arc::clone(guard.progress()));
        let pool = Arc::clone(guard.pool());
        let tasks = memory::counted(&planner.tasks, &pool, &progress);
        let (note_scans, place) = (scan::note_scans, scan::placed);
        // Only a query that was let in by itself is spread, not one that is part of a change.
        let spread = ticket.as_ref().and_then(|_| self.runner.spread()).map(Arc::clone);
        let work = Work {
            plan,
            is_optimised,
            state,
            tasks,
            progress,
            pool,
            ticket,
            note_scans,
            place,
            spread,
        };
        self.runner.run(work).await
    }
}

/// `UPDATE … FROM`, `DELETE … USING` and `INSERT … ON CONFLICT` are executed as MERGE, and called as they were written.
fn called_as(text: &str, done: Completion) -> Completion {
    let written = stoa_sql::first_word(text);
    let mut commands = ["INSERT", "UPDATE", "DELETE"].into_iter();
    let command = commands.find(|word| word.eq_ignore_ascii_case(written));
    match (command, done.tag.starts_with("MERGE ")) {
        (Some(command), true) => {
            Completion { notices: done.notices, ..Completion::rows(command, done.rows) }
        }
        _ => done,
    }
}

/// A plan, and how far it is.
enum QueryPlan {
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
