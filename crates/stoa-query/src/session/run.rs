//! Execution: the short path, templates, plans; and statements of our own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::ObjectName;
use futures::StreamExt;
use stoa_env::clock;
use stoa_error::{Error, ErrorKind, Result};

use super::renew::{RENEWALS_MAX, may_be_outdated};
use super::{Planner, Prepared, Session};
use crate::admission::Ticket;
use crate::cells;
use crate::error::from_datafusion;
use crate::execution::{self, Threads, Work};
use crate::live_plan::{Answered, Execution, ReportRun};
use crate::memory::ReportMemory;
use crate::outcome::Completion;
use crate::registry::QueryGuard;
use crate::report::{self, ReportStatement};
use crate::results::{self, Asked, Found};
use crate::statement::StatementKind;
use crate::template::PlanTemplate;
use crate::{access, ddl, dml, maintain, memory, parameters, show, table};

impl Session {
    pub(super) async fn run(
        &self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
        guard: &mut QueryGuard,
    ) -> Result<Ran> {
        let means_the_same = self.means_the_same(prepared);
        self.check_allowed(prepared)?;
        self.take_snapshot(prepared).await?;
        if self.takes_short_path()
            && !self.block.reads_its_own()
            && means_the_same
            && let Some(report) = &prepared.report
            && let Some(stream) = self.run_report(report, &parameters, guard).await?
        {
            return Ok(Ran::Stream(stream));
        }
        if let StatementKind::Lifted(lifted) = &prepared.statement.kind
            && means_the_same
        {
            let (template, values) = (lifted.template(), lifted.values());
            let planner = self.planner();
            let asked = self.asked(&planner, prepared, &[]);
            let ran = self.run_template(template, values, asked, &planner, guard).await?;
            if let Some(ran) = ran {
                return Ok(ran);
            }
        }
        if let StatementKind::Report(_) | StatementKind::Lifted(_) = &prepared.statement.kind {
            let planned = prepared.long_way.get_or_try_init(|| self.plan_anew(prepared)).await?;
            return Box::pin(self.run(planned, parameters, guard)).await;
        }
        if let Some((report, analyses)) = &prepared.explained
            && means_the_same
            && !self.block.reads_its_own()
            && let Some(schema) = &prepared.schema
            && let Some(batch) =
                self.explain_report(report, &parameters, *analyses, schema, guard).await?
        {
            let rows = futures::stream::iter(std::iter::once(Ok(batch)));
            let schema = SchemaRef::clone(schema);
            return Ok(Ran::Stream(Box::pin(RecordBatchStreamAdapter::new(schema, rows))));
        }
        if prepared.plan.is_some() {
            return self.run_planned(prepared, parameters, guard).await;
        }
        match &prepared.statement.kind {
            StatementKind::Show(show) => Ok(Ran::Stream(show::run(self, show).await?)),
            StatementKind::Kill(id) => match self.kill(*id)? {
                true => Ok(Ran::Done(Completion::of("KILL"))),
                false => Err(Error::not_found(format!("no query {id} is running"))
                    .with_sqlstate("42704")
                    .with_hint("SELECT id, state, sql FROM system.queries lists them")),
            },
            StatementKind::Role(role) => {
                let done = access::run(self, role).await?;
                Ok(Ran::Done(self.note_lasting(prepared, done)))
            }
            StatementKind::CacheTable(name) => self.cache_table(name).await.map(Ran::Done),
            StatementKind::PurgeCache => {
                self.caller.must_be_superuser("purge the cache")?;
                self.engine.reports.clear();
                self.engine.results.clear();
                Ok(Ran::Done(Completion::of("PURGE CACHE")))
            }
            StatementKind::Maintain(maintenance) => {
                maintain::run(self, maintenance).await.map(Ran::Done)
            }
            StatementKind::Copy(copy) => crate::copy::run(self, copy, guard).await,
            StatementKind::Set { name, value } => self.run_set(name.as_deref(), value.as_deref()),
            StatementKind::Transaction(control) => self.control(control).await.map(Ran::Done),
            StatementKind::Characteristics(modes) => self.run_characteristics(*modes),
            StatementKind::Accepted { tag } => {
                if *tag == "DISCARD ALL" {
                    self.run_set(None, None)?;
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

    /// Runs a statement that has a plan, for the tables that have its names now.
    async fn run_planned(
        &self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
        guard: &mut QueryGuard,
    ) -> Result<Ran> {
        if prepared.asks_for_rights {
            self.learn_tables().await?;
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
        guard: &mut QueryGuard,
    ) -> Result<Ran> {
        let Some(plan) = &prepared.plan else {
            return Err(Error::internal("a statement lost its plan"));
        };
        let planner = self.planner();
        let asked = self.asked(&planner, prepared, &parameters);
        if let Some(template) = self.template_of(prepared, &planner.context).await {
            let asked = asked.clone();
            let ran = self.run_template(template, &parameters, asked, &planner, guard).await?;
            if let Some(ran) = ran {
                return Ok(ran);
            }
        }
        let plan = parameters::bind(plan, &prepared.parameter_types, parameters)?;
        if dml::changes_rows(&plan) {
            let overwritten = prepared.overwritten.as_ref();
            return dml::run(self, plan, overwritten, guard).await.map(Ran::Done);
        }
        let plan = self.with_current_target(plan).await?;
        if let LogicalPlan::Dml(_) = &plan {
            return dml::insert(self, plan, guard).await;
        }
        let plan = QueryPlan::Logical(table::pin_snapshots(plan, self).await?);
        self.run_plan(plan, asked, planner, guard).await
    }

    /// Runs a template with values on the current snapshots; `None` where it must be planned in full.
    async fn run_template(
        &self,
        template: &PlanTemplate,
        values: &[ScalarValue],
        asked: Option<Asked>,
        planner: &Planner,
        guard: &mut QueryGuard,
    ) -> Result<Option<Ran>> {
        let engine = &self.engine;
        let admission = &guard.pool().admission;
        if template.reads_tables() && admission.is_full() {
            // What is kept is still given; all else is refused while that costs little.
            if let Some(asked) = &asked
                && let Some(key) = template.result_key(engine, asked).await
                && let Some(answer) = engine.results.kept(&key)
            {
                return Ok(Some(Ran::Stream(answer)));
            }
            drop(admission.reserve()?);
        }
        let Some(plan) = template.bind(values)? else { return Ok(None) };
        // A table that is gone or has other columns now is planned in full, which says so.
        let Ok(plan) = table::pin_snapshots(plan, self).await else { return Ok(None) };
        engine.plan_templates_used.fetch_add(1, Ordering::Relaxed);
        let plan = QueryPlan::Optimised(plan);
        self.run_plan(plan, asked, planner.clone(), guard).await.map(Some)
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
        self.caller.may_select(table, bound.columns.iter().map(|column| column.field_id))?;
        let progress = guard.progress();
        let (shape, columns) = (Arc::clone(shape), table.schema());
        let mut shown = ReportRun { shape, columns, answered: None };
        progress.set_execution(Execution::Report(shown.clone()));
        let started = clock::monotonic();
        let memory = ReportMemory::of_statement(self.engine.memory_pool(), guard.pool(), progress);
        let answer = self.engine.reports.run_within(table, fresh, &bound, &memory).await?;
        let Some(answer) = answer else { return Ok(None) };
        let (work, rows) = (answer.work, answer.batch.num_rows() as u64);
        let store = progress.charge.charged();
        shown.answered = Some(Answered { rows, work, store, elapsed: started.elapsed() });
        progress.set_execution(Execution::Report(shown));
        progress.set_short_path();
        self.engine.reports_answered.fetch_add(1, Ordering::Relaxed);
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
        report: &ReportStatement,
        parameters: &[ScalarValue],
        analyses: bool,
        schema: &SchemaRef,
        guard: &QueryGuard,
    ) -> Result<Option<RecordBatch>> {
        let shape = &report.shape;
        let Some(bound) = report.bind(parameters) else { return Ok(None) };
        if !shape.table.is_current(&self.engine).await {
            return Ok(None);
        }
        let snapshot = self.engine.catalog.snapshot(&shape.table.ident).await?;
        let read = bound.columns.iter().map(|column| column.field_id);
        self.caller.may_select(&snapshot.table, read)?;
        let columns = snapshot.table.schema();
        if !analyses {
            let plan = report::explain::operator(shape, &columns);
            return report::explain::row(schema, "physical_plan", plan).map(Some);
        }
        let started = clock::monotonic();
        let memory =
            ReportMemory::of_statement(self.engine.memory_pool(), guard.pool(), guard.progress());
        let (table, fresh) = (&snapshot.table, &snapshot.fresh);
        let answer = self.engine.reports.run_within(table, fresh, &bound, &memory).await?;
        let Some(answer) = answer else { return Ok(None) };
        guard.progress().add_work(&answer.work);
        let (store, elapsed) = (guard.progress().charge.charged(), started.elapsed());
        let plan = report::explain::analysed(shape, &columns, &answer, &store, elapsed);
        report::explain::row(schema, "Plan with Metrics", plan).map(Some)
    }

    /// Ends a query, which must be one's own; whether it was running.
    pub fn kill(&self, id: u64) -> Result<bool> {
        let queries = self.engine.queries();
        if queries.user_of(id).is_some_and(|user| user != self.options.user) {
            self.caller.must_be_superuser("end queries of others")?;
        }
        Ok(queries.cancel(id))
    }

    /// Brings a table into the memory of reports, as far as there is room.
    async fn cache_table(&self, name: &ObjectName) -> Result<Completion> {
        let ident = self.table_ident(name)?;
        let table = self.engine.catalog.snapshot(&ident).await?.table;
        cells::refuse_rows(&table)?;
        self.caller.must_own(&table)?;
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

    /// Plans physically and starts a bound logical plan.
    async fn run_plan(
        &self,
        plan: QueryPlan,
        asked: Option<Asked>,
        planner: Planner,
        guard: &mut QueryGuard,
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
        match self.engine.results.find(key).await {
            Found::Answer(answer) => Ok(Ran::Stream(answer)),
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
            true => Some(guard.pool().admission.reserve()?),
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
        Some(Asked {
            context: Arc::clone(&planner.context),
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
        let (plan, progress) = (plan.plan().clone(), Arc::clone(guard.progress()));
        let pool = Arc::clone(guard.pool());
        let tasks = memory::counted(&planner.tasks, &pool, &progress);
        let work = Work { plan, is_optimised, state, tasks, progress, pool, ticket };
        let engine = &self.engine;
        let threads = Threads {
            planners: &engine.planners,
            executors: engine.executors(),
            stops: &engine.stops,
        };
        execution::start(threads, work).await
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
