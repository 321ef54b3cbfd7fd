//! The plan of a statement while it runs: its operators and what they have counted so far.
//!
//! In: a physical plan, or the form of a report. Out: a [`PlanNode`], as often as somebody asks.
//!
//! A plan lives as long as its batches come ([`Watched`]); whoever shows it has only a weak hold on it,
//! because operators may keep whole tables in memory. Of a plan that took a while, a description is kept
//! when it ends. **Invariant:** a description has at most [`NODES_MAX`] operators of at most
//! [`DETAIL_MAX`] bytes of text each.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::physical_plan::metrics::{Metric, MetricValue, MetricsSet};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use futures::{Stream, StreamExt};
use stoa_env::clock;

use crate::run::progress::Progress;

/// Operators of a description; those behind them are left out.
pub(crate) const NODES_MAX: usize = 100;

/// Bytes of an operator's text.
pub(crate) const DETAIL_MAX: usize = 600;

/// Plans that took less are forgotten when they end, so that quick statements do not pay for this.
const KEPT_FROM: Duration = Duration::from_millis(10);

/// An operator and what it has counted, summed over plan partitions.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanNode {
    /// Its name: `SortExec`.
    pub name: String,
    /// What else EXPLAIN says of it, cut at 600 bytes.
    pub detail: String,
    /// Rows that it gave; `None` where it does not count them.
    pub rows: Option<u64>,
    /// Time that it computed, its inputs not included, nanoseconds; `None` where it does not measure it.
    pub compute_ns: Option<u64>,
    /// Its other figures, in alphabetical order.
    pub metrics: Vec<PlanMetric>,
    /// Its inputs.
    pub inputs: Vec<PlanNode>,
}

/// One figure of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanMetric {
    /// As EXPLAIN ANALYZE has it.
    pub name: String,
    /// How much, in `unit`.
    pub value: u64,
    /// Of what.
    pub unit: PlanUnit,
}

/// What a [`PlanMetric`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanUnit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
}

impl PlanUnit {
    /// The name as users see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Nanoseconds => "ns",
        }
    }
}

/// How a statement is executed, as far as that is known.
#[derive(Clone, Debug, Default)]
pub(crate) enum Execution {
    /// It has no plan, or none yet.
    #[default]
    Unknown,
    /// By a plan, which is there while it runs.
    Plan(Weak<dyn ExecutionPlan>),
    /// By a plan that has ended.
    EndedPlan(Arc<PlanNode>),
    /// On the short path.
    ShortPath(Arc<dyn DescribeWork>),
}

/// What is executed in another way than by a plan of the engine.
pub(crate) trait DescribeWork: std::fmt::Debug + Send + Sync {
    /// What it looks like now.
    fn describe(&self) -> PlanNode;
}

impl Execution {
    /// What it looks like now.
    pub(crate) fn describe(&self) -> Option<PlanNode> {
        match self {
            Self::Unknown => None,
            Self::Plan(plan) => plan.upgrade().map(|plan| described(&plan)),
            Self::EndedPlan(plan) => Some(plan.as_ref().clone()),
            Self::ShortPath(work) => Some(work.describe()),
        }
    }

    /// The same without a hold on a plan, for a statement that took `elapsed` and is over.
    pub(crate) fn ended(self, elapsed: Duration) -> Self {
        match self {
            Self::Plan(plan) if elapsed >= KEPT_FROM => match plan.upgrade() {
                Some(plan) => Self::EndedPlan(Arc::new(described(&plan))),
                None => Self::Unknown,
            },
            Self::Plan(_) => Self::Unknown,
            other => other,
        }
    }
}

/// The batches of a plan, and the plan as long as they come.
pub(crate) struct Watched {
    stream: SendableRecordBatchStream,
    plan: Arc<dyn ExecutionPlan>,
    progress: Arc<Progress>,
    started: Instant,
}

impl Watched {
    /// `stream`, which is that of `plan`.
    pub(crate) fn stream(
        stream: SendableRecordBatchStream,
        plan: Arc<dyn ExecutionPlan>,
        progress: Arc<Progress>,
    ) -> SendableRecordBatchStream {
        Box::pin(Self { stream, plan, progress, started: clock::monotonic() })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.started.elapsed() >= KEPT_FROM {
            let plan = Arc::new(described(&self.plan));
            self.progress.set_execution(Execution::EndedPlan(plan));
        }
    }
}

impl Stream for Watched {
    type Item = EngineResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.poll_next_unpin(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}

impl RecordBatchStream for Watched {
    fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}

/// A plan with what its operators have counted until now.
fn described(plan: &Arc<dyn ExecutionPlan>) -> PlanNode {
    let mut left = NODES_MAX - 1;
    node(plan.as_ref(), &mut left)
}

/// An operator and its inputs; `left` is how many operators more there may be.
fn node(plan: &dyn ExecutionPlan, left: &mut usize) -> PlanNode {
    let plan = shown(plan);
    let text = displayable(plan).one_line().to_string();
    let (name, detail) = name_and_detail(text.trim_end(), plan.name());
    let all = plan.metrics().map(|metrics| metrics.aggregate_by_name());
    let mut metrics: Vec<PlanMetric> =
        all.iter().flat_map(|all| all.iter()).filter_map(|metric| figure(metric.value())).collect();
    metrics.sort_by(|a, b| a.name.cmp(&b.name));
    let count = |count: Option<usize>| count.map(|count| count as u64);
    let mut inputs = Vec::new();
    for input in plan.children() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        inputs.push(node(input.as_ref(), left));
    }
    PlanNode {
        name,
        detail,
        rows: count(all.as_ref().and_then(|all| all.output_rows())),
        compute_ns: computed(all.as_ref()),
        metrics,
        inputs,
    }
}

/// The time that an operator computed, nanoseconds. Joins say how long they built and probed as they go, and only when they
/// are dropped how long both took.
fn computed(metrics: Option<&MetricsSet>) -> Option<u64> {
    let metrics = metrics?;
    let time = |wanted: &str| {
        let is_wanted = |metric: &&Arc<Metric>| matches!(metric.value(), MetricValue::Time { name, .. } if name == wanted);
        let times = metrics.iter().filter(is_wanted).map(|metric| metric.value().as_usize());
        times.reduce(|sum, time| sum + time)
    };
    let parts = [time("build_time"), time("join_time")].into_iter().flatten();
    let so_far = parts.reduce(|build, join| build + join);
    metrics.elapsed_compute().max(so_far).map(|ns| ns as u64)
}

/// The operator itself, without what only makes it give way to others.
fn shown(plan: &dyn ExecutionPlan) -> &dyn ExecutionPlan {
    match (plan.name(), plan.children().as_slice()) {
        ("CooperativeExec", [input]) => {
            let input = *input;
            shown(input.as_ref())
        }
        _ => plan,
    }
}

/// The line of an operator in EXPLAIN, in two.
pub(crate) fn name_and_detail(line: &str, name: &str) -> (String, String) {
    // Some say more in their name than in their line: `SortExec(TopK)`.
    let first = name.split('(').next().unwrap_or(name);
    let detail = line.strip_prefix(first).unwrap_or(line).trim_start_matches([':', ',', ' ']);
    let mut end = detail.len().min(DETAIL_MAX);
    while !detail.is_char_boundary(end) {
        end -= 1;
    }
    (name.to_owned(), detail[..end].to_owned())
}

/// A figure that is more than 0 and is not said elsewhere.
fn figure(value: &MetricValue) -> Option<PlanMetric> {
    let unit = match value {
        MetricValue::SpillCount(_) | MetricValue::SpilledRows(_) => PlanUnit::Count,
        MetricValue::SpilledBytes(_)
        | MetricValue::CurrentMemoryUsage(_)
        | MetricValue::PeakMemoryUsage { .. } => PlanUnit::Bytes,
        MetricValue::Count { name, .. } | MetricValue::Gauge { name, .. } => {
            unit_of(name, PlanUnit::Count)
        }
        MetricValue::Time { .. } => PlanUnit::Nanoseconds,
        _ => return None,
    };
    let amount = value.as_usize() as u64;
    (amount > 0).then(|| PlanMetric { name: value.name().to_owned(), value: amount, unit })
}

pub(crate) fn unit_of(name: &str, other: PlanUnit) -> PlanUnit {
    match name.contains("bytes") || name.contains("mem_used") {
        true => PlanUnit::Bytes,
        false => other,
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_what_follows() {
        let check = |line: &str, name: &str, detail: &str| {
            assert_eq!(name_and_detail(line, name), (name.to_owned(), detail.to_owned()));
        };
        check("SortExec: expr=[a@0]", "SortExec", "expr=[a@0]");
        check("SortExec: TopK(fetch=1)", "SortExec(TopK)", "TopK(fetch=1)");
        check("ReportExec: table=t", "ReportExec", "table=t");
        check("CoalescePartitionsExec", "CoalescePartitionsExec", "");
        let long = format!("FilterExec: {}", "ä".repeat(DETAIL_MAX));
        assert!(name_and_detail(&long, "FilterExec").1.len() <= DETAIL_MAX);
    }

    #[test]
    fn a_plan_that_is_gone_is_unknown() {
        let gone: Weak<datafusion::physical_plan::empty::EmptyExec> = Weak::new();
        assert_eq!(Execution::Plan(gone).ended(KEPT_FROM).describe(), None);
    }
}
