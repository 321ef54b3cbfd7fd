//! The writing operator: batches to sorted ORC files, in one commit.
//!
//! In: a plan whose columns are the table's, in order. Out: the number of rows, after the commit.
//!
//! ```text
//! input ─► PartitionKeysExec (adds partition values) ─► sort (spills) ─► TableSink ─► commit
//! ```
//! **Invariants:** nothing is visible before the commit; if the stream fails or is dropped, no
//! commit happens and only files that no snapshot names stay behind. Memory: the sort spills at
//! the engine's memory limit; the sink holds one stripe per open file.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    EquivalenceProperties, LexRequirement, PhysicalExpr, PhysicalSortRequirement,
};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::StreamExt;
use stoa_error::{Error, Result};
use stoa_ingest::Ingest;
use stoa_table::{
    Isolation, RewriteOptions, ScanFile, Table, TableRewrite, TableWriter, Transform, WriteOptions,
    transform_array,
};

use crate::tables::changes::Reading;
use crate::tables::fresh::{Place, SmallWrite};
use crate::tables::nested::retype;
use crate::tables::transaction::{Change, Removes, Staging};
use stoa_semantics::errors::{from_datafusion, to_datafusion};

/// What becomes of the rows that are in the table.
#[derive(Clone, Debug)]
pub(crate) enum WriteMode {
    /// They stay. A few rows become fresh rows, where there is a log for them.
    Append(Option<Ingest>),
    /// Those of these files go, in the same commit.
    Replace(Arc<[Arc<ScanFile>]>, Isolation, Rows),
    /// All of this version go, in the same commit.
    ReplaceAll,
    /// Those of this version in the table partitions into which rows come go, in the same commit.
    ReplacePartitions,
}

/// What the rows are that are written in the place of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Rows of the table that stay.
    Same,
    /// Also new ones.
    Changed,
}

/// When and whether a commit is made.
#[derive(Clone, Default)]
pub(crate) struct Commit {
    /// What must still be so.
    pub(crate) reading: Option<Arc<Reading>>,
    /// The transaction block whose COMMIT makes it, if there is one.
    pub(crate) staging: Option<Staging>,
}

/// What a provider that only takes rows says to a scan: no statement plans one.
pub(crate) fn write_only<T>() -> EngineResult<T> {
    Err(DataFusionError::Internal("what is to be written cannot be read".to_owned()))
}

/// A plan that writes `input` to `table`, partitioned and sorted, in one commit.
pub(crate) fn plan_write(
    table: Table,
    mode: WriteMode,
    commit: Commit,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let columns = table.schema().fields().len();
    if input.schema().fields().len() != columns {
        return Err(Error::internal(format!(
            "{} columns are to be written to a table of {columns}",
            input.schema().fields().len()
        )));
    }
    let keyed: Arc<dyn ExecutionPlan> = Arc::new(PartitionKeysExec::new(table.clone(), input)?);
    let order = write_order(&table, &keyed.schema());
    // A table that appears with its rows is none of the block's.
    let staging = commit.staging.filter(|_| !table.is_staged());
    let commit = Commit { staging, ..commit };
    let sink = TableSink { schema: keyed.schema(), table, mode, commit };
    Ok(Arc::new(DataSinkExec::new(keyed, Arc::new(sink), order)))
}

/// Partition values first, then the table's own order.
fn write_order(table: &Table, keyed: &SchemaRef) -> Option<LexRequirement> {
    let columns = table.schema().fields().len();
    let partitions = (columns..columns + table.partition_terms().len())
        .map(|index| (index, SortOptions { descending: false, nulls_first: true }));
    let mut added = columns + table.partition_terms().len();
    let sorted = table.sort_terms().into_iter().filter_map(|term| {
        let options = SortOptions { descending: term.descending, nulls_first: term.nulls_first };
        match term.transform {
            Transform::Identity => {
                keyed.index_of(&term.column).ok().map(|column| (column, options))
            }
            _ => {
                added += 1;
                Some((added - 1, options))
            }
        }
    });
    let requirements = partitions.chain(sorted).map(|(index, options)| {
        let column = Column::new(keyed.field(index).name(), index);
        PhysicalSortRequirement::new(Arc::new(column) as Arc<dyn PhysicalExpr>, Some(options))
    });
    LexRequirement::new(requirements.collect::<Vec<_>>())
}

/// Adds one column per partition field and per transformed sort key: what rows are sorted by.
#[derive(Debug)]
struct PartitionKeysExec {
    table: Table,
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl PartitionKeysExec {
    fn new(table: Table, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let empty = RecordBatch::new_empty(table.schema());
        let keys = keys_of(&table, &empty)?;
        let mut fields: Vec<Arc<Field>> = table.schema().fields().iter().cloned().collect();
        fields.extend(keys.iter().enumerate().map(|(nth, key)| {
            Arc::new(Field::new(format!("__key_{nth}"), key.data_type().clone(), true))
        }));
        let schema = Arc::new(Schema::new(fields));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            input.output_partitioning().clone(),
            EmissionType::Incremental,
            input.boundedness(),
        );
        Ok(Self { table, input, schema, properties: Arc::new(properties) })
    }
}

fn keys_of(table: &Table, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let mut keys = table.partition_columns(batch)?;
    for term in table.sort_terms().iter().filter(|term| term.transform != Transform::Identity) {
        let column = batch.column_by_name(&term.column).ok_or_else(|| {
            Error::internal(format!("sort column {} of {} is missing", term.column, table.ident()))
        })?;
        keys.push(transform_array(term.transform, column)?);
    }
    Ok(keys)
}

/// `batch` with the table's own field names and ids, and its keys behind.
fn add_keys(table: &Table, keyed: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
    let batch =
        retype(batch.clone(), &table.schema()).map_err(|e| null_or_type_error(table, batch, e))?;
    let mut columns = batch.columns().to_vec();
    columns.extend(keys_of(table, &batch)?);
    RecordBatch::try_new(Arc::clone(keyed), columns)
        .map_err(|e| Error::internal("cannot add partition values").with_source(e))
}

fn null_or_type_error(
    table: &Table,
    batch: &RecordBatch,
    error: arrow::error::ArrowError,
) -> Error {
    let schema = table.schema();
    let violated = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .find(|(field, column)| !field.is_nullable() && column.null_count() > 0);
    match violated {
        Some((field, _)) => Error::invalid(format!(
            "null value in column \"{}\" of table {} violates not-null constraint",
            field.name(),
            table.ident()
        ))
        .with_sqlstate("23502"),
        None => Error::internal(format!("rows do not have the columns of {}", table.ident()))
            .with_source(error),
    }
}

impl DisplayAs for PartitionKeysExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> =
            self.table.partition_terms().iter().map(ToString::to_string).collect();
        write!(f, "PartitionKeysExec: partition_by=[{}]", terms.join(", "))
    }
}

impl ExecutionPlan for PartitionKeysExec {
    fn name(&self) -> &str {
        "PartitionKeysExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        let new = Self::new(self.table.clone(), input).map_err(to_datafusion)?;
        Ok(Arc::new(new))
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        #[expect(deprecated, reason = "the one place where both names meet")]
        self.with_new_children(children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let (table, schema) = (self.table.clone(), Arc::clone(&self.schema));
        let input = self.input.execute(partition, context)?;
        let keyed =
            input.map(move |batch| add_keys(&table, &schema, &batch?).map_err(to_datafusion));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), keyed)))
    }
}

/// Writes what it is given and commits at the end.
struct TableSink {
    table: Table,
    mode: WriteMode,
    commit: Commit,
    schema: SchemaRef,
}

impl fmt::Debug for TableSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableSink({})", self.table.ident())
    }
}

impl DisplayAs for TableSink {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableSink: table={}", self.table.ident())
    }
}

impl TableSink {
    async fn write(&self, mut data: SendableRecordBatchStream) -> Result<u64> {
        let Commit { reading, staging } = &self.commit;
        let others = reading.as_ref().map(|reading| reading.others()).unwrap_or_default();
        let mut writer = TableWrite::begin(&self.table, &self.mode, others, staging.clone())?;
        let columns: Vec<usize> = (0..self.table.schema().fields().len()).collect();
        while let Some(batch) = data.next().await {
            let written = match batch {
                Ok(batch) => match batch.project(&columns) {
                    Ok(batch) => writer.write(batch).await,
                    Err(error) => Err(Error::internal("cannot drop keys").with_source(error)),
                },
                Err(error) => Err(from_datafusion(error)),
            };
            if let Err(error) = written {
                // The files are orphans whether or not this succeeds; the first error counts.
                let _ = writer.abort().await;
                return Err(error);
            }
        }
        if let Some(staging) = staging {
            return writer.keep_in(staging, &self.table, &self.mode, reading.clone()).await;
        }
        let Some(reading) = reading else { return writer.commit().await };
        match reading.publish(self.table.ident()).await {
            Ok(_publishing) => writer.commit().await,
            Err(error) => {
                let _ = writer.abort().await;
                Err(error)
            }
        }
    }
}

/// The ways to write rows.
enum TableWrite {
    Small(SmallWrite),
    Append(TableWriter),
    Rewrite(TableRewrite),
}

impl TableWrite {
    /// `others` are versions of other tables that a rewrite depends on.
    fn begin(
        table: &Table,
        mode: &WriteMode,
        others: Vec<Table>,
        staging: Option<Staging>,
    ) -> Result<Self> {
        let rewrite = |isolation, rows| {
            let within_limits = rows == Rows::Same;
            let write = WriteOptions { within_limits, ..WriteOptions::default() };
            table.rewrite(RewriteOptions { isolation, reads: others, write })
        };
        Ok(match mode {
            WriteMode::Append(ingest) => {
                let log = || ingest.clone().map(Place::Log);
                match staging.map(Place::Block).or_else(log) {
                    Some(place) => Self::Small(SmallWrite::new(place, table.clone())),
                    None => Self::Append(table.writer(WriteOptions::default())?),
                }
            }
            WriteMode::Replace(files, isolation, rows) => {
                let mut rewrite = rewrite(isolation.clone(), *rows)?;
                rewrite.remove(files.iter())?;
                Self::Rewrite(rewrite)
            }
            WriteMode::ReplaceAll => {
                let mut rewrite = rewrite(Isolation::Snapshot, Rows::Changed)?;
                rewrite.truncate()?;
                Self::Rewrite(rewrite)
            }
            WriteMode::ReplacePartitions => {
                let mut rewrite = rewrite(Isolation::Snapshot, Rows::Changed)?;
                rewrite.replace_written_partitions()?;
                Self::Rewrite(rewrite)
            }
        })
    }

    async fn write(&mut self, batch: RecordBatch) -> Result<()> {
        match self {
            Self::Small(small) => match small.push(batch) {
                None => Ok(()),
                // Rows of a block can be committed together with other changes.
                Some(batches) if small.is_in_block() => {
                    let mut rewrite = small.table().rewrite(RewriteOptions::default())?;
                    for batch in batches {
                        rewrite.write(batch).await?;
                    }
                    *self = Self::Rewrite(rewrite);
                    Ok(())
                }
                Some(batches) => {
                    let mut writer = small.table().writer(WriteOptions::default())?;
                    for batch in batches {
                        writer.write(batch).await?;
                    }
                    *self = Self::Append(writer);
                    Ok(())
                }
            },
            Self::Append(writer) => writer.write(batch).await,
            Self::Rewrite(rewrite) => rewrite.write(batch).await,
        }
    }

    /// Leaves the commit to a transaction block; rows that it will write.
    async fn keep_in(
        self,
        staging: &Staging,
        table: &Table,
        mode: &WriteMode,
        reading: Option<Arc<Reading>>,
    ) -> Result<u64> {
        let mut rewrite = match self {
            Self::Small(small) => return small.commit().await,
            Self::Rewrite(rewrite) => rewrite,
            Self::Append(writer) => {
                let _ = writer.abort().await;
                return Err(Error::internal("rows of a transaction block were not kept for it"));
            }
        };
        if let Err(error) = rewrite.end_files().await {
            let _ = rewrite.abort().await;
            return Err(error);
        }
        let rows = rewrite.rows();
        let (removes, reading) = match mode {
            // Rows that are added depend on nothing that others may do until COMMIT.
            WriteMode::Append(_) => (Removes::Nothing, None),
            WriteMode::Replace(..) | WriteMode::ReplaceAll => (Removes::Rows, reading),
            WriteMode::ReplacePartitions => (Removes::WrittenPartitions, reading),
        };
        let (table, rewrite) = (table.clone(), Box::new(rewrite));
        staging.keep_change(Change { table, rewrite, removes, reading }).await?;
        Ok(rows)
    }

    /// Rows written.
    async fn commit(self) -> Result<u64> {
        match self {
            Self::Small(small) => small.commit().await,
            Self::Append(writer) => Ok(writer.commit().await?.rows),
            Self::Rewrite(rewrite) => Ok(rewrite.commit().await?.committed()?.rows),
        }
    }

    async fn abort(self) -> Result<()> {
        match self {
            Self::Small(_) => Ok(()),
            Self::Append(writer) => writer.abort().await,
            Self::Rewrite(rewrite) => rewrite.abort().await,
        }
    }
}

#[async_trait]
impl DataSink for TableSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        _context: &Arc<TaskContext>,
    ) -> EngineResult<u64> {
        self.write(data).await.map_err(to_datafusion)
    }
}
