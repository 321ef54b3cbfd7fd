//! The writing operators of external tables and directories.
//!
//! In: rows with the columns of the table, in order. Out: their number, once the files are visible.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::StreamExt;
use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_external::{Definition, HiveWriter, WriteTarget};
use stoa_store::also_charged;
use stoa_table::{Table, TableChange};

use super::{ExternalFiles, partition_columns, privileges};
use crate::access::Caller;
use crate::tables::sink::write_only;
use crate::tables::table::StoaTable;
use crate::tables::transaction::Block;
use stoa_semantics::errors::{from_datafusion, to_datafusion};

/// What an INSERT OVERWRITE replaces beside the partitions into which rows come.
#[derive(Clone, Debug)]
pub(crate) struct Overwrite {
    /// Names of partitions; the empty one is the whole table.
    pub(crate) partitions: Vec<String>,
}

/// Plans rows that are added to those that are there.
///
/// # Errors
/// 42501 without rights or access to the files, 25001 in a transaction block.
pub(crate) fn plan_append(
    table: &StoaTable,
    state: &dyn EngineSession,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan(table, state, input, None)
}

fn plan(
    table: &StoaTable,
    state: &dyn EngineSession,
    input: Arc<dyn ExecutionPlan>,
    overwrite: Option<&Overwrite>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let caller = Caller::of(state)?;
    for privilege in privileges(overwrite.is_some()) {
        caller.may_write(&table.table, *privilege)?;
    }
    if Block::staging_of(state).is_some() {
        return Err(Error::invalid(format!(
            "rows of the external table {} cannot be written in a transaction block",
            table.table.ident()
        ))
        .with_sqlstate("25001")
        .with_hint("files are there at once: write them outside of the block"));
    }
    let files = ExternalFiles::of(table)?;
    let schema = input.schema();
    let names = partition_columns(&table.table);
    let columns = table.table.schema();
    let places = names.iter().map(|name| columns.index_of(name));
    let places = places
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|e| Error::internal("a partition column is none of the table's").with_source(e))?;
    let target = WriteTarget {
        location: files.location,
        definition: files.definition,
        // Files have the table's names, whatever the query's are.
        schema: renamed(&schema, &columns),
        partition_columns: places,
        overwrites: overwrite.is_some(),
        replaced: overwrite.map(|of| of.partitions.clone()).unwrap_or_default(),
    };
    let sink = FileSink { target, schema, table: Some(table.table.clone()) };
    Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
}

/// The types of the rows with the names of the columns.
fn renamed(rows: &SchemaRef, columns: &SchemaRef) -> SchemaRef {
    let field = |(row, column): (&arrow::datatypes::FieldRef, &arrow::datatypes::FieldRef)| {
        arrow::datatypes::Field::new(column.name(), row.data_type().clone(), true)
    };
    let fields = rows.fields().iter().zip(columns.fields()).map(field);
    Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()))
}

/// An external table as the target of an INSERT OVERWRITE.
#[derive(Debug)]
pub(crate) struct OverwriteTarget {
    pub(crate) table: StoaTable,
    pub(crate) overwrite: Overwrite,
}

/// A directory as the target of rows, which replace its files.
#[derive(Debug)]
pub(crate) struct DirectoryTarget {
    pub(crate) target: WriteTarget,
}

#[async_trait]
impl TableProvider for OverwriteTarget {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn EngineSession,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        write_only()
    }

    async fn insert_into(
        &self,
        state: &dyn EngineSession,
        input: Arc<dyn ExecutionPlan>,
        _operation: InsertOp,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        plan(&self.table, state, input, Some(&self.overwrite)).map_err(to_datafusion)
    }
}

#[async_trait]
impl TableProvider for DirectoryTarget {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.target.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn EngineSession,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        write_only()
    }

    async fn insert_into(
        &self,
        _state: &dyn EngineSession,
        input: Arc<dyn ExecutionPlan>,
        _operation: InsertOp,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let sink = FileSink { target: self.target.clone(), schema: input.schema(), table: None };
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
    }
}

/// Writes files, and makes them visible at the end.
struct FileSink {
    target: WriteTarget,
    schema: SchemaRef,
    /// The external table, unless it is a directory.
    table: Option<Table>,
}

impl fmt::Debug for FileSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileSink({})", self.target.definition.location)
    }
}

impl DisplayAs for FileSink {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let definition = &self.target.definition;
        write!(
            f,
            "FileSink: location={}, format={}",
            definition.location,
            definition.format.name().to_lowercase()
        )
    }
}

impl FileSink {
    async fn write(&self, mut data: SendableRecordBatchStream) -> Result<u64> {
        let mut writer = HiveWriter::new(self.target.clone())?;
        while let Some(batch) = data.next().await {
            let written = match batch {
                Ok(batch) => writer.write(&batch).await,
                Err(error) => Err(from_datafusion(error)),
            };
            if let Err(error) = written {
                writer.abort().await;
                return Err(error);
            }
        }
        if let Err(error) = self.take_in(writer.partitions()).await {
            writer.abort().await;
            return Err(error);
        }
        // Whoever cancels the statement meanwhile finds all of its files or none.
        let commit = task::spawn(also_charged(writer.commit())).await;
        commit.map_err(|source| Error::internal("a commit was broken off").with_source(source))?
    }

    /// Partitions that were dropped are there again when rows come into them.
    async fn take_in(&self, written: &BTreeSet<String>) -> Result<()> {
        let dropped = &self.target.definition.dropped;
        let Some(table) = self.table.as_ref().filter(|_| !dropped.is_empty()) else {
            return Ok(());
        };
        let left: Vec<String> =
            dropped.iter().filter(|name| !written.contains(*name)).cloned().collect();
        if left.len() < dropped.len() {
            let property = Definition::dropped_property(&left);
            table.alter(vec![TableChange::SetProperties([property].into())]).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl DataSink for FileSink {
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
