//! Rolling back: a new snapshot that holds what an earlier one held.
//!
//! ```text
//! snapshots    1 ── 2 ── 3 ── 4     4 has the manifests of 1; 2 and 3 stay, and can be rolled back to
//! ```
//! In: an earlier version. Out: a version of the table whose newest snapshot has that one's files, with their row-level
//! deletes. The earlier one is not made the current one again, as Iceberg's `rollback_to_snapshot` does: history would
//! have two ends, and writers that compare what they read with what is there now follow parents.
//!
//! **Invariants:** columns, partitioning and properties stay as they are; log positions stay, so rows of the commit log
//! that were in files are undone with them and do not come again. Whoever calls this flushes first and lets none flush
//! meanwhile, so that all rows acknowledged before are undone, and those that come later stay.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use iceberg::spec::{MAIN_BRANCH, Operation, Snapshot, Summary};
use stoa_error::{Error, Result};
use uuid::Uuid;

use crate::commit::{self, Attempt, Change, Ended, Step, forget};
use crate::error::from_iceberg;
use crate::positions;
use crate::snapshot::{ROLLED_BACK_TO, check_format, engine_keys};
use crate::table::Table;
use crate::travel::TableVersion;
use crate::writers::AtWork;

/// What a summary says of all that a snapshot holds.
const TOTALS: [&str; 6] = [
    "total-data-files",
    "total-records",
    "total-files-size",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
];

impl Table {
    /// Makes the table hold what it held at `version`, in one commit. Nothing happens where it does already.
    ///
    /// # Errors
    /// `NotFound` (42704) where there is no such version, or none any more; `Unsupported` for tables that are not written
    /// here; `Conflict` as every commit.
    pub fn roll_back<'a>(&'a self, version: &'a TableVersion) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            check_format(self)?;
            let uuid = self.warehouse().env().uuid();
            let roll_back = RollBack {
                version: version.clone(),
                snapshot_id: self.new_snapshot_id(),
                uuid,
                _at_work: self.warehouse().writers().begin(uuid),
            };
            match commit::commit(self, &roll_back).await? {
                Ended::Committed(table) | Ended::Stopped(table) => Ok(table),
            }
        })
    }
}

struct RollBack {
    version: TableVersion,
    /// Of the new snapshot.
    snapshot_id: i64,
    uuid: Uuid,
    /// What is written under this id is no orphan meanwhile.
    _at_work: Arc<AtWork>,
}

impl Change for RollBack {
    /// The table holds that version already.
    type Stop = Table;

    fn attempt<'a>(&'a self, base: &'a Table, number: u32) -> BoxFuture<'a, Result<Step<Table>>> {
        self.next_version(base, number).boxed()
    }

    fn is_in(&self, table: &Table) -> bool {
        table.metadata().snapshot_by_id(self.snapshot_id).is_some()
    }
}

impl RollBack {
    async fn next_version(&self, base: &Table, number: u32) -> Result<Step<Table>> {
        let then = base.at_version(&self.version)?;
        let Some(target) = then.metadata().current_snapshot() else {
            return Err(Error::internal(format!("a version of {} has no snapshot", base.ident())));
        };
        if base.metadata().current_snapshot_id() == Some(target.snapshot_id()) {
            return Ok(Step::Stop(base.clone()));
        }
        let (directory, uuid, id) = (base.location(), self.uuid, self.snapshot_id);
        let list = format!("{directory}/metadata/snap-{id}-{number}-{uuid}.avro");
        let attempt = self.write(base, target, &list).await;
        if attempt.is_err() {
            forget(base, std::slice::from_ref(&list)).await;
        }
        attempt.map(Step::Commit)
    }

    /// Writes the manifest list, which names the manifests of `target`.
    async fn write(&self, base: &Table, target: &Snapshot, list: &str) -> Result<Attempt> {
        let metadata = base.metadata();
        let files = base.warehouse().files();
        let manifests = files.manifest_list(target, metadata.format_version()).await?.to_vec();
        let (parent, sequence_number) =
            (metadata.current_snapshot_id(), metadata.next_sequence_number());
        files
            .write_manifest_list(list, self.snapshot_id, parent, sequence_number, manifests)
            .await?;
        let snapshot = Snapshot::builder()
            .with_snapshot_id(self.snapshot_id)
            .with_parent_snapshot_id(parent)
            .with_sequence_number(sequence_number)
            // Clocks differ between machines; time must not run backwards inside a table.
            .with_timestamp_ms(base.warehouse().env().unix_ms().max(metadata.last_updated_ms()))
            .with_manifest_list(list.to_owned())
            .with_summary(summary(base, target)?)
            .with_schema_id(metadata.current_schema_id())
            .build();
        let builder = commit::builder(base)
            .set_branch_snapshot(snapshot, MAIN_BRANCH)
            .map_err(|e| from_iceberg(format!("table {}", base.ident()), e))?;
        commit::build(base, builder, vec![list.to_owned()])
    }
}

fn summary(base: &Table, target: &Snapshot) -> Result<Summary> {
    let then = &target.summary().additional_properties;
    let totals = TOTALS.iter().filter_map(|key| Some(((*key).to_owned(), then.get(*key)?.clone())));
    let mut keys: HashMap<String, String> = totals.collect();
    keys.extend(engine_keys());
    keys.insert(ROLLED_BACK_TO.to_owned(), target.snapshot_id().to_string());
    let now = base.log_positions()?.into_iter();
    keys.extend(now.map(|(log, at)| (format!("{}{log}", positions::PREFIX), at.to_string())));
    Ok(Summary { operation: Operation::Overwrite, additional_properties: keys })
}
