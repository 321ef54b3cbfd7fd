//! The errors that every store returns, in the same words.

use stoa_error::{Condition, Error, ErrorKind};

use crate::name::{NamespacePath, TableName};

/// There is no such table.
pub fn missing_table(table: &TableName) -> Error {
    Error::not_found(format!("table {table} does not exist"))
        .with_condition(Condition::UndefinedTable)
        .with_hint("SHOW TABLES lists the tables, USE opens another namespace")
}

/// There is no such namespace.
pub fn missing_namespace(namespace: &NamespacePath) -> Error {
    Error::not_found(format!("namespace {namespace} does not exist"))
        .with_condition(Condition::UndefinedSchema)
        .with_hint("CREATE NAMESPACE makes one, GET LISTING shows what is there")
}

/// A table or a namespace has the name of the table to be made.
pub fn table_exists(table: &TableName) -> Error {
    Error::already_exists(format!("{table} exists already"))
        .with_condition(Condition::DuplicateTable)
}

/// A table or a namespace has the name of the namespace to be made.
pub fn namespace_exists(namespace: &NamespacePath) -> Error {
    Error::already_exists(format!("{namespace} exists already")).with_sqlstate("42P06")
}

/// A namespace cannot be dropped.
pub fn namespace_not_empty(namespace: &NamespacePath) -> Error {
    Error::invalid(format!("namespace {namespace} is not empty"))
        .with_condition(Condition::DependentObjects)
        .with_hint("drop what is in it first; the root namespace stays")
}

/// A table has another schema than the one that was altered.
pub fn altered_meanwhile(table: &TableName) -> Error {
    Error::conflict(format!("table {table} was altered by somebody else")).with_hint("try again")
}

/// A load ended early, and so many of its cells stay.
pub fn load_broke_off(error: Error, cells: u64) -> Error {
    let what = match cells {
        0 => "nothing was loaded".to_owned(),
        cells => format!("{cells} cells were loaded before and stay"),
    };
    let detail = error.detail().map_or(what.clone(), |detail| format!("{detail}; {what}"));
    error.with_detail(detail)
}

/// The store was told to take no cells.
pub fn readonly() -> Error {
    Error::new(ErrorKind::Unavailable, "the store takes no cells now: it is READONLY")
        .with_sqlstate("25006")
        .with_hint("SET READONLY=false lets it take cells again")
}
