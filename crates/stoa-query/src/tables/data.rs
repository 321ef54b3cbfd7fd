//! What statements read and write: the warehouse, the rows that are in no file yet, and what is kept of files.
//!
//! In: names. Out: [`StoaTable`]s of the snapshot that is current when somebody asks. **Invariant:** tables
//! that are asked for together are those of one moment.
//!
//! Not here: which of them a caller may see (`access`, `seen`), the engine's catalog (`catalog`).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use datafusion::catalog::TableProvider;
use parking_lot::RwLock;
use stoa_catalog::TableIdent;
use stoa_cells::CellTables;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_ingest::{FreshRows, Ingest, Share, TableSnapshot};
use stoa_member::Member;
use stoa_report::{Answer, Memory, Report, Reports};
use stoa_table::{Table, Warehouse};
use uuid::Uuid;

use crate::access::FileAccess;
use crate::tables::cells::{self, Form};
use crate::tables::changes::Changes;
use crate::tables::file_cache::FileCache;
use crate::tables::homes::Homes;
use crate::tables::table::StoaTable;
use crate::tables::versions::{self, EarlierTable, TableFacts};
use crate::tables::view::StoredView;

/// How often a state of all tables is looked for while some are dropped.
const LOOKS_MAX: usize = 10;

/// The data of an engine.
pub(crate) struct Data {
    warehouse: Warehouse,
    ingest: Option<Ingest>,
    cells: CellTables,
    files: Arc<FileCache>,
    reports: Arc<Reports>,
    /// The files that external tables may have.
    file_access: Arc<FileAccess>,
    changes: Arc<Changes>,
    /// The cluster that the server is a member of, if any.
    member: OnceLock<Member>,
    /// Which of its daemons has what in memory.
    homes: OnceLock<Homes>,
    /// Tables and views by namespace, as [`Data::refresh`] has read them.
    names: RwLock<BTreeMap<String, Vec<String>>>,
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Data").field("names", &self.names).finish_non_exhaustive()
    }
}

/// In a cluster, each table is looked after by one daemon.
impl Share for Data {
    fn is_mine(&self, table: Uuid) -> bool {
        self.member.get().is_none_or(|member| member.maintains(table))
    }
}

impl Data {
    /// The tables of a warehouse; small writes go to the log of `ingest`.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn open(
        warehouse: Warehouse,
        ingest: Option<Ingest>,
        cells: CellTables,
        reports: Reports,
        file_access: FileAccess,
    ) -> Result<Self> {
        let data = Self {
            warehouse,
            ingest,
            cells,
            files: Arc::default(),
            reports: Arc::new(reports),
            file_access: Arc::new(file_access),
            changes: Arc::default(),
            member: OnceLock::new(),
            homes: OnceLock::new(),
            names: RwLock::default(),
        };
        data.refresh().await?;
        Ok(data)
    }

    /// The tables.
    pub(crate) fn warehouse(&self) -> &Warehouse {
        &self.warehouse
    }

    /// The fresh rows and their log; `None` without a log.
    pub(crate) fn ingest(&self) -> Option<&Ingest> {
        self.ingest.as_ref()
    }

    /// The tables of cells.
    pub(crate) fn cells(&self) -> &CellTables {
        &self.cells
    }

    /// What reports keep of data files.
    pub(crate) fn reports(&self) -> &Arc<Reports> {
        &self.reports
    }

    /// The cluster that the server is a member of, if any.
    pub(crate) fn member(&self) -> Option<&Member> {
        self.member.get()
    }

    /// From now on, tables are read as a member of a cluster reads them; reports on those of at least
    /// `home_bytes_min` are for their homes.
    pub(crate) fn set_member(&self, member: Member, home_bytes_min: u64) {
        let _ = self.homes.set(Homes::new(member.clone(), home_bytes_min));
        let _ = self.member.set(member);
    }

    /// Which daemons of the cluster have what in memory.
    pub(crate) fn homes(&self) -> Option<&Homes> {
        self.homes.get()
    }

    /// Answers a report, here or at its home; `None` where the planner must.
    ///
    /// # Errors
    /// Those of [`Reports::run`].
    pub(crate) async fn report(
        &self,
        snapshot: &TableSnapshot,
        report: &Report,
        memory: &dyn Memory,
    ) -> Result<Option<Answer>> {
        let reports = &self.reports;
        match self.homes.get() {
            Some(homes) => homes.answer(reports, snapshot, report, memory).await,
            None => reports.run_within(&snapshot.table, &snapshot.fresh, report, memory).await,
        }
    }

    /// Waits until a read shows everything that any daemon of the cluster has acknowledged.
    ///
    /// # Errors
    /// 57P01 and 57P03 where this daemon cannot tell what others have acknowledged.
    async fn may_read(&self) -> Result<()> {
        match self.member.get() {
            Some(member) if !member.may_answer() => member.wait_until_exact().await,
            _ => Ok(()),
        }
    }

    /// Whether a read that is done showed that: the process may have slept while it read.
    fn has_read(&self) -> bool {
        self.member.get().is_none_or(Member::may_answer)
    }

    /// What statements change that others read.
    pub(crate) fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// Reads the lists of names again.
    pub(crate) async fn refresh(&self) -> Result<()> {
        let mut names = BTreeMap::new();
        for mut listing in self.warehouse.listing().await? {
            listing.tables.append(&mut listing.views);
            names.insert(listing.namespace, listing.tables);
        }
        *self.names.write() = names;
        Ok(())
    }

    /// The namespaces, as they were last read.
    pub(super) fn namespaces(&self) -> Vec<String> {
        self.names.read().keys().cloned().collect()
    }

    /// The tables and views of a namespace, as they were last read.
    pub(super) fn names_in(&self, namespace: &str) -> Vec<String> {
        self.names.read().get(namespace).cloned().unwrap_or_default()
    }

    /// Whether a namespace had this table or view when they were last read.
    pub(super) fn has_name(&self, namespace: &str, name: &str) -> bool {
        let names = self.names.read();
        names.get(namespace).is_some_and(|tables| tables.iter().any(|table| table == name))
    }

    /// The table as it is now, and the rows that are in no data file yet.
    pub(crate) async fn snapshot(&self, ident: &TableIdent) -> Result<TableSnapshot> {
        match &self.ingest {
            Some(ingest) => loop {
                self.may_read().await?;
                let snapshot = ingest.snapshot(ident).await?;
                if self.has_read() {
                    return Ok(snapshot);
                }
            },
            None => {
                let table = self.warehouse.table(ident).await?;
                Ok(TableSnapshot { fresh: FreshRows::none(&table), table })
            }
        }
    }

    /// The tables as they are at one moment, with the rows that are in no data file then. None comes
    /// twice.
    pub(crate) async fn snapshots(&self, idents: &[TableIdent]) -> Result<Vec<TableSnapshot>> {
        if let [one] = idents {
            return Ok(vec![self.snapshot(one).await?]);
        }
        match &self.ingest {
            None => {
                let tables = self.warehouse.tables_at_once(idents).await?;
                let snapshot = |table| TableSnapshot { fresh: FreshRows::none(&table), table };
                Ok(tables.into_iter().map(snapshot).collect())
            }
            Some(ingest) => loop {
                self.may_read().await?;
                let snapshots = ingest.snapshots(idents).await?;
                if self.has_read() {
                    return Ok(snapshots);
                }
            },
        }
    }

    /// The same as the engine sees them.
    pub(crate) async fn tables(&self, idents: &[TableIdent]) -> Result<Vec<StoaTable>> {
        let snapshots = self.snapshots(idents).await?;
        Ok(snapshots.into_iter().map(|snapshot| self.at(snapshot)).collect())
    }

    /// All tables of the warehouse, at one moment.
    pub(crate) async fn all_tables(&self) -> Result<Vec<StoaTable>> {
        let mut looks = 0;
        loop {
            let idents = self.warehouse.all_tables().await?;
            looks += 1;
            match self.tables(&idents).await {
                // One was dropped after the names were read.
                Err(error) if error.kind() == ErrorKind::NotFound && looks < LOOKS_MAX => {}
                tables => return tables,
            }
        }
    }

    /// A snapshot as the engine sees it.
    pub(crate) fn at(&self, snapshot: TableSnapshot) -> StoaTable {
        self.as_engine_table(snapshot.table).with_fresh(snapshot.fresh)
    }

    /// The table as it is now.
    pub(crate) async fn table(&self, ident: &TableIdent) -> Result<StoaTable> {
        match &self.ingest {
            None => Ok(self.as_engine_table(self.warehouse.table(ident).await?)),
            Some(_) => Ok(self.at(self.snapshot(ident).await?)),
        }
    }

    /// A table as the engine sees it. The rows of one that is yet to appear do so together with it, not by the
    /// log.
    pub(crate) fn as_engine_table(&self, table: Table) -> StoaTable {
        let ingest = self.ingest.clone().filter(|_| !table.is_staged());
        let (files, reports) = (Arc::clone(&self.files), Arc::clone(&self.reports));
        StoaTable::new(table, files, reports, Arc::clone(&self.file_access))
            .with_ingest(ingest)
            .with_member(self.member.get().cloned())
    }

    /// Forgets the fresh rows of a table that is gone.
    pub(crate) async fn forget_rows(&self, table: &Table) {
        if let Some(ingest) = &self.ingest {
            ingest.forget(table).await;
        }
    }

    /// A table or view by the name that SQL has for it; `None` if there is none.
    pub(super) async fn provider(
        &self,
        ident: &TableIdent,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let found = match self.found(ident).await {
            Err(error) if error.is(Condition::WrongObjectType) => {
                let view = StoredView::new(self.warehouse.view(ident).await?)?;
                return Ok(Some(Arc::new(view)));
            }
            found => found?,
        };
        if let Some(table) = found {
            let cells = cells::view(&self.cells, &table);
            return Ok(Some(cells.unwrap_or_else(|| Arc::new(self.as_engine_table(table)))));
        }
        let Some((name, form)) = cells::split_name(&ident.name) else {
            return self.version(ident).await;
        };
        let ident = TableIdent { namespace: ident.namespace.clone(), name: name.to_owned() };
        let Some(table) = self.found(&ident).await? else { return Ok(None) };
        match cells::history(&self.cells, &table)? {
            Some(_) if form == Form::Raw => Ok(Some(Arc::new(self.as_engine_table(table)))),
            history => Ok(history),
        }
    }

    /// An earlier version of a table, or what its metadata says, by the name that SQL has for it.
    async fn version(&self, ident: &TableIdent) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(name) = versions::asked_of(&ident.name) else { return Ok(None) };
        let of = TableIdent { namespace: ident.namespace.clone(), name: name.to_owned() };
        let Some(table) = self.found(&of).await? else { return Ok(None) };
        if let Some((_, fact)) = versions::split_facts(&ident.name) {
            return Ok(Some(Arc::new(TableFacts::new(table, fact))));
        }
        let Some((_, version)) = versions::split_name(&ident.name) else { return Ok(None) };
        if cells::refuse_rows(&table).is_err() {
            return Err(Error::unsupported(format!(
                "{of} is a table of cells: it has no versions"
            ))
            .with_hint("its cells have versions of their own: read \"name$cells\""));
        }
        let earlier = EarlierTable::new(self.as_engine_table(table), version)?;
        Ok(Some(Arc::new(earlier)))
    }

    async fn found(&self, ident: &TableIdent) -> Result<Option<Table>> {
        match self.warehouse.table(ident).await {
            Ok(table) => Ok(Some(table)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
