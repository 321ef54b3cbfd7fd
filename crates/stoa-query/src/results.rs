//! Answers that are given again as long as nothing has changed.
//!
//! In: a plan whose tables are pinned. Out: the answer of an equal plan on the same versions and the
//! same fresh rows, if it was small; or a place to put this one. Whoever asks for what somebody else is
//! computing waits for it instead of computing it, too.
//!
//! **Invariants:** an answer is given only where text, parameters, settings and every table's version
//! and fresh rows are those it was computed from; a statement that could answer otherwise the next
//! time (a clock, random numbers, the server's own tables) is never kept.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as EngineResult;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::watch;

use crate::table::stoa_table;

/// Larger answers are not kept, bytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// What a plan depends on, written out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResultKey(Arc<str>);

/// Answers of an engine.
pub(crate) struct Results {
    kept: Cache<ResultKey, Arc<Kept>, Bytes>,
    running: Mutex<HashMap<ResultKey, watch::Receiver<()>>>,
    reused: AtomicU64,
}

struct Kept {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    bytes: usize,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<ResultKey, Arc<Kept>> for Bytes {
    fn weight(&self, key: &ResultKey, kept: &Arc<Kept>) -> u64 {
        (key.0.len() + kept.bytes + 256) as u64
    }
}

/// What is there for a key.
pub(crate) enum Found {
    /// The answer.
    Answer(SendableRecordBatchStream),
    /// Nothing: whoever asked computes it, and others wait until this is dropped.
    Compute(Computing),
}

/// The right to compute an answer that others wait for.
pub(crate) struct Computing {
    results: Arc<Results>,
    key: ResultKey,
    _done: watch::Sender<()>,
}

impl Results {
    /// Keeps answers of at most `bytes_max` bytes together.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let kept = Cache::with_weighter(4096, bytes_max, Bytes);
        Self { kept, running: Mutex::default(), reused: AtomicU64::new(0) }
    }

    /// Statements that were answered without being computed, since the start.
    pub(crate) fn reused(&self) -> u64 {
        self.reused.load(Ordering::Relaxed)
    }

    /// The answer for `key`, at once or when somebody who computes it has it.
    pub(crate) async fn find(self: &Arc<Self>, key: ResultKey) -> Found {
        loop {
            if let Some(kept) = self.kept.get(&key) {
                self.reused.fetch_add(1, Ordering::Relaxed);
                return Found::Answer(kept.stream());
            }
            let mut computed = {
                let mut running = self.running.lock();
                match running.get(&key) {
                    Some(computed) => computed.clone(),
                    None => {
                        let (done, wait) = watch::channel(());
                        running.insert(key.clone(), wait);
                        return Found::Compute(Computing {
                            results: Arc::clone(self),
                            key,
                            _done: done,
                        });
                    }
                }
            };
            // Ends with an error when the sender is dropped, which is all there is to know.
            let _ = computed.changed().await;
        }
    }
}

impl Kept {
    fn stream(&self) -> SendableRecordBatchStream {
        let batches = self.batches.clone().into_iter().map(Ok);
        let batches = futures::stream::iter(batches);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

impl Computing {
    /// The same stream; when it comes to its end, it was small, and nobody stopped it, its batches are
    /// kept.
    pub(crate) fn keep(self, stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = stream.schema();
        Box::pin(Keeping { stream, schema, computing: Some(self), batches: Vec::new(), bytes: 0 })
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        self.results.running.lock().remove(&self.key);
    }
}

struct Keeping {
    stream: SendableRecordBatchStream,
    schema: SchemaRef,
    /// `None` once the answer is kept, or will not be.
    computing: Option<Computing>,
    batches: Vec<RecordBatch>,
    bytes: usize,
}

impl Stream for Keeping {
    type Item = EngineResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.stream.poll_next_unpin(cx);
        if self.computing.is_none() {
            return polled;
        }
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(batch))) => {
                self.bytes += batch.get_array_memory_size();
                self.batches.push(batch.clone());
                if self.bytes > ANSWER_BYTES_MAX {
                    self.give_up();
                }
            }
            Poll::Ready(Some(Err(_))) => self.give_up(),
            Poll::Ready(None) => {
                if let Some(computing) = self.computing.take() {
                    let batches = std::mem::take(&mut self.batches);
                    let schema = Arc::clone(&self.schema);
                    let kept = Arc::new(Kept { schema, batches, bytes: self.bytes });
                    computing.results.kept.insert(computing.key.clone(), kept);
                }
            }
        }
        polled
    }
}

impl Keeping {
    fn give_up(&mut self) {
        self.computing = None;
        self.batches = Vec::new();
    }
}

impl RecordBatchStream for Keeping {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// What the answer of a pinned plan depends on; `None` where it may be another one the next time.
/// `context` is what the plan was made of: text, parameters, settings of the session.
pub(crate) fn key_of(plan: &LogicalPlan, context: String) -> Option<ResultKey> {
    let mut key = context;
    let mut repeatable = true;
    let walked = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => match stoa_table(&scan.source) {
                Some(table) => {
                    let (rows, end) = table.fresh_extent();
                    let location = table.table.metadata_location();
                    key.push_str(&format!("\0{location}\0{rows}\0{end}"));
                }
                None => repeatable = false,
            },
            LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::DescribeTable(_)
            | LogicalPlan::Extension(_) => repeatable = false,
            _ => {}
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarFunction(call) = expr
                    && call.func.signature().volatility != Volatility::Immutable
                {
                    repeatable = false;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    if walked.is_err() || !repeatable {
        return None;
    }
    Some(ResultKey(key.into()))
}
