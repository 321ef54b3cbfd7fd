//! Moving a table from one metadata version to the next.
//!
//! ```text
//! base version ──change──► new metadata file (durable) ──compare-and-swap──► new version
//!      ▲                                                        │ lost
//!      └──────────────── reload, wait a little ◄────────────────┘
//! ```
//! The catalog says of each swap whether it happened; where its own disk failed so that it cannot
//! (08007), the files stay, because the pointer may reach them, and so the client is told. Reading
//! the pointer again would settle nothing then: after a failed sync a process sees the old pointer,
//! and the next one, after a crash, may find the new one (`stoa-catalog` says why). Whoever sees
//! the new one may believe it, since it is shown only after the sync that makes it durable.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use iceberg::spec::{
    MetadataLog, Operation, Snapshot, Summary, TableMetadata, TableMetadataBuilder,
};
use stoa_catalog::{Swap, TableIdent};
use stoa_env::{Env, clock};
use stoa_error::{Condition, Error, ErrorKind, Result};
use uuid::Uuid;

use crate::Table;
use crate::error::from_iceberg;
use crate::failpoint;
use crate::files::LoadedMetadata;
use crate::writers::AtWork;

/// How often a commit is tried, unless `commit.retry.num-retries` says otherwise.
const RETRIES: u32 = 30;

/// The longest wait between two tries.
const WAIT_MAX: Duration = Duration::from_millis(800);

/// Table property: how many earlier metadata files stay.
const PREVIOUS_MAX: &str = "write.metadata.previous-versions-max";

/// Unless that is set, they may take so many bytes; but [`PREVIOUS_MIN`] of them stay in any case, for
/// readers that have just read the pointer.
const PREVIOUS_BYTES_MAX: usize = 8 << 20;

const PREVIOUS_MIN: usize = 20;

/// Old metadata files are deleted unless this property is `false`.
const DELETE_OLD_METADATA: &str = "write.metadata.delete-after-commit.enabled";

/// One try at a change: the new metadata, and files written for it alone.
pub(crate) struct Attempt {
    pub(crate) metadata: TableMetadata,
    /// Files to delete if the try loses.
    pub(crate) scratch: Vec<String>,
    /// Pointers of other tables that must be where they were seen.
    pub(crate) unmoved: Vec<(TableIdent, String)>,
    /// Older metadata files that this version no longer names.
    forgotten: Vec<String>,
}

/// What a change makes of the version that it is asked to build on.
pub(crate) enum Step<S> {
    /// This is the next version.
    Commit(Attempt),
    /// There is nothing to commit.
    Stop(S),
}

/// How a commit ended without an error.
pub(crate) enum Ended<S> {
    /// The change is in this version.
    Committed(Table),
    /// The change said so.
    Stopped(S),
}

/// Something to be done to whatever version of a table is current.
pub(crate) trait Change: Sync {
    /// What it may say instead of making a version.
    type Stop: Send;

    /// Makes the next version on top of `base`; `number` counts the tries from 0.
    fn attempt<'a>(
        &'a self,
        base: &'a Table,
        number: u32,
    ) -> BoxFuture<'a, Result<Step<Self::Stop>>>;

    /// Whether `table` surely holds the change, for settling an unclear answer of the catalog.
    fn is_in(&self, table: &Table) -> bool;
}

/// Puts a staged table into the catalog with `attempt` as its first version.
pub(crate) async fn create(staged: &Table, attempt: Attempt) -> Result<Table> {
    let warehouse = staged.warehouse();
    let Attempt { metadata, mut scratch, .. } = attempt;
    let location = metadata_path(warehouse.env().uuid(), &metadata, 0);
    scratch.push(location.clone());
    let written = warehouse.files().write_table_metadata(&location, metadata).await;
    let loaded = match written {
        Ok(loaded) => loaded,
        Err(error) => {
            // Nothing points to it; but it may be there, and `recover` would take it for a version.
            forget(staged, &scratch).await;
            return Err(error);
        }
    };
    failpoint::at("commit.metadata_written").await?;
    let created = match staged.replaces() {
        None => warehouse.catalog().create_table(staged.ident(), &location).await,
        Some(old) => warehouse.catalog().swap(staged.ident(), old, &location).await,
    };
    failpoint::at("commit.swapped").await?;
    let Err(error) = created else { return Ok(version(staged, loaded, location)) };
    match settle(staged, &location, error, |_| false).await {
        Settled::Committed(_) => Ok(version(staged, loaded, location)),
        Settled::Lost(error) => {
            forget(staged, &scratch).await;
            Err(error)
        }
        Settled::Unclear(error) => Err(error),
    }
}

/// Commits `change`, retrying when somebody else commits first.
///
/// # Errors
/// Those of `change`; `NotFound` where the table is gone; `Conflict` where it was replaced by
/// another of the same name, or all tries lost.
pub(crate) async fn commit<C: Change>(table: &Table, change: &C) -> Result<Ended<C::Stop>> {
    let retries = retries(table);
    for number in 0..=retries {
        if number > 0 {
            let env = table.warehouse().env();
            env.sleep(wait(env, number)).await;
        }
        // Also the first time: the version that the caller holds may be old by now.
        let base = table.reload().await?;
        if base.uuid() != table.uuid() {
            return Err(replaced(table));
        }
        let attempt = match change.attempt(&base, number).await? {
            Step::Commit(attempt) => attempt,
            Step::Stop(stop) => return Ok(Ended::Stopped(stop)),
        };
        match swap(&base, attempt, change).await {
            Ok(next) => return Ok(Ended::Committed(next)),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                tracing::debug!(table = %table.ident(), number, "commit lost to another writer");
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::conflict(format!(
        "table {}: other writers committed first {} times in a row",
        table.ident(),
        retries + 1
    ))
    .with_hint("retry, or raise the table property commit.retry.num-retries"))
}

/// A version that nothing points to yet.
struct Written {
    /// Its file is no orphan meanwhile.
    _at_work: Arc<AtWork>,
    next: Table,
    location: String,
    scratch: Vec<String>,
    forgotten: Vec<String>,
    unmoved: Vec<(TableIdent, String)>,
}

/// Writes the metadata of `attempt`; deletes what was written for it where that fails.
async fn write_version(base: &Table, attempt: Attempt) -> Result<Written> {
    let Attempt { metadata, mut scratch, forgotten, unmoved } = attempt;
    let uuid = base.warehouse().env().uuid();
    let _at_work = base.warehouse().writers().begin(uuid);
    let location = metadata_path(uuid, &metadata, version_of(base.metadata_location()) + 1);
    scratch.push(location.clone());
    let written = base.warehouse().files().write_table_metadata(&location, metadata).await;
    match written {
        Ok(loaded) => {
            let next = version(base, loaded, location.clone());
            Ok(Written { _at_work, next, location, scratch, forgotten, unmoved })
        }
        Err(error) => {
            // Nothing points to it; but it may be there, and `recover` would take it for a version.
            forget(base, &scratch).await;
            Err(error)
        }
    }
}

/// Writes the metadata of `attempt` and moves the pointer to it. Deletes what was written for it
/// where it is certain that the pointer does not reach it.
async fn swap<C: Change>(base: &Table, attempt: Attempt, change: &C) -> Result<Table> {
    let Written { _at_work, next, location, scratch, forgotten, unmoved } =
        write_version(base, attempt).await?;
    failpoint::at("commit.metadata_written").await?;
    let own = Swap {
        ident: base.ident(),
        expected: base.metadata_location(),
        new: Some(location.as_str()),
    };
    let others = unmoved.iter().map(|(ident, at)| Swap { ident, expected: at, new: None });
    let swaps: Vec<Swap<'_>> = std::iter::once(own).chain(others).collect();
    let swapped = base.warehouse().catalog().swap_all(&swaps).await;
    failpoint::at("commit.swapped").await?;
    let Err(error) = swapped else {
        if next.property(DELETE_OLD_METADATA) != Some("false") {
            forget(base, &forgotten).await;
        }
        return Ok(next);
    };
    match settle(base, &location, error, |table| change.is_in(table)).await {
        Settled::Committed(later) => Ok(later.unwrap_or(next)),
        Settled::Lost(error) => {
            forget(base, &scratch).await;
            Err(error)
        }
        Settled::Unclear(error) => Err(error),
    }
}

/// One of several versions that become current together.
struct Part<'a, C> {
    change: &'a C,
    base: Table,
    attempt: Attempt,
}

/// Commits changes of different tables of one warehouse in one transaction of the catalog: all of
/// them, or none. `refused` gives the error of a change that stops; without one the others go on.
///
/// # Errors
/// As [`commit`]. Nothing was committed then, unless the outcome is not known (08007).
pub(crate) async fn commit_together<C: Change>(
    changes: &[(&Table, &C)],
    refused: fn(C::Stop) -> Option<Error>,
) -> Result<()> {
    let retries = changes.iter().map(|(table, _)| retries(table)).max().unwrap_or_default();
    let Some((first, _)) = changes.first() else { return Ok(()) };
    for number in 0..=retries {
        if number > 0 {
            let env = first.warehouse().env();
            env.sleep(wait(env, number)).await;
        }
        let mut parts = Vec::with_capacity(changes.len());
        if let Err(error) = attempt_all(changes, number, refused, &mut parts).await {
            for part in &parts {
                forget(&part.base, &part.attempt.scratch).await;
            }
            return Err(error);
        }
        match swap_together(parts).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                tracing::debug!(number, "commit of several tables lost to another writer");
            }
            ended => return ended,
        }
    }
    Err(Error::conflict(format!(
        "other writers committed to the same tables first {} times in a row",
        retries + 1
    ))
    .with_hint("nothing was written; run the transaction again"))
}

async fn attempt_all<'a, C: Change>(
    changes: &[(&Table, &'a C)],
    number: u32,
    refused: fn(C::Stop) -> Option<Error>,
    parts: &mut Vec<Part<'a, C>>,
) -> Result<()> {
    for &(table, change) in changes {
        let base = table.reload().await?;
        if base.uuid() != table.uuid() {
            return Err(replaced(table));
        }
        match change.attempt(&base, number).await? {
            Step::Commit(attempt) => parts.push(Part { change, base, attempt }),
            Step::Stop(stop) => {
                if let Some(error) = refused(stop) {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// As [`swap`], for several tables at once.
async fn swap_together<C: Change>(parts: Vec<Part<'_, C>>) -> Result<()> {
    let mut written: Vec<(Table, &C, Written)> = Vec::with_capacity(parts.len());
    let mut parts = parts.into_iter();
    while let Some(Part { change, base, attempt }) = parts.next() {
        match write_version(&base, attempt).await {
            Ok(version) => written.push((base, change, version)),
            Err(error) => {
                for (base, _, version) in &written {
                    forget(base, &version.scratch).await;
                }
                for part in parts {
                    forget(&part.base, &part.attempt.scratch).await;
                }
                return Err(error);
            }
        }
    }
    let Some((first, change, version)) = written.first() else { return Ok(()) };
    failpoint::at("commit.metadata_written").await?;
    let swaps = swaps_of(&written);
    let swapped = first.warehouse().catalog().swap_all(&swaps).await;
    failpoint::at("commit.swapped").await?;
    let Err(error) = swapped else {
        for (base, _, version) in &written {
            if version.next.property(DELETE_OLD_METADATA) != Some("false") {
                forget(base, &version.forgotten).await;
            }
        }
        return Ok(());
    };
    // Either all pointers have moved or none: one tells for all.
    match settle(first, &version.location, error, |table| change.is_in(table)).await {
        Settled::Committed(_) => Ok(()),
        Settled::Lost(error) => {
            for (base, _, version) in &written {
                forget(base, &version.scratch).await;
            }
            Err(error)
        }
        Settled::Unclear(error) => Err(error),
    }
}

/// The pointers that move, and then those of other tables that must be where they were seen.
fn swaps_of<'a, C>(written: &'a [(Table, &C, Written)]) -> Vec<Swap<'a>> {
    let moves = |ident: &TableIdent, at: &str| {
        written.iter().any(|(base, ..)| base.ident() == ident && base.metadata_location() == at)
    };
    let own = written.iter().map(|(base, _, version)| Swap {
        ident: base.ident(),
        expected: base.metadata_location(),
        new: Some(version.location.as_str()),
    });
    let unmoved = written.iter().flat_map(|(_, _, version)| &version.unmoved);
    let others = unmoved.filter(|(ident, at)| !moves(ident, at)).map(|(ident, at)| Swap {
        ident,
        expected: at,
        new: None,
    });
    own.chain(others).collect()
}

/// What became of a swap that ended with an error.
enum Settled {
    /// It happened; a later version has been built on it if one is given.
    Committed(Option<Table>),
    /// It did not happen and cannot happen any more.
    Lost(Error),
    /// Nobody knows.
    Unclear(Error),
}

/// After an error of the catalog: did the pointer move to `location` all the same?
///
/// That the pointer is still the old one proves nothing by itself, see the module.
async fn settle(
    table: &Table,
    location: &str,
    error: Error,
    is_in: impl Fn(&Table) -> bool,
) -> Settled {
    if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::AlreadyExists)
        || error.is(Condition::WrongObjectType)
    {
        return Settled::Lost(error);
    }
    match table.reload().await {
        Ok(now) if now.metadata_location() == location => Settled::Committed(None),
        Ok(now) if now.uuid() == table.uuid() && is_in(&now) => Settled::Committed(Some(now)),
        Ok(_) if !error.is(Condition::UnknownOutcome) => Settled::Lost(error),
        _ => Settled::Unclear(error),
    }
}

/// Whether an error of a commit means that no swap has happened.
pub(crate) fn is_refusal(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Invalid | ErrorKind::Unsupported | ErrorKind::Conflict => true,
        // A full disk would only get fuller by what each try leaves behind.
        ErrorKind::Exhausted => !error.is(Condition::UnknownOutcome),
        _ => false,
    }
}

/// Best effort; what stays is an orphan.
pub(crate) async fn forget(table: &Table, locations: &[String]) {
    if let Err(error) = table.warehouse().files().delete(locations).await {
        tracing::debug!(table = %table.ident(), %error, "files that nothing needs stay behind");
    }
}

fn version(base: &Table, loaded: Arc<LoadedMetadata>, location: String) -> Table {
    Table::new(base.warehouse().clone(), base.ident().clone(), loaded, Some(location))
}

/// A builder on top of `base`'s metadata.
pub(crate) fn builder(base: &Table) -> TableMetadataBuilder {
    let location = (!base.is_staged()).then(|| base.metadata_location().to_owned());
    let metadata = TableMetadata::clone(base.metadata());
    not_earlier(base, TableMetadataBuilder::new_from_metadata(metadata, location))
}

/// `builder` with the time of `base`, where the machine's clock is behind it: set back, or another
/// machine's. The library stamps what has no new snapshot with that clock, and refuses to build or, later,
/// to read a version that is more than a minute older than the one before it.
fn not_earlier(base: &Table, builder: TableMetadataBuilder) -> TableMetadataBuilder {
    let metadata = base.metadata();
    if base.is_staged() || clock::unix_ms() >= metadata.last_updated_ms() {
        return builder;
    }
    // It takes another time from a snapshot that is added, and from nowhere else.
    let id = base.new_snapshot_id();
    let operation = Operation::Append;
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_sequence_number(metadata.last_sequence_number())
        .with_timestamp_ms(metadata.last_updated_ms())
        .with_manifest_list(String::new())
        .with_summary(Summary { operation, additional_properties: HashMap::new() })
        .with_schema_id(metadata.current_schema_id())
        .build();
    let stamped = builder.clone().add_snapshot(snapshot);
    stamped.map_or(builder, |stamped| stamped.remove_snapshots(&[id]))
}

/// Finishes a builder on top of `base`; `scratch` is what was written for this try alone.
pub(crate) fn build(
    base: &Table,
    builder: TableMetadataBuilder,
    scratch: Vec<String>,
) -> Result<Attempt> {
    let built = builder.build().map_err(|e| from_iceberg(format!("table {}", base.ident()), e))?;
    let (mut metadata, mut forgotten) = (built.metadata, built.expired_metadata_logs);
    // Without it, more files stay; that is no reason to fail.
    if let Some(Ok((shorter, more))) = shortened(&metadata, base.metadata_bytes()) {
        metadata = shorter;
        forgotten.extend(more);
    }
    let forgotten = forgotten.into_iter().map(|log| log.metadata_file).collect();
    Ok(Attempt { metadata, scratch, forgotten, unmoved: Vec::new() })
}

/// `metadata` with as many earlier files as may stay, and the others, if there are any; a metadata
/// file has about `bytes`. `None` where all may stay.
fn shortened(
    metadata: &TableMetadata,
    bytes: usize,
) -> Option<iceberg::Result<(TableMetadata, Vec<MetadataLog>)>> {
    let max = (PREVIOUS_BYTES_MAX / bytes.max(1)).max(PREVIOUS_MIN);
    if metadata.properties().contains_key(PREVIOUS_MAX) || metadata.metadata_log().len() <= max {
        return None;
    }
    // The library knows no other way to shorten the list than the property, which is not the table's:
    // it is set and taken away again.
    let shorten = || {
        let set = HashMap::from([(PREVIOUS_MAX.to_owned(), max.to_string())]);
        let builder = TableMetadataBuilder::new_from_metadata(metadata.clone(), None);
        let shorter = builder.set_properties(set)?.build()?;
        let builder = TableMetadataBuilder::new_from_metadata(shorter.metadata, None);
        let last = builder.remove_properties(&[PREVIOUS_MAX.to_owned()])?.build()?;
        Ok((last.metadata, shorter.expired_metadata_logs))
    };
    Some(shorten())
}

/// `<table>/metadata/NNNNN-<uuid>.metadata.json`
fn metadata_path(uuid: Uuid, metadata: &TableMetadata, version: u64) -> String {
    format!("{}/metadata/{version:05}-{uuid}.metadata.json", metadata.location())
}

/// The number at the start of a metadata file's name; 0 where another engine named it otherwise.
pub(crate) fn version_of(location: &str) -> u64 {
    let name = location.rsplit('/').next().unwrap_or_default();
    name.split_once('-').and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
}

fn retries(table: &Table) -> u32 {
    let set = table.property("commit.retry.num-retries").and_then(|text| text.parse().ok());
    set.unwrap_or(RETRIES).min(1000)
}

/// A random wait that doubles its range with every try, so that writers spread out.
fn wait(env: &Env, number: u32) -> Duration {
    let most = Duration::from_millis(10).saturating_mul(1 << number.min(10)).min(WAIT_MAX);
    let part = env.random_u64() % 1000;
    most.mul_f64(part as f64 / 1000.0)
}

fn replaced(table: &Table) -> Error {
    Error::conflict(format!(
        "table {} was dropped and another one made under its name",
        table.ident()
    ))
    .with_hint("nothing was written to the new table; start again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names() {
        assert_eq!(version_of("file:///w/t/metadata/00041-5a.metadata.json"), 41);
        assert_eq!(version_of("file:///w/t/metadata/v3.metadata.json"), 0);
    }

    #[test]
    fn waits_are_bounded() {
        for number in 1..100 {
            assert!(wait(&Env::real(), number) <= WAIT_MAX);
        }
    }
}
