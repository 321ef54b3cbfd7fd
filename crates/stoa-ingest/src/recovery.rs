//! Bringing back the rows that the log holds and no table has.
//!
//! Every record is the rows of one append. Those before its table's position are in data files;
//! those of a table that no longer exists are of no use to anybody; the others become fresh rows
//! again, at the positions they have. If a table's metadata cannot be read, records of unknown
//! tables may be its own: they stay in the log, and the log stays, until a later start can tell.

use std::collections::HashMap;

use arrow_schema::SchemaRef;
use stoa_error::{Error, Result};
use stoa_table::Table;
use uuid::Uuid;

use crate::fresh::{NewRows, memory_bytes};
use crate::inner::Inner;
use crate::locate::{AllTables, all_tables};
use crate::record::Record;

/// What was found at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Records read.
    pub records: u64,
    /// Rows that are fresh again.
    pub rows: u64,
    /// Tables that have such rows.
    pub tables: u64,
    /// Records whose rows are in data files already.
    pub records_flushed: u64,
    /// Records of tables that were dropped.
    pub records_dropped: u64,
    /// Records that may belong to a table whose metadata cannot be read; they stay in the log.
    pub records_unresolved: u64,
    /// Tables that are at a position which the log does not reach: its end is missing.
    pub tables_ahead: u64,
    /// Logs that the catalog knew and that are gone.
    pub logs_gone: u64,
}

/// Replays the log into `inner`. Where `whole` is false, the log may end before a table's position.
///
/// # Errors
/// Those of the log and the catalog; `Corrupt` or `Unsupported` for a record that cannot be
/// decoded.
pub(crate) async fn recover(inner: Inner, whole: bool) -> Result<(Inner, RecoveryReport)> {
    if whole && !inner.log.has_records() {
        return Ok((inner, RecoveryReport::default()));
    }
    let all = all_tables(&inner.warehouse).await?;
    let (tables_ahead, env) = (inner.count_ahead(&all), inner.env().clone());
    let replay = env.spawn_blocking(move || replay(inner, all)).await;
    let replayed =
        replay.map_err(|source| Error::internal("the replay failed").with_source(source));
    let (inner, report) = replayed??;
    Ok((inner, RecoveryReport { tables_ahead, ..report }))
}

fn replay(inner: Inner, all: AllTables) -> Result<(Inner, RecoveryReport)> {
    let Some(records) = inner.log.replay()? else { return Ok((inner, RecoveryReport::default())) };
    let mut recovery =
        Recovery { inner, all, schemas: HashMap::new(), report: RecoveryReport::default() };
    for record in records {
        let (position, payload) = record?;
        recovery
            .record(position.sequence, &payload)
            .map_err(|error| error.at(format!("commit log, position {position}")))?;
    }
    let Recovery { inner, report, .. } = recovery;
    inner.budget.force(inner.tables.all().iter().map(|state| state.fresh.totals().bytes).sum());
    tracing::info!(?report, "log replayed");
    Ok((inner, report))
}

struct Recovery {
    inner: Inner,
    all: AllTables,
    schemas: HashMap<(Uuid, i32), SchemaRef>,
    report: RecoveryReport,
}

impl Recovery {
    fn record(&mut self, position: u64, payload: &[u8]) -> Result<()> {
        self.report.records += 1;
        for record in Record::parse_all(payload)? {
            self.rows_of(position, &record)?;
        }
        Ok(())
    }

    fn rows_of(&mut self, position: u64, record: &Record<'_>) -> Result<()> {
        let Some(table) = self.all.tables.get(&record.table()).cloned() else {
            self.no_table(position);
            return Ok(());
        };
        if position < self.inner.position(&table)? {
            self.report.records_flushed += 1;
            return Ok(());
        }
        let schema = self.schema(&table, record.schema_id())?;
        let batch = record.batch(&schema)?;
        let state =
            self.inner.tables.get_or_add(self.inner.env(), &table, self.inner.options.flush)?;
        let bytes = memory_bytes(&batch);
        self.report.rows += batch.num_rows() as u64;
        self.report.tables += u64::from(state.fresh.totals().rows == 0);
        let new = NewRows { batch, schema_id: record.schema_id(), bytes, relaxed: false };
        state.fresh.restore(new, position);
        Ok(())
    }

    fn no_table(&mut self, position: u64) {
        if self.all.unreadable.is_none() {
            self.report.records_dropped += 1;
            return;
        }
        self.report.records_unresolved += 1;
        self.inner.unresolved_from = self.inner.unresolved_from.min(position);
    }

    fn schema(&mut self, table: &Table, id: i32) -> Result<SchemaRef> {
        if let Some(schema) = self.schemas.get(&(table.uuid(), id)) {
            return Ok(schema.clone());
        }
        let schema = table.schema_by_id(id)?.ok_or_else(|| {
            Error::corrupt(format!("table {} has no schema {id}", table.ident()))
                .with_detail("rows in the log have that schema")
                .with_hint("restore the table's previous metadata file, or drop the table")
        })?;
        self.schemas.insert((table.uuid(), id), schema.clone());
        Ok(schema)
    }
}
