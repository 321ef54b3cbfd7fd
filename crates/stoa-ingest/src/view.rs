//! Looking at tables: data files of one version of each, and the fresh rows that it lacks.
//!
//! In: names of tables. Out: one state of all of them, which was there at one moment. A pointer that
//! is the same before and after the fresh rows are looked at was the same at that moment; the stores
//! of fresh rows are locked together, so that no row is seen without one that was acknowledged
//! before it came.

use std::collections::BTreeMap;
use std::sync::Arc;

use stoa_error::{Error, Result};
use stoa_table::{Table, TableIdent};

use crate::copies::CopiedTable;
use crate::fresh::{Fresh, FreshRows, Look, look_at_all};
use crate::ingest::Ingest;
use crate::inner::Inner;
use crate::tables::TableState;

/// Before which positions rows of a table are gone from memory, by the id of the log; this daemon's own
/// log is `""`.
type Floors = BTreeMap<String, u64>;

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
    /// Whether that table has rows that are in no file and in another daemon's log.
    pub(crate) copied: bool,
}

/// The fresh rows of some tables at one moment.
struct Looked {
    fresh: Vec<FreshRows>,
    /// Where the visible rows of the marked table end.
    end: u64,
    /// Whether there are others before.
    hides: bool,
    /// Whether the marked table has rows of other daemons' logs.
    copied: bool,
}

/// The fresh rows of one table in one log.
struct Store {
    /// The table's place among those that are looked at.
    nth: usize,
    rows: Rows,
    /// The reader has everything before it.
    seen: u64,
}

enum Rows {
    Own(Arc<TableState>),
    Copied(CopiedTable),
}

impl Rows {
    fn fresh(&self) -> &Fresh {
        match self {
            Self::Own(state) => &state.fresh,
            Self::Copied(copied) => &copied.fresh,
        }
    }

    /// This daemon's own log comes first.
    fn log(&self) -> &str {
        match self {
            Self::Own(_) => "",
            Self::Copied(copied) => copied.log.log(),
        }
    }
}

impl Ingest {
    /// The rows that a reader of this version of `table` adds to its data files. `None` where the
    /// version is too old: a flush has brought rows into a newer one, or there are rows of a schema
    /// that it does not know. [`Self::snapshot`] finds the newer one.
    ///
    /// # Errors
    /// `Corrupt` where the table's metadata says nonsense about its position.
    pub fn fresh_for(&self, table: &Table) -> Result<Option<FreshRows>> {
        match self.inner.fresh_of(table)? {
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
    fn fresh_of(&self, table: &Table) -> Result<Option<FreshRows>> {
        let (tables, floors) = (std::slice::from_ref(table), [Floors::default()]);
        let looked = self.look(tables, &floors, None, self.copies.generation())?;
        Ok(looked.and_then(|looked| looked.fresh.into_iter().next()))
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
            let floors: Vec<Floors> = before.iter().map(|table| self.floors(table)).collect();
            let generation = self.copies.generation();
            let reach = self.reach();
            let mut tables = Vec::with_capacity(idents.len());
            for ident in idents {
                tables.push(self.warehouse.table(ident).await?);
            }
            // Versions of memory may be older than a floor that another daemon has raised.
            let is_read = reach.is_some() && self.reach() == reach;
            let floors = tables.iter().enumerate().map(|(nth, table)| {
                let is_same = before.get(nth).is_some_and(|old| old.uuid() == table.uuid());
                let mut floors = if is_same { floors[nth].clone() } else { Floors::default() };
                floors.retain(|log, _| is_read || log.is_empty());
                floors
            });
            let floors: Vec<Floors> = floors.collect();
            match self.look(&tables, &floors, mark, generation)? {
                // They are visible next time, in all tables.
                Some(looked) if looked.hides => self.log.sync(looked.end).await?,
                Some(Looked { fresh, end, copied, .. })
                    if self.may_use(&tables, &fresh, &before)?
                        && self.is_current(&tables, &fresh, generation).await? =>
                {
                    let both = tables.into_iter().zip(fresh);
                    let tables = both.map(|(table, fresh)| TableSnapshot { table, fresh });
                    return Ok(Cut { tables: tables.collect(), end, copied });
                }
                None if !is_read && !before.is_empty() => return Err(no_catalog()),
                _ => {}
            }
            before = tables;
        }
        Err(Error::conflict("the tables of the statement change all the time")
            .with_hint("nothing was changed; run it again"))
    }

    /// Which connection to the catalog's database is used; `None` while there is none.
    fn reach(&self) -> Option<u64> {
        if self.copies.is_empty() {
            return Some(0);
        }
        let state = self.warehouse.catalog().state();
        state.reachable.then_some(state.reconnections)
    }

    /// Before which positions rows are gone from memory, by log.
    fn floors(&self, table: &Table) -> Floors {
        let mut floors = Floors::default();
        if let Some(state) = self.tables.get(table.uuid()) {
            floors.insert(String::new(), state.fresh.floor());
        }
        let copied = self.copies.of(table.uuid());
        floors.extend(copied.iter().map(|copy| (copy.log.log().to_owned(), copy.fresh.floor())));
        floors
    }

    /// The fresh rows of all tables at one moment; `None` where a version is too old, or was read before
    /// `generation` of the copies.
    fn look(
        &self,
        tables: &[Table],
        floors: &[Floors],
        mark: Option<usize>,
        generation: u64,
    ) -> Result<Option<Looked>> {
        let stores = self.stores(tables, floors)?;
        let ids = |pair: &[Store]| {
            let [one, other] = pair else { return false };
            one.nth != other.nth && tables[one.nth].uuid() == tables[other.nth].uuid()
        };
        if stores.windows(2).any(ids) {
            // One was renamed while they were read.
            return Ok(None);
        }
        let is_marked = |store: &Store| mark == Some(store.nth) && store.rows.log().is_empty();
        let looks: Vec<Look<'_>> = stores
            .iter()
            .map(|store| Look {
                fresh: store.rows.fresh(),
                seen: store.seen,
                mark: is_marked(store),
            })
            .collect();
        // A table that was not known and is now has got rows, and others may have got rows after it.
        let still = || {
            let is_known = |nth| {
                let of_it = |store: &Store| store.nth == nth && store.rows.log().is_empty();
                stores.iter().any(of_it)
            };
            let unknown = tables.iter().enumerate().filter(|(nth, _)| !is_known(*nth));
            self.copies.generation() == generation
                && unknown.into_iter().all(|(_, table)| self.tables.get(table.uuid()).is_none())
        };
        let ends = || {
            let read = || {
                // Once for all tables: the log goes on meanwhile.
                let own = self.log.durable_end();
                let end = |store: &Store| match &store.rows {
                    Rows::Own(_) => own,
                    Rows::Copied(copied) => copied.log.end(),
                };
                stores.iter().map(end).collect()
            };
            // All readers share the lock: not without need.
            match stores.iter().any(|store| matches!(store.rows, Rows::Copied(_))) {
                true => self.copies.ends(read),
                false => read(),
            }
        };
        let Some(found) = look_at_all(&looks, ends, still) else { return Ok(None) };
        let mut looked = Looked { fresh: Vec::new(), end: 0, hides: false, copied: false };
        let mut chunks: Vec<Vec<_>> = tables.iter().map(|_| Vec::new()).collect();
        for (store, seen) in stores.iter().zip(found) {
            if is_marked(store) {
                (looked.end, looked.hides) = (seen.end, seen.hides);
            } else if mark == Some(store.nth) {
                looked.copied |= !seen.chunks.is_empty();
            }
            chunks[store.nth].extend(seen.chunks);
        }
        let fresh = |(table, chunks): (&Table, Vec<_>)| {
            FreshRows::new(table.schema(), table.schema_id(), chunks)
        };
        looked.fresh = tables.iter().zip(chunks).map(fresh).collect();
        Ok(Some(looked))
    }

    /// All stores with rows of `tables`, in the order in which all who look at several lock them: by the
    /// ids of their tables, then by log.
    fn stores(&self, tables: &[Table], floors: &[Floors]) -> Result<Vec<Store>> {
        let mut stores = Vec::new();
        let is_alone = self.copies.is_empty();
        for (nth, table) in tables.iter().enumerate() {
            let own = self.tables.get(table.uuid()).map(Rows::Own);
            let copied = if is_alone { Vec::new() } else { self.copies.of(table.uuid()) };
            let rows = own.into_iter().chain(copied.into_iter().map(Rows::Copied));
            let mut rows = rows.peekable();
            if rows.peek().is_none() {
                continue;
            }
            let positions = table.log_positions()?;
            for rows in rows {
                let log = if rows.log().is_empty() { self.log.id() } else { rows.log() };
                let position = positions.get(log).copied().unwrap_or(0);
                let floor = floors[nth].get(rows.log()).copied().unwrap_or(0);
                stores.push(Store { nth, seen: position.max(floor), rows });
            }
        }
        // Stores of one table are in the order of their logs already.
        stores.sort_by_key(|store| tables[store.nth].uuid());
        Ok(stores)
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
    async fn is_current(
        &self,
        tables: &[Table],
        fresh: &[FreshRows],
        generation: u64,
    ) -> Result<bool> {
        if self.copies.generation() != generation {
            return Ok(false);
        }
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

fn no_catalog() -> Error {
    Error::unavailable(
        "rows that other daemons took in are in files by now, and the catalog does not answer",
    )
    .with_sqlstate("57P03")
    .with_hint("retry when the catalog's database is back, or connect to another daemon")
}
