//! Running plans: made on the planners, executed on the executors.
//!
//! In: a logical plan. Out: a batch stream that is fed by a task on the executors; the caller's own
//! thread only passes batches on, also of plans that read no files. Dropping the stream asks the plan to
//! stop, which all of its operators see (`cooperate`).
//!
//! A query that waits for its reader gives its slot back meanwhile: a slow client, or one that stops
//! in the middle of a cursor, keeps nobody from computing.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result as EngineResult;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Explain, LogicalPlan, PlanType};
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use futures::{FutureExt, StreamExt, stream};
use stoa_env::clock;
use stoa_env::executors::Executors;
use stoa_env::timer::timeout;
use stoa_error::{Error, Result};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::run::admission::Ticket;
use crate::run::analyzed::Analyzed;
use crate::run::cooperate::make_cooperative;
use crate::run::live_plan::{Execution, Watched};
use crate::run::paths::QueryPath;
use crate::run::progress::Progress;
use crate::run::query_pool::{HeldSlot, QueryPool};
use crate::run::runner::Runner;
use crate::run::scalars;
use crate::run::spread::{Ask, Spread, SpreadPlan, follow, rows_or_here};
use crate::run::stop::{Stop, Waiting};
use stoa_semantics::errors::{from_datafusion, from_planned, to_datafusion};

/// How long an answer is waited for as a whole, before its reader is told that it comes.
const PATIENCE: Duration = Duration::from_millis(20);

/// Batches that may wait for their reader.
const AHEAD_MAX: usize = 1;

/// A plan and what it runs with.
pub(crate) struct Work {
    pub(crate) plan: Arc<LogicalPlan>,
    /// Whether the plan is optimised already.
    pub(crate) is_optimised: bool,
    pub(crate) state: Arc<SessionState>,
    pub(crate) tasks: Arc<TaskContext>,
    pub(crate) progress: Arc<Progress>,
    /// Who lets it compute again after a pause.
    pub(crate) pool: Arc<QueryPool>,
    /// Its place among those who want to compute; parts of other statements need none.
    pub(crate) ticket: Option<Ticket>,
    /// Tells the scans of a plan for whom they read; bytes of the files that they read, whole.
    pub(crate) note_scans: NoteScans,
    /// Has scans know what operators above them come to know, and group rows where they are kept.
    pub(crate) place: Place,
    /// What has other daemons compute parts of it; nothing where it changes what there is.
    pub(crate) spread: Option<Arc<dyn Spread>>,
}

/// As [`Work::note_scans`].
pub(crate) type NoteScans = fn(&Arc<dyn ExecutionPlan>, &Arc<Progress>) -> u64;

/// As [`Work::place`].
pub(crate) type Place = fn(Arc<dyn ExecutionPlan>) -> EngineResult<Arc<dyn ExecutionPlan>>;

/// How a plan is made that is to run.
#[derive(Clone)]
struct Planned {
    plan: Arc<LogicalPlan>,
    is_optimised: bool,
    state: Arc<SessionState>,
}

/// As [`Runner::run`].
pub(super) async fn start(runner: &Runner, work: Work) -> Result<SendableRecordBatchStream> {
    let (begun, wait) = oneshot::channel();
    let (stop, waiting) = runner.stops.begin();
    let charge = Arc::clone(&work.progress.charge);
    let executors = runner.executors.clone();
    // It ends by itself when nobody waits or reads any more.
    runner.planners.spawn(stoa_store::charged(charge, work.plan_and_run(executors, stop, begun)));
    let begun = wait.await.map_err(|e| Error::internal("planning failed").with_source(e))??;
    Ok(match begun {
        Begun::All(schema, batches) => {
            Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
        }
        Begun::Stream(schema, batches) => {
            let read = |(mut batches, waiting): (mpsc::Receiver<Batch>, Waiting)| async move {
                let batch = batches.recv().await?;
                Some((batch, (batches, waiting)))
            };
            let batches = stream::unfold((batches, waiting), read);
            Box::pin(RecordBatchStreamAdapter::new(schema, batches))
        }
    })
}

type Batch = EngineResult<arrow::array::RecordBatch>;

/// What comes back from the executors first. A short answer comes in one piece, so that its reader
/// is woken once.
enum Begun {
    /// The whole answer.
    All(SchemaRef, Vec<Batch>),
    /// Where it comes from.
    Stream(SchemaRef, mpsc::Receiver<Batch>),
}

/// A query that computes.
struct Running {
    stream: SendableRecordBatchStream,
    slot: Option<HeldSlot>,
    bytes: u64,
}

impl Work {
    async fn plan_and_run(
        self,
        executors: Executors,
        stop: Arc<Stop>,
        mut begun: oneshot::Sender<Result<Begun>>,
    ) {
        // Whoever is cancelled while it plans goes away at once.
        let planned = self.planned();
        let planned = tokio::select! {
            biased;
            () = begun.closed() => return,
            planned = planned.physical_plan() => planned,
        };
        match planned {
            Ok(physical) => {
                let charge = Arc::clone(&self.progress.charge);
                // The handle is dropped: the task goes on.
                drop(executors.spawn(stoa_store::charged(charge, self.run(physical, stop, begun))));
            }
            Err(error) => drop(begun.send(Err(error))),
        }
    }

    async fn run(
        mut self,
        physical: Arc<dyn ExecutionPlan>,
        stop: Arc<Stop>,
        mut begun: oneshot::Sender<Result<Begun>>,
    ) {
        let started = tokio::select! {
            biased;
            () = begun.closed() => return,
            started = self.begin(physical, &stop) => started,
        };
        let mut running = match started {
            Ok(running) => running,
            Err(error) => return drop(begun.send(Err(error))),
        };
        let mut batches = Vec::new();
        let is_all = tokio::select! {
            biased;
            () = begun.closed() => return,
            is_all = running.short_answer(&mut batches) => is_all,
        };
        let schema = running.stream.schema();
        if is_all {
            return drop(begun.send(Ok(Begun::All(schema, batches))));
        }
        let (send, receive) = mpsc::channel(AHEAD_MAX);
        if begun.send(Ok(Begun::Stream(schema, receive))).is_ok() {
            feed_to_end(running, batches, send, &self.pool).await;
        }
    }

    fn planned(&self) -> Planned {
        let state = Arc::clone(&self.state);
        Planned { plan: Arc::clone(&self.plan), is_optimised: self.is_optimised, state }
    }

    async fn begin(
        &mut self,
        physical: Arc<dyn ExecutionPlan>,
        stop: &Arc<Stop>,
    ) -> Result<Running> {
        let bytes = (self.note_scans)(&physical, &self.progress);
        self.progress.set_execution(Execution::Plan(Arc::downgrade(&physical)));
        self.progress.set_path(QueryPath::Planned);
        let slot = match self.ticket.take() {
            Some(ticket) if bytes > 0 => {
                self.progress.set_queued(true);
                let since = clock::monotonic();
                let slot = ticket.enter(bytes).await;
                self.progress.set_queued(false);
                self.progress.set_waited(since.elapsed());
                Some(self.pool.hold(slot?))
            }
            _ => None,
        };
        self.progress.set_begun();
        let physical = match physical.downcast_ref::<ExplainExec>() {
            Some(explain) => self.explained(explain, stop).await?.unwrap_or(physical),
            None => physical,
        };
        if let Some(analyze) = physical.downcast_ref::<AnalyzeExec>()
            && let Some(stream) = self.analyzed(analyze, stop, bytes).await
        {
            return Ok(Running { stream, slot, bytes });
        }
        let stream = match self.spread_plan(&physical, stop, bytes, false).await {
            Some((spread, plan)) => self.begin_in_parts(spread, plan, stop)?,
            None => {
                let physical = (self.place)(physical)
                    .and_then(|physical| make_cooperative(physical, stop))
                    .map_err(from_datafusion)?;
                begin_here(physical, &self.tasks, &self.progress).map_err(from_datafusion)?
            }
        };
        Ok(Running { stream, slot, bytes })
    }

    /// What EXPLAIN tells of a plan that would run in parts.
    async fn explained(
        &self,
        explain: &ExplainExec,
        stop: &Arc<Stop>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let LogicalPlan::Explain(Explain { plan, .. }) = self.plan.as_ref() else {
            return Ok(None);
        };
        if self.spread.is_none() {
            return Ok(None);
        }
        let state = Arc::clone(&self.state);
        let planned = Planned { plan: Arc::clone(plan), is_optimised: false, state };
        let physical = planned.physical_plan().await?;
        let bytes = (self.note_scans)(&physical, &Arc::default());
        // Its subqueries are not computed for this.
        let Ok(physical) = scalars::with_unknown_values(&physical) else { return Ok(None) };
        let Some((_, parts)) = self.spread_plan(&physical, stop, bytes, false).await else {
            return Ok(None);
        };
        let mut told = explain.stringified_plans().to_vec();
        let text = displayable(parts.plan.as_ref()).indent(explain.verbose()).to_string();
        for plan in &mut told {
            if plan.plan_type == PlanType::FinalPhysicalPlan {
                plan.plan = Arc::new(text.clone());
            }
        }
        let explain = ExplainExec::new(explain.schema(), told, explain.verbose());
        Ok(Some(Arc::new(explain)))
    }

    /// The plan in parts, if it is to run so. Subqueries of one value are computed first.
    async fn spread_plan(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        stop: &Arc<Stop>,
        bytes: u64,
        is_analyzed: bool,
    ) -> Option<(Arc<dyn Spread>, SpreadPlan)> {
        let spread = self.spread.as_ref().filter(|spread| bytes > 0 && spread.is_worth(bytes))?;
        let (state, tasks, progress) = (&self.state, &self.tasks, &self.progress);
        let ask = Ask { plan, state, tasks, stop, bytes, progress, is_analyzed };
        let subqueries = scalars::subqueries(plan);
        if subqueries.is_empty() {
            return Some((Arc::clone(spread), spread.spread(ask).await?));
        }
        let unknown = scalars::with_unknown_values(plan).ok()?;
        if !spread.could(Ask { plan: &unknown, ..ask }) {
            return None;
        }
        let mut values = Vec::new();
        for subquery in &subqueries {
            // An error is that of the plan on one daemon.
            values.push(self.value_of(subquery, stop, bytes).await.ok()??);
        }
        let plan = scalars::with_values(plan, values).ok()?;
        Some((Arc::clone(spread), spread.spread(Ask { plan: &plan, ..ask }).await?))
    }

    /// The value of a subquery, which may be computed by several daemons, too.
    async fn value_of(
        &self,
        subquery: &Arc<dyn ExecutionPlan>,
        stop: &Arc<Stop>,
        bytes: u64,
    ) -> EngineResult<Option<ScalarValue>> {
        let here = |plan| {
            let plan = make_cooperative((self.place)(plan)?, stop)?;
            begin_here(plan, &self.tasks, &self.progress)
        };
        let in_parts = Box::pin(self.spread_plan(subquery, stop, bytes, false)).await;
        let Some((_, SpreadPlan { plan, tasks, held, .. })) = in_parts else {
            return scalars::value_of(here(reset_plan_states(Arc::clone(subquery))?)?).await;
        };
        follow(&held, &self.progress);
        scalars::value_of(begin_here(plan, &tasks, &self.progress)?).await
    }

    /// What EXPLAIN ANALYZE tells of a plan that ran in parts; `None` where it is to run here.
    async fn analyzed(
        &self,
        analyze: &AnalyzeExec,
        stop: &Arc<Stop>,
        bytes: u64,
    ) -> Option<SendableRecordBatchStream> {
        let (spread, parts) = self.spread_plan(analyze.input(), stop, bytes, true).await?;
        spread.count_begun();
        let analyzed = Analyzed {
            parts,
            spread,
            stop: Arc::clone(stop),
            progress: Arc::clone(&self.progress),
            schema: analyze.schema(),
        };
        match analyzed.rows().await {
            Ok(rows) => Some(rows),
            Err(_) => {
                // An error is that of the plan on one daemon.
                self.progress.forget_planned_rows();
                (self.note_scans)(analyze.input(), &self.progress);
                None
            }
        }
    }

    fn begin_in_parts(
        &self,
        spread: Arc<dyn Spread>,
        parts: SpreadPlan,
        stop: &Arc<Stop>,
    ) -> Result<SendableRecordBatchStream> {
        let SpreadPlan { plan, tasks, rows, held } = parts;
        spread.count_begun();
        self.progress.forget_planned_rows();
        self.progress.plan_rows(rows);
        follow(&held, &self.progress);
        let rows = begin_here(plan, &tasks, &self.progress).map_err(from_datafusion)?;
        let (planned, note_scans, place) = (self.planned(), self.note_scans, self.place);
        let (tasks, progress) = (Arc::clone(&self.tasks), Arc::clone(&self.progress));
        let stop_here = Arc::clone(stop);
        let here = async move {
            let physical = planned.physical_plan().await.map_err(to_datafusion)?;
            progress.forget_planned_rows();
            note_scans(&physical, &progress);
            begin_here(make_cooperative(place(physical)?, &stop_here)?, &tasks, &progress)
        };
        let progress = Arc::clone(&self.progress);
        Ok(rows_or_here(spread, rows, held, progress, Arc::clone(stop), here))
    }
}

/// Begins a plan on this daemon.
fn begin_here(
    physical: Arc<dyn ExecutionPlan>,
    tasks: &Arc<TaskContext>,
    progress: &Arc<Progress>,
) -> EngineResult<SendableRecordBatchStream> {
    progress.set_execution(Execution::Plan(Arc::downgrade(&physical)));
    let stream = execute_stream(Arc::clone(&physical), Arc::clone(tasks))?;
    Ok(Watched::stream(stream, physical, Arc::clone(progress)))
}

impl Planned {
    async fn physical_plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let physical = match self.is_optimised {
            true => {
                self.state
                    .query_planner()
                    .create_physical_plan(&self.plan, self.state.as_ref())
                    .await
            }
            false => self.state.create_physical_plan(&self.plan).await,
        };
        physical.map_err(from_planned)
    }
}

impl Running {
    /// Reads the answer as far as it comes at once; whether that is all of it.
    async fn short_answer(&mut self, batches: &mut Vec<Batch>) -> bool {
        match timeout(PATIENCE, self.stream.next()).await {
            Err(_) => return false,
            Ok(None) => return true,
            Ok(Some(first)) => batches.push(first),
        }
        // A second one that is there already is mostly the end.
        match self.stream.next().now_or_never() {
            None => false,
            Some(None) => true,
            Some(Some(second)) => {
                batches.push(second);
                false
            }
        }
    }
}

/// As [`feed`]. Where an operator panics, an error comes last: without it the batches before would look
/// like the whole answer.
async fn feed_to_end(
    running: Running,
    read: Vec<Batch>,
    send: mpsc::Sender<Batch>,
    pool: &Arc<QueryPool>,
) {
    let last = send.clone();
    if AssertUnwindSafe(feed(running, read, send, pool)).catch_unwind().await.is_err() {
        let error = Error::internal("an operator broke off while it computed");
        let _ = last.send(Err(to_datafusion(error))).await;
    }
}

/// Sends the batches that were read and all that come after them.
async fn feed(
    running: Running,
    read: Vec<Batch>,
    send: mpsc::Sender<Batch>,
    pool: &Arc<QueryPool>,
) {
    let Running { mut stream, mut slot, bytes } = running;
    let mut read = read.into_iter();
    loop {
        let batch = match read.next() {
            Some(batch) => Some(batch),
            None => tokio::select! {
                biased;
                () = send.closed() => return,
                batch = stream.next() => batch,
            },
        };
        let Some(batch) = batch else { return };
        let ends = batch.is_err();
        match send.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return,
            Err(TrySendError::Full(batch)) => {
                let had_slot = slot.take().is_some();
                if send.send(batch).await.is_err() {
                    return;
                }
                if had_slot {
                    let again = tokio::select! {
                        // Nobody waits for the rest.
                        () = send.closed() => return,
                        again = pool.enter_again(bytes) => again,
                    };
                    match again {
                        Ok(again) => slot = Some(again),
                        Err(error) => {
                            let _ = send.send(Err(to_datafusion(error))).await;
                            return;
                        }
                    }
                }
            }
        }
        if ends {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::RecordBatch;
    use arrow::datatypes::Schema;

    use super::*;
    use crate::run::pools::Pools;

    #[tokio::test]
    async fn an_operator_that_panics_is_not_the_end_of_the_answer() {
        let schema = Arc::new(Schema::empty());
        let batch = RecordBatch::new_empty(Arc::clone(&schema));
        let batches = stream::iter(0..3).map(move |number| {
            assert!(number < 2, "what an operator with a bug does");
            Ok(batch.clone())
        });
        let stream = Box::pin(RecordBatchStreamAdapter::new(schema, batches));
        let running = Running { stream, slot: None, bytes: 0 };
        let (send, mut receive) = mpsc::channel::<Batch>(AHEAD_MAX);
        let pool = QueryPool::new(Pools::new(&[], &[], 1, 1, 1000).unwrap().find("", "", ""));
        let reading = async {
            let mut read = Vec::new();
            while let Some(batch) = receive.recv().await {
                read.push(batch.is_ok());
            }
            read
        };
        let feeding = feed_to_end(running, Vec::new(), send, &pool);
        let (read, ()) = tokio::join!(reading, feeding);
        assert_eq!(read, [true, true, false]);
    }
}
