//! INSERT of rows that come from values or from tables, in addition to those that are there.

use std::sync::Arc;

use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, Projection, WriteOp, cast};
use stoa_catalog::TableIdent;
use stoa_error::{Error, ErrorKind, Result};

use super::{ATTEMPTS_MAX, Returning};
use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::outcome::count_written;
use crate::tables::changes::Turn;
use crate::tables::table::{pin, stoa_table, tables_of};
use crate::tables::versions;
use stoa_semantics::errors::from_datafusion;

/// An INSERT whose rows are cast to the types of the table's columns. The engine casts what it takes for another type, and
/// takes a CASE for the type of its first branch: what it is in the end would be cast when it is written, without
/// rounding.
///
/// # Errors
/// Internal.
pub(crate) fn with_casts(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Dml(DmlStatement { op: WriteOp::Insert(_), target, input, .. }) = &plan else {
        return Ok(plan);
    };
    let LogicalPlan::Projection(rows) = input.as_ref() else { return Ok(plan) };
    if is_plain(&rows.input) {
        return Ok(plan);
    }
    let schema = target.schema();
    let columns =
        rows.expr.iter().zip(schema.fields()).map(|(value, field)| match value.clone().unalias() {
            column @ Expr::Column(_) => cast(column, field.data_type().clone()).alias(field.name()),
            _ => value.clone(),
        });
    let rows = Projection::try_new(columns.collect(), Arc::clone(&rows.input));
    let rows = LogicalPlan::Projection(rows.map_err(from_datafusion)?);
    let LogicalPlan::Dml(mut dml) = plan else { return Err(Error::internal("not an INSERT")) };
    dml.input = Arc::new(rows);
    Ok(LogicalPlan::Dml(dml))
}

/// Whether rows are values whose types are what they seem.
fn is_plain(rows: &LogicalPlan) -> bool {
    fn is_value(expr: &Expr) -> bool {
        match expr {
            Expr::Literal(..) | Expr::Placeholder(_) => true,
            Expr::Cast(cast) => is_value(&cast.expr),
            Expr::Negative(inner) => is_value(inner),
            _ => false,
        }
    }
    match rows {
        LogicalPlan::Values(values) => values.values.iter().flatten().all(is_value),
        _ => false,
    }
}

/// Runs an INSERT. One that reads tables runs again where they were changed before its rows were
/// there.
///
/// # Errors
/// What execution finds; `Conflict` where others change the tables all the time.
pub(crate) async fn insert(
    session: &Session,
    plan: LogicalPlan,
    returning: Option<&Returning>,
    guard: &QueryGuard,
) -> Result<Completion> {
    if let (Some(returning), LogicalPlan::Dml(dml)) = (returning, &plan)
        && let Some(target) = stoa_table(&dml.target)
    {
        returning.check_rights(session, &target.table)?;
    }
    if let LogicalPlan::Dml(dml) = &plan {
        versions::refuse_writes(&dml.target)?;
    }
    let read = tables_of(&plan)?;
    if read.is_empty() {
        return written(session, plan, returning, guard).await;
    }
    for number in 1..=ATTEMPTS_MAX {
        let turn = match number {
            1 => None,
            // A block would keep everybody waiting until its COMMIT.
            _ if session.block.is_open() => None,
            _ => Some(session.data.changes().turn().await),
        };
        match attempt(session, plan.clone(), &read, turn, returning, guard).await {
            Err(error) if error.kind() == ErrorKind::Conflict && number < ATTEMPTS_MAX => {}
            ended => return ended,
        }
    }
    Err(Error::internal("an INSERT was not tried"))
}

async fn attempt(
    session: &Session,
    plan: LogicalPlan,
    read: &[TableIdent],
    turn: Option<Turn>,
    returning: Option<&Returning>,
    guard: &QueryGuard,
) -> Result<Completion> {
    let LogicalPlan::Dml(dml) = &plan else {
        return Err(Error::internal("an INSERT has no such plan"));
    };
    let Some(target) = stoa_table(&dml.target) else {
        let plan = pin(plan, session.tables(read).await?)?;
        return written(session, plan, returning, guard).await;
    };
    let reading = session.data.changes().begin(read.to_vec(), target.table.ident(), turn).await;
    let LogicalPlan::Dml(mut dml) = pin(plan, session.tables(read).await?)? else {
        return Err(Error::internal("an INSERT became another statement"));
    };
    dml.target = provider_as_source(Arc::new(target.written_by(Arc::new(reading))));
    written(session, LogicalPlan::Dml(dml), returning, guard).await
}

/// Runs a plan that writes. Rows that are returned are computed once, and what is returned of them before they are
/// written: nothing is, if that fails.
async fn written(
    session: &Session,
    plan: LogicalPlan,
    returning: Option<&Returning>,
    guard: &QueryGuard,
) -> Result<Completion> {
    let plan = match (returning, plan) {
        (Some(returning), LogicalPlan::Dml(mut dml)) => {
            let rows = returning.rows_of(session, &dml.input, guard).await?;
            returning.answer(session, &rows, guard).await?;
            dml.input = Arc::new(rows.into_plan()?);
            LogicalPlan::Dml(dml)
        }
        (_, plan) => plan,
    };
    let rows = count_written(session.stream(&plan, guard).await?).await?;
    Ok(Completion::rows("INSERT", rows))
}
