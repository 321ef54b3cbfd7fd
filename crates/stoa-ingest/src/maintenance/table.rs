//! What is done to one table. Errors are noted and logged; the next round tries again.

use std::future::Future;
use std::time::Duration;

use stoa_error::{ErrorKind, Result};
use stoa_table::{CompactionOptions, Table};

use super::status::MaintenanceKind;
use super::{MaintenanceWork, Shared};

/// How long files of other engines, and files that these deleted rows of, are left alone: their next
/// statement may be about them.
const FOREIGN_AGE_MIN: Duration = Duration::from_secs(10 * 60);

/// The one format version that is written.
const WRITTEN_VERSION: u8 = 2;

/// Removes partitions that are too old, and compacts. Gives back the table if it is in order then.
pub(super) async fn tidy(shared: &Shared, table: &Table) -> Option<Table> {
    if table.property("stoa.retention").is_some() {
        watch(shared, table, MaintenanceKind::Retention, table.apply_retention()).await?;
    }
    let foreign_age_min = FOREIGN_AGE_MIN;
    let options = CompactionOptions { foreign_age_min, ..CompactionOptions::default() };
    let compact = compact(shared, table, &options);
    watch(shared, table, MaintenanceKind::Compaction, compact).await
}

async fn compact(shared: &Shared, table: &Table, options: &CompactionOptions) -> Result<Table> {
    let table = table.reload().await?;
    if table.format_version() != WRITTEN_VERSION
        || table.plan_compaction(options).await?.groups.is_empty()
    {
        return Ok(table);
    }
    let outcome = table.compact(options, &shared.work).await?;
    let mut status = shared.status.lock();
    status.compactions += outcome.groups;
    status.compactions_overtaken += outcome.overtaken;
    Ok(outcome.table)
}

/// Forgets old snapshots.
pub(super) async fn expire(shared: &Shared, table: &Table) {
    if table.property("gc.enabled") == Some("false") {
        return;
    }
    let expire = table.expire_snapshots(&shared.options.expire);
    if let Some(outcome) = watch(shared, table, MaintenanceKind::Expiry, expire).await {
        let mut status = shared.status.lock();
        status.snapshots_expired += outcome.snapshots as u64;
        status.files_deleted += (outcome.data_files + outcome.metadata_files) as u64;
    }
}

/// Deletes files that nobody names.
pub(super) async fn remove_orphans(shared: &Shared, table: &Table) {
    if table.property("gc.enabled") == Some("false") {
        return;
    }
    let remove = table.remove_orphans(shared.options.orphan_age);
    if let Some(removed) = watch(shared, table, MaintenanceKind::Orphans, remove).await {
        shared.status.lock().files_deleted += removed.files as u64;
    }
}

/// Does `work`, and shows that it is being done and how it went.
async fn watch<T>(
    shared: &Shared,
    table: &Table,
    kind: MaintenanceKind,
    work: impl Future<Output = Result<T>>,
) -> Option<T> {
    let since_unix_ms = shared.env().unix_ms();
    let now = MaintenanceWork { table: table.ident().clone(), kind, since_unix_ms };
    shared.status.lock().now = Some(now);
    let result = work.await;
    let mut status = shared.status.lock();
    status.now = None;
    match result {
        Ok(done) => {
            status.succeeded(table.ident());
            Some(done)
        }
        // Dropped meanwhile, or the work is being ended: nothing to tell anybody.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Cancelled) => None,
        Err(error) => {
            tracing::warn!(table = %table.ident(), kind = kind.name(), %error, "maintenance failed");
            status.failed(Some(table.ident()), &error);
            None
        }
    }
}
