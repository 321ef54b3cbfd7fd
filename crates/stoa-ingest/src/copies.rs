//! Fresh rows of other daemons: copies of their logs' records, as far as these send them.
//!
//! In: records of a log in order, how far that log is durable, what is in files by now. Out: the fresh
//! rows that readers of a table add, beside those of this daemon's own log.
//!
//! ```text
//! owner of a log                       this daemon
//!   record s ────────────────────────► decoded, kept, not shown
//!   "durable to s" ──────────────────► shown ─► "shown to s" ─► the owner acknowledges
//!   "table t is in files before p" ──► rows before p go
//! ```
//!
//! Positions are those of the other log. A copy begins where the owner's files end; a reader who read
//! a table's version before the copy began reads it again (`generation`).
//!
//! **Invariants:** a row is shown only once it is durable; what is shown never becomes less, until it is in files;
//! all logs' ends are read at one moment ([`Copies::ends`]), so that no row is shown without one that was
//! acknowledged before it came. Rows of one record are one chunk, and chunks are not merged: where flushes of
//! the other daemon end is not known here.
//!
//! Not here: who sends, and whether this daemon may answer (`stoa-cluster`).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use stoa_error::{Error, Result};
use stoa_table::Table;
use uuid::Uuid;

use crate::fresh::{Fresh, NewRows, memory_bytes};
use crate::ingest::Ingest;
use crate::inner::Inner;
use crate::locate::locate;
use crate::record::Record;
use crate::shipping::ShippedTable;

/// Part of another daemon's log.
#[derive(Clone, Debug, Default)]
pub struct LogPart {
    /// The log.
    pub log: String,
    /// Everything up to this sequence, inclusive, is in files.
    pub base: u64,
    /// The sequence of the first record.
    pub from: u64,
    /// Records, one after another.
    pub records: Vec<Bytes>,
    /// Everything up to this sequence, inclusive, is durable.
    pub durable: u64,
    /// The tables that the log has rows of.
    pub tables: Vec<ShippedTable>,
}

/// Copies of other daemons' logs.
#[derive(Default)]
pub(crate) struct Copies {
    logs: RwLock<BTreeMap<String, Arc<Copy>>>,
    /// Raised when a reader who began before may miss rows.
    generation: AtomicU64,
    /// Held while an end is moved, or all are read.
    moving: Mutex<()>,
}

/// The copy of one log.
pub(crate) struct Copy {
    log: String,
    /// The first sequence that is not shown.
    shown: AtomicU64,
    tables: RwLock<HashMap<Uuid, Arc<Fresh>>>,
    receiving: tokio::sync::Mutex<Receiving>,
}

#[derive(Default)]
struct Receiving {
    /// The first sequence that has not come.
    next: u64,
    /// The first that is not durable.
    durable: u64,
    /// Schemas by table and id; `None` of a table that is gone.
    schemas: HashMap<(Uuid, i32), Option<SchemaRef>>,
}

/// A copy's rows of one table.
#[derive(Clone)]
pub(crate) struct CopiedTable {
    pub(crate) log: Arc<Copy>,
    pub(crate) fresh: Arc<Fresh>,
}

impl Copies {
    /// Whether there are none, which is so outside of a cluster.
    pub(crate) fn is_empty(&self) -> bool {
        self.logs.read().is_empty()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// The copied rows of a table, by log.
    pub(crate) fn of(&self, table: Uuid) -> Vec<CopiedTable> {
        let logs = self.logs.read();
        let found = logs.values().filter_map(|log| {
            let fresh = log.tables.read().get(&table).cloned()?;
            Some(CopiedTable { log: log.clone(), fresh })
        });
        found.collect()
    }

    /// Calls `read` while no end of a copy moves: [`Copy::end`] of all are of one moment.
    pub(crate) fn ends<T>(&self, read: impl FnOnce() -> T) -> T {
        let _held = self.moving.lock();
        read()
    }

    fn log(&self, id: &str) -> Arc<Copy> {
        if let Some(log) = self.logs.read().get(id) {
            return log.clone();
        }
        let mut logs = self.logs.write();
        let new = || {
            Arc::new(Copy {
                log: id.to_owned(),
                shown: AtomicU64::new(0),
                tables: RwLock::default(),
                receiving: tokio::sync::Mutex::default(),
            })
        };
        logs.entry(id.to_owned()).or_insert_with(new).clone()
    }

    fn raise_generation(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Forgets a log whose rows are all in files.
    fn remove(&self, log: &str) {
        let removed = self.logs.write().remove(log);
        if removed.is_some() {
            self.raise_generation();
        }
    }
}

impl Copy {
    pub(crate) fn log(&self) -> &str {
        &self.log
    }

    /// The first position that is not shown.
    pub(crate) fn end(&self) -> u64 {
        self.shown.load(Ordering::SeqCst)
    }

    fn table(&self, inner: &Inner, table: Uuid) -> Arc<Fresh> {
        if let Some(fresh) = self.tables.read().get(&table) {
            return fresh.clone();
        }
        let mut tables = self.tables.write();
        let fresh = tables.entry(table).or_insert_with(|| {
            // Who looks for the table's copies now and has not found this one looks again.
            inner.copies.raise_generation();
            Arc::new(Fresh::new(inner.env().clone()))
        });
        fresh.clone()
    }
}

impl Ingest {
    /// Takes in part of another daemon's log. Returns up to where the log is shown to readers, inclusive: less than
    /// what was sent where a part before it is missing, or where it is not durable yet.
    ///
    /// # Errors
    /// Those of reading a table's metadata, after which the part can be sent again; `Corrupt` or
    /// `Unsupported` for a record that cannot be decoded.
    pub async fn receive(&self, part: LogPart) -> Result<u64> {
        let inner = &self.inner;
        let copy = inner.copies.log(&part.log);
        let mut receiving = copy.receiving.lock().await;
        if part.from > receiving.next {
            if part.from > part.base + 1 {
                // A part before it is missing.
                return Ok(copy.end().saturating_sub(1));
            }
            // What is missing is in files: of versions that a reader may have read before.
            receiving.next = part.from;
            inner.copies.raise_generation();
        }
        for (sequence, record) in (part.from..).zip(&part.records) {
            if sequence < receiving.next {
                continue;
            }
            inner
                .copy_record(&copy, &mut receiving, sequence, record, &part.tables)
                .await
                .map_err(|error| error.at(format!("log {}, record {sequence}", part.log)))?;
            receiving.next = sequence + 1;
        }
        receiving.durable = receiving.durable.max(part.durable + 1);
        let end = receiving.next.min(receiving.durable).max(copy.end());
        inner.copies.ends(|| copy.shown.store(end, Ordering::SeqCst));
        for table in &part.tables {
            let fresh = copy.tables.read().get(&table.uuid).cloned();
            if let Some(fresh) = fresh {
                fresh.committed(table.in_files_before);
            }
        }
        Ok(end.saturating_sub(1))
    }

    /// Forgets the copy of a log whose rows are all in files, and which gets no more.
    pub fn forget_copy(&self, log: &str) {
        self.inner.copies.remove(log);
    }

    /// Rows and bytes of the copies of other daemons' logs.
    pub fn copied(&self) -> (u64, usize) {
        let logs = self.inner.copies.logs.read();
        let (mut rows, mut bytes) = (0, 0);
        for fresh in
            logs.values().flat_map(|log| log.tables.read().values().cloned().collect::<Vec<_>>())
        {
            let totals = fresh.totals();
            rows += totals.rows;
            bytes += totals.bytes;
        }
        (rows, bytes)
    }

    /// Whether a copy of `log` shows everything up to `sequence`, inclusive.
    pub fn shows(&self, log: &str, sequence: u64) -> bool {
        self.inner.copies.logs.read().get(log).is_some_and(|copy| copy.end() > sequence)
    }
}

impl Inner {
    async fn copy_record(
        &self,
        copy: &Copy,
        receiving: &mut Receiving,
        sequence: u64,
        record: &[u8],
        tables: &[ShippedTable],
    ) -> Result<()> {
        for record in Record::parse_all(record)? {
            let uuid = record.table();
            let schema = match receiving.schemas.entry((uuid, record.schema_id())) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let hint = tables.iter().find(|table| table.uuid == uuid);
                    new.insert(self.schema_of(uuid, record.schema_id(), hint).await?)
                }
            };
            // Rows of a table that was dropped are of no use.
            let Some(schema) = schema else { continue };
            let batch = record.batch(schema)?;
            let bytes = memory_bytes(&batch);
            let rows = NewRows { batch, schema_id: record.schema_id(), bytes, relaxed: false };
            copy.table(self, uuid).copy(rows, sequence);
        }
        Ok(())
    }

    async fn schema_of(
        &self,
        uuid: Uuid,
        id: i32,
        hint: Option<&ShippedTable>,
    ) -> Result<Option<SchemaRef>> {
        let Some(hint) = hint else { return Ok(None) };
        let Some(table) = locate(&self.warehouse, uuid, &hint.ident).await? else {
            return Ok(None);
        };
        let schema = |table: &Table| table.schema_by_id(id);
        match schema(&table)? {
            Some(schema) => Ok(Some(schema)),
            None => Err(Error::unavailable(format!(
                "table {} has no schema {id} here yet",
                table.ident()
            ))),
        }
    }
}
