//! Taking in parts of other daemons' logs.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use stoa_error::{Error, Result};
use stoa_table::Table;
use uuid::Uuid;

use crate::copies::{Copy, CopyStatus, CopyWatch, LogPart, Receiving, ShippedTable};
use crate::fresh::{NewRows, memory_bytes};
use crate::ingest::Ingest;
use crate::inner::Inner;
use crate::locate::locate;
use crate::record::Record;

impl Ingest {
    /// Takes in part of another daemon's log. What was sent is not taken in where a part before it is missing.
    ///
    /// # Errors
    /// Those of reading a table's metadata, after which the part can be sent again; `Corrupt` or
    /// `Unsupported` for a record that cannot be decoded; `Unavailable` for a log that was forgotten, and where rows
    /// are in files only of which the catalog does not tell.
    pub async fn receive(&self, part: LogPart) -> Result<CopyStatus> {
        let inner = &self.inner;
        let copy = inner.copies.log(&part.log).ok_or_else(|| retired(&part.log))?;
        let mut receiving = copy.receiving.lock().await;
        // While the catalog does not answer, readers know older versions only, which lack these rows.
        let knows_files = inner.warehouse.catalog().state().reachable;
        let raise_floors = || {
            for table in &part.tables {
                copy.committed(&inner.copies, inner.env(), table.uuid, table.in_files_before);
            }
        };
        if part.from > receiving.next {
            if part.from > part.base + 1 {
                // A part before it is missing.
                return Ok(copy.status(&receiving));
            }
            if !knows_files {
                return Err(no_catalog());
            }
            // What is missing is in files: of versions that a reader may have read before.
            raise_floors();
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
        copy.show(&inner.copies, end);
        if knows_files {
            raise_floors();
        }
        copy.merge(end);
        Ok(copy.status(&receiving))
    }

    /// From now on, `watch` is shown rows of other daemons, before readers are. Only the first call counts.
    pub fn watch_copies(&self, watch: Arc<dyn CopyWatch>) {
        let _ = self.inner.copy_watch.set(watch);
    }

    /// Forgets the copy of a log whose rows are all in files, and which gets no more.
    pub fn forget_copy(&self, log: &str) {
        self.inner.copies.remove(log, self.inner.env().monotonic());
    }

    /// Rows and bytes of the copies of other daemons' logs.
    pub fn copied(&self) -> (u64, usize) {
        self.inner.copies.totals()
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
        // First all of it: what fails or is dropped half-way comes again as a whole.
        let mut all = Vec::new();
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
            all.push((uuid, rows));
        }
        for (uuid, rows) in all {
            if let Some(watch) = self.copy_watch.get() {
                watch.copied(&rows.batch);
            }
            copy.table(&self.copies, self.env(), uuid).copy(rows, sequence);
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

fn retired(log: &str) -> Error {
    Error::unavailable(format!("the rows of log {log} are in files; it gets no more"))
}

fn no_catalog() -> Error {
    Error::unavailable("rows that are missing are in files, and the catalog does not answer")
}
