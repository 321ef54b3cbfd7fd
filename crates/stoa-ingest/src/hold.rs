//! Flushing by command, and keeping flushes away from statements that rewrite a table.
//!
//! In a cluster, all daemons flush the table and are kept from flushing it again (`others`), each in its turn
//! by the ids of the daemons, so that two statements never wait for each other.

use std::sync::Arc;
use std::time::Duration;

use stoa_error::{Error, Result};
use stoa_table::{Table, TableIdent};
use tokio::sync::OwnedMutexGuard;

use crate::error::dropped;
use crate::flush::check_whole;
use crate::ingest::Ingest;
use crate::inner::Inner;
use crate::locate::locate;
use crate::others::{OtherHold, Others, Turn, WriteClock};
use crate::tables::TableState;
use crate::view::TableSnapshot;

/// How often a held table is brought to one state with others.
const TRIES_MAX: usize = 200;

/// The wait before rows of other daemons are looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Keeps a table's rows from being flushed, for a statement that rewrites its files. The flush of
/// everything that was acknowledged before is done. Ends when dropped.
pub struct FlushHold {
    table: Table,
    state: Arc<TableState>,
    inner: Arc<Inner>,
    /// `None` only while it is dropped.
    holding: Option<OwnedMutexGuard<()>>,
    settled: Option<i64>,
    others: Vec<Box<dyn OtherHold>>,
}

impl Ingest {
    /// Flushes all rows of `table` that are acknowledged now. Gives back the table with them.
    ///
    /// # Errors
    /// `NotFound` (42P01) for a dropped table; those of writing to it, after which the rows are
    /// still fresh.
    pub async fn flush_now(&self, table: &Table) -> Result<Table> {
        Ok(self.hold_flush(table).await?.table.clone())
    }

    /// Flushes all rows of `table` that are acknowledged now, and flushes none until the hold is
    /// dropped. Rows that come in meanwhile wait in memory, so this is not for long; and whoever
    /// holds must not wait for an append, which may itself wait for a flush.
    ///
    /// # Errors
    /// As [`Self::flush_now`].
    pub async fn hold_flush(&self, table: &Table) -> Result<FlushHold> {
        let cluster = self.inner.others.get();
        let Some(cluster) = cluster else { return self.hold_own(table).await };
        let mut others = cluster.hold(table, Turn::Before).await?;
        let mut hold = self.hold_own(table).await?;
        others.extend(cluster.hold(table, Turn::After).await?);
        hold.others = others;
        // The version that has the rows of all.
        let inner = &self.inner;
        let found = locate(&inner.warehouse, table.uuid(), table.ident()).await?;
        hold.table = found.ok_or_else(|| dropped(table.ident()))?;
        Ok(hold)
    }

    /// As [`Self::flush_now`], and says until when all that was written with a time is in those files, whichever daemon
    /// wrote it: what comes into later ones carries a later time. `None` where that is not known.
    ///
    /// # Errors
    /// As [`Self::flush_now`].
    pub async fn flush_settled(&self, table: &Table) -> Result<(Table, Option<i64>)> {
        let cluster = self.inner.others.get();
        let epoch = async || match cluster {
            Some(cluster) => cluster.epoch().await,
            None => Ok(0),
        };
        let before = epoch().await?;
        let hold = self.hold_flush(table).await?;
        // Who has joined since was not asked.
        let settled = if epoch().await? == before { hold.settled() } else { None };
        Ok((hold.table.clone(), settled))
    }

    /// As [`Self::hold_flush`], but of this daemon's rows only: for another daemon.
    ///
    /// # Errors
    /// As [`Self::flush_now`].
    pub async fn hold_own(&self, table: &Table) -> Result<FlushHold> {
        let inner = &self.inner;
        let state = inner.state(table)?;
        let holding = state.flushing.clone().lock_owned().await;
        // Before the flush: all of what was written until then is in it.
        let settled = inner.clock.get().map(|clock| clock.settled());
        let flushed = inner.flush(&state).await?.ok_or_else(|| dropped(table.ident()))?;
        let (inner, holding) = (inner.clone(), Some(holding));
        Ok(FlushHold { table: flushed, state, inner, holding, settled, others: Vec::new() })
    }

    /// Asks `clock` from now on how late it is for writes that carry a time. Only the first call counts.
    pub fn set_clock(&self, clock: Arc<dyn WriteClock>) {
        let _ = self.inner.clock.set(clock);
    }

    /// From now on, statements that rewrite a table make `others` flush and hold it, too. Only the first call
    /// counts.
    pub fn set_others(&self, others: Arc<dyn Others>) {
        let _ = self.inner.others.set(others);
    }

    /// Whether [`Self::hold_flush`] makes other daemons flush, too. In a process that is no member of its cluster it does not.
    pub fn has_others(&self) -> bool {
        self.inner.others.get().is_some()
    }

    /// Forgets the fresh rows of a table that was just dropped. (The next flush would do it too.)
    pub async fn forget(&self, table: &Table) {
        if let Some(state) = self.inner.tables.get(table.uuid()) {
            self.inner.forget(&state).await;
        }
    }
}

impl Inner {
    /// Brings the rows before `end` into the files of `table`, which is held: the version that
    /// follows it, with these rows and nothing else. `None` where somebody else committed first.
    async fn flush_to(&self, state: &TableState, table: &Table, end: u64) -> Result<Option<Table>> {
        let from = self.position(table)?;
        if end <= from {
            return Ok(Some(table.clone()));
        }
        // Relaxed rows are visible before they are durable. Others behind `end` come after the statement, in this
        // table as in the others that it reads.
        self.log.sync(end).await?;
        self.committed(state, from);
        check_whole(state, from)?;
        let Some(set) = state.fresh.seal(from, usize::MAX, || end) else {
            return Ok(Some(table.clone()));
        };
        let flushed = self.flush_set(state, table.clone(), from, set).await;
        match flushed {
            Ok(flushed) => {
                let follows = flushed.previous_location() == Some(table.metadata_location());
                Ok(follows.then_some(flushed))
            }
            Err(error) => {
                state.failed(&error, self.options.retry_wait_max);
                Err(error)
            }
        }
    }
}

impl FlushHold {
    /// The table with all rows in its files that were acknowledged before the hold.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Until when all is in the table's files that was written with a time, by this daemon and by those that hold the
    /// table for it; `None` where one of them does not know.
    pub fn settled(&self) -> Option<i64> {
        let others = self.others.iter().map(|other| other.settled());
        others.fold(self.settled, |all, other| Some(all?.min(other?)))
    }

    /// Reads `others`, which are different tables, and the held one: one state of all of them, at
    /// one moment after the hold. All that the held table has then is in its files; read alone, it may lack rows that
    /// other daemons have acknowledged since this was called, as if they came after the statement.
    ///
    /// # Errors
    /// As [`Ingest::flush_now`] and [`Ingest::snapshots`].
    pub async fn read_with(&mut self, others: &[TableIdent]) -> Result<Vec<TableSnapshot>> {
        let mut has_asked = false;
        for _ in 0..TRIES_MAX {
            let idents: Vec<TableIdent> =
                std::iter::once(self.table.ident()).chain(others).cloned().collect();
            let cut = self.inner.cut(&idents, Some(0)).await?;
            let mut tables = cut.tables.into_iter();
            let held = tables.next().map(|held| held.table);
            let held = held.filter(|held| held.uuid() == self.table.uuid());
            let held = held.ok_or_else(|| dropped(self.table.ident()))?;
            // With other tables there must be a moment at which all is in files. Alone, this would be waited for in
            // vain while other daemons take in rows all the time.
            if cut.copied && !(has_asked && others.is_empty()) {
                // Others have taken in rows since that this statement sees.
                self.flush_others().await?;
                has_asked = true;
                continue;
            }
            if let Some(flushed) = self.inner.flush_to(&self.state, &held, cut.end).await? {
                self.table = flushed;
                return Ok(tables.collect());
            }
        }
        Err(Error::conflict(format!("others commit to table {} all the time", self.table.ident()))
            .with_hint("nothing was changed; run the statement again"))
    }
}

impl FlushHold {
    /// Brings the rows into files that came since, for the daemon for which this one holds.
    ///
    /// # Errors
    /// As [`Ingest::flush_now`].
    pub async fn flush(&mut self) -> Result<()> {
        let flushed = self.inner.flush(&self.state).await?;
        self.table = flushed.ok_or_else(|| dropped(self.table.ident()))?;
        Ok(())
    }

    async fn flush_others(&mut self) -> Result<()> {
        for other in &mut self.others {
            other.flush().await?;
        }
        // Rows of a daemon that has died are brought into files by those that take its log over.
        self.inner.env().sleep(LOOK_AGAIN).await;
        Ok(())
    }
}

impl Drop for FlushHold {
    fn drop(&mut self) {
        self.holding = None;
        self.inner.wake.notify_one();
    }
}
