//! Moving a table from one metadata version to the next.
//!
//! ```text
//! base version ──change──► new metadata file (durable) ──compare-and-swap──► new version
//!      ▲                                                        │ lost
//!      └──────────────── reload, wait a little ◄────────────────┘
//! ```
//! An answer from the catalog that says neither yes nor no (it became unreachable in between) is
//! settled by reading the pointer; if that fails too, files stay, because the pointer may reach
//! them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use iceberg::spec::{TableMetadata, TableMetadataBuilder};
use stoa_error::{Error, ErrorKind, Result};

use crate::Table;
use crate::error::from_iceberg;
use crate::files::LoadedMetadata;

/// How often a commit is tried, unless `commit.retry.num-retries` says otherwise.
const RETRIES: u32 = 30;

/// The longest wait between two tries.
const WAIT_MAX: Duration = Duration::from_millis(800);

/// Puts a staged table into the catalog with `metadata` as its first version.
pub(crate) async fn create(staged: &Table, metadata: TableMetadata) -> Result<Table> {
    let warehouse = staged.warehouse();
    let location = metadata_path(&metadata, 0);
    let loaded = warehouse.files().write_table_metadata(&location, metadata).await?;
    match warehouse.catalog().create_table(staged.ident(), &location).await {
        Ok(()) => Ok(version(staged, loaded, location)),
        Err(error) => match settle(staged, &location, error).await {
            ControlFlow::Continue(()) => Ok(version(staged, loaded, location)),
            ControlFlow::Break((error, unreachable)) => {
                if unreachable {
                    forget(staged, &[location]).await;
                }
                Err(error)
            }
        },
    }
}

/// One try at a change: the new metadata, and files written for it alone.
pub(crate) struct Attempt {
    pub(crate) metadata: TableMetadata,
    /// Files to delete if the try loses.
    pub(crate) scratch: Vec<String>,
}

/// Something to be done to whatever version of a table is current.
pub(crate) trait Change: Sync {
    /// Makes the next version on top of `base`; `number` counts the tries from 0.
    fn attempt<'a>(&'a self, base: &'a Table, number: u32) -> BoxFuture<'a, Result<Attempt>>;
}

/// Commits `change`, retrying when somebody else commits first.
///
/// # Errors
/// Those of `change`; `NotFound` where the table is gone; `Conflict` where it was replaced by
/// another of the same name, or all tries lost.
pub(crate) async fn commit(table: &Table, change: &impl Change) -> Result<Table> {
    let retries = retries(table);
    let mut base = table.clone();
    for number in 0..=retries {
        if number > 0 {
            tokio::time::sleep(wait(number)).await;
            base = base.reload().await?;
            if base.uuid() != table.uuid() {
                return Err(replaced(table));
            }
        }
        let Attempt { metadata, mut scratch } = change.attempt(&base, number).await?;
        match swap(&base, metadata, &mut scratch).await {
            Ok(next) => return Ok(next),
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

/// Writes `metadata` and moves the pointer to it. Deletes `scratch` and the metadata file where it
/// is certain that the pointer does not reach them.
async fn swap(base: &Table, metadata: TableMetadata, scratch: &mut Vec<String>) -> Result<Table> {
    let warehouse = base.warehouse();
    let location = metadata_path(&metadata, version_of(base.metadata_location()) + 1);
    let loaded = warehouse.files().write_table_metadata(&location, metadata).await?;
    scratch.push(location.clone());
    let swapped = warehouse.catalog().swap(base.ident(), base.metadata_location(), &location).await;
    let Err(error) = swapped else { return Ok(version(base, loaded, location)) };
    match settle(base, &location, error).await {
        ControlFlow::Continue(()) => Ok(version(base, loaded, location)),
        ControlFlow::Break((error, unreachable)) => {
            if unreachable {
                forget(base, scratch).await;
            }
            Err(error)
        }
    }
}

/// After an error of the catalog: did the pointer move to `location` all the same? If not, gives
/// back the error and whether it is certain that the pointer does not reach the new files.
async fn settle(table: &Table, location: &str, error: Error) -> ControlFlow<(Error, bool)> {
    if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::AlreadyExists)
    {
        return ControlFlow::Break((error, true));
    }
    match table.warehouse().catalog().pointer(table.ident()).await {
        Ok(pointer) if pointer == location => ControlFlow::Continue(()),
        // Another writer may have built on our version already, so this is not certain either.
        _ => ControlFlow::Break((error, false)),
    }
}

/// Best effort; what stays is an orphan.
async fn forget(table: &Table, locations: &[String]) {
    if let Err(error) = table.warehouse().files().delete(locations).await {
        tracing::debug!(table = %table.ident(), %error, "files of a lost commit stay behind");
    }
}

fn version(base: &Table, loaded: Arc<LoadedMetadata>, location: String) -> Table {
    Table::new(base.warehouse().clone(), base.ident().clone(), loaded, Some(location))
}

/// A builder on top of `base`'s metadata.
pub(crate) fn builder(base: &Table) -> TableMetadataBuilder {
    let location = (!base.is_staged()).then(|| base.metadata_location().to_owned());
    TableMetadataBuilder::new_from_metadata(TableMetadata::clone(base.metadata()), location)
}

/// Finishes a builder on top of `base`.
pub(crate) fn build(base: &Table, builder: TableMetadataBuilder) -> Result<TableMetadata> {
    Ok(builder.build().map_err(|e| from_iceberg(format!("table {}", base.ident()), e))?.metadata)
}

/// `<table>/metadata/NNNNN-<uuid>.metadata.json`
fn metadata_path(metadata: &TableMetadata, version: u64) -> String {
    let uuid = stoa_env::random::uuid();
    format!("{}/metadata/{version:05}-{uuid}.metadata.json", metadata.location())
}

/// The number at the start of a metadata file's name; 0 where another engine named it otherwise.
fn version_of(location: &str) -> u64 {
    let name = location.rsplit('/').next().unwrap_or_default();
    name.split_once('-').and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
}

fn retries(table: &Table) -> u32 {
    let set = table.property("commit.retry.num-retries").and_then(|text| text.parse().ok());
    set.unwrap_or(RETRIES).min(1000)
}

/// A random wait that doubles its range with every try, so that writers spread out.
fn wait(number: u32) -> Duration {
    let most = Duration::from_millis(10).saturating_mul(1 << number.min(10)).min(WAIT_MAX);
    let part = stoa_env::random::u64() % 1000;
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
            assert!(wait(number) <= WAIT_MAX);
        }
    }
}
