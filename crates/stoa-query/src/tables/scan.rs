//! The scan operator: data files of one snapshot to batches.
//!
//! In: a table snapshot, the columns wanted, filters. Out: batches of these columns.
//!
//! ```text
//! plan time     manifests ─prune─► files ─prune─► splits, dealt to plan partitions
//! run time      split: tail (cached) ─► decoder ⇄ range reads ─► batches
//!                            prunes stripes and row groups
//! ```
//! A scan that picks few rows by conditions on columns takes them out of the memory of reports, where
//! they are decoded already ([`selected`]); if these are too many, it reads the files. A scan of columns
//! that have been scanned before goes through the same memory ([`chunks`]), where groupings of its rows are made,
//! too ([`fold`]).
//! Files that are not ORC, or of which rows are deleted, are read by `stoa-table`.
//! What was pruned at each level is counted and shown by `EXPLAIN ANALYZE`.
//!
//! Not here: which files a snapshot has (`stoa-table`), decoding (`stoa-orc`), merging of range
//! reads (`stoa-rangeio`).

mod chunks;
mod dynamic;
mod estimates;
mod fold;
mod metrics;
mod read;
mod selected;
mod travel;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session as EngineSession;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::error::Result as EngineResult;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use parking_lot::RwLock;
use stoa_error::Result;
use stoa_orc::{ColumnRef, FIELD_ID_KEY, Predicate};
use stoa_report::{ChunkScan, Report};
use stoa_table::{ScanFile, ScanPlan};

use crate::run::memory::ReportMemory;
use crate::run::progress::Progress;
use crate::tables::external::ExternalScanExec;
use crate::tables::filter::predicate_of_all;
use crate::tables::nested::engine_schema;
use crate::tables::table::StoaTable;
use dynamic::{DynamicFilter, place_filters};
use estimates::{column_estimates, share_kept};
use fold::place_folds;
use metrics::ScanMetrics;
use read::SplitReader;
use stoa_semantics::errors::from_datafusion;
pub(crate) use travel::{SentScanExec, count_sent_scans};

/// Bytes of data files from which a further plan partition is worth its cost.
const PARTITION_BYTES_MIN: u64 = 8 << 20;

/// A smaller [`PARTITION_BYTES_MIN`], where plans of little are to be spread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionBytesMin(pub(crate) u64);

impl PartitionBytesMin {
    fn of(config: &SessionConfig) -> u64 {
        let smaller = config.get_extension::<Self>().map_or(PARTITION_BYTES_MIN, |min| min.0);
        smaller.clamp(1, PARTITION_BYTES_MIN)
    }
}

/// A part of a file: the stripes whose number modulo `parts` is `part`.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(crate) file: Arc<ScanFile>,
    pub(crate) part: usize,
    pub(crate) parts: usize,
}

/// Reads the files of one snapshot.
pub(crate) struct OrcScanExec {
    table: StoaTable,
    /// The columns, by their places in the table's schema.
    columns: Vec<usize>,
    schema: SchemaRef,
    /// The same columns with field ids at every level.
    stored: SchemaRef,
    predicate: Predicate,
    plan: Arc<ScanPlan>,
    partitions: Vec<Vec<Split>>,
    batch_rows: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    progress: Arc<RwLock<Arc<Progress>>>,
    /// How it goes through chunks, if it does; known when it is first executed.
    chunks: OnceLock<Option<Arc<ChunkScan>>>,
    /// Filters that operators above make while they run, as they came.
    dynamic_expressions: Vec<Arc<dyn PhysicalExpr>>,
    dynamic: Vec<Arc<DynamicFilter>>,
    /// Asked for many times while a plan is made.
    estimates: OnceLock<(Vec<ColumnStatistics>, f64)>,
}

impl OrcScanExec {
    /// Chooses files by partition values and statistics and deals them to plan partitions.
    pub(crate) async fn plan(
        table: &StoaTable,
        state: &dyn EngineSession,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> Result<Self> {
        let full = table.table.schema();
        let predicate = predicate_of_all(filters, &full);
        let plan = Arc::new(table.plan_scan(&predicate).await?);
        let columns = projection.cloned().unwrap_or_else(|| (0..full.fields().len()).collect());
        let threads = state.config().target_partitions();
        let bytes_min = PartitionBytesMin::of(state.config());
        let count = partition_count(table, &predicate, &plan, threads, bytes_min);
        let partitions = deal(cut(&plan.files, count, bytes_min), count);
        let batch_rows = state.config().batch_size();
        Self::of_parts(table.clone(), columns, predicate, plan, partitions, batch_rows)
    }

    /// A scan of files that were chosen.
    fn of_parts(
        table: StoaTable,
        columns: Vec<usize>,
        predicate: Predicate,
        plan: Arc<ScanPlan>,
        partitions: Vec<Vec<Split>>,
        batch_rows: usize,
    ) -> Result<Self> {
        let projected = table.table.schema().project(&columns);
        let stored = Arc::new(projected.map_err(|e| from_datafusion(e.into()))?);
        let schema = engine_schema(&stored);
        let properties = properties_of(&schema, partitions.len());
        let (metrics, progress) = (ExecutionPlanMetricsSet::new(), Arc::default());
        Ok(Self {
            table,
            columns,
            schema,
            stored,
            predicate,
            plan,
            partitions,
            batch_rows,
            properties,
            metrics,
            progress,
            chunks: OnceLock::new(),
            dynamic_expressions: Vec::new(),
            dynamic: Vec::new(),
            estimates: OnceLock::new(),
        })
    }

    /// The same scan, which is told of one more filter.
    fn told(&self, filter: &Arc<dyn PhysicalExpr>) -> EngineResult<Self> {
        let filters = self.dynamic_expressions.iter().chain([filter]);
        self.with_dynamic(filters.cloned().collect())
    }

    /// The same scan, with these filters.
    fn with_dynamic(&self, filters: Vec<Arc<dyn PhysicalExpr>>) -> EngineResult<Self> {
        let dynamic = filters.iter().map(|filter| DynamicFilter::of(filter, &self.schema));
        let dynamic = dynamic.collect::<EngineResult<Vec<_>>>()?;
        Ok(Self {
            table: self.table.clone(),
            columns: self.columns.clone(),
            schema: Arc::clone(&self.schema),
            stored: Arc::clone(&self.stored),
            predicate: self.predicate.clone(),
            plan: Arc::clone(&self.plan),
            partitions: self.partitions.clone(),
            batch_rows: self.batch_rows,
            properties: Arc::clone(&self.properties),
            metrics: self.metrics.clone(),
            progress: Arc::clone(&self.progress),
            chunks: OnceLock::new(),
            dynamic_expressions: filters,
            dynamic: dynamic.into_iter().flatten().map(Arc::new).collect(),
            estimates: self.estimates.clone(),
        })
    }

    /// The same scan, of one plan partition with these splits.
    fn with_splits(&self, splits: Vec<Split>) -> EngineResult<Self> {
        let mut scan = self.with_dynamic(self.dynamic_expressions.clone())?;
        scan.properties = properties_of(&self.schema, 1);
        scan.partitions = vec![splits];
        // What goes through chunks has been decided.
        scan.chunks = OnceLock::from(None);
        Ok(scan)
    }

    /// What is estimated of its columns, and of the share of the rows that its predicate keeps.
    fn estimates(&self) -> &(Vec<ColumnStatistics>, f64) {
        self.estimates.get_or_init(|| {
            let files = &self.plan.files;
            (column_estimates(files, &self.schema), share_kept(&self.predicate, files))
        })
    }

    /// Reads splits of this scan, through chunks if it is to.
    fn reader(&self, metrics: ScanMetrics) -> SplitReader {
        SplitReader {
            table: self.table.clone(),
            schema: Arc::clone(&self.schema),
            stored: Arc::clone(&self.stored),
            predicate: self.predicate.clone(),
            batch_rows: self.batch_rows,
            metrics,
            progress: Arc::clone(&self.progress.read()),
            chunks: self.chunks.get_or_init(|| self.chunk_scan(false)).clone(),
        }
    }

    /// The rows wanted as a report, if that may be the shorter way.
    fn selected(&self) -> Option<Report> {
        if self.partitions.len() > 1 || !self.table.scans_all() {
            return None;
        }
        selected::report_of(&self.table.table.schema(), &self.schema, &self.predicate)
    }
}

/// A plan that is about to run on this daemon, in which scans are told what operators above them come to know
/// ([`place_filters`]), and group rows where they are kept ([`place_folds`]).
///
/// # Errors
/// Those of operators that get other inputs.
pub(crate) fn placed(plan: Arc<dyn ExecutionPlan>) -> EngineResult<Arc<dyn ExecutionPlan>> {
    place_folds(place_filters(plan)?)
}

/// Lets the scans of a plan count into `progress`; bytes of the data files that they read, whole.
pub(crate) fn note_scans(plan: &Arc<dyn ExecutionPlan>, progress: &Arc<Progress>) -> u64 {
    attach_progress(plan, progress);
    planned_bytes(plan)
}

/// Makes every scan of a plan count into `progress`.
fn attach_progress(plan: &Arc<dyn ExecutionPlan>, progress: &Arc<Progress>) {
    if let Some(scan) = (plan.as_ref() as &dyn Any).downcast_ref::<OrcScanExec>() {
        *scan.progress.write() = Arc::clone(progress);
        progress.plan_rows(scan.plan.rows());
    }
    if let Some(scan) = (plan.as_ref() as &dyn Any).downcast_ref::<ExternalScanExec>() {
        scan.attach(progress);
    }
    for child in plan.children() {
        attach_progress(child, progress);
    }
}

/// Bytes of the data files that a plan scans, whole.
fn planned_bytes(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let own = (plan.as_ref() as &dyn Any).downcast_ref::<OrcScanExec>();
    let own = own.map_or(0, |scan| scan.plan.bytes());
    let external = (plan.as_ref() as &dyn Any).downcast_ref::<ExternalScanExec>();
    let own = external.map_or(own, ExternalScanExec::bytes);
    plan.children().into_iter().map(planned_bytes).fold(own, u64::saturating_add)
}

/// One plan partition for what is small or selective, else as many as there are threads.
fn partition_count(
    table: &StoaTable,
    predicate: &Predicate,
    plan: &ScanPlan,
    threads: usize,
    bytes_min: u64,
) -> usize {
    if picks_sort_key(table, predicate) {
        return 1;
    }
    let worth = usize::try_from(plan.bytes() / bytes_min).unwrap_or(usize::MAX);
    worth.saturating_add(1).min(threads.max(1))
}

/// Whether the predicate asks for single values of the first sort column, so that a row group or
/// two are read of each file.
fn picks_sort_key(table: &StoaTable, predicate: &Predicate) -> bool {
    let terms = table.table.sort_terms();
    let Some(first) = terms.first() else { return false };
    let schema = table.table.schema();
    let Ok(field) = schema.field_with_name(&first.column) else { return false };
    let id = field.metadata().get(FIELD_ID_KEY).and_then(|id| id.parse().ok());
    let Some(key) = id.map(ColumnRef::Field) else { return false };
    let picks = |part: &Predicate| match part {
        Predicate::Compare { column, op: stoa_orc::CompareOp::Eq, .. } => *column == key,
        Predicate::In { column, values } => *column == key && values.len() <= 16,
        _ => false,
    };
    match predicate {
        Predicate::And(parts) => parts.iter().any(picks),
        one => picks(one),
    }
}

/// The parts of files of which `count` plan partitions can be made, and their bytes: a file larger than its share is
/// cut by stripes.
fn cut(files: &[Arc<ScanFile>], count: usize, bytes_min: u64) -> Vec<(u64, Split)> {
    let total: u64 = files.iter().map(|file| file.file_bytes).sum();
    let share = (total / count.max(1) as u64).max(bytes_min);
    let mut splits = Vec::with_capacity(files.len());
    for file in files {
        let wanted = usize::try_from(file.file_bytes.div_ceil(share)).unwrap_or(1);
        let parts = wanted.clamp(1, count.max(1));
        let bytes = file.file_bytes / parts as u64;
        splits
            .extend((0..parts).map(|part| (bytes, Split { file: Arc::clone(file), part, parts })));
    }
    splits
}

/// Deals parts of files to `count` plan partitions, largest first to the emptiest.
fn deal(mut splits: Vec<(u64, Split)>, count: usize) -> Vec<Vec<Split>> {
    if count <= 1 {
        return vec![splits.into_iter().map(|(_, split)| split).collect()];
    }
    splits.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let mut partitions: Vec<(u64, Vec<Split>)> = vec![(0, Vec::new()); count];
    for (bytes, split) in splits {
        if let Some(emptiest) = partitions.iter_mut().min_by_key(|(load, _)| *load) {
            emptiest.0 += bytes;
            emptiest.1.push(split);
        }
    }
    partitions.into_iter().map(|(_, splits)| splits).collect()
}

fn properties_of(schema: &SchemaRef, partitions: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(Arc::clone(schema)),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

impl DisplayAs for OrcScanExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(
            f,
            "OrcScanExec: table={}, columns=[{}], files={}/{}, pruned_by_partition={}, \
             pruned_by_statistics={}, rows<={}, partitions={}",
            self.table.table.ident(),
            columns.join(", "),
            self.plan.files.len(),
            self.plan.files_total,
            self.plan.files_pruned_by_partition,
            self.plan.files_pruned_by_statistics,
            self.plan.rows(),
            self.partitions.len(),
        )?;
        if !self.predicate.is_always() {
            write!(f, ", pushdown=yes")?;
        }
        if !self.dynamic.is_empty() {
            write!(f, ", dynamic_filters={}", self.dynamic.len())?;
        }
        Ok(())
    }
}

impl ExecutionPlan for OrcScanExec {
    fn name(&self) -> &str {
        "OrcScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        let mut expressions = self.dynamic_expressions.iter();
        expressions.try_fold(TreeNodeRecursion::Continue, |next, filter| match next {
            TreeNodeRecursion::Stop => Ok(next),
            _ => f(filter),
        })
    }

    /// Without the filters, which are those of an execution before.
    fn reset_state(self: Arc<Self>) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.with_dynamic(Vec::new())?))
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let splits = self.partitions.get(partition).cloned().unwrap_or_default();
        let metrics = ScanMetrics::new(&self.metrics, partition);
        if partition == 0 {
            metrics.record_planning(&self.plan);
        }
        let reader = self.reader(metrics);
        // One that asks for values of the sort key finds few rows, and knows where they are.
        let is_scan = reader.chunks.is_some() && !picks_sort_key(&self.table, &self.predicate);
        match self.selected().filter(|_| !is_scan) {
            Some(report) => {
                let memory = ReportMemory::of_scan(&context);
                Ok(reader.stream_selected(report, splits, memory))
            }
            None => Ok(reader.stream(splits)),
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> EngineResult<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() {
            let rows = usize::try_from(self.plan.rows()).unwrap_or(usize::MAX);
            // Rows of files may be deleted by delete files.
            let deletes = self.plan.files.iter().any(|file| !file.deletes.is_empty());
            let (columns, kept) = self.estimates();
            statistics.num_rows = match self.predicate.is_always() && !deletes {
                true => Precision::Exact(rows),
                // Whoever filters takes a share of these.
                false => Precision::Inexact((rows as f64 * kept).ceil() as usize),
            };
            statistics.column_statistics.clone_from(columns);
        }
        Ok(Arc::new(statistics))
    }
}

#[cfg(test)]
mod tests;
