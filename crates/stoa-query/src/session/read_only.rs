//! Sessions and transactions that only read.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use stoa_error::{Error, Result};

use super::{Prepared, Session};
use crate::dialect::{CopySource, TransactionControl};
use crate::error::from_datafusion;
use crate::settings::as_boolean;
use crate::statement::StatementKind;

impl Session {
    /// Begins a transaction that refuses writes, or one that does not unless the session says so.
    pub fn begin_block(&self, read_only: bool) {
        let _ = self.set("transaction_read_only", read_only.then_some("on"));
    }

    /// Ends a transaction: the session's own setting counts again.
    pub fn end_block(&self) {
        let _ = self.set("transaction_read_only", None);
    }

    /// Notes what a control statement means for writes.
    pub(super) fn note_control(&self, control: TransactionControl) {
        match control {
            TransactionControl::Begin => self.begin_block(false),
            TransactionControl::BeginReadOnly => self.begin_block(true),
            TransactionControl::Commit | TransactionControl::Rollback => self.end_block(),
            _ => {}
        }
    }

    /// Refuses writes where the transaction or the session only reads.
    ///
    /// # Errors
    /// 25006.
    pub(super) fn check_read_only(&self, prepared: &Prepared) -> Result<()> {
        let is_on = |name| self.setting(name).is_ok_and(|value| as_boolean(&value) == Some(true));
        if !is_on("transaction_read_only") && !is_on("default_transaction_read_only") {
            return Ok(());
        }
        match write_of(prepared)? {
            None => Ok(()),
            Some(command) => {
                Err(Error::invalid(format!("cannot execute {command} in a read-only transaction"))
                    .with_sqlstate("25006"))
            }
        }
    }
}

/// What a statement changes, by its command.
fn write_of(prepared: &Prepared) -> Result<Option<String>> {
    if let Some(plan) = &prepared.plan {
        return write_of_plan(plan);
    }
    let command = match &prepared.statement.kind {
        StatementKind::Copy(copy) => match copy.source {
            CopySource::FromStdin(_) | CopySource::FromFiles(..) => "COPY FROM",
            CopySource::TableToStdout(_) | CopySource::QueryToStdout(_) => return Ok(None),
        },
        StatementKind::CreateTable(_) => "CREATE TABLE",
        StatementKind::CreateSchema { .. } => "CREATE SCHEMA",
        StatementKind::DropSchema { .. } => "DROP SCHEMA",
        StatementKind::DropTable { .. } => "DROP TABLE",
        StatementKind::AlterTable(_) => "ALTER TABLE",
        StatementKind::Role(_) => "a change of roles or rights",
        StatementKind::Maintain(_) => "maintenance of a table",
        _ => return Ok(None),
    };
    Ok(Some(command.to_owned()))
}

/// The change that a plan makes, also one that EXPLAIN ANALYZE runs.
fn write_of_plan(plan: &LogicalPlan) -> Result<Option<String>> {
    let mut write = None;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Dml(dml) = node {
            let name = dml.op.name();
            write = Some(name.split(' ').next().unwrap_or(name).to_uppercase());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map(|_| write).map_err(from_datafusion)
}
