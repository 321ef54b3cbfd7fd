//! A table as the engine sees it.
//!
//! **Invariant:** one [`StoaTable`] is one snapshot. [`pin_snapshots`] puts the current ones into a
//! plan before each execution, the same for every place that names a table, and all of one moment.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    Expr, LogicalPlan, TableProviderFilterPushDown, TableSource, TableType,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;
use stoa_access::Privilege;
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use stoa_ingest::{FreshRows, Ingest};
use stoa_member::Member;
use stoa_orc::Predicate;
use stoa_report::Reports;
use stoa_table::{ScanFile, ScanPlan, Table};

use crate::access::{Caller, FileAccess, fields_at};
use crate::tables::cells::{self, refuse_rows};
use crate::tables::changes::Reading;
use crate::tables::external;
use crate::tables::file_cache::FileCache;
use crate::tables::filter::may_be_predicate;
use crate::tables::fresh::{plan_batches, plan_fresh};
use crate::tables::nested::engine_schema;
use crate::tables::scan::OrcScanExec;
use crate::tables::sink::{self, Commit, WriteMode};
use crate::tables::transaction::Block;
use crate::tables::versions;
use stoa_semantics::errors::{from_datafusion, to_datafusion};

/// One snapshot of a table.
#[derive(Clone)]
pub(crate) struct StoaTable {
    pub(crate) table: Table,
    pub(crate) files: Arc<FileCache>,
    pub(crate) reports: Arc<Reports>,
    /// The files that an external table may have.
    pub(crate) file_access: Arc<FileAccess>,
    /// The cluster that the server is a member of, if any.
    pub(crate) member: Option<Member>,
    schema: SchemaRef,
    /// Data files to which scans keep; all, and the fresh rows, if `None`.
    only: Option<Arc<[Arc<ScanFile>]>>,
    /// Where small writes go; straight to files if `None`.
    ingest: Option<Ingest>,
    /// Rows of the snapshot that are in no data file yet.
    fresh: Option<FreshRows>,
    /// What the statement that writes to it has read.
    reading: Option<Arc<Reading>>,
    /// Rows that the reader's own transaction has written.
    own: Option<Arc<[RecordBatch]>>,
    /// Whose rights are asked for, if not those of who runs the plan.
    reader: Option<Arc<Caller>>,
}

impl std::fmt::Debug for StoaTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoaTable").field("ident", self.table.ident()).finish_non_exhaustive()
    }
}

impl StoaTable {
    pub(crate) fn new(
        table: Table,
        files: Arc<FileCache>,
        reports: Arc<Reports>,
        file_access: Arc<FileAccess>,
    ) -> Self {
        let schema = engine_schema(&table.schema());
        let (only, ingest, fresh, reading, own, reader) = (None, None, None, None, None, None);
        Self {
            table,
            files,
            reports,
            file_access,
            member: None,
            schema,
            only,
            ingest,
            fresh,
            reading,
            own,
            reader,
        }
    }

    /// The same table as a daemon of a cluster sees it.
    pub(crate) fn with_member(self, member: Option<Member>) -> Self {
        Self { member, ..self }
    }

    /// The same table, whose small writes go into a log.
    pub(crate) fn with_ingest(self, ingest: Option<Ingest>) -> Self {
        Self { ingest, ..self }
    }

    /// The same table with rows that the reader's own transaction has written.
    pub(crate) fn with_own(self, own: Vec<RecordBatch>) -> Self {
        Self { own: Some(own.into()), ..self }
    }

    /// The same table, read with the rights of `reader`, unless it is read with those of another already.
    pub(crate) fn read_by(self, reader: &Arc<Caller>) -> Self {
        let reader = self.reader.or_else(|| Some(Arc::clone(reader)));
        Self { reader, ..self }
    }

    /// Whether it is read with the rights of somebody else than who runs the plan.
    pub(crate) fn has_reader(&self) -> bool {
        self.reader.is_some()
    }

    /// That somebody else.
    pub(crate) fn reader(&self) -> Option<&Arc<Caller>> {
        self.reader.as_ref()
    }

    /// Whether both are read with the same rights.
    pub(crate) fn has_reader_of(&self, other: &Self) -> bool {
        match (&self.reader, &other.reader) {
            (None, None) => true,
            (Some(one), Some(other)) => one.key() == other.key() && one.role() == other.role(),
            _ => false,
        }
    }

    /// The same table, to be written to by a statement that has read others.
    pub(crate) fn written_by(self, reading: Arc<Reading>) -> Self {
        Self { reading: Some(reading), ..self }
    }

    /// The same table with the rows that are in no data file yet.
    pub(crate) fn with_fresh(self, fresh: FreshRows) -> Self {
        Self { fresh: Some(fresh).filter(|fresh| !fresh.is_empty()), ..self }
    }

    /// Another version of the same table, without fresh rows.
    pub(crate) fn at(self, table: Table) -> Self {
        Self { schema: engine_schema(&table.schema()), table, fresh: None, own: None, ..self }
    }

    /// The same table with no other data files than these, which are of the same snapshot.
    pub(crate) fn only(self, files: Arc<[Arc<ScanFile>]>) -> Self {
        Self { only: Some(files), fresh: None, own: None, ..self }
    }

    /// Whether there are rows that only the reader's own transaction sees.
    pub(crate) fn has_own(&self) -> bool {
        self.own.is_some()
    }

    /// Whether its rows are in files of others.
    pub(crate) fn is_external(&self) -> bool {
        external::is_external(&self.table)
    }

    /// Whether scans read all data files.
    pub(crate) fn scans_all(&self) -> bool {
        self.only.is_none()
    }

    /// Chooses the files that may hold rows for which `predicate` is true.
    pub(crate) async fn plan_scan(&self, predicate: &Predicate) -> Result<ScanPlan> {
        let mut plan = self.table.plan_scan(predicate).await?;
        if let Some(only) = &self.only {
            plan.files.retain(|file| only.iter().any(|kept| kept.location == file.location));
        }
        Ok(plan)
    }

    /// Whether whoever runs the plan may read the columns that are read or judged.
    fn check_rights(
        &self,
        state: &dyn EngineSession,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> Result<()> {
        let caller = match &self.reader {
            Some(reader) => Arc::clone(reader),
            None => Caller::of(state)?,
        };
        let reads_nothing = self.only.as_ref().is_some_and(|files| files.is_empty());
        if reads_nothing || caller.may_everything() {
            return Ok(());
        }
        let read = projection.map(|columns| {
            let judged = filters.iter().flat_map(|filter| filter.column_refs());
            let judged = judged.filter_map(|column| self.schema.index_of(&column.name).ok());
            columns.iter().copied().chain(judged).collect()
        });
        caller.may_select(&self.table, fields_at(&self.table, read.as_ref()).into_iter())
    }

    /// The rows that are in no data file yet.
    pub(crate) fn fresh_batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        self.fresh.iter().flat_map(FreshRows::batches)
    }

    /// How many fresh rows there are, and the position after the last of them.
    pub(crate) fn fresh_extent(&self) -> (u64, u64) {
        self.fresh.as_ref().map_or((0, 0), |fresh| (fresh.rows(), fresh.end_position()))
    }

    /// Rows in the table, or in the files to which scans keep.
    fn row_count(&self) -> Option<u64> {
        if self.is_external() {
            return None;
        }
        match &self.only {
            Some(files) => {
                let counted = files.iter().all(|file| file.deletes.is_empty());
                counted.then(|| files.iter().map(|file| file.rows).sum())
            }
            None => {
                let fresh = self.fresh.as_ref().map_or(0, FreshRows::rows);
                let own = self.own.iter().flat_map(|own| own.iter());
                let own: usize = own.map(RecordBatch::num_rows).sum();
                self.table.row_count().map(|rows| rows + fresh + own as u64)
            }
        }
    }
}

#[async_trait]
impl TableProvider for StoaTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        let is_external = self.is_external();
        let support = |filter: &&Expr| match is_external || may_be_predicate(filter, &self.schema) {
            // Of an external table, any filter may be on its partitions.
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if let Some(rows) = self.row_count() {
            statistics.num_rows = Precision::Exact(usize::try_from(rows).ok()?);
        }
        Some(statistics)
    }

    async fn scan(
        &self,
        state: &dyn EngineSession,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        self.check_rights(state, projection, filters).map_err(to_datafusion)?;
        if self.is_external() {
            let scan = external::plan_scan(self, state, projection, filters).await;
            return Ok(Arc::new(scan.map_err(to_datafusion)?));
        }
        let scan = OrcScanExec::plan(self, state, projection, filters).await;
        let scan: Arc<dyn ExecutionPlan> = Arc::new(scan.map_err(to_datafusion)?);
        let mut parts = vec![scan];
        if let Some(fresh) = &self.fresh {
            parts.push(plan_fresh(fresh, projection).map_err(to_datafusion)?);
        }
        if let Some(own) = &self.own {
            let own = plan_batches(own, &self.schema, projection);
            parts.push(own.map_err(to_datafusion)?);
        }
        match parts.len() {
            1 => Ok(parts.remove(0)),
            _ => UnionExec::try_new(parts),
        }
    }

    async fn insert_into(
        &self,
        state: &dyn EngineSession,
        input: Arc<dyn ExecutionPlan>,
        insert_op: InsertOp,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        if insert_op != InsertOp::Append {
            return Err(to_datafusion(
                Error::unsupported("INSERT OVERWRITE and REPLACE are not supported")
                    .with_hint("drop the table and create it again from a query"),
            ));
        }
        if self.is_external() {
            return external::plan_append(self, state, input).map_err(to_datafusion);
        }
        refuse_rows(&self.table).map_err(to_datafusion)?;
        Caller::of(state)
            .and_then(|caller| caller.may_write(&self.table, Privilege::Insert))
            .map_err(to_datafusion)?;
        let mode = WriteMode::Append(self.ingest.clone());
        let staging = Block::staging_of(state);
        let commit = Commit { reading: self.reading.clone(), staging };
        sink::plan_write(self.table.clone(), mode, commit, input).map_err(to_datafusion)
    }
}

/// The StoaTable behind a source of a plan, if it is one.
pub(crate) fn stoa_table(source: &Arc<dyn TableSource>) -> Option<StoaTable> {
    let provider = source_as_provider(source).ok()?;
    (provider.as_ref() as &dyn Any).downcast_ref::<StoaTable>().cloned()
}

/// The table of the warehouse that a provider shows, as rows or as cells, now or earlier.
pub(crate) fn table_shown(provider: &dyn Any) -> Option<&Table> {
    let rows = provider.downcast_ref::<StoaTable>().map(|found| &found.table);
    rows.or_else(|| cells::table_behind(provider)).or_else(|| versions::table_behind(provider))
}

/// Whether a plan reads any table of the warehouse.
///
/// # Errors
/// Those of walking the plan.
pub(crate) fn reads_tables(plan: &LogicalPlan) -> Result<bool> {
    let is_table = |node: &LogicalPlan| match node {
        LogicalPlan::TableScan(scan) => Ok(stoa_table(&scan.source).is_some()),
        _ => Ok(false),
    };
    plan.exists(is_table).map_err(from_datafusion)
}

/// Whether a plan reads nothing but tables of the warehouse that have their files there.
///
/// # Errors
/// Those of walking the plan.
pub(crate) fn only_reads_tables(plan: &LogicalPlan) -> Result<bool> {
    let mut only = true;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            // What external tables have changes without their snapshots.
            only &= stoa_table(&scan.source).is_some_and(|table| !table.is_external());
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    Ok(only)
}

/// The tables that a plan reads, each once.
///
/// # Errors
/// Those of walking the plan.
pub(crate) fn tables_of(plan: &LogicalPlan) -> Result<Vec<TableIdent>> {
    let mut idents: Vec<TableIdent> = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(found) = stoa_table(&scan.source)
            && !idents.contains(found.table.ident())
        {
            idents.push(found.table.ident().clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    Ok(idents)
}

/// Puts these snapshots into a plan.
///
/// # Errors
/// Columns that changed since the plan was made (0A000).
pub(crate) fn pin(plan: LogicalPlan, tables: Vec<StoaTable>) -> Result<LogicalPlan> {
    let current: HashMap<TableIdent, StoaTable> =
        tables.into_iter().map(|table| (table.table.ident().clone(), table)).collect();
    plan.transform_up_with_subqueries(|node| pin_node(node, &current))
        .map(|pinned| pinned.data)
        .map_err(from_datafusion)
}

fn pin_node(
    node: LogicalPlan,
    current: &HashMap<TableIdent, StoaTable>,
) -> EngineResult<Transformed<LogicalPlan>> {
    let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
    let Some(planned) = stoa_table(&scan.source) else {
        return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    };
    let Some(table) = current.get(planned.table.ident()) else {
        return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    };
    let is_same = table.table.metadata_location() == planned.table.metadata_location();
    if is_same && table.fresh.is_none() && table.own.is_none() {
        return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    }
    if table.schema != planned.schema {
        let ident = planned.table.ident();
        return Err(to_datafusion(
            Error::unsupported(format!(
                "the columns of {ident} changed since the statement was prepared"
            ))
            .with_sqlstate("0A000")
            .with_hint("prepare the statement again"),
        ));
    }
    let reader = planned.reader.or_else(|| table.reader.clone());
    scan.source = provider_as_source(Arc::new(StoaTable { reader, ..table.clone() }));
    Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
}
