//! Finding tables by what never changes: their uuid. Names change, also by other processes.

use std::collections::HashMap;

use futures::stream::{self, StreamExt};
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_table::{Table, TableIdent, Warehouse};
use uuid::Uuid;

/// How often the names are read again when they change meanwhile.
const TRIES: usize = 8;

/// Tables that are opened at the same time.
const OPEN_MAX: usize = 16;

/// The table `uuid` at its current version, looked for under `hint` first; `None` where no table
/// has that uuid any more.
///
/// # Errors
/// `Unavailable` or `Corrupt` where a table that might be it cannot be read.
pub(crate) async fn locate(
    warehouse: &Warehouse,
    uuid: Uuid,
    hint: &TableIdent,
) -> Result<Option<Table>> {
    match open(warehouse, hint).await {
        Ok(Some(table)) if table.uuid() == uuid => return Ok(Some(table)),
        Ok(_) => {}
        Err(error) => return Err(error),
    }
    let mut all = all_tables(warehouse).await?;
    match (all.tables.remove(&uuid), all.unreadable) {
        (Some(table), _) => Ok(Some(table)),
        (None, None) => Ok(None),
        (None, Some(error)) => Err(error),
    }
}

/// All tables of a warehouse.
pub(crate) struct AllTables {
    pub(crate) tables: HashMap<Uuid, Table>,
    /// Why some table could not be opened; it may be any.
    pub(crate) unreadable: Option<Error>,
}

/// Opens all tables. A table that exists all the while is there, even if it is renamed meanwhile.
///
/// # Errors
/// `Unavailable` where the catalog does not answer, or names change faster than they are read.
pub(crate) async fn all_tables(warehouse: &Warehouse) -> Result<AllTables> {
    let mut names = warehouse.all_tables().await?;
    for _ in 0..TRIES {
        let found = open_all(warehouse, &names).await;
        // The same names before and after: no table moved from one not read yet to one read.
        let after = warehouse.all_tables().await?;
        if after == names {
            return Ok(found);
        }
        names = after;
    }
    Err(Error::unavailable("tables are renamed faster than they can be listed")
        .with_hint("retry later"))
}

async fn open_all(warehouse: &Warehouse, names: &[TableIdent]) -> AllTables {
    let mut all = AllTables { tables: HashMap::new(), unreadable: None };
    let opening = stream::iter(names.to_vec()).map(|name| async move {
        let table = open(warehouse, &name).await;
        (name, table)
    });
    let mut opened = opening.buffer_unordered(OPEN_MAX);
    while let Some((name, table)) = opened.next().await {
        match table {
            Ok(Some(table)) => {
                all.tables.insert(table.uuid(), table);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(table = %name, %error, "table cannot be read");
                all.unreadable = Some(error);
            }
        }
    }
    all
}

async fn open(warehouse: &Warehouse, name: &TableIdent) -> Result<Option<Table>> {
    match warehouse.table(name).await {
        Ok(table) => Ok(Some(table)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the catalog has no table of this name (and not, say, that a file is missing).
fn is_missing(error: &Error) -> bool {
    let is_view = error.is(Condition::WrongObjectType);
    let is_nothing = error.kind() == ErrorKind::NotFound
        && (error.is(Condition::UndefinedTable) || error.is(Condition::UndefinedSchema));
    is_view || is_nothing
}
