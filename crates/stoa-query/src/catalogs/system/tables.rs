//! `system.tables`: what there is, by the metadata of each table.

use futures::{StreamExt, stream};
use stoa_catalog::TableIdent;
use stoa_error::Result;
use stoa_figures::Table as TableRow;
use stoa_table::Table;

use crate::access::Caller;
use crate::engine::Engine;
use crate::engine::table_status::TableStatus;

/// Tables whose metadata is read at the same time.
const READS_AT_ONCE: usize = 8;

/// A table, or why it cannot be read.
struct Listed {
    ident: TableIdent,
    found: Result<(TableStatus, Table)>,
}

/// One row per table that `caller` may see, by namespace and name. A table that cannot be read has an
/// `error`, for those who may see all.
pub(super) async fn load(engine: &Engine, caller: &Caller) -> Result<Vec<TableRow>> {
    let listed = engine.tables().await?.into_iter().map(|ident| listed(engine, ident));
    let mut listed: Vec<_> = stream::iter(listed).buffered(READS_AT_ONCE).collect().await;
    listed.retain(|listed| match &listed.found {
        Ok((_, table)) => caller.may_see(table).is_ok(),
        Err(_) => caller.may_everything(),
    });
    Ok(listed.iter().map(row).collect())
}

async fn listed(engine: &Engine, ident: TableIdent) -> Listed {
    let found = engine.warehouse().table(&ident).await;
    Listed { ident, found: found.map(|table| (engine.table_status(&table), table)) }
}

fn row(listed: &Listed) -> TableRow {
    let named = TableRow {
        namespace: listed.ident.namespace.clone(),
        name: listed.ident.name.clone(),
        ..TableRow::default()
    };
    let (status, table) = match &listed.found {
        Ok((status, table)) => (status, table),
        Err(error) => return TableRow { error: Some(error.message_with_sources()), ..named },
    };
    TableRow {
        kind: Some(status.kind),
        rows: status.rows,
        fresh_rows: Some(status.fresh_rows),
        files: status.files,
        bytes: status.bytes,
        delete_files: status.delete_files,
        partitioned_by: Some(status.partitioned_by.clone()),
        sorted_by: Some(status.sorted_by.clone()),
        snapshot_id: status.snapshot_id,
        committed_unix_ms: status.committed_unix_ms,
        snapshots: Some(status.snapshots),
        format_version: Some(u64::from(status.format_version)),
        location: Some(table.location().to_owned()),
        comment: status.comment.clone(),
        ..named
    }
}
