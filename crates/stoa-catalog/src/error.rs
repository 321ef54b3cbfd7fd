//! The catalog's errors, each with its exact SQLSTATE.

use stoa_error::{Error, ErrorKind};

use crate::TableIdent;

pub(crate) fn undefined_table(ident: &TableIdent) -> Error {
    Error::not_found(format!("table {ident} does not exist"))
        .with_sqlstate("42P01")
        .with_hint("SHOW TABLES lists the tables of a schema")
}

pub(crate) fn duplicate_table(ident: &TableIdent) -> Error {
    Error::already_exists(format!("table {ident} exists already"))
        .with_sqlstate("42P07")
        .with_hint("choose another name, drop it first, or use IF NOT EXISTS")
}

pub(crate) fn missing_namespace(namespace: &str) -> Error {
    Error::not_found(format!("schema {namespace} does not exist"))
        .with_sqlstate("3F000")
        .with_hint(format!("CREATE SCHEMA {namespace} makes it"))
}

pub(crate) fn duplicate_namespace(namespace: &str) -> Error {
    Error::already_exists(format!("schema {namespace} exists already")).with_sqlstate("42P06")
}

pub(crate) fn namespace_not_empty(namespace: &str, first: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("schema {namespace} is not empty"))
        .with_sqlstate("2BP01")
        .with_detail(format!("it holds {first}"))
        .with_hint("drop its tables first")
}

pub(crate) fn moved(ident: &TableIdent) -> Error {
    Error::conflict(format!("table {ident} was changed by somebody else"))
        .with_hint("read it again and retry")
}

/// An error of the database itself.
pub(crate) fn database(place: &str, error: sqlx::Error) -> Error {
    let (kind, what) = match &error {
        error if is_busy(error) => (ErrorKind::Unavailable, "is locked by another process"),
        sqlx::Error::PoolTimedOut => (ErrorKind::Unavailable, "has no free connection"),
        sqlx::Error::Io(_) => (ErrorKind::Unavailable, "cannot be reached"),
        _ => (ErrorKind::Unavailable, "failed"),
    };
    Error::new(kind, format!("catalog {place} {what}")).with_source(error)
}

/// Whether another connection holds a lock: `SQLITE_BUSY` or `SQLITE_LOCKED`, plain or extended.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| {
        // The low byte is the plain code.
        code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6))
    })
}

/// Whether the database refused a row because its key exists.
pub(crate) fn is_duplicate_key(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}
