//! The operator that groups rows where their columns are kept.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as EngineResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::{TryStreamExt, stream};
use stoa_error::{ErrorKind, Result};
use stoa_report::{ChunkScan, FileScan, Folder, ScanFilter};
use stoa_semantics::errors::to_datafusion;

use super::super::metrics::ScanMetrics;
use super::super::read::{FileSource, SplitReader};
use super::super::{OrcScanExec, Split};
use super::compile::Folded;
use super::{scan_below, with_end};

/// Where less than this share of the rows is likely to be kept, chunks are not made of all.
const PASSING_SHARE_MIN: f64 = 0.5;

/// Groups the rows of a scan, as the aggregation below it would.
pub(super) struct FoldScanExec {
    /// The aggregation, for scans of columns that are not kept, and for files that have no chunks.
    aggregation: Arc<dyn ExecutionPlan>,
    folded: Arc<Folded>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl FoldScanExec {
    pub(super) fn new(aggregation: Arc<AggregateExec>, folded: Folded) -> Self {
        Self::of(aggregation, Arc::new(folded))
    }

    fn of(aggregation: Arc<dyn ExecutionPlan>, folded: Arc<Folded>) -> Self {
        // Operators above count on what is known of its columns: a sort leaves out a key that is equal to another.
        let properties = Arc::clone(aggregation.properties());
        Self { aggregation, folded, properties, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// Whether chunks are worth making that are not kept: most rows are needed of the file, and are of few groups, as texts
    /// are, or most are left out by what a join looks for. Else rows are left out while the file is decoded.
    fn is_worth_passing(&self, scan: &OrcScanExec) -> bool {
        let fold = &self.folded.fold;
        let keys = fold.schema.fields().iter().take(fold.keys.len());
        let is_by_text = !fold.keys.is_empty() && keys.map(|key| key.data_type()).all(is_text);
        scan.estimates().1 >= PASSING_SHARE_MIN && (is_by_text || !scan.dynamic.is_empty())
    }

    /// The scan with conditions that hold exactly, if it goes through chunks.
    fn chunk_scan(&self, scan: &OrcScanExec) -> Option<Arc<ChunkScan>> {
        let passes = || self.is_worth_passing(scan);
        let chunks = scan.chunks.get_or_init(|| scan.chunk_scan(passes())).clone()?;
        let mut parts = self.folded.exact.clone();
        // The scan's own conditions are mostly the same.
        let own = match &chunks.filter {
            ScanFilter::All(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let others = own.iter().filter(|part| !self.folded.exact.contains(part));
        parts.extend(others.cloned());
        let filter = ScanFilter::All(parts);
        Some(Arc::new(ChunkScan { filter, ..chunks.as_ref().clone() }))
    }
}

impl fmt::Debug for FoldScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoldScanExec").field("fold", &self.folded.fold).finish_non_exhaustive()
    }
}

impl DisplayAs for FoldScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fold = &self.folded.fold;
        let (keys, measures) = (fold.keys.len(), fold.measures.len());
        let conditions = self.folded.exact.len() + fold.conditions.len();
        write!(f, "FoldScanExec: keys={keys}, measures={measures}, conditions={conditions}")
    }
}

impl ExecutionPlan for FoldScanExec {
    fn name(&self) -> &str {
        "FoldScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.aggregation]
    }

    /// Those of the aggregation are its own.
    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let aggregation = children.pop().unwrap_or_else(|| Arc::clone(&self.aggregation));
        Ok(Arc::new(Self::of(aggregation, Arc::clone(&self.folded))))
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        #[expect(deprecated, reason = "the one place where both names meet")]
        self.with_new_children(children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let scan = scan_below(&self.aggregation);
        let chunks = scan.and_then(|scan| Some((scan, self.chunk_scan(scan)?)));
        let Some((scan, chunks)) = chunks else {
            return self.aggregation.execute(partition, context);
        };
        let metrics = ScanMetrics::new(&scan.metrics, partition);
        if partition == 0 {
            metrics.record_planning(&scan.plan);
        }
        let splits = scan.partitions.get(partition).cloned().unwrap_or_default();
        let pool = context.memory_pool();
        let folding = Folding {
            folder: Folder::new(Arc::clone(&self.folded.fold), &chunks).map_err(to_datafusion)?,
            chunks,
            reader: scan.reader(metrics),
            splits: splits.into(),
            others: Vec::new(),
            open: None,
            given_all: false,
            rest: None,
            memory: MemoryConsumer::new("FoldScanExec").register(pool),
            aggregation: Arc::clone(&self.aggregation),
            context,
        };
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let schema = self.schema();
        let batches =
            stream::try_unfold((folding, baseline), |(mut folding, baseline)| async move {
                let batch = folding.next().await?;
                if let Some(batch) = &batch {
                    baseline.record_output(batch.num_rows());
                }
                Ok::<_, datafusion::error::DataFusionError>(
                    batch.map(|batch| (batch, (folding, baseline))),
                )
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8)
}

/// A file of which row groups are folded.
struct OpenFile {
    source: FileSource,
    scan: FileScan,
    split: Split,
    /// Whether rows of it are in the groups.
    is_begun: bool,
}

/// A grouping of the splits of a plan partition.
struct Folding {
    folder: Folder,
    chunks: Arc<ChunkScan>,
    reader: SplitReader,
    splits: std::collections::VecDeque<Split>,
    /// Splits that have no chunks.
    others: Vec<Split>,
    open: Option<OpenFile>,
    given_all: bool,
    /// Groups of what has no chunks.
    rest: Option<SendableRecordBatchStream>,
    memory: MemoryReservation,
    aggregation: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

impl Folding {
    async fn next(&mut self) -> EngineResult<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.folder.take() {
                return Ok(Some(batch));
            }
            if let Some(rest) = &mut self.rest {
                return rest.try_next().await;
            }
            if self.given_all {
                if self.others.is_empty() {
                    return Ok(None);
                }
                let others = std::mem::take(&mut self.others);
                let rest = with_end(&self.aggregation, &|plan| {
                    let scan = plan.downcast_ref::<OrcScanExec>();
                    let over_others = scan.map(|scan| scan.with_splits(others.clone()));
                    Ok(over_others.transpose()?.map(|scan| Arc::new(scan) as _))
                })?;
                self.rest = Some(rest.execute(0, Arc::clone(&self.context))?);
                continue;
            }
            if !self.fold_more().await.map_err(to_datafusion)? {
                self.folder.give_all().map_err(to_datafusion)?;
                self.memory.free();
                self.given_all = true;
            }
        }
    }

    /// Folds the next row group; whether there was one.
    async fn fold_more(&mut self) -> Result<bool> {
        while self.open.is_none() {
            let Some(split) = self.splits.pop_front() else { return Ok(false) };
            self.open(split).await?;
        }
        let Some(file) = &mut self.open else { return Ok(false) };
        let added = {
            let _timer = self.reader.metrics.baseline.elapsed_compute().timer();
            self.reader.counted(&file.source, self.folder.add(&mut file.scan)).await
        };
        self.reader.metrics.record_chunks(&file.scan.take_work(), &self.reader.progress);
        let is_more = match added {
            // The file is another one than before, which does not matter to who reads it anew.
            Err(error) if error.kind() == ErrorKind::Conflict && !file.is_begun => {
                self.others.extend(self.open.take().map(|file| file.split));
                return Ok(true);
            }
            added => added?,
        };
        file.is_begun = true;
        if !is_more {
            let split = &file.split;
            self.reader.progress.scan_rows(split.file.rows / split.parts.max(1) as u64);
            self.open = None;
        }
        // Groups that there is no room for are given before their time.
        if self.memory.try_resize(self.folder.memory_bytes()).is_err() {
            self.folder.give_all()?;
        }
        Ok(true)
    }

    async fn open(&mut self, split: Split) -> Result<()> {
        if !split.file.is_plain() {
            self.others.push(split);
            return Ok(());
        }
        let source = FileSource::open(&split.file);
        match self.reader.open_chunks(&self.chunks, &source, &split).await {
            Ok(Some(scan)) => {
                self.open = Some(OpenFile { source, scan, split, is_begun: false });
            }
            Ok(None) => self.others.push(split),
            // As in `fold_more`.
            Err(error) if error.kind() == ErrorKind::Conflict => self.others.push(split),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
