//! Answers that are given again as long as nothing has changed.
//!
//! In: a plan whose tables are pinned. Out: the answer of an equal plan on the same versions and the
//! same fresh rows, if it was small; or a place to put this one. Whoever asks for what somebody else is
//! computing waits for it instead of computing it, too.
//!
//! **Invariants:** an answer is given only where text, parameters, settings and every table's version
//! and fresh rows are those it was computed from; a statement that could answer otherwise the next
//! time (a clock, random numbers, the server's own tables) is never kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use stoa_error::Result;
use tokio::sync::watch;

use crate::access::CallerKey;
use crate::tables::table::stoa_table;
use stoa_semantics::errors::from_datafusion;
use stoa_semantics::volatility;

/// Larger answers are not kept, bytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// What an answer depends on: what was asked, and the versions of the tables that were read.
///
/// Keys are compared value by value, never as text: `{"a, b"}` and `{a,b}` are two arrays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResultKey(Arc<(Asked, BTreeSet<TableVersion>)>);

/// What was asked, by whom, and with which options.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    /// Options of the session, as [`crate::session`] writes them.
    pub(crate) context: Arc<str>,
    /// Under which rights.
    pub(crate) caller: CallerKey,
    pub(crate) text: Arc<str>,
    pub(crate) parameters: Vec<AskedValue>,
}

/// A parameter. Two values of one kind may be equal although their types are not (timestamps of two
/// zones), and the type that the plan wants may be another one than the value's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AskedValue {
    wanted: Option<DataType>,
    own: DataType,
    value: ScalarValue,
}

/// One version of a table, with so many fresh rows up to a position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableVersion {
    metadata_location: String,
    fresh_rows: u64,
    fresh_end: u64,
}

impl TableVersion {
    /// The version with this metadata file, and so many fresh rows up to a position.
    pub(crate) fn new(metadata_location: &str, (fresh_rows, fresh_end): (u64, u64)) -> Self {
        Self { metadata_location: metadata_location.to_owned(), fresh_rows, fresh_end }
    }
}

impl Asked {
    /// `wanted` are the types that the plan has for the `values`.
    pub(crate) fn values(wanted: &[DataType], values: &[ScalarValue]) -> Vec<AskedValue> {
        let value = |(at, value): (usize, &ScalarValue)| AskedValue {
            wanted: wanted.get(at).cloned(),
            own: value.data_type(),
            value: value.clone(),
        };
        values.iter().enumerate().map(value).collect()
    }

    /// Memory this takes, about, in bytes.
    fn bytes(&self) -> usize {
        let values = self.parameters.iter().map(|one| one.value.size() + 2 * one.own.size());
        self.text.len() + values.sum::<usize>() + size_of::<Self>()
    }
}

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
        let (asked, versions) = &*key.0;
        let versions: usize = versions.iter().map(|table| table.metadata_location.len() + 64).sum();
        (asked.bytes() + versions + kept.bytes + 256) as u64
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

    /// Forgets all answers.
    pub(crate) fn clear(&self) {
        self.kept.clear();
    }

    /// The answer for `key`, if it is there.
    pub(crate) fn kept(&self, key: &ResultKey) -> Option<SendableRecordBatchStream> {
        let kept = self.kept.get(key)?;
        self.reused.fetch_add(1, Ordering::Relaxed);
        Some(kept.stream())
    }

    /// The answer for `key`, at once or when somebody who computes it has it.
    pub(crate) async fn find(self: &Arc<Self>, key: ResultKey) -> Found {
        loop {
            if let Some(answer) = self.kept(&key) {
                return Found::Answer(answer);
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
    /// The same batches. A small answer is read to its end first, whoever reads it and how fast, and
    /// kept; of a large one nobody waits for more than its first part.
    ///
    /// # Errors
    /// Those of the stream.
    pub(crate) async fn keep(
        self,
        mut stream: SendableRecordBatchStream,
    ) -> Result<SendableRecordBatchStream> {
        let schema = stream.schema();
        let mut batches = Vec::new();
        let mut bytes = 0;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(from_datafusion)?;
            bytes += batch.get_array_memory_size();
            batches.push(batch);
            if bytes > ANSWER_BYTES_MAX {
                let begin = futures::stream::iter(batches.into_iter().map(Ok));
                let all = begin.chain(stream);
                return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)));
            }
        }
        let kept = Arc::new(Kept { schema, batches, bytes });
        self.results.kept.insert(self.key.clone(), Arc::clone(&kept));
        Ok(kept.stream())
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        self.results.running.lock().remove(&self.key);
    }
}

/// What the answer of a pinned plan depends on beside what was `asked`; `None` where it may be another
/// one the next time.
pub(crate) fn key_of(plan: &LogicalPlan, asked: &Asked) -> Option<ResultKey> {
    let mut versions = BTreeSet::new();
    let mut only_tables = true;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            match stoa_table(&scan.source) {
                Some(table) if table.has_own() || table.is_external() => only_tables = false,
                Some(table) => {
                    let location = table.table.metadata_location();
                    versions.insert(TableVersion::new(location, table.fresh_extent()));
                }
                None => only_tables = false,
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    let is_kept = walked.is_ok() && only_tables && is_repeatable(plan);
    is_kept.then(|| ResultKey::new(asked.clone(), versions))
}

impl ResultKey {
    /// The key of what was asked, on these versions of its tables.
    pub(crate) fn new(asked: Asked, versions: BTreeSet<TableVersion>) -> Self {
        Self(Arc::new((asked, versions)))
    }
}

/// Whether a plan asks for the time, and so needs a state that knows when it started.
pub(crate) fn reads_clock(plan: &LogicalPlan) -> bool {
    let mut reads = false;
    let walked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarFunction(call) = expr {
                    reads |= volatility(call) == Volatility::Stable;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.is_err() || reads
}

/// Whether a plan is a query that has the same answer as long as its tables are the same.
pub(crate) fn is_repeatable(plan: &LogicalPlan) -> bool {
    let mut repeatable = true;
    let walked = plan.apply_with_subqueries(|node| {
        repeatable &= !matches!(
            node,
            LogicalPlan::Dml(_)
                | LogicalPlan::Ddl(_)
                | LogicalPlan::Statement(_)
                | LogicalPlan::Copy(_)
                | LogicalPlan::Explain(_)
                | LogicalPlan::Analyze(_)
                | LogicalPlan::DescribeTable(_)
                | LogicalPlan::Extension(_)
        );
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                repeatable &= match expr {
                    Expr::ScalarFunction(call) => volatility(call) == Volatility::Immutable,
                    Expr::ScalarVariable(..) => false,
                    _ => true,
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.is_ok() && repeatable
}
