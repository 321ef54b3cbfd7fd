//! Transaction blocks of a session: which statements they allow, and what these read.

use std::sync::atomic::Ordering;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use stoa_catalog::TableIdent;
use stoa_error::{Error, ErrorKind, Result};

use super::{Prepared, Ran, Session};
use crate::dialect::{CopySource, Isolation, TransactionControl, TransactionModes};
use crate::error::from_datafusion;
use crate::outcome::Completion;
use crate::settings::as_boolean;
use crate::statement::StatementKind;
use crate::table::StoaTable;

/// How often a state of all tables is looked for while some are dropped.
const LOOKS_MAX: usize = 10;

/// The settings of the transaction itself, which are not the session's.
const ISOLATION: &str = "transaction_isolation";
const READ_ONLY: &str = "transaction_read_only";

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

    /// Refuses writes where transactions are read only.
    ///
    /// # Errors
    /// 25006.
    fn check_writes(&self, command: &str) -> Result<()> {
        let read_only = self.block.is_read_only();
        match read_only.unwrap_or_else(|| self.read_only.load(Ordering::Relaxed)) {
            true => {
                Err(Error::invalid(format!("cannot execute {command} in a read-only transaction"))
                    .with_sqlstate("25006"))
            }
            false => Ok(()),
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

    fn default_modes(&self) -> TransactionModes {
        let settings = self.settings.lock();
        let value = |name: &str| settings.get(name).unwrap_or_default();
        TransactionModes {
            isolation: Isolation::named(&value("default_transaction_isolation")),
            read_only: as_boolean(&value("default_transaction_read_only")),
        }
    }

    /// Runs a control statement.
    pub(super) async fn control(&self, control: &TransactionControl) -> Result<Completion> {
        if self.options.protocol == "flight" {
            return Err(Error::unsupported("transactions over Flight SQL are not supported")
                .with_hint("each statement commits by itself"));
        }
        // A transaction that has failed can only be given up.
        let control = match control {
            TransactionControl::Commit if self.block.has_failed() => &TransactionControl::Rollback,
            other => other,
        };
        let ingest = self.engine.ingest.as_ref();
        let notice = self.block.control(control, self.default_modes(), ingest).await?;
        let done = Completion::of(control.tag());
        Ok(match notice {
            Some(notice) => done.with_notice(notice),
            None => done,
        })
    }

    /// Runs a control statement for a protocol that has recognised it. Only a COMMIT that writes is
    /// shown among the queries.
    ///
    /// # Errors
    /// Levels and savepoints that there are not, and those of the commit: nothing of the transaction is
    /// there then, unless the error says otherwise.
    pub async fn run_transaction(&self, control: &TransactionControl) -> Result<Completion> {
        if *control != TransactionControl::Commit || !self.block.has_writes() {
            return self.control(control).await.inspect_err(|_| self.block.fail());
        }
        if self.engine.is_closing() {
            self.block.roll_back().await;
            return Err(Error::unavailable("the server is shutting down").with_sqlstate("57P01"));
        }
        let mut guard = self.start_query("COMMIT");
        let work = Box::pin(self.control(control));
        let done = stoa_store::charged(guard.charge(), work).await;
        match &done {
            Ok(_) => guard.end(Ok(())),
            Err(error) => guard.end(Err(error)),
        }
        done
    }

    /// Gives up the transaction, if there is one; says what of it stays all the same.
    pub async fn roll_back(&self) -> Option<String> {
        self.block.roll_back().await
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

    /// What a setting of the transaction is; outside of a block, what the next one begins with.
    pub(super) fn transaction_setting(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case(ISOLATION) {
            let isolation = self.block.isolation().or_else(|| self.default_modes().isolation);
            return Some(isolation.unwrap_or_default().name().to_owned());
        }
        if name.eq_ignore_ascii_case(READ_ONLY) {
            let default = || self.read_only.load(Ordering::Relaxed);
            let read_only = self.block.is_read_only().unwrap_or_else(default);
            return Some(if read_only { "on" } else { "off" }.to_owned());
        }
        None
    }

    /// Sets a setting of the transaction; whether it is one. `None` is the session's default.
    ///
    /// # Errors
    /// A value that it does not take (22023), and those of `SET TRANSACTION`.
    pub(super) fn set_of_transaction(&self, name: &str, value: Option<&str>) -> Result<bool> {
        let wrong = |value: &str| {
            Error::invalid(format!("invalid value for parameter \"{name}\": \"{value}\""))
                .with_sqlstate("22023")
        };
        let mut modes = TransactionModes::default();
        if name.eq_ignore_ascii_case(ISOLATION) {
            modes.isolation = match value {
                Some(value) => Some(Isolation::named(value).ok_or_else(|| wrong(value))?),
                None => self.default_modes().isolation,
            };
        } else if name.eq_ignore_ascii_case(READ_ONLY) {
            modes.read_only = match value {
                Some(value) => Some(as_boolean(value).ok_or_else(|| wrong(value))?),
                None => self.default_modes().read_only,
            };
        } else {
            return Ok(false);
        }
        self.block.set_modes(modes).map(|()| true)
    }

    /// Takes the state that all statements of the transaction read, before the first of them.
    pub(super) async fn take_snapshot(&self, prepared: &Prepared) -> Result<()> {
        if !self.block.wants_snapshot() {
            return Ok(());
        }
        let kind = &prepared.statement.kind;
        let reads = prepared.plan.is_some()
            || matches!(
                kind,
                StatementKind::Report(_) | StatementKind::Lifted(_) | StatementKind::Copy(_)
            );
        if reads {
            // Kept off the stacks of those that want none.
            let tables = Box::pin(self.all_tables()).await?;
            self.block.put_snapshot(tables);
        }
        Ok(())
    }

    /// The tables as a statement that begins now is to see them: one state of all.
    pub(crate) async fn tables(&self, idents: &[TableIdent]) -> Result<Vec<StoaTable>> {
        if !self.block.is_open() {
            return self.engine.catalog.tables(idents).await;
        }
        let tables = match self.block.snapshot(idents)? {
            Some(tables) => tables,
            None => self.engine.catalog.tables(idents).await?,
        };
        self.block.with_own(tables)
    }

    /// All tables of the warehouse, at one moment.
    async fn all_tables(&self) -> Result<Vec<StoaTable>> {
        let warehouse = &self.engine.warehouse;
        let mut looks = 0;
        loop {
            let mut idents = Vec::new();
            for namespace in warehouse.namespaces().await? {
                idents.extend(warehouse.tables(&namespace).await?);
            }
            looks += 1;
            match self.engine.catalog.tables(&idents).await {
                // One was dropped after the names were read.
                Err(error) if error.kind() == ErrorKind::NotFound && looks < LOOKS_MAX => {}
                tables => return tables,
            }
        }
    }
}

fn effect_of(prepared: &Prepared) -> Result<Effect> {
    if let Some(plan) = &prepared.plan {
        return effect_of_plan(plan);
    }
    Ok(match &prepared.statement.kind {
        StatementKind::Copy(copy) => match copy.source {
            CopySource::FromStdin(_) | CopySource::FromFiles(..) => {
                Effect::Rows("COPY FROM".to_owned())
            }
            CopySource::TableToStdout(_) | CopySource::QueryToStdout(_) => Effect::Nothing,
        },
        StatementKind::CreateTable(_) => Effect::Lasting("CREATE TABLE"),
        StatementKind::CreateSchema { .. } => Effect::Lasting("CREATE SCHEMA"),
        StatementKind::DropSchema { .. } => Effect::Lasting("DROP SCHEMA"),
        StatementKind::DropTable { .. } => Effect::Lasting("DROP TABLE"),
        StatementKind::AlterTable(_) => Effect::Lasting("ALTER TABLE"),
        StatementKind::Role(_) => Effect::Lasting("a change of roles or rights"),
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
