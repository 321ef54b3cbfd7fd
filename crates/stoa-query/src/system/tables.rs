//! `system.tables`: what there is, by the metadata of each table.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use stoa_catalog::TableIdent;
use stoa_error::Result;
use stoa_table::Table;

use super::rows::Rows;
use crate::access::Caller;
use crate::engine::Engine;
use crate::table_status::TableStatus;

/// Tables whose metadata is read at the same time.
const READS_AT_ONCE: usize = 8;

/// A table, or why it cannot be read.
struct Listed {
    ident: TableIdent,
    found: Result<(TableStatus, Table)>,
}

/// No rows.
pub(super) fn empty() -> Rows {
    rows(&[])
}

/// One row per table that `caller` may see, by namespace and name. A table that cannot be read has an
/// `error`, for those who may see all.
pub(super) fn load(engine: Arc<Engine>, caller: Arc<Caller>) -> BoxFuture<'static, Result<Rows>> {
    async move {
        let mut idents = Vec::new();
        for namespace in engine.warehouse().namespaces().await? {
            idents.extend(engine.warehouse().tables(&namespace).await?);
        }
        let listed = idents.into_iter().map(|ident| listed(Arc::clone(&engine), ident));
        let mut listed: Vec<_> = stream::iter(listed).buffered(READS_AT_ONCE).collect().await;
        listed.retain(|listed| match &listed.found {
            Ok((_, table)) => caller.may_see(table).is_ok(),
            Err(_) => caller.may_everything(),
        });
        Ok(rows(&listed))
    }
    .boxed()
}

async fn listed(engine: Arc<Engine>, ident: TableIdent) -> Listed {
    let found = engine.warehouse().table(&ident).await;
    Listed { ident, found: found.map(|table| (engine.table_status(&table), table)) }
}

fn rows(all: &[Listed]) -> Rows {
    let idents = || all.iter().map(|listed| &listed.ident);
    let status = || all.iter().map(|listed| listed.found.as_ref().ok().map(|(status, _)| status));
    let table = || all.iter().map(|listed| listed.found.as_ref().ok().map(|(_, table)| table));
    let joined = |terms: fn(&TableStatus) -> &[String]| -> Vec<Option<String>> {
        status().map(|status| status.map(|status| terms(status).join(", "))).collect()
    };
    let (partitioned_by, sorted_by) = (joined(|s| &s.partitioned_by), joined(|s| &s.sorted_by));
    let errors = all.iter().map(|listed| listed.found.as_ref().err());
    let errors: Vec<Option<String>> =
        errors.map(|error| error.map(|error| error.message_with_sources())).collect();
    Rows::of(all.len())
        .text("namespace", idents().map(|ident| Some(ident.namespace.as_str())))
        .text("name", idents().map(|ident| Some(ident.name.as_str())))
        .text("kind", status().map(|s| s.map(|s| s.kind)))
        .int("rows", status().map(|s| s?.rows))
        .int("fresh_rows", status().map(|s| Some(s?.fresh_rows)))
        .int("files", status().map(|s| s?.files))
        .int("bytes", status().map(|s| s?.bytes))
        .int("delete_files", status().map(|s| s?.delete_files))
        .text("partitioned_by", partitioned_by.iter().map(Option::as_deref))
        .text("sorted_by", sorted_by.iter().map(Option::as_deref))
        .id("snapshot_id", status().map(|s| s?.snapshot_id))
        .time("committed", status().map(|s| s?.committed_unix_ms))
        .int("snapshots", status().map(|s| Some(s?.snapshots)))
        .int("format_version", status().map(|s| Some(u64::from(s?.format_version))))
        .text("location", table().map(|table| Some(table?.location())))
        .text("comment", status().map(|s| s?.comment.as_deref()))
        .text("error", errors.iter().map(Option::as_deref))
}
