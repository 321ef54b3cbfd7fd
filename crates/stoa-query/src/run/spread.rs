//! Plans of which other daemons compute parts.
//!
//! In: a plan that is about to run. Out: the same plan in parts, and its rows. **Invariant:** nothing was given to the
//! reader when a plan that is spread fails for the first time: it runs here, then, as if it had not been spread. So a
//! daemon that dies before the first row costs time, and an error is always that of the plan here. Later errors are
//! those of the daemon where they happened.
//!
//! Not here: which plans are spread, and to whom (`engine::spread`).

use std::any::Any;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};

use crate::run::stop::Stop;

/// Has other daemons compute parts of plans.
pub(crate) trait Spread: Send + Sync {
    /// Whether a plan that reads so many bytes is to be spread, if it can be.
    fn is_worth(&self, bytes: u64) -> bool;

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
}

/// A plan in parts.
pub(crate) struct SpreadPlan {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) tasks: Arc<TaskContext>,
    /// Rows of files that this daemon reads itself.
    pub(crate) rows_here: u64,
    /// What the other daemons keep for it, until this is dropped.
    pub(crate) held: Box<dyn Any + Send>,
}

/// The rows of a plan that runs in parts, or those of the plan here if it fails before the first of them.
pub(super) fn rows_or_here(
    spread: Arc<dyn Spread>,
    parts: SendableRecordBatchStream,
    held: Box<dyn Any + Send>,
    stop: Arc<Stop>,
    here: impl Future<Output = EngineResult<SendableRecordBatchStream>> + Send + 'static,
) -> SendableRecordBatchStream {
    let schema = parts.schema();
    let rows = stream::once(async move {
        match first_rows(parts).await {
            Ok(parts) => {
                let received = parts.map_err(move |error| spread.received(error));
                // The others keep what they have for it as long as rows come.
                let kept = received.inspect(move |_| {
                    let _held = &held;
                });
                Ok(kept.boxed())
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
