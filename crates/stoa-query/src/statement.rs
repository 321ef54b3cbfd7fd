//! One parsed statement, with its text.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast;

use crate::dialect::{
    AlterTableStatement, CopyStatement, CreateTableStatement, RoleStatement, ShowStatement,
    TransactionControl, TransactionModes,
};
use crate::maintain::Maintenance;
use crate::report::ReportStatement;
use crate::template::LiftedStatement;

/// A statement that was parsed but not yet planned. Made by [`crate::Session::parse`].
#[derive(Clone, Debug)]
pub struct Statement {
    pub(crate) text: String,
    pub(crate) kind: StatementKind,
    /// What a long one takes while anybody has it.
    pub(crate) memory: Option<Arc<MemoryReservation>>,
}

/// What it asks for: Stoa's own statements, and everything that the engine plans.
#[derive(Clone, Debug)]
pub(crate) enum StatementKind {
    /// Nothing but blanks and comments.
    Empty,
    /// SELECT, VALUES, WITH, EXPLAIN, INSERT: planned by DataFusion.
    Plan(Box<EngineStatement>),
    /// One of these that has its plan.
    Planned,
    /// A SELECT like one that was planned before.
    Report(ReportStatement),
    /// A SELECT like one that was planned before, and is no report.
    Lifted(LiftedStatement),
    CreateTable(Box<CreateTableStatement>),
    CreateSchema {
        name: ast::ObjectName,
        if_not_exists: bool,
    },
    DropSchema {
        name: ast::ObjectName,
        if_exists: bool,
        cascade: bool,
    },
    DropTable {
        names: Vec<ast::ObjectName>,
        if_exists: bool,
        purge: bool,
    },
    AlterTable(AlterTableStatement),
    Copy(CopyStatement),
    /// Roles and grants.
    Role(RoleStatement),
    Maintain(Maintenance),
    /// `KILL QUERY id`.
    Kill(u64),
    /// `CACHE TABLE name`.
    CacheTable(ast::ObjectName),
    /// `PURGE CACHE`.
    PurgeCache,
    Show(ShowStatement),
    /// `SET name = value`, `RESET name`; `None` resets; name `None` means all.
    Set {
        name: Option<String>,
        value: Option<String>,
    },
    Transaction(TransactionControl),
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION …`
    Characteristics(TransactionModes),
    /// `DISCARD`, `DEALLOCATE`, `LISTEN`, …: accepted, with the tag to answer.
    Accepted {
        tag: &'static str,
    },
}

impl Statement {
    /// The statement's text, without the semicolon that ended it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it holds nothing but blanks and comments.
    pub fn is_empty(&self) -> bool {
        matches!(self.kind, StatementKind::Empty)
    }

    /// Transaction control, which a protocol with transaction state must see.
    pub fn transaction(&self) -> Option<&TransactionControl> {
        match &self.kind {
            StatementKind::Transaction(control) => Some(control),
            _ => None,
        }
    }

    /// The `COPY` statement, if it is one.
    pub fn copy(&self) -> Option<&CopyStatement> {
        match &self.kind {
            StatementKind::Copy(copy) => Some(copy),
            _ => None,
        }
    }

    /// Whether it changes settings of the session.
    pub fn is_set(&self) -> bool {
        matches!(
            self.kind,
            StatementKind::Set { .. }
                | StatementKind::Characteristics(_)
                | StatementKind::Accepted { tag: "DISCARD ALL" }
        )
    }
}
