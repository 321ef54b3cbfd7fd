//! Small writes: sorted, given a revision, through the log.
//!
//! Without a log, and where a write is too large for one record, it becomes a file of its own, in one
//! commit: either way its cells are durable when the call returns and become visible together.

use stoa_error::Result;
use stoa_hql::CellBatch;
use stoa_hql::batch::SortedRun;
use stoa_ingest::{Durability, Ingest};
use stoa_table::WriteOptions;

use crate::order::FileRows;
use crate::state::Inner;
use crate::table::CellTable;

/// Bytes of keys and values from which on a write becomes a file.
pub(crate) const RECORD_BYTES_MAX: usize = 32 << 20;

/// Writes cells in any order.
pub(crate) async fn mutate(inner: &Inner, table: &CellTable, cells: CellBatch) -> Result<()> {
    if cells.is_empty() {
        return Ok(());
    }
    let cells = with_revisions(inner, cells);
    match &inner.ingest {
        Some(ingest) if cells.data_bytes() <= RECORD_BYTES_MAX => {
            append(ingest, table, vec![cells]).await
        }
        _ => write_file(table, vec![cells]).await,
    }
}

/// One record of the log.
pub(crate) async fn append(
    ingest: &Ingest,
    table: &CellTable,
    cells: Vec<CellBatch>,
) -> Result<()> {
    let rows = table.layout.to_rows(&SortedRun::new(cells).into_batch()?)?;
    ingest.append(&table.table, rows, Durability::Table).await?;
    Ok(())
}

/// One file, in a commit of its own.
pub(crate) async fn write_file(table: &CellTable, cells: Vec<CellBatch>) -> Result<()> {
    let mut writer =
        table.table.writer(WriteOptions { sorted: true, ..WriteOptions::default() })?;
    for rows in FileRows::new(SortedRun::new(cells), table.layout.clone()) {
        writer.write(rows?).await?;
    }
    writer.commit().await?;
    Ok(())
}

/// Notes when cells were written whose timestamps may have been given by hand: their timestamps do
/// not tell which of two equal cells is the later one.
pub(crate) fn with_revisions(inner: &Inner, cells: CellBatch) -> CellBatch {
    if cells.has_new_timestamps() {
        return cells;
    }
    let revision = inner.revisions.next(&inner.options.timestamps);
    cells.with_revision(revision)
}
