//! Earlier versions of tables, and what there is to know of versions and files, under names of their own.
//!
//! | name | rows |
//! |---|---|
//! | `t@version 3`, `t@3` | those of snapshot 3, in files |
//! | `t@version eoy`, `t@eoy` | those of the snapshot that a tag or branch names |
//! | `t@timestamp micros` | those that were current then, in microseconds since 1970-01-01 UTC |
//! | `t$snapshots`, `t$history`, `t$refs` | one per snapshot, per change of the current one, per tag or branch |
//! | `t$files`, `t$partitions` | one per data file, per table partition |
//!
//! What a name means is looked up when a statement is planned, and again when it is executed. **Invariants:** such
//! tables are only read; rows ask for the rights on the columns that are read, as those of the table itself.

mod facts;

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::common::Statistics;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;
use stoa_error::{Error, Result};
use stoa_sql::time_travel::{self, NamedVersion};
use stoa_table::{Table, TableVersion};

use crate::tables::table::StoaTable;
use stoa_semantics::errors::to_datafusion;

pub(super) use facts::{TableFacts, split_name as split_facts};

/// The table about whose versions or files a name asks; `None` for names that ask for neither.
pub(super) fn asked_of(name: &str) -> Option<&str> {
    let facts = split_facts(name).map(|(table, _)| table);
    facts.or_else(|| split_name(name).map(|(table, _)| table))
}

/// The table and the version that a name asks for; `None` for names without one.
pub(super) fn split_name(name: &str) -> Option<(&str, TableVersion)> {
    let (table, version) = time_travel::split_name(name)?;
    let version = match version {
        NamedVersion::Timestamp(micros) => TableVersion::At(micros.parse().ok()?),
        NamedVersion::Version(id) => match id.parse() {
            Ok(id) => TableVersion::Snapshot(id),
            Err(_) => TableVersion::Named(id.to_owned()),
        },
    };
    Some((table, version))
}

/// A table as it was.
#[derive(Clone, Debug)]
pub(crate) struct EarlierTable {
    then: StoaTable,
    version: TableVersion,
}

impl EarlierTable {
    /// `now` as it was at `version`.
    ///
    /// # Errors
    /// No such version (42704).
    pub(super) fn new(now: StoaTable, version: TableVersion) -> Result<Self> {
        let then = now.table.at_version(&version)?;
        Ok(Self { then: now.at(then).with_ingest(None), version })
    }

    /// The same version of the table that has the name now, as it may have been planned long ago.
    async fn renewed(&self) -> Result<StoaTable> {
        let planned = &self.then.table;
        let now = planned.warehouse().table(planned.ident()).await?;
        let is_same = now.uuid() == planned.uuid();
        let then = now.at_version(&self.version)?;
        if !is_same || then.schema() != planned.schema() {
            let ident = planned.ident();
            let what = format!("another version of {ident} has the name since it was prepared");
            return Err(Error::unsupported(what).with_hint("prepare the statement again"));
        }
        Ok(self.then.clone().at(then))
    }
}

#[async_trait]
impl TableProvider for EarlierTable {
    fn schema(&self) -> SchemaRef {
        self.then.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        self.then.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.then.statistics()
    }

    async fn scan(
        &self,
        state: &dyn EngineSession,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let then = self.renewed().await.map_err(to_datafusion)?;
        then.scan(state, projection, filters, limit).await
    }
}

/// The table whose versions or files a provider shows, if it does.
pub(super) fn table_behind(provider: &dyn Any) -> Option<&Table> {
    let earlier = provider.downcast_ref::<EarlierTable>().map(|earlier| &earlier.then.table);
    earlier.or_else(|| provider.downcast_ref::<TableFacts>().map(TableFacts::table))
}

/// Refuses to write to an earlier version, or to what is known of a table.
///
/// # Errors
/// 42809.
pub(crate) fn refuse_writes(source: &Arc<dyn TableSource>) -> Result<()> {
    let Ok(provider) = source_as_provider(source) else { return Ok(()) };
    match table_behind(provider.as_ref() as &dyn Any) {
        None => Ok(()),
        Some(table) => {
            let what = format!("versions of {} are only read", table.ident());
            Err(Error::unsupported(what)
                .with_sqlstate("42809")
                .with_hint("write to the table itself: leave out the version"))
        }
    }
}
