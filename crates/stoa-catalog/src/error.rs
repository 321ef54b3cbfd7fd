//! The catalog's errors, each with its exact SQLSTATE.

use std::fmt::Display;

use stoa_error::{Error, ErrorKind};

use crate::TableIdent;

/// Of what keeps a role from being dropped, so much is named.
const HELD_SHOWN_MAX: usize = 10;

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
        .with_sqlstate("2BP01")
        .with_detail(detail)
        .with_hint("give its tables to another role and revoke its grants first")
}

/// What is stored of roles and grants cannot be.
pub(crate) fn damaged_policy(place: &str, what: impl Display) -> Error {
    Error::corrupt(format!("catalog {place}: {what}"))
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
