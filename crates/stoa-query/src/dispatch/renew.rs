//! Statements that were planned before their tables, or the session's names, changed.
//!
//! A plan holds the tables that its names meant when it was made. Before each execution they are
//! compared with the tables that have these names now; a plan of other tables, or of other columns,
//! is made anew from the statement's text, as PostgreSQL does. **Invariant:** rows never go to a table
//! that is not the one its name means when the execution begins.
//!
//! Not here: tables that go while rows are on their way to them (`stoa-ingest`, `stoa-table`).

use std::any::Any;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, TableSource, WriteOp};
use stoa_error::Condition;
use stoa_error::{Error, ErrorKind, Result};
use stoa_table::Table;

use super::prepare::Prepared;
use crate::session::Session;
use crate::tables::table::{StoaTable, stoa_table, table_shown};
use stoa_semantics::errors::from_datafusion;

/// How often a statement is planned anew in one execution, because its tables change all the time.
pub(super) const RENEWALS_MAX: usize = 10;

/// What a statement's plan was replaced with, for all who execute it.
pub(super) type Renewed = Arc<parking_lot::Mutex<Option<Arc<Prepared>>>>;

impl Session {
    /// The statement as its tables are now: itself, or planned anew.
    ///
    /// # Errors
    /// Those of planning; 0A000 where its parameters or the columns that it gives are others now,
    /// which the client was told.
    pub(super) async fn renewed(&self, prepared: &Prepared) -> Result<Option<Arc<Prepared>>> {
        if self.is_current(prepared).await? {
            return Ok(None);
        }
        let Some(planned) = prepared.planned() else { return Ok(None) };
        let known = planned.renewed.lock().clone();
        if let Some(known) = known
            && self.is_current(&known).await?
        {
            return Ok(Some(known));
        }
        let anew = Arc::new(self.plan_anew(prepared).await?);
        *planned.renewed.lock() = Some(Arc::clone(&anew));
        Ok(Some(anew))
    }

    /// Whether the session reads names as it did when the statement was planned.
    pub fn means_the_same(&self, prepared: &Prepared) -> bool {
        prepared.context.as_ref().is_none_or(|context| *context == self.options_context())
    }

    /// Whether a plan's names still mean what they meant when it was made.
    ///
    /// # Errors
    /// Those of the catalog, other than that a table is gone.
    pub(super) async fn is_current(&self, prepared: &Prepared) -> Result<bool> {
        let Some(own) = prepared.planned() else { return Ok(true) };
        if !self.means_the_same(prepared) {
            return Ok(false);
        }
        if !self.are_views_current(&own.views).await? {
            return Ok(false);
        }
        let mut tables = tables_of(&own.plan)?;
        if let Some(returning) = &own.returning {
            tables.extend(tables_of(returning)?);
        }
        for planned in tables {
            match self.data.warehouse().table(planned.ident()).await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                // A view has the name.
                Err(error) if error.is(Condition::WrongObjectType) => return Ok(false),
                Err(error) => return Err(error),
                Ok(now) if !is_same(&planned, &now)? => return Ok(false),
                Ok(_) => {}
            }
        }
        Ok(true)
    }

    /// A plan that adds rows, with the current version of the table to which it adds them.
    ///
    /// # Errors
    /// `Conflict` where its name means another table now.
    pub(super) async fn with_current_target(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let LogicalPlan::Dml(mut dml) = plan else { return Ok(plan) };
        if let Some(planned) = target_of_rows(&dml) {
            let now = self.data.warehouse().table(planned.table.ident()).await?;
            if !is_same(&planned.table, &now)? {
                let ident = planned.table.ident();
                return Err(Error::conflict(format!("table {ident} was replaced meanwhile")));
            }
            dml.target = provider_as_source(Arc::new(planned.at(now)));
        }
        Ok(LogicalPlan::Dml(dml))
    }
}

/// Whether an error may come from a plan that is out of date.
pub(super) fn may_be_outdated(error: &Error) -> bool {
    let outdated = [
        Condition::FeatureNotSupported,
        Condition::UndefinedTable,
        Condition::UndefinedSchema,
        Condition::WrongObjectType,
    ];
    error.kind() == ErrorKind::Conflict || outdated.iter().any(|condition| error.is(*condition))
}

fn target_of_rows(dml: &DmlStatement) -> Option<StoaTable> {
    match dml.op {
        WriteOp::Insert(InsertOp::Append) => stoa_table(&dml.target),
        _ => None,
    }
}

/// The tables of the warehouse that a plan names, each once.
fn tables_of(plan: &LogicalPlan) -> Result<Vec<Table>> {
    let mut tables: Vec<Table> = Vec::new();
    let mut add = |source: &Arc<dyn TableSource>| {
        if let Some(table) = table_behind(source)
            && !tables.iter().any(|known| known.ident() == table.ident())
        {
            tables.push(table);
        }
    };
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => add(&scan.source),
            LogicalPlan::Dml(dml) => add(&dml.target),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    Ok(tables)
}

fn table_behind(source: &Arc<dyn TableSource>) -> Option<Table> {
    let provider = source_as_provider(source).ok()?;
    table_shown(provider.as_ref() as &dyn Any).cloned()
}

/// Whether a plan over one version of a table is one over the other as well.
fn is_same(planned: &Table, now: &Table) -> Result<bool> {
    if planned.metadata_location() == now.metadata_location() {
        return Ok(true);
    }
    Ok(planned.uuid() == now.uuid()
        && planned.schema_id() == now.schema_id()
        && planned.defaults() == now.defaults()
        && stoa_cells::schema_of(planned)? == stoa_cells::schema_of(now)?)
}
