//! One parsed statement, with its text.

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast;
use stoa_workload::PlanChange;

use crate::{
    AlterTableStatement, AlterViewStatement, CommentStatement, CopyStatement, CreateTableStatement,
    CreateViewStatement, DefiningQuery, ExternalFiles, InsertIfAbsentStatement, LoadDataStatement,
    Maintenance, PartitionStatement, RoleStatement, ScriptFilesStatement, ShowStatement,
    TransactionControl, TransactionModes,
};

/// A statement that was parsed.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its text, without the semicolon that ended it, and without a password.
    pub text: String,
    /// What it asks for.
    pub kind: StatementKind,
}

/// A query whose rows become files.
#[derive(Clone, Debug)]
pub struct WriteDirectoryStatement {
    /// Where and how.
    pub files: ExternalFiles,
    /// The query.
    pub query: DefiningQuery,
}

/// What it asks for: Stoa's own statements, and everything that the engine plans.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// Nothing but blanks and comments.
    Empty,
    /// SELECT, VALUES, WITH, EXPLAIN, INSERT: planned by DataFusion.
    Plan(Box<EngineStatement>),
    /// `INSERT ALL (INSERT …) (INSERT …)`: rows of one source into several tables, at once.
    InsertAll(Vec<Statement>),
    /// `INSERT OVERWRITE TABLE name PARTITION (…) IF NOT EXISTS …`
    InsertIfAbsent(Box<InsertIfAbsentStatement>),
    /// `INSERT OVERWRITE DIRECTORY 'path' … query`: rows into files of the server.
    WriteDirectory(Box<WriteDirectoryStatement>),
    /// `CREATE TABLE`
    CreateTable(Box<CreateTableStatement>),
    /// `CREATE VIEW`
    CreateView(Box<CreateViewStatement>),
    /// `ALTER VIEW name …`
    AlterView(Box<AlterViewStatement>),
    /// `DROP VIEW name, …`
    DropView {
        /// Their names.
        names: Vec<ast::ObjectName>,
        /// Whether a missing one is no error.
        if_exists: bool,
    },
    /// `COMMENT ON …`
    Comment(CommentStatement),
    /// `CREATE SCHEMA name`
    CreateSchema {
        /// Its name.
        name: ast::ObjectName,
        /// Whether one that is there is left as it is.
        if_not_exists: bool,
    },
    /// `DROP SCHEMA name`
    DropSchema {
        /// Its name.
        name: ast::ObjectName,
        /// Whether a missing one is no error.
        if_exists: bool,
        /// Whether what is in it goes, too.
        cascade: bool,
    },
    /// `DROP TABLE name, …`
    DropTable {
        /// Their names.
        names: Vec<ast::ObjectName>,
        /// Whether a missing one is no error.
        if_exists: bool,
        /// Whether their files go at once.
        purge: bool,
    },
    /// `TRUNCATE name, name, …`: more than one.
    Truncate {
        /// Their names.
        names: Vec<ast::ObjectName>,
        /// Whether identity columns begin again.
        restarts: bool,
    },
    /// `ALTER TABLE name …`
    AlterTable(AlterTableStatement),
    /// `ALTER TABLE name DROP PARTITION (…)` and the like
    Partitions(PartitionStatement),
    /// `LOAD DATA INPATH 'path' INTO TABLE name`
    LoadData(LoadDataStatement),
    /// `ADD FILES …`, `DELETE FILES …`
    ScriptFiles(ScriptFilesStatement),
    /// `COPY …`
    Copy(CopyStatement),
    /// Roles and grants.
    Role(RoleStatement),
    /// Resource plans: `CREATE POOL` and the like
    ResourcePlan(PlanChange),
    /// `COMPACT TABLE name` and the like
    Maintain(Maintenance),
    /// `KILL QUERY id`.
    Kill(u64),
    /// `CACHE TABLE name`.
    CacheTable(ast::ObjectName),
    /// `PURGE CACHE`.
    PurgeCache,
    /// `SHOW …`, `DESCRIBE …`
    Show(ShowStatement),
    /// `SET name = value`, `RESET name`; `None` resets; name `None` means all.
    Set {
        /// Its name; `None` is all.
        name: Option<String>,
        /// The value; `None` resets.
        value: Option<String>,
        /// `SET LOCAL`: only until the transaction ends.
        is_local: bool,
    },
    /// `BEGIN`, `COMMIT` and the like
    Transaction(TransactionControl),
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION …`
    Characteristics(TransactionModes),
    /// `DISCARD`, `DEALLOCATE`, `LISTEN`, …: accepted, with the tag to answer.
    Accepted {
        /// What is answered.
        tag: &'static str,
    },
}

impl StatementKind {
    /// The `COPY` statement, if it is one.
    pub fn copy(&self) -> Option<&CopyStatement> {
        match self {
            Self::Copy(copy) => Some(copy),
            _ => None,
        }
    }

    /// Transaction control, if it is that.
    pub fn transaction(&self) -> Option<&TransactionControl> {
        match self {
            Self::Transaction(control) => Some(control),
            _ => None,
        }
    }

    /// Whether it changes settings of the session.
    pub fn is_set(&self) -> bool {
        matches!(
            self,
            Self::Set { .. } | Self::Characteristics(_) | Self::Accepted { tag: "DISCARD ALL" }
        )
    }
}
