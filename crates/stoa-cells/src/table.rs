//! One table of cells at one version, and how it is found.

use std::sync::Arc;

use stoa_error::{Condition, Error, Result};
use stoa_hql::store::errors;
use stoa_hql::{TableName, TableSchema};
use stoa_ingest::{FreshRows, Ingest};
use stoa_table::{Table, TableIdent, Warehouse};

use crate::layout::{Layout, schema_of};
use crate::names::ident_of;

/// A table of cells.
#[derive(Clone, Debug)]
pub(crate) struct CellTable {
    pub(crate) table: Table,
    pub(crate) layout: Layout,
    pub(crate) schema: Arc<TableSchema>,
}

/// A table of cells with the rows that are not in its files.
#[derive(Clone, Debug)]
pub(crate) struct CellSnapshot {
    pub(crate) cells: CellTable,
    /// None where the process has no log.
    pub(crate) fresh: Option<FreshRows>,
}

impl CellTable {
    /// Takes a table as one of cells.
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) if it is of another kind.
    pub(crate) fn of(table: Table) -> Result<Self> {
        let schema = schema_of(&table)?.ok_or_else(|| no_cells(table.ident()))?;
        Ok(Self { layout: Layout::of(&table)?, schema, table })
    }

    /// Opens a table at its current version.
    pub(crate) async fn open(warehouse: &Warehouse, name: &TableName) -> Result<Self> {
        let table = warehouse.table(&ident_of(name)).await;
        Self::of(table.map_err(|error| in_words_of_hql(error, name))?)
    }
}

impl CellSnapshot {
    /// The table `ident` as it is now.
    ///
    /// # Errors
    /// As [`Ingest::snapshot`] and [`CellTable::of`].
    pub(crate) async fn of(
        warehouse: &Warehouse,
        ingest: Option<&Ingest>,
        ident: &TableIdent,
    ) -> Result<Self> {
        let Some(ingest) = ingest else {
            let table = warehouse.table(ident).await?;
            return Ok(Self { cells: CellTable::of(table)?, fresh: None });
        };
        let snapshot = ingest.snapshot(ident).await?;
        Ok(Self { cells: CellTable::of(snapshot.table)?, fresh: Some(snapshot.fresh) })
    }
}

/// The catalog's errors about a table as those that every store of cells returns.
pub(crate) fn in_words_of_hql(error: Error, table: &TableName) -> Error {
    if is_missing(&error) {
        errors::missing_table(table)
    } else if error.is(Condition::DuplicateTable) {
        errors::table_exists(table)
    } else {
        error
    }
}

/// Whether the catalog has no such table.
pub(crate) fn is_missing(error: &Error) -> bool {
    error.is(Condition::UndefinedTable) || error.is(Condition::UndefinedSchema)
}

fn no_cells(ident: &TableIdent) -> Error {
    Error::invalid(format!("table {ident} is no table of cells"))
        .with_sqlstate("42809")
        .with_hint("use SQL for it")
}
