//! The catalog's errors, each with its exact SQLSTATE.

use std::fmt::Display;

use stoa_error::{Condition, Error, ErrorKind};

use crate::TableIdent;
use crate::relation::RelationKind;

/// Of what keeps a role from being dropped, so much is named.
const HELD_SHOWN_MAX: usize = 10;

pub(crate) fn undefined_relation(kind: RelationKind, ident: &TableIdent) -> Error {
    let error = Error::not_found(format!("{kind} {ident} does not exist"))
        .with_condition(Condition::UndefinedTable);
    match kind {
        RelationKind::Table => error.with_hint("SHOW TABLES lists the tables of a schema"),
        RelationKind::View => error,
    }
}

/// `kind` is of what has the name.
pub(crate) fn duplicate_relation(kind: RelationKind, ident: &TableIdent) -> Error {
    Error::already_exists(format!("{kind} {ident} exists already"))
        .with_condition(Condition::DuplicateTable)
        .with_hint("choose another name, drop it first, or use IF NOT EXISTS")
}

/// `kind` is what the name stands for.
pub(crate) fn wrong_kind(kind: RelationKind, ident: &TableIdent) -> Error {
    Error::invalid(format!("{ident} is a {kind}"))
        .with_condition(Condition::WrongObjectType)
        .with_hint(match kind {
            RelationKind::Table => "use a statement for tables, such as DROP TABLE",
            RelationKind::View => "use a statement for views, such as DROP VIEW",
        })
}

pub(crate) fn missing_namespace(namespace: &str) -> Error {
    Error::not_found(format!("schema {namespace} does not exist"))
        .with_condition(Condition::UndefinedSchema)
        .with_hint(format!("CREATE SCHEMA {namespace} makes it"))
}

pub(crate) fn duplicate_namespace(namespace: &str) -> Error {
    Error::already_exists(format!("schema {namespace} exists already")).with_sqlstate("42P06")
}

pub(crate) fn namespace_not_empty(namespace: &str, first: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("schema {namespace} is not empty"))
        .with_condition(Condition::DependentObjects)
        .with_detail(format!("it holds {first}"))
        .with_hint("drop its tables and views first")
}

pub(crate) fn moved(kind: RelationKind, ident: &TableIdent) -> Error {
    Error::conflict(format!("{kind} {ident} was changed by somebody else"))
        .with_hint("read it again and retry")
}

pub(crate) fn duplicate_role(name: &str) -> Error {
    Error::already_exists(format!("role \"{name}\" exists already")).with_sqlstate("42710")
}

/// `held` names what the role owns and was granted.
pub(crate) fn role_in_use(name: &str, held: &[String]) -> Error {
    let mut detail = held.iter().take(HELD_SHOWN_MAX).cloned().collect::<Vec<_>>().join("; ");
    if held.len() > HELD_SHOWN_MAX {
        detail.push_str(&format!("; and {} more", held.len() - HELD_SHOWN_MAX));
    }
    Error::new(ErrorKind::Conflict, format!("role \"{name}\" owns tables or has grants"))
        .with_condition(Condition::DependentObjects)
        .with_detail(detail)
        .with_hint("give its tables to another role and revoke its grants first")
}

/// What is stored cannot be.
pub(crate) fn damaged(place: &str, what: impl Display) -> Error {
    Error::corrupt(format!("catalog {place}: {what}"))
}

/// An error of the database itself.
pub(crate) fn database(place: &str, error: sqlx::Error) -> Error {
    let new = |kind, what: &str| Error::new(kind, format!("catalog {place} {what}"));
    let ours = match (&error, result_code(&error)) {
        (_, Some(SQLITE_BUSY | SQLITE_LOCKED)) => {
            new(ErrorKind::Unavailable, "is locked by another process")
        }
        (_, Some(SQLITE_FULL)) => new(ErrorKind::Exhausted, "cannot be written: its disk is full")
            .with_sqlstate("53100")
            .with_hint("make room on that disk"),
        (_, Some(SQLITE_IOERR)) => new(ErrorKind::Unavailable, "has met an I/O error")
            .with_sqlstate("58030")
            .with_hint("look at the disk and at the system's log"),
        (sqlx::Error::PoolTimedOut, _) => new(ErrorKind::Unavailable, "has no free connection"),
        (sqlx::Error::Io(_), _) => new(ErrorKind::Unavailable, "cannot be reached"),
        _ => new(ErrorKind::Unavailable, "failed"),
    };
    ours.with_source(error)
}

/// A commit that may or may not have been made.
pub(crate) fn unknown_outcome(place: &str, error: sqlx::Error) -> Error {
    database(place, error)
        .at("it is not known whether the change was made")
        .with_condition(Condition::UnknownOutcome)
        .with_detail("a restart of the server, or the next change that succeeds, settles it")
        .with_hint("look at what there is before you repeat the statement; look at the disk")
}

/// Whether the error of a commit says that nothing was committed: a lock that was not given, or a
/// disk that had no room for the frames of the log, the last of which commits the others. (A sync
/// that finds no room is an I/O error to SQLite.)
pub(crate) fn is_undone(error: &sqlx::Error) -> bool {
    matches!(result_code(error), Some(SQLITE_BUSY | SQLITE_LOCKED | SQLITE_FULL))
}

const SQLITE_BUSY: u32 = 5;
const SQLITE_LOCKED: u32 = 6;
const SQLITE_READONLY: u32 = 8;
const SQLITE_IOERR: u32 = 10;
const SQLITE_FULL: u32 = 13;

/// SQLite's result code, without what extends it.
fn result_code(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error()?.code()?.parse::<u32>().ok()?;
    // The low byte is the plain code.
    Some(code & 0xff)
}

/// Whether another connection holds a lock: `SQLITE_BUSY` or `SQLITE_LOCKED`, plain or extended.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(result_code(error), Some(SQLITE_BUSY | SQLITE_LOCKED))
}

/// Whether the connection may only read.
pub(crate) fn is_read_only(error: &sqlx::Error) -> bool {
    result_code(error) == Some(SQLITE_READONLY)
}
