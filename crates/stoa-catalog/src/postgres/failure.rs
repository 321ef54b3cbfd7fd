//! Errors of PostgreSQL: which mean that it is away, and what people are told.

use std::io;

use sqlx::Error as SqlxError;
use stoa_error::{Condition, Error, ErrorKind};

use crate::CatalogState;

/// What is tried again after a restart, without a look at the configuration.
const TRANSIENT: [&str; 4] = ["57P01", "57P02", "57P03", "53300"];

/// Whether the connection is lost, so that the next one may do better.
pub(super) fn is_lost(error: &SqlxError) -> bool {
    match error {
        SqlxError::Io(_) | SqlxError::Tls(_) | SqlxError::Protocol(_) => true,
        // Refused at the door, too: passwords change while a server runs.
        SqlxError::Database(_) => {
            let code = code(error);
            TRANSIENT.contains(&code.as_str())
                || ["08", "28"].iter().any(|class| code.starts_with(class))
                || ["25P03", "3D000"].contains(&code.as_str())
        }
        _ => false,
    }
}

/// Whether the connection has prepared statements that are out of date: the tables were altered, or a
/// pooling proxy has changed the server behind it.
pub(super) fn is_outdated(error: &SqlxError) -> bool {
    ["0A000", "26000", "42P05"].contains(&code(error).as_str())
}

/// Whether a daemon that starts may wait for this to pass.
pub(super) fn may_pass(error: &SqlxError) -> bool {
    match error {
        // A certificate that is refused will be so again.
        SqlxError::Io(error) => error.kind() != io::ErrorKind::InvalidData,
        SqlxError::Database(_) => TRANSIENT.contains(&code(error).as_str()),
        _ => false,
    }
}

fn code(error: &SqlxError) -> String {
    let code = error.as_database_error().and_then(|error| error.code());
    code.map(|code| code.into_owned()).unwrap_or_default()
}

/// What people are told of an error.
pub(super) fn describe(place: &str, error: SqlxError) -> Error {
    let new = |kind, what: &str| Error::new(kind, format!("catalog {place} {what}"));
    let code = code(&error);
    match error {
        SqlxError::PoolTimedOut => {
            return new(ErrorKind::Unavailable, "has no free connection").with_source(error);
        }
        SqlxError::PoolClosed => return new(ErrorKind::Unavailable, "is closed"),
        _ => {}
    }
    let ours = match code.as_str() {
        "22001" => new(ErrorKind::Invalid, "has no room for a name or location this long")
            .with_sqlstate("22001")
            .with_hint(
                "names have 255 characters at most; for longer locations, run ALTER TABLE \
                 iceberg_tables ALTER COLUMN metadata_location TYPE text, and the same for \
                 previous_metadata_location",
            ),
        "22021" => new(ErrorKind::Invalid, "stores no texts with zero bytes"),
        "23505" | "40001" | "40P01" => {
            new(ErrorKind::Conflict, "was changed by somebody else at the same moment")
                .with_hint("read it again and retry")
        }
        "25006" => new(ErrorKind::Unavailable, "is a standby, which takes no changes")
            .with_hint("let the URL name the primary server"),
        "28000" | "28P01" => new(ErrorKind::Forbidden, "does not let Stoa log in")
            .with_hint("check account and password in the URL, and PostgreSQL's pg_hba.conf"),
        "3D000" => new(ErrorKind::NotFound, "does not exist")
            .with_hint("create the database with PostgreSQL's createdb"),
        "3F000" => new(ErrorKind::NotFound, "has no schema for its tables").with_hint(
            "create the schema of currentSchema or of the search path with CREATE SCHEMA",
        ),
        "42501" => new(ErrorKind::Forbidden, "does not let Stoa's account do this").with_hint(
            "the account needs SELECT, INSERT, UPDATE and DELETE on the catalog's tables; to make \
             those that are missing, it needs CREATE on the schema",
        ),
        "53100" => new(ErrorKind::Exhausted, "cannot be written: its disk is full")
            .with_sqlstate("53100")
            .with_hint("make room on the disk of PostgreSQL"),
        "55P03" => return locked(place).with_source(error),
        "57014" => new(ErrorKind::Unavailable, "did not answer in time"),
        _ if is_lost(&error) => new(ErrorKind::Unavailable, "cannot be reached")
            .with_hint("check that PostgreSQL is running and that this host can connect to it"),
        _ => new(ErrorKind::Unavailable, "failed"),
    };
    ours.with_source(error)
}

/// Another change has held the lock for too long.
pub(super) fn locked(place: &str) -> Error {
    Error::unavailable(format!("catalog {place} is locked by another process"))
}

/// PostgreSQL has been away for longer than the caller may wait.
pub(super) fn away(place: &str, state: &CatalogState) -> Error {
    let error = Error::unavailable(format!("catalog {place} cannot be reached"))
        .with_hint("check that PostgreSQL is running and that this host can connect to it; Stoa reconnects by itself");
    match &state.last_error {
        Some(last) => error.with_detail(format!("last error: {last}")),
        None => error,
    }
}

/// A change that was not made because its connection was lost before the commit.
pub(super) fn undone(place: &str, error: SqlxError) -> Error {
    Error::unavailable(format!("catalog {place} was lost during a change, which was not made"))
        .with_hint("repeat the statement")
        .with_source(error)
}

/// A commit that may or may not have been made.
pub(super) fn unknown_outcome(place: &str, error: SqlxError) -> Error {
    describe(place, error)
        .at("it is not known whether the change was made")
        .with_condition(Condition::UnknownOutcome)
        .with_detail("PostgreSQL went away while it committed, and did not come back in time")
        .with_hint("look at what there is before you repeat the statement")
}
