//! `EXPLAIN ANALYZE` of a plan that several daemons compute.
//!
//! In: a plan in parts. Out, once all its rows have come: for each daemon what it read, and the operators of its tasks
//! with their figures. The daemon of the statement comes first, and its first task is the one that gives the answer.
//!
//! ```text
//! DistributedExec: metrics=[…]
//!   DaemonExec: daemon=…, metrics=[rows_scanned=…, bytes_read=…]
//!     SortPreservingMergeExec: … metrics=[output_rows=…, elapsed_compute=…]
//!     SortExec: …                                                                 another task
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{TryStreamExt, stream};

use crate::run::live_plan::{Execution, Watched};
use crate::run::progress::Progress;
use crate::run::spread::{DoneByDaemon, Spread, SpreadPlan, follow};
use crate::run::stop::Stop;

/// What EXPLAIN ANALYZE calls a plan with figures.
const KIND: &str = "Plan with Metrics";

/// A plan in parts of which the figures are wanted.
pub(super) struct Analyzed {
    pub(super) parts: SpreadPlan,
    pub(super) spread: Arc<dyn Spread>,
    pub(super) stop: Arc<Stop>,
    pub(super) progress: Arc<Progress>,
    /// The columns of EXPLAIN ANALYZE.
    pub(super) schema: SchemaRef,
}

impl Analyzed {
    /// Computes the plan to its end; the answer of EXPLAIN ANALYZE.
    ///
    /// # Errors
    /// The plan failed. That was counted.
    pub(super) async fn rows(self) -> EngineResult<SendableRecordBatchStream> {
        let computed = self.computed().await;
        if let Err(error) = &computed
            && !self.stop.is_asked()
        {
            self.spread.count_failure();
            tracing::info!(%error, "a plan was to run on several daemons, and runs on one");
        }
        let text = computed?;
        let columns: Vec<ArrayRef> =
            vec![Arc::new(StringArray::from(vec![KIND])), Arc::new(StringArray::from(vec![text]))];
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        let rows = stream::iter([Ok(batch)]);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema, rows)))
    }

    async fn computed(&self) -> Result<String, DataFusionError> {
        let SpreadPlan { plan, tasks, rows, held } = &self.parts;
        self.progress.forget_planned_rows();
        self.progress.plan_rows(*rows);
        follow(held, &self.progress);
        self.progress.set_execution(Execution::Plan(Arc::downgrade(plan)));
        let stream = execute_stream(Arc::clone(plan), Arc::clone(tasks))?;
        let mut stream = Watched::stream(stream, Arc::clone(plan), Arc::clone(&self.progress));
        while stream.try_next().await?.is_some() {}
        let done = held.done(true).await;
        self.progress.note_elsewhere(done.iter().skip(1));
        Ok(text_of(plan.as_ref(), &done))
    }
}

/// A plan with its figures.
pub(crate) fn with_figures(plan: &dyn ExecutionPlan) -> String {
    DisplayableExecutionPlan::with_metrics(plan).indent(false).to_string()
}

fn text_of(plan: &dyn ExecutionPlan, done: &[DoneByDaemon]) -> String {
    let mut text = DisplayableExecutionPlan::with_metrics(plan).one_line().to_string();
    for by in done {
        let DoneByDaemon { daemon, rows_scanned, bytes_read, requests, .. } = by;
        let peak = by.memory_peak_bytes;
        text.push_str(&format!(
            "  DaemonExec: daemon={daemon}, metrics=[rows_scanned={rows_scanned}, bytes_read={bytes_read}, \
             read_requests={requests}, peak_mem_used={peak}]\n"
        ));
        for line in by.plans.iter().flat_map(|plan| plan.lines()) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}
