//! Transaction blocks of a session: how they begin and end, their settings, and what is read in them.

use std::sync::atomic::Ordering;

use datafusion::logical_expr::LogicalPlan;
use futures::future::BoxFuture;
use stoa_catalog::TableIdent;
use stoa_error::{Error, ErrorKind, Result};
use stoa_sql::{Isolation, TransactionControl, TransactionModes};

use super::Session;
use super::outcome::Completion;
use crate::run::advisory::LockSpan;
use crate::settings::as_boolean;
use crate::tables::table::{StoaTable, pin, tables_of};

/// How often a statement with a transaction of its own starts again because somebody else changed a table.
const ATTEMPTS_MAX: usize = 10;

/// The settings of the transaction itself, which are not the session's.
const ISOLATION: &str = "transaction_isolation";
const READ_ONLY: &str = "transaction_read_only";

/// The transaction block of one statement. Dropped without its end, it leaves nothing but files that no snapshot names.
pub(crate) struct OwnBlock<'a>(&'a Session);

impl OwnBlock<'_> {
    /// Makes all of it visible, or nothing.
    ///
    /// # Errors
    /// Those of COMMIT.
    pub(crate) async fn commit(self) -> Result<()> {
        let (block, ingest) = (&self.0.block, self.0.data.ingest());
        let commit = TransactionControl::Commit;
        block.control(&commit, TransactionModes::default(), ingest).await.map(drop)
    }

    /// Gives it up.
    pub(crate) async fn roll_back(self) {
        self.0.block.roll_back().await;
    }
}

impl Drop for OwnBlock<'_> {
    fn drop(&mut self) {
        self.0.block.abandon();
    }
}

impl Session {
    /// Refuses writes where transactions are read only.
    ///
    /// # Errors
    /// 25006.
    pub(crate) fn check_writes(&self, command: &str) -> Result<()> {
        let read_only = self.block.is_read_only();
        match read_only.unwrap_or_else(|| self.read_only.load(Ordering::Relaxed)) {
            true => {
                Err(Error::invalid(format!("cannot execute {command} in a read-only transaction"))
                    .with_sqlstate("25006"))
            }
            false => Ok(()),
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
    pub(crate) async fn control(&self, control: &TransactionControl) -> Result<Completion> {
        if self.options.protocol == "flight" {
            return Err(Error::unsupported("transactions over Flight SQL are not supported")
                .with_hint("each statement commits by itself"));
        }
        // A transaction that has failed can only be given up.
        let control = match control {
            TransactionControl::Commit if self.block.has_failed() => &TransactionControl::Rollback,
            other => other,
        };
        let ingest = self.data.ingest();
        let was_open = self.block.is_open();
        let controlled = self.block.control(control, self.default_modes(), ingest).await;
        if was_open && !self.block.is_open() {
            let commits = matches!(control, TransactionControl::Commit);
            self.end_block_settings(commits && controlled.is_ok());
            self.own.locks.give_up_all(LockSpan::Transaction);
            if let Err(error) = self.end_temporary().await {
                tracing::warn!(%error, "cannot drop temporary tables at the end of a transaction");
            }
        }
        let notice = controlled?;
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
    pub fn run_transaction<'a>(
        &'a self,
        control: &'a TransactionControl,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async move {
            if *control != TransactionControl::Commit || !self.block.has_writes() {
                return Box::pin(self.control(control)).await.inspect_err(|_| self.block.fail());
            }
            if let Err(error) = self.must_be_open() {
                self.roll_back().await;
                return Err(error);
            }
            let guard = self.start_query("COMMIT", None);
            let done = guard.run_to_its_end(Box::pin(self.control(control))).await;
            guard.ended(done)
        })
    }

    /// Does all that one statement writes in one transaction: the session's, or one that begins and ends here and is
    /// tried again where others have changed the same tables.
    ///
    /// # Errors
    /// Those of `work`, which has changed nothing then; `Conflict` where others change the tables all the time.
    pub(crate) async fn in_one_block<'a, T>(
        &'a self,
        work: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync,
    ) -> Result<T> {
        if self.block.is_open() {
            return work().await;
        }
        for number in 1..=ATTEMPTS_MAX {
            let own = self.begin_own_block().await?;
            let done = match work().await {
                Ok(done) => own.commit().await.map(|()| done),
                Err(error) => {
                    own.roll_back().await;
                    Err(error)
                }
            };
            match done {
                Err(error) if error.kind() == ErrorKind::Conflict && number < ATTEMPTS_MAX => {}
                ended => return ended,
            }
        }
        Err(Error::internal("a statement was not tried"))
    }

    /// Begins a transaction block for what one statement writes, in which nothing is refused that a statement of its
    /// own may do.
    ///
    /// # Errors
    /// Those of BEGIN.
    pub(crate) async fn begin_own_block(&self) -> Result<OwnBlock<'_>> {
        let modes =
            TransactionModes { isolation: Some(Isolation::ReadCommitted), read_only: Some(false) };
        let begin = TransactionControl::Begin(modes);
        self.block.control(&begin, TransactionModes::default(), self.data.ingest()).await?;
        Ok(OwnBlock(self))
    }

    /// Gives up the transaction, if there is one; says what of it stays all the same.
    pub fn roll_back(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let notice = self.block.roll_back().await;
            self.end_block_settings(false);
            self.own.locks.give_up_all(LockSpan::Transaction);
            if let Err(error) = self.end_temporary().await {
                tracing::warn!(%error, "cannot drop temporary tables at the end of a transaction");
            }
            notice
        })
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

    /// The tables as a statement that begins now is to see them: one state of all.
    pub(crate) async fn tables(&self, idents: &[TableIdent]) -> Result<Vec<StoaTable>> {
        if !self.block.is_open() {
            return self.data.tables(idents).await;
        }
        let tables = match self.block.snapshot(idents)? {
            Some(tables) => tables,
            None => self.data.tables(idents).await?,
        };
        self.block.with_own(tables)
    }

    /// Puts the current snapshot of every table into a plan: one state of all of them.
    ///
    /// # Errors
    /// A table that is gone (42P01), or whose columns changed since the plan was made (0A000).
    pub(crate) async fn pin_snapshots(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let idents = tables_of(&plan)?;
        if idents.is_empty() {
            return Ok(plan);
        }
        pin(plan, self.tables(&idents).await?)
    }
}
