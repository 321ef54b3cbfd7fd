//! A statement of a session, on its way to be planned.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use stoa_sql::fingerprint::SharedFingerprint;
use stoa_sql::{CopyStatement, StatementKind, TransactionControl, ValueRows};

use crate::reuse::report::ReportStatement;
use crate::reuse::template::LiftedStatement;

/// A statement that was parsed, or recognised by its text. Made by [`crate::Session::parse`].
#[derive(Clone, Debug)]
pub struct Statement {
    pub(crate) text: String,
    /// That of the text, taken once; `None` where it is no plain SELECT.
    pub(crate) fingerprint: Option<SharedFingerprint>,
    pub(crate) form: StatementForm,
    /// The rows of a long INSERT of literals; its tree has the first one only.
    pub(crate) rows: Option<Arc<ValueRows>>,
    /// What a long one takes while anybody has it.
    pub(crate) memory: Option<Arc<MemoryReservation>>,
}

/// How far a statement is known.
#[derive(Clone, Debug)]
pub(crate) enum StatementForm {
    /// Its syntax tree.
    Parsed(StatementKind),
    /// It has its plan, and the tree is not needed any more.
    Planned,
    /// A SELECT like one that was planned before, and is a report.
    Report(ReportStatement),
    /// A SELECT like one that was planned before, and is no report.
    Lifted(LiftedStatement),
}

impl Statement {
    /// A statement that was parsed; `fingerprint` is that of its text.
    pub(crate) fn of(parsed: stoa_sql::Statement, fingerprint: Option<SharedFingerprint>) -> Self {
        let form = StatementForm::Parsed(parsed.kind);
        Self { text: parsed.text, fingerprint, form, rows: None, memory: None }
    }

    /// The statement's text, without the semicolon that ended it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it holds nothing but blanks and comments.
    pub fn is_empty(&self) -> bool {
        matches!(self.form, StatementForm::Parsed(StatementKind::Empty))
    }

    /// Transaction control, which a protocol with transaction state must see.
    pub fn transaction(&self) -> Option<&TransactionControl> {
        self.kind()?.transaction()
    }

    /// The `COPY` statement, if it is one.
    pub fn copy(&self) -> Option<&CopyStatement> {
        self.kind()?.copy()
    }

    /// Whether it changes settings of the session.
    pub fn is_set(&self) -> bool {
        self.kind().is_some_and(StatementKind::is_set)
    }

    /// What it asks for, if it was parsed and not planned yet.
    pub(crate) fn kind(&self) -> Option<&StatementKind> {
        match &self.form {
            StatementForm::Parsed(kind) => Some(kind),
            StatementForm::Planned | StatementForm::Report(_) | StatementForm::Lifted(_) => None,
        }
    }
}
