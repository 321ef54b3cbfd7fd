//! Running plans on the executors.
//!
//! In: a logical plan. Out: a batch stream that is fed by a task on the executors; the caller's own
//! thread only passes batches on. Dropping the stream ends the task at its next batch.
//!
//! A query that waits for its reader gives its slot back meanwhile: a slow client, or one that stops
//! in the middle of a cursor, keeps nobody from computing.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::error::Result as EngineResult;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{FutureExt, StreamExt, stream};
use stoa_env::executors::Executors;
use stoa_error::{Error, Result};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

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
    /// Whether the plan is optimised already.
    pub(crate) is_optimised: bool,
    pub(crate) state: Arc<SessionState>,
    pub(crate) tasks: Arc<TaskContext>,
    pub(crate) progress: Arc<Progress>,
    /// Who lets it compute; `None` for parts of a statement that needs no leave.
    pub(crate) admission: Option<Admission>,
}

/// Starts `work` on `executors`; returns with its first batch.
///
/// # Errors
/// Those of planning, and of admission.
pub(crate) async fn start(executors: &Executors, work: Work) -> Result<SendableRecordBatchStream> {
    let (begun, wait) = oneshot::channel();
    // The handle is dropped: the task ends by itself when nobody waits or reads any more.
    executors.spawn(work.run(begun));
    let begun = wait.await.map_err(|e| Error::internal("planning failed").with_source(e))??;
    Ok(match begun {
        Begun::Here(stream) => stream,
        Begun::All(schema, batches) => {
            Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
        }
        Begun::First(schema, first, rest) => {
            let rest = stream::unfold(rest, |mut rest| async move {
                let batch = rest.recv().await?;
                Some((batch, rest))
            });
            let batches = stream::iter(std::iter::once(first)).chain(rest);
            Box::pin(RecordBatchStreamAdapter::new(schema, batches))
        }
    })
}

type Batch = EngineResult<arrow::array::RecordBatch>;

/// What comes back from the executors first. A short answer comes in one piece, so that its reader
/// is woken once.
enum Begun {
    /// What reads no files needs no executor to be quick.
    Here(SendableRecordBatchStream),
    /// The whole answer.
    All(SchemaRef, Vec<Batch>),
    /// The first batch, and where the others come from.
    First(SchemaRef, Batch, mpsc::Receiver<Batch>),
}

/// A query that computes.
struct Running {
    stream: SendableRecordBatchStream,
    slot: Option<Slot>,
    bytes: u64,
}

impl Work {
    async fn run(self, mut begun: oneshot::Sender<Result<Begun>>) {
        let first = async {
            let mut running = self.begin().await?;
            if running.bytes == 0 {
                return Ok((running, None));
            }
            let first = running.stream.next().await;
            // A second one that is there at once is mostly the end.
            let second = match first {
                Some(Ok(_)) => running.stream.next().now_or_never(),
                _ => Some(None),
            };
            Result::<_>::Ok((running, Some((first, second))))
        };
        // Whoever is cancelled while it plans or waits goes away at once.
        let first = tokio::select! {
            biased;
            () = begun.closed() => return,
            first = first => first,
        };
        let (running, batches) = match first {
            Ok(found) => found,
            Err(error) => return drop(begun.send(Err(error))),
        };
        let schema = running.stream.schema();
        let (first, second) = match batches {
            None => return drop(begun.send(Ok(Begun::Here(running.stream)))),
            Some((None, _)) => return drop(begun.send(Ok(Begun::All(schema, Vec::new())))),
            Some((Some(first), Some(None))) => {
                return drop(begun.send(Ok(Begun::All(schema, vec![first]))));
            }
            Some((Some(first), second)) => (first, second.flatten()),
        };
        let (send, receive) = mpsc::channel(AHEAD_MAX);
        if begun.send(Ok(Begun::First(schema, first, receive))).is_ok() {
            feed(running, second, send, self.admission).await;
        }
    }

    async fn begin(&self) -> Result<Running> {
        let physical = match self.is_optimised {
            true => {
                self.state
                    .query_planner()
                    .create_physical_plan(&self.plan, self.state.as_ref())
                    .await
            }
            false => self.state.create_physical_plan(&self.plan).await,
        };
        let physical = make_cancellable(physical.map_err(from_datafusion)?);
        let physical = physical.map_err(from_datafusion)?;
        scan::attach_progress(&physical, &self.progress);
        let bytes = scan::planned_bytes(&physical);
        let slot = match &self.admission {
            Some(admission) if bytes > 0 => {
                self.progress.set_queued(true);
                let slot = admission.enter(bytes).await;
                self.progress.set_queued(false);
                Some(slot?)
            }
            _ => None,
        };
        let stream = execute_stream(physical, Arc::clone(&self.tasks));
        Ok(Running { stream: stream.map_err(from_datafusion)?, slot, bytes })
    }
}

/// Sends `next` and all that comes after it.
async fn feed(
    running: Running,
    mut next: Option<Batch>,
    send: mpsc::Sender<Batch>,
    admission: Option<Admission>,
) {
    let Running { mut stream, mut slot, bytes } = running;
    loop {
        let batch = match next.take() {
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
