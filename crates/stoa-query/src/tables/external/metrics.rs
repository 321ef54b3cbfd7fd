//! What a scan of an external table counts. Shown by `EXPLAIN ANALYZE`; summed per query for the registry.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder,
};
use stoa_external::Rows;
use stoa_rangeio::ReadCounts;
use stoa_store::{Charge, Charged};

use crate::run::progress::Progress;

/// Counters of one plan partition.
pub(super) struct ExternalMetrics {
    pub(super) baseline: BaselineMetrics,
    stripes_total: Count,
    stripes_pruned: Count,
    row_groups_total: Count,
    row_groups_pruned: Count,
    bytes_read: Count,
    requests: Count,
    store_requests: Count,
    cost: Count,
    pub(super) progress: Arc<Progress>,
}

impl ExternalMetrics {
    pub(super) fn new(
        set: &ExecutionPlanMetricsSet,
        partition: usize,
        progress: Arc<Progress>,
    ) -> Self {
        let count = |name: &'static str| MetricBuilder::new(set).counter(name, partition);
        Self {
            baseline: BaselineMetrics::new(set, partition),
            stripes_total: count("stripes_total"),
            stripes_pruned: count("stripes_pruned"),
            row_groups_total: count("row_groups_total"),
            row_groups_pruned: count("row_groups_pruned"),
            bytes_read: count("bytes_read"),
            requests: count("read_requests"),
            store_requests: count("store_requests"),
            cost: count("cost_nanodollars"),
            progress,
        }
    }

    /// Counts what `work` asks of object stores as this scan's.
    pub(super) async fn charged<T>(&self, work: impl Future<Output = T>) -> T {
        // Operators may run on tasks of their own, whose requests nobody else counts for the query.
        let charge = Arc::<Charge>::default();
        let done = stoa_store::charged(Arc::clone(&charge), work).await;
        let Charged { totals, dollars } = charge.charged();
        self.store_requests.add(count_of(totals.requests()));
        self.cost.add((dollars * 1e9).round() as usize);
        self.progress.charge.add(&charge);
        done
    }

    /// Adds what was read of a file since `before`.
    pub(super) fn record_read(&self, before: &ReadCounts, after: &ReadCounts) {
        let requests = after.requests - before.requests;
        let bytes = after.bytes_read - before.bytes_read;
        self.requests.add(count_of(requests));
        self.bytes_read.add(count_of(bytes));
        self.progress.requests.fetch_add(requests, Ordering::Relaxed);
        self.progress.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds what was left out of a part of a file, of which nothing more is read.
    pub(super) fn record_pruned(&self, rows: &Rows) {
        let pruned = rows.pruned();
        self.stripes_total.add(count_of(pruned.stripes_total));
        self.stripes_pruned.add(count_of(pruned.stripes_pruned));
        self.row_groups_total.add(count_of(pruned.row_groups_total));
        self.row_groups_pruned.add(count_of(pruned.row_groups_pruned));
    }
}

fn count_of(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
