//! Looking after a table by statement: compaction, snapshot expiry, retention.
//!
//! In: a table and what to do. Out: what was done, as a notice. What can run by itself does so on
//! a schedule; these statements do it now.
//!
//! Not here: how it is done (`stoa-table`), when it is done by itself (`stoa-ingest`).

use stoa_error::{Error, Result};
use stoa_hql::lang::ast::CompactKind;
use stoa_hql::{CellStore, CompactScope};
use stoa_sql::{Maintenance, MaintenanceWork};
use stoa_table::{CompactionOptions, CompactionWork, ExpireOptions, Table};

use crate::session::Session;
use crate::session::outcome::Completion;
use crate::tables::cells;

/// Does it.
///
/// # Errors
/// As the functions of [`Table`]; no such table (42P01).
pub(crate) async fn run(session: &Session, maintenance: &Maintenance) -> Result<Completion> {
    let ident = session.table_ident(&maintenance.table)?;
    let table = session.data.warehouse().table(&ident).await?;
    session.caller.must_own(&table)?;
    match maintenance.work {
        MaintenanceWork::Flush => {
            flushed(session, &table).await?;
            Ok(Completion::of("FLUSH TABLE"))
        }
        MaintenanceWork::Compact { full } => compact(session, &table, full).await,
        MaintenanceWork::Expire => expire(&table).await,
        MaintenanceWork::Retain => retain(&table).await,
    }
}

/// The table with all its rows in files.
pub(crate) async fn flushed(session: &Session, table: &Table) -> Result<Table> {
    match session.data.ingest() {
        Some(ingest) => ingest.flush_now(table).await,
        None => Ok(table.clone()),
    }
}

async fn compact(session: &Session, table: &Table, full: bool) -> Result<Completion> {
    if cells::refuse_rows(table).is_err() {
        return compact_cells(session, table, full).await;
    }
    let table = flushed(session, table).await?;
    let options = CompactionOptions { full, ..CompactionOptions::default() };
    let memory_max_bytes = session.engine_options().memory_limit_bytes / 4;
    let work = CompactionWork { memory_max_bytes, ..CompactionWork::default() };
    let done = table.compact(&options, &work).await?;
    Ok(Completion::of("COMPACT TABLE").with_notice(format!(
        "{}: {} files of {} bytes became {} of {}",
        table.ident(),
        done.files_removed,
        done.bytes_removed,
        done.files_added,
        done.bytes_added
    )))
}

/// Leaves out cells that nobody can see any more.
async fn compact_cells(session: &Session, table: &Table, full: bool) -> Result<Completion> {
    let table = stoa_cells::name_of(table.ident()).ok_or_else(|| {
        Error::unsupported(format!("{} has a name that HQL cannot write", table.ident()))
    })?;
    let scope = CompactScope::Table { table, row: None };
    let kind = if full { CompactKind::Major } else { CompactKind::Merging };
    session.data.cells().compact(scope, Some(kind)).await?;
    Ok(Completion::of("COMPACT TABLE"))
}

async fn expire(table: &Table) -> Result<Completion> {
    let done = table.expire_snapshots(&ExpireOptions::default()).await?;
    Ok(Completion::of("EXPIRE SNAPSHOTS").with_notice(format!(
        "{}: {} snapshots, {} data files and {} metadata files removed",
        table.ident(),
        done.snapshots,
        done.data_files,
        done.metadata_files
    )))
}

async fn retain(table: &Table) -> Result<Completion> {
    if table.retention()?.is_none() {
        return Err(Error::invalid(format!("table {} has no retention", table.ident()))
            .with_hint("set its property stoa.retention, such as '13 months'"));
    }
    let removed = table.apply_retention().await?;
    let files = removed.map_or(0, |outcome| outcome.removed_files);
    Ok(Completion::of("APPLY RETENTION")
        .with_notice(format!("{}: {files} files removed", table.ident())))
}
