//! `system.ingest`: rows that are in no file yet.

use stoa_figures::IngestTable;
use stoa_ingest::TableIngestStatus;

use crate::access::Caller;
use crate::engine::Engine;

/// One row per table that was written to since the start, of those that `caller` may see.
pub(super) async fn load(engine: &Engine, caller: &Caller) -> Vec<IngestTable> {
    let all = engine.ingest().map(|ingest| ingest.status().tables).unwrap_or_default();
    seen(engine, caller, &all).await
}

/// Those that `caller` may see. One that cannot be read is told of to those who may see all.
pub(super) async fn seen(
    engine: &Engine,
    caller: &Caller,
    all: &[TableIngestStatus],
) -> Vec<IngestTable> {
    if caller.may_everything() {
        return all.iter().map(row).collect();
    }
    let mut seen = Vec::new();
    for status in all {
        if let Ok(table) = engine.warehouse().table(&status.table).await
            && caller.may_see(&table).is_ok()
        {
            seen.push(row(status));
        }
    }
    seen
}

/// What is shown of a table.
pub(super) fn row(status: &TableIngestStatus) -> IngestTable {
    let millis = |age: std::time::Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    IngestTable {
        table: status.table.to_string(),
        fresh_rows: status.fresh_rows,
        fresh_bytes: status.fresh_bytes as u64,
        oldest_ms: status.oldest_age.map(millis),
        flushes: status.flushes,
        flushed_rows: status.flushed_rows,
        last_flush_unix_ms: status.last_flush_unix_ms,
        failures: u64::from(status.failures),
        last_error: status.last_error.clone(),
    }
}
