//! Errors that several modules give.

use stoa_error::{Error, ErrorKind};
use stoa_table::TableIdent;

/// The engine takes no more writes.
pub(crate) fn closed() -> Error {
    Error::unavailable("no rows are taken any more: the server is shutting down")
        .with_hint("retry when it is back")
}

/// The table is not there any more.
pub(crate) fn dropped(table: &TableIdent) -> Error {
    Error::not_found(format!("table {table} was dropped")).with_sqlstate("42P01")
}

/// A fail point was armed.
pub(crate) fn injected(point: stoa_env::failpoint::Injected) -> Error {
    Error::new(ErrorKind::Unavailable, point.to_string())
}
