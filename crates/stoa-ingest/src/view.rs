//! Looking at tables: data files of one version of each, and the fresh rows that it lacks.
//!
//! In: names of tables. Out: one state of all of them, which was there at one moment. A pointer that
//! is the same before and after the fresh rows are looked at was the same at that moment; the stores
//! of fresh rows are locked together, so that no row is seen without one that was acknowledged
//! before it came.

use std::sync::Arc;

use stoa_error::{Error, Result};
use stoa_table::{Table, TableIdent};

use crate::fresh::{FreshRows, Look, Seen, look_at_all};
use crate::ingest::Ingest;
use crate::inner::Inner;
use crate::tables::TableState;

/// How often a state is looked for again because a table was committed to meanwhile.
const LOOKS_MAX: usize = 1000;

/// One consistent view of a table: data files and fresh rows, each row exactly once.
#[derive(Clone, Debug)]
pub struct TableSnapshot {
    /// The version whose data files to scan.
    pub table: Table,
    /// The rows to add to them.
    pub fresh: FreshRows,
}

/// One state of some tables.
pub(crate) struct Cut {
    /// In the order in which they were asked for.
    pub(crate) tables: Vec<TableSnapshot>,
    /// The end of the visible fresh rows of the table that was to be marked; all rows before it are visible.
    pub(crate) end: u64,
}

/// The fresh rows of some tables at one moment.
struct Looked {
    fresh: Vec<FreshRows>,
    /// Where the visible rows of the marked table end.
    end: u64,
    /// Whether there are others before.
    hides: bool,
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
        let cut = self.inner.cut(std::slice::from_ref(ident), None).await?;
        let table = cut.tables.into_iter().next();
        table.ok_or_else(|| Error::internal("a state of one table has none"))
    }

    /// The tables as they are at one moment, with all rows that are acknowledged then, in the order
    /// of `idents`, in which none comes twice.
    ///
    /// # Errors
    /// As [`Self::snapshot`]; `Conflict` where some of them change all the time.
    pub async fn snapshots(&self, idents: &[TableIdent]) -> Result<Vec<TableSnapshot>> {
        Ok(self.inner.cut(idents, None).await?.tables)
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

    /// One state of all of `idents`; the end of the one at index `mark` is marked.
    ///
    /// # Errors
    /// As [`Ingest::snapshots`].
    pub(crate) async fn cut(&self, idents: &[TableIdent], mark: Option<usize>) -> Result<Cut> {
        let mut before: Vec<Table> = Vec::new();
        for _ in 0..LOOKS_MAX {
            // Rows before a floor were committed before it was raised, so a version that is read
            // after the floor has them (unless somebody took them out again).
            let floors: Vec<u64> = before.iter().map(|table| self.floor(table)).collect();
            let mut tables = Vec::with_capacity(idents.len());
            for ident in idents {
                tables.push(self.warehouse.table(ident).await?);
            }
            let mut seen = Vec::with_capacity(tables.len());
            for (nth, table) in tables.iter().enumerate() {
                let is_same = before.get(nth).is_some_and(|old| old.uuid() == table.uuid());
                let floor = if is_same { floors[nth] } else { 0 };
                seen.push(self.position(table)?.max(floor));
            }
            match self.look(&tables, &seen, mark) {
                // They are visible next time, in all tables.
                Some(looked) if looked.hides => self.log.sync(looked.end).await?,
                Some(Looked { fresh, end, .. })
                    if self.may_use(&tables, &fresh, &before)?
                        && self.is_current(&tables, &fresh).await? =>
                {
                    let both = tables.into_iter().zip(fresh);
                    let tables = both.map(|(table, fresh)| TableSnapshot { table, fresh });
                    return Ok(Cut { tables: tables.collect(), end });
                }
                _ => {}
            }
            before = tables;
        }
        Err(Error::conflict("the tables of the statement change all the time")
            .with_hint("nothing was changed; run it again"))
    }

    fn floor(&self, table: &Table) -> u64 {
        self.tables.get(table.uuid()).map_or(0, |state| state.fresh.floor())
    }

    /// The fresh rows of all tables at one moment; `None` where a version is too old.
    fn look(&self, tables: &[Table], seen: &[u64], mark: Option<usize>) -> Option<Looked> {
        let states: Vec<Option<Arc<TableState>>> =
            tables.iter().map(|table| self.tables.get(table.uuid())).collect();
        // All who look at several stores lock them in the order of their tables' ids.
        let mut order: Vec<usize> =
            (0..tables.len()).filter(|nth| states[*nth].is_some()).collect();
        order.sort_by_key(|nth| tables[*nth].uuid());
        if order.windows(2).any(|pair| tables[pair[0]].uuid() == tables[pair[1]].uuid()) {
            // One was renamed while they were read.
            return None;
        }
        let looks: Vec<Look<'_>> = order
            .iter()
            .filter_map(|nth| {
                let fresh = &states[*nth].as_ref()?.fresh;
                Some(Look { fresh, seen: seen[*nth], mark: mark == Some(*nth) })
            })
            .collect();
        // A table that was not known and is now has got rows, and others may have got rows after it.
        let still = || {
            let unknown = tables.iter().zip(&states).filter(|(_, state)| state.is_none());
            unknown.into_iter().all(|(table, _)| self.tables.get(table.uuid()).is_none())
        };
        let found = look_at_all(&looks, || self.log.durable_end(), still)?;
        let mut all: Vec<Seen> = tables.iter().map(|_| Seen::default()).collect();
        for (nth, seen) in order.into_iter().zip(found) {
            all[nth] = seen;
        }
        let (end, hides) = mark.map_or((0, false), |nth| (all[nth].end, all[nth].hides));
        let rows = tables
            .iter()
            .zip(all)
            .map(|(table, seen)| FreshRows::new(table.schema(), table.schema_id(), seen.chunks));
        Some(Looked { fresh: rows.collect(), end, hides })
    }

    /// Whether the versions know the schemas of all their fresh rows. Where not even the newest one
    /// does, the schema was removed from the metadata.
    fn may_use(&self, tables: &[Table], fresh: &[FreshRows], before: &[Table]) -> Result<bool> {
        for (nth, (table, fresh)) in tables.iter().zip(fresh).enumerate() {
            let is_newest = before
                .get(nth)
                .is_some_and(|old| old.metadata_location() == table.metadata_location());
            if !is_newest && !fresh.has_schemas_of(table)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all versions were still current when the fresh rows were looked at.
    async fn is_current(&self, tables: &[Table], fresh: &[FreshRows]) -> Result<bool> {
        // Without fresh rows now there were none when the version was read.
        if let ([_], [fresh]) = (tables, fresh)
            && fresh.is_empty()
        {
            return Ok(true);
        }
        for table in tables {
            let now = self.warehouse.catalog().pointer(table.ident()).await?;
            if now != table.metadata_location() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
