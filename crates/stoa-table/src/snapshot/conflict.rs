//! What others committed since a table was read.
//!
//! In: the version that was read and the one that is current. Out: why a change that is based on
//! the former cannot be put on top of the latter.
//! Rules are those of Iceberg's Java (`OverwriteFiles`): *serializable* minds every file added since
//! that may hold rows the change is about; both levels mind that a file to be removed is gone
//! (which `removal` finds out), or that rows of it were deleted by delete files. Files of a compaction
//! hold no new rows and are not minded.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat};
use iceberg::spec::{ManifestContentType, ManifestFile, Operation, Snapshot};
use stoa_error::{Error, ErrorKind, Result};

use super::{ROLLED_BACK_TO, current_id, parent_manifests};
use crate::Table;
use crate::deletes::DeleteIndex;
use crate::files::LoadedManifest;
use crate::scan::{Coverage, has_live_files, manifest_may_match};

/// A file that `now` has, `seen` had not, and that may hold rows matching `coverage`: as an error.
pub(crate) async fn added_since(
    seen: &Table,
    now: &Table,
    coverage: &Coverage,
) -> Result<Option<Error>> {
    if current_id(seen) == current_id(now) {
        return Ok(None);
    }
    let before = live_manifests(seen).await?;
    let after = live_manifests(now).await?;
    let known: HashSet<&str> = before.iter().map(|m| m.manifest_path.as_str()).collect();
    let still: HashSet<&str> = after.iter().map(|m| m.manifest_path.as_str()).collect();
    let files = now.warehouse().files();
    // A file of a manifest that was rewritten since is an old file all the same.
    let mut moved = HashSet::new();
    for manifest in before.iter().filter(|m| !still.contains(m.manifest_path.as_str())) {
        let loaded = files.manifest(manifest).await?;
        moved.extend(loaded.files.iter().map(|live| live.file.location.clone()));
    }
    let rolled_back = is_rolled_back(seen, now);
    let new = after.iter().filter(|m| !known.contains(m.manifest_path.as_str()));
    for manifest in new.filter(|m| manifest_may_match(now.metadata(), m, coverage.predicate())) {
        let loaded = files.manifest(manifest).await?;
        let added = loaded.files.iter().map(|live| &live.file).find(|file| {
            !moved.contains(&file.location)
                && (rolled_back || !same_rows(now, file.snapshot_id))
                && coverage.may_match(file)
        });
        if let Some(file) = added {
            return Ok(Some(rows_added(now, &file.location, file.snapshot_id)));
        }
    }
    Ok(None)
}

/// The version of a table that was read as it is now; as an error where it is another table, or
/// rows that `seen` has were changed or deleted since.
///
/// # Errors
/// Those of reading the table, other than that it is gone.
pub(crate) async fn changed_since(seen: &Table) -> Result<std::result::Result<Table, Error>> {
    let now = match seen.reload().await {
        Ok(now) if now.uuid() == seen.uuid() => now,
        Ok(_) => return Ok(Err(read_changed(seen, "it is another table now".to_owned()))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Err(read_changed(seen, "it was dropped".to_owned())));
        }
        Err(error) => return Err(error),
    };
    let metadata = now.metadata();
    let mut next = metadata.current_snapshot();
    while let Some(snapshot) = next {
        if Some(snapshot.snapshot_id()) == current_id(seen) {
            return Ok(Ok(now));
        }
        if !matches!(snapshot.summary().operation, Operation::Append | Operation::Replace) {
            return Ok(Err(read_changed(seen, describe(snapshot))));
        }
        next = match snapshot.parent_snapshot_id() {
            Some(id) if Some(id) == current_id(seen) => return Ok(Ok(now)),
            Some(id) => metadata.snapshot_by_id(id),
            None => None,
        };
    }
    match current_id(seen) {
        None => Ok(Ok(now)),
        Some(_) => Ok(Err(read_changed(seen, since(seen, &now)))),
    }
}

fn read_changed(table: &Table, what: String) -> Error {
    Error::conflict(format!("table {}, which was read, was changed meanwhile", table.ident()))
        .with_detail(what)
        .with_hint("nothing was changed; read the tables again and retry")
}

/// Rows of files that are removed were deleted by somebody else, who named them in delete files:
/// what replaces the files does not know of it. As an error.
pub(crate) async fn deleted_since(
    seen: &Table,
    now: &Table,
    removed: &[(i32, Arc<LoadedManifest>, usize)],
) -> Result<Option<Error>> {
    if current_id(seen) == current_id(now) || removed.is_empty() {
        return Ok(None);
    }
    let after = DeleteIndex::load(now, &parent_manifests(now).await?).await?;
    if after.is_empty() {
        return Ok(None);
    }
    let before = DeleteIndex::load(seen, &parent_manifests(seen).await?).await?;
    for (spec_id, manifest, at) in removed {
        let Some(live) = manifest.files.get(*at) else { continue };
        let known = before.of(*spec_id, live);
        let new = after.of(*spec_id, live);
        let new = new.iter().find(|delete| !known.iter().any(|known| known.id() == delete.id()));
        if let Some(delete) = new {
            let error = Error::conflict(format!(
                "table {}: somebody else deleted rows of a file that was read",
                now.ident()
            ))
            .with_hint("nothing was changed; read the table again and retry");
            let by = &delete.file.location;
            return Ok(Some(error.with_detail(format!("{}, by {by}", live.file.location))));
        }
    }
    Ok(None)
}

/// Files to be removed were removed by somebody else.
pub(crate) fn removed_already(seen: &Table, now: &Table, missing: &[String]) -> Error {
    let first = missing.first().map(String::as_str).unwrap_or_default();
    let error = Error::conflict(format!(
        "table {}: somebody else removed a file that was read",
        now.ident()
    ))
    .with_hint("nothing was changed; read the table again and retry");
    error.with_detail(format!("{first}; {}", since(seen, now)))
}

async fn live_manifests(table: &Table) -> Result<Vec<ManifestFile>> {
    let mut manifests = parent_manifests(table).await?;
    // Deletes bring no rows.
    manifests.retain(|m| m.content == ManifestContentType::Data && has_live_files(m));
    Ok(manifests)
}

/// Whether the table was rolled back since: files of a compaction may bring rows again then.
fn is_rolled_back(seen: &Table, now: &Table) -> bool {
    let metadata = now.metadata();
    let mut next = metadata.current_snapshot();
    while let Some(snapshot) = next.filter(|next| Some(next.snapshot_id()) != current_id(seen)) {
        if snapshot.summary().additional_properties.contains_key(ROLLED_BACK_TO) {
            return true;
        }
        next = snapshot.parent_snapshot_id().and_then(|id| metadata.snapshot_by_id(id));
    }
    false
}

/// Whether a snapshot only moved rows to other files. One that is not known any more did not.
fn same_rows(table: &Table, snapshot_id: Option<i64>) -> bool {
    let snapshot = snapshot_id.and_then(|id| table.metadata().snapshot_by_id(id));
    snapshot.is_some_and(|snapshot| snapshot.summary().operation == Operation::Replace)
}

fn rows_added(table: &Table, location: &str, snapshot_id: Option<i64>) -> Error {
    let snapshot = snapshot_id.and_then(|id| table.metadata().snapshot_by_id(id));
    let by = snapshot.map_or_else(|| "an expired snapshot".to_owned(), |s| describe(s));
    Error::conflict(format!(
        "table {}: rows that may match were added while it was changed",
        table.ident()
    ))
    .with_detail(format!("{location}, added by {by}"))
    .with_hint(
        "nothing was changed; read the table again and retry, or set the table property \
         write.delete.isolation-level (or update, merge) to snapshot",
    )
}

/// The snapshot after `seen` that removed files last, if there is one to be found.
fn since(seen: &Table, now: &Table) -> String {
    let metadata = now.metadata();
    let mut next = metadata.current_snapshot();
    while let Some(snapshot) = next {
        if seen.metadata().snapshot_by_id(snapshot.snapshot_id()).is_some() {
            break;
        }
        if snapshot.summary().additional_properties.contains_key("deleted-data-files") {
            return format!("removed at the latest by {}", describe(snapshot));
        }
        next = snapshot.parent_snapshot_id().and_then(|id| metadata.snapshot_by_id(id));
    }
    "the table was rolled back or replaced".to_owned()
}

/// `snapshot 17 (overwrite by spark 4.0.1 at 2025-…)`
fn describe(snapshot: &Snapshot) -> String {
    let summary = snapshot.summary();
    let said = |key: &str| summary.additional_properties.get(key).map_or("", String::as_str);
    let engine = match said("engine-name") {
        "" => "an unknown engine".to_owned(),
        name => format!("{name} {}", said("engine-version")),
    };
    let at = DateTime::from_timestamp_millis(snapshot.timestamp_ms())
        .map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true))
        .unwrap_or_default();
    format!(
        "snapshot {} ({} by {} at {at})",
        snapshot.snapshot_id(),
        summary.operation.as_str(),
        engine.trim_end()
    )
}
