//! Plans of which other daemons compute parts.
//!
//! In: a plan that is about to run. Out: the same plan in parts, and its rows. **Invariant:** nothing was given to the
//! reader when a plan that is spread fails for the first time: it runs here, then, as if it had not been spread. So a
//! daemon that dies before the first row costs time, and an error is always that of the plan here. Later errors are
//! those of the daemon where they happened.
//!
//! Not here: which plans are spread, and to whom (`engine::spread`).

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use stoa_env::{task, timer};

use crate::run::progress::Progress;
use crate::run::stop::Stop;

/// How often other daemons are asked what they have done: limits of pools are checked as often.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Has other daemons compute parts of plans.
pub(crate) trait Spread: Send + Sync {
    /// Whether a plan that reads so many bytes is to be spread, if it can be.
    fn is_worth(&self, bytes: u64) -> bool;

    /// Whether the plan could be spread, if other daemons take part.
    fn could(&self, ask: Ask<'_>) -> bool;

    /// The plan in parts; `None` where it is to run here.
    fn spread<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Option<SpreadPlan>>;

    /// An error of a plan in parts as it was where it happened.
    fn received(&self, error: DataFusionError) -> DataFusionError;

    /// Counts a plan that begins in parts.
    fn count_begun(&self);

    /// Counts a plan in parts that failed before its first row.
    fn count_failure(&self);

    /// What was spread since the start.
    fn counts(&self) -> SpreadCounts;
}

/// Statements of which other daemons computed parts, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpreadCounts {
    /// Those of this daemon.
    pub(crate) spread: u64,
    /// Of these, those that failed before their first row.
    pub(crate) failed: u64,
    /// Those of other daemons of which this one computed a part.
    pub(crate) for_others: u64,
}

/// A plan that might be spread, and what it runs with.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) plan: &'a Arc<dyn ExecutionPlan>,
    /// With what it was planned.
    pub(crate) state: &'a SessionState,
    pub(crate) tasks: &'a Arc<TaskContext>,
    pub(crate) stop: &'a Arc<Stop>,
    /// Bytes of the files that it reads.
    pub(crate) bytes: u64,
    /// What the statement counts.
    pub(crate) progress: &'a Arc<Progress>,
    /// Whether what each daemon computes is wanted in the end, with its figures.
    pub(crate) is_analyzed: bool,
}

/// A plan in parts.
pub(crate) struct SpreadPlan {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) tasks: Arc<TaskContext>,
    /// Rows of the files that all daemons read.
    pub(crate) rows: u64,
    /// What the daemons keep for it, until nobody has this any more.
    pub(crate) held: Arc<dyn Held>,
}

/// What daemons keep for a plan in parts.
pub(crate) trait Held: Send + Sync {
    /// What each daemon has done so far, the one of the statement first; those that do not answer soon are left out.
    /// `with_plans`: with the text of what they computed, if the plan was made for that ([`Ask::is_analyzed`]).
    fn done(&self, with_plans: bool) -> BoxFuture<'static, Vec<DoneByDaemon>>;
}

/// What one daemon has done of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DoneByDaemon {
    /// Its id.
    pub(crate) daemon: String,
    /// Rows of files that were scanned or left out.
    pub(crate) rows_scanned: u64,
    pub(crate) bytes_read: u64,
    /// Requests for these bytes.
    pub(crate) requests: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) memory_peak_bytes: u64,
    /// The plans of its tasks with their figures, as EXPLAIN ANALYZE writes them.
    pub(crate) plans: Vec<String>,
}

impl DoneByDaemon {
    /// Adds up figures.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows_scanned += other.rows_scanned;
        self.bytes_read += other.bytes_read;
        self.requests += other.requests;
        self.memory_bytes += other.memory_bytes;
        self.memory_peak_bytes += other.memory_peak_bytes;
    }
}

/// Counts what other daemons do of a statement for it, as long as anybody has `held`.
pub(super) fn follow(held: &Arc<dyn Held>, progress: &Arc<Progress>) {
    let (held, progress) = (Arc::downgrade(held), Arc::clone(progress));
    task::spawn(async move {
        loop {
            timer::sleep(FOLLOW_INTERVAL).await;
            // Nobody keeps anything for longer because of this.
            let Some(done) = held.upgrade().map(|held| held.done(false)) else { return };
            progress.note_elsewhere(done.await.iter().skip(1));
        }
    });
}

/// The rows of a plan that runs in parts, or those of the plan here if it fails before the first of them.
pub(super) fn rows_or_here(
    spread: Arc<dyn Spread>,
    parts: SendableRecordBatchStream,
    held: Arc<dyn Held>,
    progress: Arc<Progress>,
    stop: Arc<Stop>,
    here: impl Future<Output = EngineResult<SendableRecordBatchStream>> + Send + 'static,
) -> SendableRecordBatchStream {
    let schema = parts.schema();
    let rows = stream::once(async move {
        match first_rows(parts).await {
            Ok(parts) => {
                let received = parts.map_err(move |error| spread.received(error));
                // The others keep what they have for it as long as rows come, and tell in the end what they have done.
                let counted = stream::once(async move {
                    progress.note_elsewhere(held.done(false).await.iter().skip(1));
                });
                Ok(received.chain(counted.filter_map(async |()| None)).boxed())
            }
            Err(error) if stop.is_asked() => Err(error),
            Err(error) => {
                drop(held);
                spread.count_failure();
                tracing::info!(error = %spread.received(error), "a plan was to run on several daemons, and runs on one");
                Ok(here.await?.boxed())
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten()))
}

type Rows = stream::BoxStream<'static, EngineResult<RecordBatch>>;

/// All rows, once the first is there.
async fn first_rows(mut parts: SendableRecordBatchStream) -> EngineResult<Rows> {
    while let Some(batch) = parts.try_next().await? {
        if batch.num_rows() > 0 {
            return Ok(stream::once(async move { Ok(batch) }).chain(parts).boxed());
        }
    }
    Ok(stream::empty().boxed())
}
