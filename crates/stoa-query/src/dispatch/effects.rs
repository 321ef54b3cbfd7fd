//! What statements do beside reading, and which of them a transaction allows.

use std::sync::atomic::Ordering;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use stoa_error::Result;
use stoa_semantics::errors::from_datafusion;
use stoa_sql::{CopySource, RoleStatement, StatementKind, TransactionModes};

use super::prepare::Prepared;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::outcome::Ran;

/// What a statement does beside reading.
enum Effect {
    Nothing,
    /// Rows: a block can keep them aside.
    Rows(String),
    /// What takes effect at once.
    Lasting(&'static str),
    /// As well; but there is nothing to be undone.
    Maintenance(&'static str),
}

impl Session {
    /// Refuses what the transaction, or the session, does not allow.
    ///
    /// # Errors
    /// 25P02 after an error, 25006 where writes are refused, 0A000 for what a block cannot do.
    pub(super) fn check_allowed(&self, prepared: &Prepared) -> Result<()> {
        let is_open = self.block.is_open();
        if !is_open && !self.read_only.load(Ordering::Relaxed) {
            return Ok(());
        }
        let statement = prepared.statement();
        self.block.check_usable(statement.transaction())?;
        if statement.transaction().is_none() && !statement.is_set() {
            self.block.note_used();
        }
        let effect = effect_of(prepared)?;
        match &effect {
            Effect::Nothing => return Ok(()),
            Effect::Rows(command) => self.check_writes(command)?,
            Effect::Lasting(command) | Effect::Maintenance(command) => {
                self.check_writes(command)?
            }
        }
        match effect {
            Effect::Lasting(command) | Effect::Maintenance(command) if is_open => {
                self.block.check_lasting(command)
            }
            _ => Ok(()),
        }
    }

    /// Notes a command that took effect at once; inside of a block the user is told so.
    pub(super) fn note_lasting(&self, prepared: &Prepared, done: Completion) -> Completion {
        match effect_of(prepared) {
            Ok(Effect::Lasting(command)) if self.block.note_lasting(command) => done
                .with_notice(format!("{command} took effect at once; ROLLBACK will not undo it")),
            _ => done,
        }
    }

    pub(super) fn run_set(
        &self,
        name: Option<&str>,
        value: Option<&str>,
        is_local: bool,
    ) -> Result<Ran> {
        if is_local && !self.block.is_open() {
            let notice = "SET LOCAL can only be used in transaction blocks; nothing was set";
            return Ok(Ran::Done(Completion::of("SET").with_notice(notice.to_owned())));
        }
        match name {
            Some(name) if is_local => self.set_local(name, value)?,
            Some(name) => self.set(name, value)?,
            None => self.reset_all()?,
        }
        let tag = if value.is_some() || is_local { "SET" } else { "RESET" };
        Ok(Ran::Done(Completion::of(tag)))
    }

    pub(super) fn run_characteristics(&self, modes: TransactionModes) -> Result<Ran> {
        if let Some(isolation) = modes.isolation {
            self.set("default_transaction_isolation", Some(isolation.name()))?;
        }
        if let Some(read_only) = modes.read_only {
            let value = if read_only { "on" } else { "off" };
            self.set("default_transaction_read_only", Some(value))?;
        }
        Ok(Ran::Done(Completion::of("SET")))
    }

    /// Takes the state that all statements of the transaction read, before the first of them.
    pub(super) async fn take_snapshot(&self, prepared: &Prepared) -> Result<()> {
        if !self.block.wants_snapshot() {
            return Ok(());
        }
        if prepared.is_query() || prepared.statement.copy().is_some() {
            // Kept off the stacks of those that want none.
            let tables = Box::pin(self.data.all_tables()).await?;
            self.block.put_snapshot(tables);
        }
        Ok(())
    }
}

fn effect_of(prepared: &Prepared) -> Result<Effect> {
    if let Some(planned) = prepared.planned() {
        return effect_of_plan(&planned.plan);
    }
    let Some(kind) = prepared.statement.kind() else { return Ok(Effect::Nothing) };
    Ok(match kind {
        StatementKind::Copy(copy) => match copy.source {
            CopySource::FromStdin(_) | CopySource::FromFiles(..) => {
                Effect::Rows("COPY FROM".to_owned())
            }
            CopySource::TableToStdout(_) | CopySource::QueryToStdout(_) | CopySource::Program => {
                Effect::Nothing
            }
        },
        StatementKind::InsertAll(_) | StatementKind::InsertIfAbsent(_) => {
            Effect::Rows("INSERT".to_owned())
        }
        StatementKind::WriteDirectory(_) => Effect::Lasting("INSERT OVERWRITE DIRECTORY"),
        StatementKind::LoadData(_) => Effect::Rows("LOAD DATA".to_owned()),
        StatementKind::Partitions(_) => Effect::Rows("ALTER TABLE … PARTITION".to_owned()),
        StatementKind::Truncate { .. } => Effect::Rows("TRUNCATE".to_owned()),
        StatementKind::CreateTable(_) => Effect::Lasting("CREATE TABLE"),
        StatementKind::CreateSchema { .. } => Effect::Lasting("CREATE SCHEMA"),
        StatementKind::DropSchema { .. } => Effect::Lasting("DROP SCHEMA"),
        StatementKind::DropTable { .. } => Effect::Lasting("DROP TABLE"),
        StatementKind::AlterTable(_) => Effect::Lasting("ALTER TABLE"),
        StatementKind::Comment(_) => Effect::Lasting("COMMENT"),
        StatementKind::CreateView(_) => Effect::Lasting("CREATE VIEW"),
        StatementKind::AlterView(_) => Effect::Lasting("ALTER VIEW"),
        StatementKind::DropView { .. } => Effect::Lasting("DROP VIEW"),
        StatementKind::Role(RoleStatement::Activate(_)) => Effect::Nothing,
        StatementKind::Role(_) => Effect::Lasting("a change of roles or rights"),
        StatementKind::ResourcePlan(_) => Effect::Lasting("a change of resource plans"),
        StatementKind::Maintain(_) => Effect::Maintenance("maintenance of a table"),
        _ => Effect::Nothing,
    })
}

/// The change that a plan makes, also one that EXPLAIN ANALYZE runs.
fn effect_of_plan(plan: &LogicalPlan) -> Result<Effect> {
    let mut effect = Effect::Nothing;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Dml(dml) = node {
            let name = dml.op.name();
            effect = Effect::Rows(name.split(' ').next().unwrap_or(name).to_uppercase());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map(|_| effect).map_err(from_datafusion)
}
