//! `system.ingest`: rows that are in no file yet.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_error::Result;
use stoa_ingest::TableIngestStatus;

use super::rows::Rows;
use crate::access::Caller;
use crate::engine::Engine;

/// No rows.
pub(super) fn empty() -> Rows {
    rows(&[])
}

/// One row per table that was written to since the start, of those that `caller` may see.
pub(super) fn load(engine: Arc<Engine>, caller: Arc<Caller>) -> BoxFuture<'static, Result<Rows>> {
    async move {
        let all = engine.ingest().map(|ingest| ingest.status().tables).unwrap_or_default();
        if caller.may_everything() {
            return Ok(rows(&all));
        }
        let mut seen = Vec::new();
        for status in all {
            if let Ok(table) = engine.warehouse().table(&status.table).await
                && caller.may_see(&table).is_ok()
            {
                seen.push(status);
            }
        }
        Ok(rows(&seen))
    }
    .boxed()
}

fn rows(tables: &[TableIngestStatus]) -> Rows {
    let names: Vec<String> = tables.iter().map(|t| t.table.to_string()).collect();
    let of = || tables.iter();
    Rows::of(tables.len())
        .text("table", names.iter().map(|name| Some(name.as_str())))
        .int("fresh_rows", of().map(|t| Some(t.fresh_rows)))
        .int("fresh_bytes", of().map(|t| Some(t.fresh_bytes as u64)))
        .int("flushes", of().map(|t| Some(t.flushes)))
}
