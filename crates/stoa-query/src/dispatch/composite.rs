//! Composite reports: their cores answered as reports, and the head computed on the answers.
//!
//! In: a template that is one, and values. Out: one batch, or word that the statement must be planned: where a table
//! is another one, something is beyond a bound, or an error came up that is the planner's to tell.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use stoa_env::clock;
use stoa_error::{ErrorKind, Result};
use stoa_ingest::TableSnapshot;
use stoa_report::{Answer, Report};

use crate::reuse::composite::Composite;
use crate::reuse::composite::explain::{self, CompositeRun};
use crate::reuse::report::explain::{Answered, row};
use crate::reuse::template::PlanTemplate;
use crate::run::live_plan::Execution;
use crate::run::memory::ReportMemory;
use crate::run::paths::QueryPath;
use crate::run::registry::QueryGuard;
use crate::session::Session;

/// Rows of all cores together on which the head computes where they came in; more are for the threads that plan.
const ROWS_AT_ONCE: usize = 8192;

/// A composite report whose values and tables are known.
struct Bound<'a> {
    composite: &'a Arc<Composite>,
    reports: Vec<Report>,
    /// Those of the head's places.
    values: Arc<[ScalarValue]>,
    snapshots: Vec<TableSnapshot>,
    columns: Arc<[SchemaRef]>,
}

/// The answers of cores, what they took, and the memory that they have.
#[derive(Default)]
struct Cores {
    answers: Vec<(Answer, Duration)>,
    memory: Vec<ReportMemory>,
}

impl Session {
    /// Answers a statement from reports, with the rights of now; `None` where it must be planned.
    pub(super) async fn run_composite(
        &self,
        template: &PlanTemplate,
        values: &[ScalarValue],
        guard: &QueryGuard,
    ) -> Result<Option<SendableRecordBatchStream>> {
        let Some(composite) = template.composite() else { return Ok(None) };
        if !self.takes_short_path() || self.block.reads_its_own() || !composite.is_tried() {
            return Ok(None);
        }
        let started = clock::monotonic();
        let Some(bound) = self.bound(composite, template, values).await? else { return Ok(None) };
        let progress = guard.progress();
        let (composite, columns) = (Arc::clone(composite), Arc::clone(&bound.columns));
        let mut shown = CompositeRun { composite, columns, answered: None };
        progress.set_execution(Execution::ShortPath(Arc::new(shown.clone())));
        let Some(cores) = self.answers(&bound, guard).await? else { return Ok(None) };
        let answer = self.head_of(&bound, &cores, guard).await?;
        let Some((batch, of_head)) = answer else { return Ok(None) };
        let store = progress.charge.charged();
        let answered = |(answer, elapsed): &(Answer, Duration)| {
            let rows = answer.batch.num_rows() as u64;
            Answered { rows, work: answer.work, store, elapsed: *elapsed }
        };
        let each: Vec<Answered> = cores.answers.iter().map(answered).collect();
        for core in &each {
            progress.add_work(&core.work);
        }
        let whole = each.last().map(|last| Answered {
            rows: batch.num_rows() as u64,
            elapsed: started.elapsed(),
            ..*last
        });
        shown.answered = whole.map(|whole| (each, whole));
        progress.set_execution(Execution::ShortPath(Arc::new(shown)));
        progress.set_path(QueryPath::Short);
        self.reuse.count_report();
        let memory = (cores.memory, of_head);
        let schema = Arc::clone(bound.composite.head().schema());
        let rows = futures::stream::once(async move {
            // What the answer takes is given back once it is handed out.
            drop(memory);
            Ok(batch)
        });
        Ok(Some(Box::pin(RecordBatchStreamAdapter::new(schema, rows))))
    }

    /// Says how a statement is answered from reports; `None` where it must be planned.
    pub(super) async fn explain_composite(
        &self,
        template: &PlanTemplate,
        values: &[ScalarValue],
        analyses: bool,
        guard: &QueryGuard,
    ) -> Result<Option<RecordBatch>> {
        let Some(composite) = template.composite() else { return Ok(None) };
        let Some(bound) = self.bound(composite, template, values).await? else { return Ok(None) };
        if !analyses {
            let plan = explain::operators(composite, &bound.columns);
            return row("physical_plan", plan).map(Some);
        }
        let Some(cores) = self.answers(&bound, guard).await? else { return Ok(None) };
        if self.head_of(&bound, &cores, guard).await?.is_none() {
            return Ok(None);
        }
        for (answer, _) in &cores.answers {
            guard.progress().add_work(&answer.work);
        }
        let store = guard.progress().charge.charged();
        let plan = explain::analysed_operators(composite, &bound.columns, &cores.answers, &store);
        row("Plan with Metrics", plan).map(Some)
    }

    /// The reports with their values, on the tables as they are now, if whoever asks may read them.
    async fn bound<'a>(
        &self,
        composite: &'a Arc<Composite>,
        template: &PlanTemplate,
        values: &[ScalarValue],
    ) -> Result<Option<Bound<'a>>> {
        let Some(values) = template.fitting(values) else { return Ok(None) };
        let Some(reports) = composite.bind(&values) else { return Ok(None) };
        let values = values.into();
        let tables = composite.tables();
        let snapshots = match self.data.snapshots(composite.idents()).await {
            // The planner says it in the user's words.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            snapshots => snapshots?,
        };
        let is_same = tables.len() == snapshots.len()
            && tables.iter().zip(&snapshots).all(|(known, now)| known.is_of(&now.table));
        if !is_same {
            return Ok(None);
        }
        for core in composite.cores() {
            let Some(snapshot) = snapshots.get(core.table) else { return Ok(None) };
            let reader = core.reader.as_ref().unwrap_or(&self.caller);
            reader.may_select(&snapshot.table, core.read.iter().copied())?;
        }
        let columns = snapshots.iter().map(|snapshot| snapshot.table.schema()).collect();
        Ok(Some(Bound { composite, reports, values, snapshots, columns }))
    }

    /// The answers of the cores; `None` where the planner must answer.
    async fn answers(&self, bound: &Bound<'_>, guard: &QueryGuard) -> Result<Option<Cores>> {
        let mut cores = Cores::default();
        for (core, report) in bound.composite.cores().iter().zip(&bound.reports) {
            let Some(snapshot) = bound.snapshots.get(core.table) else { return Ok(None) };
            let started = clock::monotonic();
            let memory = self.report_memory(guard);
            match self.data.report(snapshot, report, &memory).await {
                Ok(Some(answer)) => cores.answers.push((answer, started.elapsed())),
                Ok(None) => {
                    bound.composite.note_beyond();
                    return Ok(None);
                }
                // Whether that is an error of the statement, too, the planner knows.
                Err(error) if error.kind() == ErrorKind::Invalid => return Ok(None),
                Err(error) => return Err(error),
            }
            cores.memory.push(memory);
        }
        Ok(Some(cores))
    }

    fn report_memory(&self, guard: &QueryGuard) -> ReportMemory {
        ReportMemory::of_statement(self.runner.memory(), guard.pool(), guard.progress())
    }

    /// What the head makes of the answers, and the memory of that; `None` where the planner must answer.
    async fn head_of(
        &self,
        bound: &Bound<'_>,
        cores: &Cores,
        guard: &QueryGuard,
    ) -> Result<Option<(RecordBatch, ReportMemory)>> {
        let batches: Vec<RecordBatch> =
            cores.answers.iter().map(|(answer, _)| answer.batch.clone()).collect();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let (composite, values) = (Arc::clone(bound.composite), Arc::clone(&bound.values));
        let memory = self.report_memory(guard);
        let compute = move || {
            let computed = computed(&composite, &batches, &values, &memory)?;
            Some((computed, memory))
        };
        match rows <= ROWS_AT_ONCE {
            true => Ok(compute()),
            false => self.on_planners(async move { Ok(compute()) }).await,
        }
    }
}

/// What a composite report computes; `None` where an expression fails, which the planner tells.
fn computed(
    composite: &Composite,
    batches: &[RecordBatch],
    values: &Arc<[ScalarValue]>,
    memory: &ReportMemory,
) -> Option<RecordBatch> {
    catch_unwind(AssertUnwindSafe(|| composite.compute(batches, values, memory))).ok()?
}
