//! The transaction block that drivers expect, over an engine that commits each statement by itself.
//!
//! `BEGIN` opens a block, an error fails it, `COMMIT` and `ROLLBACK` end it; `ReadyForQuery` tells.
//! But a write is committed when its statement ends, and `ROLLBACK` does not undo it: the first
//! write within a block, and a `ROLLBACK` after one, are answered with a WARNING.

use stoa_error::{Error, Result};
use stoa_query::TransactionControl;

use crate::wire::backend::TransactionStatus;

/// The state of a connection's transaction block.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    status: TransactionStatus,
    writes: u64,
}

/// A warning to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

impl Warning {
    fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into(), hint: "" }
    }
}

/// What a transaction statement did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Controlled {
    pub(crate) tag: &'static str,
    pub(crate) warning: Option<Warning>,
    /// Whether the block ended, and with it its portals.
    pub(crate) ended: bool,
}

impl Transaction {
    /// What `ReadyForQuery` says.
    pub(crate) fn status(&self) -> TransactionStatus {
        self.status
    }

    /// Whether portals outlive the next `Sync`.
    pub(crate) fn in_block(&self) -> bool {
        self.status != TransactionStatus::Idle
    }

    /// Refuses statements in a failed block.
    ///
    /// # Errors
    /// 25P02.
    pub(crate) fn check_usable(&self, control: Option<TransactionControl>) -> Result<()> {
        use TransactionControl::{Commit, Rollback, RollbackToSavepoint};
        let leaves = matches!(control, Some(Commit | Rollback | RollbackToSavepoint));
        if self.status != TransactionStatus::Failed || leaves {
            return Ok(());
        }
        let message =
            "current transaction is aborted, commands ignored until end of transaction block";
        Err(Error::invalid(message).with_sqlstate("25P02").with_hint("send ROLLBACK"))
    }

    /// Notes that a statement failed.
    pub(crate) fn fail(&mut self) {
        if self.status == TransactionStatus::InBlock {
            self.status = TransactionStatus::Failed;
        }
    }

    /// Notes a command tag; the first write in a block gives a warning.
    pub(crate) fn note(&mut self, tag: &str) -> Option<Warning> {
        const WRITES: [&str; 10] = [
            "INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "CREATE", "DROP", "ALTER", "TRUNCATE",
            "LOAD",
        ];
        let word = tag.split(' ').next().unwrap_or_default();
        if self.status != TransactionStatus::InBlock || !WRITES.contains(&word) {
            return None;
        }
        self.writes += 1;
        (self.writes == 1).then(|| Warning {
            sqlstate: "01000",
            message: format!("{word} is committed at once; ROLLBACK will not undo it"),
            hint: "Stoa commits each statement by itself, also between BEGIN and COMMIT",
        })
    }

    /// Runs a transaction statement.
    ///
    /// # Errors
    /// Savepoints outside a block (25P01).
    pub(crate) fn control(&mut self, control: TransactionControl) -> Result<Controlled> {
        let tag = control.tag();
        let stays = |warning| Ok(Controlled { tag, warning, ended: false });
        match control {
            TransactionControl::Begin | TransactionControl::BeginReadOnly if self.in_block() => {
                stays(Some(Warning::new("25001", "there is already a transaction in progress")))
            }
            TransactionControl::Begin | TransactionControl::BeginReadOnly => {
                *self = Self { status: TransactionStatus::InBlock, writes: 0 };
                stays(None)
            }
            TransactionControl::Commit | TransactionControl::Rollback if !self.in_block() => {
                stays(Some(Warning::new("25P01", "there is no transaction in progress")))
            }
            TransactionControl::Commit | TransactionControl::Rollback => {
                Ok(self.end(control == TransactionControl::Commit))
            }
            _ if !self.in_block() => {
                Err(Error::invalid(format!("{tag} can only be used in transaction blocks"))
                    .with_sqlstate("25P01"))
            }
            TransactionControl::RollbackToSavepoint => {
                self.status = TransactionStatus::InBlock;
                stays(None)
            }
            TransactionControl::Savepoint | TransactionControl::Release => stays(None),
        }
    }

    fn end(&mut self, commit: bool) -> Controlled {
        let ended = std::mem::take(self);
        let commit = commit && ended.status != TransactionStatus::Failed;
        let kept = (!commit && ended.writes > 0).then(|| Warning {
            sqlstate: "01000",
            message: format!(
                "{} writing statement(s) of this transaction were committed and stay",
                ended.writes
            ),
            hint: "Stoa commits each statement by itself, also between BEGIN and COMMIT",
        });
        let tag = if commit { "COMMIT" } else { "ROLLBACK" };
        Controlled { tag, warning: kept, ended: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_fails_the_block_until_its_end() {
        let mut transaction = Transaction::default();
        transaction.fail();
        assert_eq!(transaction.status(), TransactionStatus::Idle);
        transaction.control(TransactionControl::Begin).unwrap();
        transaction.fail();
        assert_eq!(transaction.status(), TransactionStatus::Failed);
        assert_eq!(transaction.check_usable(None).unwrap_err().sqlstate(), "25P02");
        transaction.check_usable(Some(TransactionControl::Commit)).unwrap();
        let ended = transaction.control(TransactionControl::Commit).unwrap();
        assert_eq!((ended.tag, ended.ended), ("ROLLBACK", true));
        assert_eq!(transaction.status(), TransactionStatus::Idle);
    }

    #[test]
    fn writes_in_a_block_are_warned_about_once_and_at_rollback() {
        let mut transaction = Transaction::default();
        assert_eq!(transaction.note("INSERT 0 1"), None);
        transaction.control(TransactionControl::Begin).unwrap();
        assert_eq!(transaction.note("SELECT 1"), None);
        assert!(transaction.note("INSERT 0 1").is_some());
        assert_eq!(transaction.note("INSERT 0 1"), None);
        let ended = transaction.control(TransactionControl::Rollback).unwrap();
        assert!(ended.warning.unwrap().message.starts_with("2 writing"));
    }

    #[test]
    fn savepoints_need_a_block() {
        let mut transaction = Transaction::default();
        let error = transaction.control(TransactionControl::Savepoint).unwrap_err();
        assert_eq!(error.sqlstate(), "25P01");
        transaction.control(TransactionControl::Begin).unwrap();
        transaction.fail();
        transaction.control(TransactionControl::RollbackToSavepoint).unwrap();
        assert_eq!(transaction.status(), TransactionStatus::InBlock);
    }
}
