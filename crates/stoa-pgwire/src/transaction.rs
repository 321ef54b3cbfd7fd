//! The state of a transaction block as clients are told it.
//!
//! `BEGIN` opens a block, an error fails it, `COMMIT` and `ROLLBACK` end it; `ReadyForQuery` tells.
//! What a block has written is kept by the session, which is told what to do with it.

use stoa_error::{Error, Result};
use stoa_query::TransactionControl;

use crate::wire::backend::TransactionStatus;

/// The state of a connection's transaction block.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    status: TransactionStatus,
}

/// A warning to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: String,
}

impl Warning {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into() }
    }
}

/// What a transaction statement did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Controlled {
    pub(crate) tag: &'static str,
    pub(crate) warning: Option<Warning>,
    /// Whether the block ended, and with it its portals.
    pub(crate) ended: bool,
    /// What the session is to do.
    pub(crate) then: Then,
}

/// What the session is to do for a transaction statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// What the statement says.
    Run,
    /// Give the block up: it has failed.
    RollBack,
    Nothing,
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
    pub(crate) fn check_usable(&self, control: Option<&TransactionControl>) -> Result<()> {
        use TransactionControl::{Commit, Rollback, RollbackToSavepoint};
        let leaves = matches!(control, Some(Commit | Rollback | RollbackToSavepoint(_)));
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

    /// Runs a transaction statement.
    ///
    /// # Errors
    /// Savepoints outside a block (25P01).
    pub(crate) fn control(&mut self, control: &TransactionControl) -> Result<Controlled> {
        let tag = control.tag();
        let warned = |sqlstate, message: String, then| {
            let warning = Some(Warning::new(sqlstate, message));
            Ok(Controlled { tag, warning, ended: false, then })
        };
        match control {
            TransactionControl::Begin(_) if self.in_block() => {
                let message = "there is already a transaction in progress".to_owned();
                warned("25001", message, Then::Nothing)
            }
            TransactionControl::Commit | TransactionControl::Rollback if !self.in_block() => {
                let message = "there is no transaction in progress".to_owned();
                warned("25P01", message, Then::Nothing)
            }
            TransactionControl::Commit | TransactionControl::Rollback => {
                Ok(self.end(*control == TransactionControl::Commit))
            }
            TransactionControl::Modes(_) if !self.in_block() => {
                let message = "SET TRANSACTION can only be used in transaction blocks".to_owned();
                warned("25P01", message, Then::Run)
            }
            TransactionControl::Begin(_) | TransactionControl::Modes(_) => {
                Ok(Controlled { tag, warning: None, ended: false, then: Then::Run })
            }
            _ if !self.in_block() => {
                let named = match control {
                    TransactionControl::RollbackToSavepoint(_) => "ROLLBACK TO SAVEPOINT",
                    _ if tag == "RELEASE" => "RELEASE SAVEPOINT",
                    _ => tag,
                };
                Err(Error::invalid(format!("{named} can only be used in transaction blocks"))
                    .with_sqlstate("25P01"))
            }
            _ => Ok(Controlled { tag, warning: None, ended: false, then: Then::Run }),
        }
    }

    /// Notes that the session has done what a transaction statement says.
    pub(crate) fn done(&mut self, control: &TransactionControl) {
        if let TransactionControl::Begin(_) | TransactionControl::RollbackToSavepoint(_) = control {
            self.status = TransactionStatus::InBlock;
        }
    }

    fn end(&mut self, commit: bool) -> Controlled {
        let ended = std::mem::take(self);
        let commit = commit && ended.status != TransactionStatus::Failed;
        let (tag, then) = match commit {
            true => ("COMMIT", Then::Run),
            false => ("ROLLBACK", Then::RollBack),
        };
        Controlled { tag, warning: None, ended: true, then }
    }
}

#[cfg(test)]
mod tests {
    use stoa_query::TransactionModes;

    use super::*;

    const BEGIN: TransactionControl =
        TransactionControl::Begin(TransactionModes { isolation: None, read_only: None });

    fn begun() -> Transaction {
        let mut transaction = Transaction::default();
        assert_eq!(transaction.control(&BEGIN).unwrap().then, Then::Run);
        transaction.done(&BEGIN);
        transaction
    }

    #[test]
    fn an_error_fails_the_block_until_it_ends() {
        let mut transaction = Transaction::default();
        transaction.fail();
        assert_eq!(transaction.status(), TransactionStatus::Idle);
        let mut transaction = begun();
        transaction.fail();
        assert_eq!(transaction.status(), TransactionStatus::Failed);
        assert_eq!(transaction.check_usable(None).unwrap_err().sqlstate(), "25P02");
        transaction.check_usable(Some(&TransactionControl::Commit)).unwrap();
        let ended = transaction.control(&TransactionControl::Commit).unwrap();
        assert_eq!((ended.tag, ended.then), ("ROLLBACK", Then::RollBack));
        assert_eq!(transaction.status(), TransactionStatus::Idle);
    }

    #[test]
    fn what_makes_no_sense_is_warned_of() {
        let mut transaction = begun();
        let again = transaction.control(&BEGIN).unwrap();
        assert_eq!((again.warning.unwrap().sqlstate, again.then), ("25001", Then::Nothing));
        let ended = transaction.control(&TransactionControl::Commit).unwrap();
        assert_eq!((ended.tag, ended.then), ("COMMIT", Then::Run));
        let again = transaction.control(&TransactionControl::Rollback).unwrap();
        assert_eq!((again.warning.unwrap().sqlstate, again.then), ("25P01", Then::Nothing));
    }

    #[test]
    fn savepoints_are_for_blocks() {
        let mut transaction = Transaction::default();
        let savepoint = TransactionControl::Savepoint("a".to_owned());
        assert_eq!(transaction.control(&savepoint).unwrap_err().sqlstate(), "25P01");
        let mut transaction = begun();
        transaction.fail();
        let back = TransactionControl::RollbackToSavepoint("a".to_owned());
        transaction.control(&back).unwrap();
        assert_eq!(transaction.status(), TransactionStatus::Failed);
        transaction.done(&back);
        assert_eq!(transaction.status(), TransactionStatus::InBlock);
    }
}
