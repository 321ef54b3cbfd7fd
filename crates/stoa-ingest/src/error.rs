//! Errors that several modules give.

use stoa_error::{Condition, Error, ErrorKind};
use stoa_table::TableIdent;

/// The engine takes no more writes.
pub(crate) fn closed() -> Error {
    Error::unavailable("no rows are taken any more: the server is shutting down")
        .with_hint("retry when it is back")
}

/// The table is not there any more.
pub(crate) fn dropped(table: &TableIdent) -> Error {
    Error::not_found(format!("table {table} was dropped")).with_condition(Condition::UndefinedTable)
}

/// The table is not there any more, and another one has its name.
pub(crate) fn replaced(table: &TableIdent) -> Error {
    Error::conflict(format!("table {table} was dropped and another one made under its name"))
        .with_hint("nothing was written to the new table; start again")
}

/// Rows are durable, but whether their table is still there cannot be told.
pub(crate) fn unknown(table: &TableIdent, source: Error) -> Error {
    Error::unavailable(format!(
        "it is not known whether the rows are in table {table}: the catalog does not answer"
    ))
    .with_condition(Condition::UnknownOutcome)
    .with_hint("look for the rows before they are sent again")
    .with_source(source)
}

/// A fail point was armed.
pub(crate) fn injected(point: stoa_env::failpoint::Injected) -> Error {
    Error::new(ErrorKind::Unavailable, point.to_string())
}
