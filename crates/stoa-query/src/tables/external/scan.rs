//! The scan operator of external tables.
//!
//! In: filters, columns. Out: batches of the columns wanted. Files are dealt to plan partitions by their sizes; large
//! ones are cut, if their format can be. `EXPLAIN` shows how many partitions are left of all.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session as EngineSession;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::RwLock;
use stoa_error::{Error, Result};
use stoa_external::{FilePart, Limit, Partition, ReadOptions, Rows};
use stoa_rangeio::ReadCounts;
use stoa_table::DeclaredType;

use super::metrics::ExternalMetrics;
use super::{ExternalFiles, kept, partition_columns, prune};
use crate::run::progress::Progress;
use crate::tables::filter::predicate_of_all;
use crate::tables::nested::engine_schema;
use crate::tables::table::StoaTable;
use stoa_semantics::errors::{from_datafusion, to_datafusion};

/// Bytes of files from which a further plan partition is worth its cost.
const PARTITION_BYTES_MIN: u64 = 8 << 20;

/// Partitions whose files are listed at a time.
const LISTS_MAX: usize = 16;

/// A part of a file, and the values of its partition, by their places in the table.
#[derive(Clone)]
struct Split {
    part: FilePart,
    values: Arc<[(usize, ScalarValue)]>,
}

/// Reads files of an external table.
pub(crate) struct ExternalScanExec {
    name: String,
    files: Arc<ExternalFiles>,
    schema: SchemaRef,
    /// Those of them that are in files.
    read: ReadOptions,
    /// Where each column comes from.
    sources: Arc<[ColumnSource]>,
    partitions: Vec<Vec<Split>>,
    counts: Counts,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    progress: RwLock<Arc<Progress>>,
}

/// Where a column comes from.
#[derive(Clone, Copy, Debug)]
enum ColumnSource {
    /// Column of a file's batch.
    File(usize),
    /// Value of the partition: place in the table.
    Partition(usize),
}

/// What was left of how much. A directory that is left out together with those below it counts as one partition.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    partitions: usize,
    partitions_total: usize,
    files: usize,
    bytes: u64,
}

/// Chooses partitions and files, and deals them to plan partitions.
///
/// # Errors
/// 42501 where the files may not be used, and those of the store.
pub(crate) async fn plan(
    table: &StoaTable,
    state: &dyn EngineSession,
    projection: Option<&Vec<usize>>,
    filters: &[Expr],
) -> Result<ExternalScanExec> {
    let files = Arc::new(ExternalFiles::of(table)?);
    let schema = engine_schema(&table.table.schema());
    let names = partition_columns(&table.table);
    let places = names.iter().map(|name| schema.index_of(name));
    let places: Vec<usize> = places
        .collect::<std::result::Result<_, _>>()
        .map_err(|e| Error::internal("a partition column is none of the table's").with_source(e))?;
    let fields: Vec<FieldRef> = places.iter().map(|at| Arc::clone(&schema.fields()[*at])).collect();
    let pruned = AtomicUsize::new(0);
    // What a directory's own column rules out is not looked into.
    let keep = |some: &[Partition], depth: usize| {
        let kept = kept(some, &fields[..depth.min(fields.len())], filters, state)?;
        let left_out = kept.iter().filter(|is_kept| !**is_kept).count();
        pruned.fetch_add(left_out, Ordering::Relaxed);
        Ok(kept)
    };
    let left = files.partitions_where(&names, &keep).await?;
    let mut counts = Counts {
        partitions: left.len(),
        partitions_total: left.len() + pruned.into_inner(),
        ..Counts::default()
    };
    let values = prune::values(&left, &fields)?;
    let list = |partition: Partition| {
        let files = Arc::clone(&files);
        async move { files.files(&partition).await }
    };
    let listed = stream::iter(left).map(list).buffered(LISTS_MAX);
    let listed: Vec<Vec<stoa_external::DataFile>> = listed.try_collect().await?;
    counts.files = listed.iter().map(Vec::len).sum();
    counts.bytes = listed.iter().flatten().map(|file| file.bytes).sum();
    let threads = state.config().target_partitions().max(1);
    let worth = usize::try_from(counts.bytes / PARTITION_BYTES_MIN).unwrap_or(usize::MAX);
    let count = worth.saturating_add(1).min(threads);
    let share = (counts.bytes / count as u64).max(PARTITION_BYTES_MIN);
    let mut splits = Vec::new();
    for (row, of_partition) in listed.into_iter().enumerate() {
        let value = |(at, place): (usize, &usize)| {
            ScalarValue::try_from_array(values.column(at), row).map(|value| (*place, value))
        };
        let values = places.iter().enumerate().map(value).collect::<EngineResult<Vec<_>>>();
        let values: Arc<[_]> = values.map_err(from_datafusion)?.into();
        for file in of_partition {
            let parts = FilePart::parts_of(&file, files.definition.format, share);
            let bytes = file.bytes / parts as u64;
            let split = |part| Split {
                part: FilePart { file: file.clone(), part, parts },
                values: Arc::clone(&values),
            };
            splits.extend((0..parts).map(|part| (bytes, split(part))));
        }
    }
    let columns = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
    let batch_rows = state.config().batch_size();
    let (read, sources) = reading(&schema, &places, &columns, filters, batch_rows);
    let projected = schema.project(&columns).map_err(|e| from_datafusion(e.into()))?;
    let projected = Arc::new(projected);
    let partitions = deal(splits, count);
    Ok(ExternalScanExec {
        name: table.table.ident().to_string(),
        files,
        read,
        sources,
        counts,
        properties: Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&projected)),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )),
        schema: projected,
        partitions,
        metrics: ExecutionPlanMetricsSet::new(),
        progress: RwLock::default(),
    })
}

/// What is read of files, and where each column comes from.
fn reading(
    schema: &SchemaRef,
    partition_places: &[usize],
    columns: &[usize],
    filters: &[Expr],
    batch_rows: usize,
) -> (ReadOptions, Arc<[ColumnSource]>) {
    let in_files: Vec<usize> =
        (0..schema.fields().len()).filter(|at| !partition_places.contains(at)).collect();
    let (mut wanted, mut sources) = (Vec::new(), Vec::new());
    for column in columns {
        match in_files.iter().position(|at| at == column) {
            Some(at) => {
                sources.push(ColumnSource::File(wanted.len()));
                wanted.push(at);
            }
            None => sources.push(ColumnSource::Partition(*column)),
        }
    }
    let fields: Vec<FieldRef> =
        in_files.iter().map(|at| Arc::clone(&schema.fields()[*at])).collect();
    let limit = |field: &FieldRef| match DeclaredType::of(field)? {
        DeclaredType::SmallInt => Some(Limit::Short),
        DeclaredType::Varchar(Some(most)) | DeclaredType::Char(most) => {
            Some(Limit::Characters(usize::try_from(most).unwrap_or(usize::MAX)))
        }
        DeclaredType::Varchar(None) => None,
    };
    let read = ReadOptions {
        limits: fields.iter().map(limit).collect(),
        columns: Arc::new(Schema::new(fields)),
        wanted,
        predicate: predicate_of_all(filters, schema),
        batch_rows,
    };
    (read, sources.into())
}

/// Deals parts of files to `count` plan partitions, largest first to the emptiest.
fn deal(mut splits: Vec<(u64, Split)>, count: usize) -> Vec<Vec<Split>> {
    splits.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let mut partitions: Vec<(u64, Vec<Split>)> = vec![(0, Vec::new()); count.max(1)];
    for (bytes, split) in splits {
        if let Some(emptiest) = partitions.iter_mut().min_by_key(|(load, _)| *load) {
            emptiest.0 += bytes;
            emptiest.1.push(split);
        }
    }
    partitions.into_iter().map(|(_, splits)| splits).collect()
}

impl ExternalScanExec {
    /// Counts into `progress` from now on.
    pub(crate) fn attach(&self, progress: &Arc<Progress>) {
        *self.progress.write() = Arc::clone(progress);
    }

    /// Bytes of the files that are read.
    pub(crate) fn bytes(&self) -> u64 {
        self.counts.bytes
    }
}

/// What the parts of a plan partition have in common.
struct SplitReader {
    files: Arc<ExternalFiles>,
    read: ReadOptions,
    sources: Arc<[ColumnSource]>,
    schema: SchemaRef,
    metrics: ExternalMetrics,
}

impl SplitReader {
    async fn open(&self, split: &Split) -> Result<Rows> {
        let (location, definition) = (&self.files.location, &self.files.definition);
        let rows = Rows::open(location, definition, &split.part, &self.read);
        let rows = self.metrics.charged(rows).await?;
        self.metrics.record_read(&ReadCounts::default(), &rows.read_counts());
        Ok(rows)
    }

    async fn next(&self, rows: &mut Rows) -> Result<Option<RecordBatch>> {
        let before = rows.read_counts();
        let batch = self.metrics.charged(rows.next()).await;
        self.metrics.record_read(&before, &rows.read_counts());
        batch
    }

    /// A file's batch with the values of its partition.
    fn whole(&self, batch: &RecordBatch, values: &[(usize, ScalarValue)]) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let column = |source: &ColumnSource| -> Result<ArrayRef> {
            match source {
                ColumnSource::File(at) => Ok(Arc::clone(batch.column(*at))),
                ColumnSource::Partition(place) => {
                    let found = values.iter().find(|(at, _)| at == place);
                    let (_, value) =
                        found.ok_or_else(|| Error::internal("a partition has lost a value"))?;
                    value.to_array_of_size(rows).map_err(from_datafusion)
                }
            }
        };
        let columns = self.sources.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(
            |e| Error::internal("columns of files and partitions make no batch").with_source(e),
        )
    }

    fn stream(self, splits: Vec<Split>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let state = (self, splits.into_iter(), None::<(Rows, Split)>);
        let batches = stream::try_unfold(state, |(reader, mut splits, mut open)| async move {
            loop {
                if let Some((rows, split)) = &mut open {
                    if let Some(batch) = reader.next(rows).await? {
                        let batch = reader.whole(&batch, &split.values)?;
                        reader.metrics.progress.scan_rows(batch.num_rows() as u64);
                        reader.metrics.baseline.record_output(batch.num_rows());
                        return Ok(Some((batch, (reader, splits, open))));
                    }
                    reader.metrics.record_pruned(rows);
                }
                let Some(split) = splits.next() else { return Ok(None) };
                open = Some((reader.open(&split).await?, split));
            }
        });
        let batches = batches.map_err(|error: Error| to_datafusion(error));
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

impl fmt::Debug for ExternalScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalScanExec({})", self.name)
    }
}

impl DisplayAs for ExternalScanExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(
            f,
            "ExternalScanExec: table={}, format={}, columns=[{}], partitions={}/{}, files={}, bytes={}, \
             plan_partitions={}",
            self.name,
            self.files.definition.format.name().to_lowercase(),
            columns.join(", "),
            self.counts.partitions,
            self.counts.partitions_total,
            self.counts.files,
            self.counts.bytes,
            self.partitions.len(),
        )
    }
}

impl ExecutionPlan for ExternalScanExec {
    fn name(&self) -> &str {
        "ExternalScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
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
        _context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let splits = self.partitions.get(partition).cloned().unwrap_or_default();
        let reader = SplitReader {
            files: Arc::clone(&self.files),
            read: self.read.clone(),
            sources: Arc::clone(&self.sources),
            schema: Arc::clone(&self.schema),
            metrics: ExternalMetrics::new(
                &self.metrics,
                partition,
                Arc::clone(&self.progress.read()),
            ),
        };
        Ok(reader.stream(splits))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
