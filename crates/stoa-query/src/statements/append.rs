//! Rows that come as Arrow batches: a client appends to a table, makes one, or replaces one.
//!
//! In: a schema and a stream of batches. Out: the number of rows, once they are durable and visible.
//! Columns match by name; values are cast where nothing is lost, by the rules of files
//! (`stoa_load::Adapter`).
//!
//! **Invariant:** all rows of one call appear at once, or none. Few of them go through the commit
//! log without being planned; more become files, as those of any statement (`fresh`, `load`).
//!
//! Not here: how a protocol says all this (`stoa-flight`).

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use stoa_access::Privilege;
use stoa_catalog::TableIdent;
use stoa_error::Condition;
use stoa_error::{Error, ErrorKind, Result};
use stoa_load::{Adapter, LoadOptions};
use stoa_table::{Table, TableSpec};

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::dml;
use crate::statements::load;
use crate::statements::{columns, ddl};
use crate::tables::storable::same_type;

/// Batches on their way in.
pub type BatchesIn = BoxStream<'static, Result<RecordBatch>>;

/// Which table rows go to, and what if it is there or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppendTarget {
    /// The table's namespace; the session's own if `None`. As it is, no quotes.
    pub namespace: Option<String>,
    /// The table's name, as it is.
    pub table: String,
    /// What if there is no such table.
    pub missing: IfMissing,
    /// What if there is.
    pub exists: IfExists,
    /// Settings of a load, such as `missing_columns`, as names and values.
    pub options: Vec<(String, String)>,
}

/// What if the table is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfMissing {
    /// It is an error.
    #[default]
    Fail,
    /// The table appears, with the columns that the rows have, together with the rows.
    Create,
}

/// What if the table is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// It is an error.
    Fail,
    /// The rows are added to it.
    #[default]
    Append,
    /// Its rows go as the new ones come; a table of other columns takes its place.
    Replace,
}

impl Session {
    /// Brings `batches`, whose columns are those of `schema`, into a table.
    ///
    /// # Errors
    /// The table is not there (42P01), or is (42P07), against what `target` says; columns that
    /// do not match (42703, 42804), values that do not fit, and what writing finds. Nothing is
    /// written then. Retryable: no room for fresh rows (53200), the table was changed meanwhile.
    pub fn append<'a>(
        &'a self,
        target: &'a AppendTarget,
        schema: SchemaRef,
        batches: BatchesIn,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async move {
            self.must_be_open()?;
            self.caller.refresh().await?;
            let namespace = target.namespace.clone().unwrap_or_else(|| self.namespace());
            let ident = TableIdent { namespace, name: target.table.clone() };
            let guard = self.start_query(&format!("INGEST INTO {ident}"), None);
            self.remember(guard.cancel_token().clone());
            let work: BoxFuture<'_, Result<u64>> =
                Box::pin(bring(self, target, &ident, schema, batches, &guard));
            let written = guard.run(work).await;
            guard.ended_with_rows(written).map(|rows| Completion::rows("COPY", rows))
        })
    }
}

async fn bring(
    session: &Session,
    target: &AppendTarget,
    ident: &TableIdent,
    schema: SchemaRef,
    batches: BatchesIn,
    guard: &QueryGuard,
) -> Result<u64> {
    let options = load::options_of_stream(LoadOptions::default(), &target.options)?;
    let table = match session.data.warehouse().table(ident).await {
        Ok(table) => table,
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Err(error) if target.missing == IfMissing::Fail || !error.is(Condition::UndefinedTable) => {
            return Err(error.with_hint("make it with CREATE TABLE, or let the ingest make it"));
        }
        Err(_) => {
            session.caller.must_be_superuser("create tables")?;
            let created = create(session, ident, &schema, batches, guard).await;
            return created.map_err(|error| match target.exists {
                IfExists::Append => lost_race(error),
                _ => error,
            });
        }
    };
    crate::tables::external::refuse_rows(&table)?;
    match target.exists {
        IfExists::Fail => Err(Error::already_exists(format!("table {ident} exists already"))
            .with_sqlstate("42P07")
            .with_hint("append to it, replace it, or choose another name")),
        IfExists::Append => {
            session.caller.may_write(&table, Privilege::Insert)?;
            let rows = adapted(&table, &schema, batches, &options)?;
            let schema = table.schema();
            load::append(session, table, schema, rows, guard).await
        }
        IfExists::Replace => {
            session.caller.must_own(&table)?;
            replace(session, table, &schema, batches, &options, guard).await
        }
    }
}

/// Somebody else made the table meanwhile: the next try will append to it.
fn lost_race(error: Error) -> Error {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            Error::conflict("somebody else made the table at the same time").with_source(error)
        }
        _ => error,
    }
}

/// The rows with the table's columns and types.
fn adapted(
    table: &Table,
    schema: &SchemaRef,
    batches: BatchesIn,
    options: &LoadOptions,
) -> Result<BatchesIn> {
    let mut adapter = Adapter::new("the rows sent", schema, table.schema(), options)?;
    let adapt = move |batch: Result<RecordBatch>| {
        let projected = batch?.project(adapter.projection());
        let projected = projected.map_err(|source| {
            Error::invalid("the rows sent do not have the columns of their schema")
                .with_source(source)
        })?;
        adapter.adapt(&projected)
    };
    Ok(batches.map(adapt).boxed())
}

async fn create(
    session: &Session,
    ident: &TableIdent,
    schema: &SchemaRef,
    batches: BatchesIn,
    guard: &QueryGuard,
) -> Result<u64> {
    let stored = columns::storable_schema(schema)?;
    let spec = TableSpec::new(stored);
    let staged = session.data.warehouse().stage_table(ident, spec).await?;
    fill(session, staged, schema, batches, guard).await
}

/// A table of the same columns keeps all but its rows; one of others is another table.
async fn replace(
    session: &Session,
    table: Table,
    schema: &SchemaRef,
    batches: BatchesIn,
    options: &LoadOptions,
    guard: &QueryGuard,
) -> Result<u64> {
    let stored = columns::storable_schema(schema)?;
    let there = table.schema();
    let same = stored.fields().len() == there.fields().len()
        && stored.fields().iter().zip(there.fields()).all(|(new, old)| {
            new.name() == old.name() && same_type(new.data_type(), old.data_type())
        });
    if same {
        let rows = adapted(&table, schema, batches, options)?;
        let plan = load::input_plan(table.schema(), rows)?;
        return dml::replace_all(session, table.ident(), plan, guard).await;
    }
    let warehouse = session.data.warehouse();
    let spec = TableSpec::new(stored);
    let staged = warehouse.stage_replacement(&table, spec).await?;
    let rows = fill(session, staged, schema, batches, guard).await?;
    session.data.forget_rows(&table).await;
    warehouse.purge(&table).await;
    Ok(rows)
}

/// The first rows of a staged table, which appears with them.
async fn fill(
    session: &Session,
    staged: Table,
    schema: &SchemaRef,
    batches: BatchesIn,
    guard: &QueryGuard,
) -> Result<u64> {
    let plan: LogicalPlan = load::input_plan(Arc::clone(schema), batches)?;
    let plan = columns::cast_to(plan, &crate::tables::nested::engine_schema(&staged.schema()))?;
    let rows = ddl::append_plan(session, staged, plan, guard).await?;
    session.data.refresh().await?;
    Ok(rows)
}
