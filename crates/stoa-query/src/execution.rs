//! Running plans on the executors.
//!
//! In: a logical plan. Out: a batch stream that is fed by a task on the executors; the caller's own
//! thread only passes batches on. Dropping the stream ends the task at its next batch.
//!
//! A query that waits for its reader gives its slot back meanwhile: a slow client, or one that stops
//! in the middle of a cursor, keeps nobody from computing.

use std::sync::Arc;

use datafusion::error::Result as EngineResult;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{StreamExt, stream};
use stoa_env::executors::Executors;
use stoa_error::{Error, Result};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::AbortHandle;

use crate::admission::{Admission, Slot};
use crate::cooperate::make_cancellable;
use crate::error::{from_datafusion, to_datafusion};
use crate::registry::Progress;
use crate::scan;

/// Batches that may wait for their reader.
const AHEAD_MAX: usize = 1;

/// A plan and what it runs with.
pub(crate) struct Work {
    pub(crate) plan: LogicalPlan,
    pub(crate) state: Arc<SessionState>,
    pub(crate) tasks: Arc<TaskContext>,
    pub(crate) progress: Arc<Progress>,
    /// Who lets it compute; `None` for parts of a statement that needs no leave.
    pub(crate) admission: Option<Admission>,
}

/// Starts `work` on `executors`; returns when its first batch may come.
///
/// # Errors
/// Those of planning, and of admission.
pub(crate) async fn start(executors: &Executors, work: Work) -> Result<SendableRecordBatchStream> {
    let (send, receive) = mpsc::channel(AHEAD_MAX);
    let task = executors.spawn(async move {
        let (physical, stream, slot) = work.begin().await?;
        let schema = stream.schema();
        Result::<_>::Ok((work, physical, stream, slot, schema))
    });
    // Whoever is cancelled while it plans or waits goes away at once.
    let _abort = AbortOnDrop(task.abort_handle());
    let begun = task.await.map_err(|e| Error::internal("planning failed").with_source(e))??;
    let (work, physical, stream, slot, schema) = begun;
    let bytes = scan::planned_bytes(&physical);
    if bytes == 0 {
        // What reads no files needs no executor to be quick.
        return Ok(stream);
    }
    // The handle is dropped: the task ends by itself when nobody reads any more.
    executors.spawn(feed(stream, send, work.admission, slot, bytes));
    let batches = stream::unfold(receive, |mut receive| async move {
        let batch = receive.recv().await?;
        Some((batch, receive))
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

/// Ends a task that nobody waits for any more.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Begun = (Arc<dyn ExecutionPlan>, SendableRecordBatchStream, Option<Slot>);

impl Work {
    async fn begin(&self) -> Result<Begun> {
        let physical = self.state.create_physical_plan(&self.plan).await;
        let physical = make_cancellable(physical.map_err(from_datafusion)?);
        let physical = physical.map_err(from_datafusion)?;
        scan::attach_progress(&physical, &self.progress);
        let slot = match &self.admission {
            Some(admission) if scan::reads_files(&physical) => {
                self.progress.set_queued(true);
                let slot = admission.enter(scan::planned_bytes(&physical)).await;
                self.progress.set_queued(false);
                Some(slot?)
            }
            _ => None,
        };
        let stream = execute_stream(Arc::clone(&physical), Arc::clone(&self.tasks));
        Ok((physical, stream.map_err(from_datafusion)?, slot))
    }
}

async fn feed(
    mut stream: SendableRecordBatchStream,
    send: mpsc::Sender<EngineResult<arrow::array::RecordBatch>>,
    admission: Option<Admission>,
    mut slot: Option<Slot>,
    bytes: u64,
) {
    loop {
        let batch = tokio::select! {
            biased;
            () = send.closed() => return,
            batch = stream.next() => batch,
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
                if let (true, Some(admission)) = (had_slot, &admission) {
                    match admission.enter_again(bytes).await {
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
