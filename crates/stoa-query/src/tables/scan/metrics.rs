//! What a scan counts. Shown by `EXPLAIN ANALYZE`; summed per query for the registry.

use std::sync::atomic::Ordering;

use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder,
};
use stoa_orc::DecodeMetrics;
use stoa_rangeio::ReadCounts;
use stoa_report::ReportWork;
use stoa_store::{Charge, Charged};
use stoa_table::ScanPlan;

use crate::run::progress::Progress;

/// Counters of one plan partition of a scan.
#[derive(Clone)]
pub(super) struct ScanMetrics {
    pub(super) baseline: BaselineMetrics,
    manifests_total: Count,
    manifests_pruned: Count,
    files_total: Count,
    files_pruned: Count,
    stripes_total: Count,
    stripes_pruned: Count,
    row_groups_total: Count,
    row_groups_pruned: Count,
    bytes_read: Count,
    requests: Count,
    hedges: Count,
    store_requests: Count,
    store_retries: Count,
    cost: Count,
    chunk_hits: Count,
    chunk_misses: Count,
}

impl ScanMetrics {
    pub(super) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let count = |name: &'static str| MetricBuilder::new(set).counter(name, partition);
        Self {
            baseline: BaselineMetrics::new(set, partition),
            manifests_total: count("manifests_total"),
            manifests_pruned: count("manifests_pruned"),
            files_total: count("files_total"),
            files_pruned: count("files_pruned"),
            stripes_total: count("stripes_total"),
            stripes_pruned: count("stripes_pruned"),
            row_groups_total: count("row_groups_total"),
            row_groups_pruned: count("row_groups_pruned"),
            bytes_read: count("bytes_read"),
            requests: count("read_requests"),
            hedges: count("hedges"),
            store_requests: count("store_requests"),
            store_retries: count("store_retries"),
            cost: count("cost_nanodollars"),
            chunk_hits: count("chunk_hits"),
            chunk_misses: count("chunk_misses"),
        }
    }

    /// Adds what planning pruned; once per scan.
    pub(super) fn record_planning(&self, plan: &ScanPlan) {
        self.manifests_total.add(plan.manifests_total);
        self.manifests_pruned.add(plan.manifests_pruned);
        self.files_total.add(plan.files_total);
        self.files_pruned.add(plan.files_pruned_by_partition + plan.files_pruned_by_statistics);
    }

    /// Adds what a decoder pruned in one split.
    pub(super) fn record_decoder(&self, decoder: &DecodeMetrics) {
        self.stripes_total.add(count_of(decoder.stripes_total));
        self.stripes_pruned.add(count_of(decoder.stripes_pruned));
        self.row_groups_total.add(count_of(decoder.row_groups_total));
        self.row_groups_pruned.add(count_of(decoder.row_groups_pruned));
    }

    /// Adds what it took to find rows in the memory of reports.
    pub(super) fn record_selected(&self, work: &ReportWork, progress: &Progress) {
        self.row_groups_total.add(count_of(work.row_groups_total));
        self.row_groups_pruned.add(count_of(work.row_groups_total - work.row_groups_read));
        self.chunk_hits.add(count_of(work.chunk_hits));
        self.chunk_misses.add(count_of(work.chunk_misses));
        self.requests.add(count_of(work.requests));
        self.bytes_read.add(count_of(work.bytes_read));
        self.hedges.add(count_of(work.hedges));
        progress.add_work(work);
    }

    /// Adds what a scan through chunks has looked at.
    pub(super) fn record_chunks(&self, work: &ReportWork, progress: &Progress) {
        self.row_groups_total.add(count_of(work.row_groups_total));
        self.row_groups_pruned.add(count_of(work.row_groups_total - work.row_groups_read));
        self.chunk_hits.add(count_of(work.chunk_hits));
        self.chunk_misses.add(count_of(work.chunk_misses));
        progress.add_work(work);
    }

    /// Adds one call for bytes, which took what lies between `before` and `after`.
    pub(super) fn record_read(&self, before: &ReadCounts, after: &ReadCounts, progress: &Progress) {
        let requests = after.requests - before.requests;
        let bytes = after.bytes_read - before.bytes_read;
        let hedges = after.hedges - before.hedges;
        self.requests.add(count_of(requests));
        self.bytes_read.add(count_of(bytes));
        self.hedges.add(count_of(hedges));
        progress.requests.fetch_add(requests, Ordering::Relaxed);
        progress.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        progress.add_hedges(hedges);
    }

    /// Adds what was asked of object stores.
    pub(super) fn record_charge(&self, charge: &Charge, progress: &Progress) {
        let Charged { totals, dollars } = charge.charged();
        self.store_requests.add(count_of(totals.requests()));
        self.store_retries.add(count_of(totals.retries));
        self.cost.add((dollars * 1e9).round() as usize);
        progress.charge.add(charge);
    }
}

fn count_of(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
