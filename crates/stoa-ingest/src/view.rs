//! Looking at a table: data files of one version, and the fresh rows that it lacks.

use stoa_error::Result;
use stoa_table::{Table, TableIdent};

use crate::fresh::FreshRows;
use crate::ingest::{Ingest, Inner};

/// One consistent view of a table: data files and fresh rows, each row exactly once.
#[derive(Clone, Debug)]
pub struct TableSnapshot {
    /// The version whose data files to scan.
    pub table: Table,
    /// The rows to add to them.
    pub fresh: FreshRows,
}

impl Ingest {
    /// The rows that a reader of this version of `table` adds to its data files. `None` where the
    /// version is too old: a flush has brought rows into a newer one, or there are rows of a schema
    /// that it does not know. [`Self::snapshot`] finds the newer one.
    ///
    /// # Errors
    /// `Corrupt` where the table's metadata says nonsense about its position.
    pub fn fresh_for(&self, table: &Table) -> Result<Option<FreshRows>> {
        let fresh = self.inner.fresh_since(table, self.inner.position(table)?);
        match fresh {
            Some(fresh) if fresh.has_schemas_of(table)? => Ok(Some(fresh)),
            _ => Ok(None),
        }
    }

    /// The table as it is now, with all rows that are acknowledged.
    ///
    /// # Errors
    /// `NotFound` (42P01), and those of reading the table's metadata.
    pub async fn snapshot(&self, ident: &TableIdent) -> Result<TableSnapshot> {
        let inner = &self.inner;
        let mut table = inner.warehouse.table(ident).await?;
        let mut floor = 0;
        loop {
            let seen = inner.position(&table)?.max(floor);
            let fresh = inner.fresh_since(&table, seen);
            if let Some(fresh) = &fresh
                && fresh.has_schemas_of(&table)?
            {
                return Ok(TableSnapshot { fresh: fresh.clone(), table });
            }
            // Rows before a floor were committed before it was raised, so a version that is read
            // after the floor has them (unless somebody took them out again).
            let floor_before = inner.tables.get(table.uuid()).map_or(0, |s| s.fresh.floor());
            let newer = inner.warehouse.table(ident).await?;
            match fresh {
                // Not even the newest version knows the schema: it was removed from the metadata.
                Some(fresh) if newer.metadata_location() == table.metadata_location() => {
                    return Ok(TableSnapshot { table, fresh });
                }
                _ => floor = if newer.uuid() == table.uuid() { floor_before } else { 0 },
            }
            table = newer;
        }
    }
}

impl Inner {
    fn fresh_since(&self, table: &Table, seen: u64) -> Option<FreshRows> {
        let chunks = match self.tables.get(table.uuid()) {
            Some(state) => state.fresh.since(seen, || self.log.durable_end())?,
            None => Vec::new(),
        };
        Some(FreshRows::new(table.schema(), table.schema_id(), chunks))
    }
}
