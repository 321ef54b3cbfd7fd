//! What only forgotten snapshots refer to.
//!
//! **Invariant:** a file that any retained snapshot reaches is never named here: candidates are
//! what forgotten snapshots reach, and everything that retained ones reach is taken away from them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use iceberg::spec::{ManifestFile, Snapshot};
use stoa_error::{ErrorKind, Result};

use crate::Table;

/// Files that nothing needs any more.
#[derive(Debug, Default)]
pub(super) struct Unneeded {
    /// Data files, and files of row-level deletes.
    pub(super) data: Vec<String>,
    /// Manifests, manifest lists, statistics.
    pub(super) metadata: Vec<String>,
}

/// What `forgotten` snapshots reach and those of `table`, from which they are gone, do not.
pub(super) async fn unneeded(table: &Table, forgotten: &[Arc<Snapshot>]) -> Result<Unneeded> {
    let metadata = table.metadata();
    let mut kept: HashMap<String, ManifestFile> = HashMap::new();
    for snapshot in metadata.snapshots() {
        kept.extend(manifests(table, snapshot).await?.into_iter().map(by_path));
    }
    let mut dropped: HashMap<String, ManifestFile> = HashMap::new();
    let mut unneeded = Unneeded::default();
    for snapshot in forgotten {
        match manifests(table, snapshot).await {
            Ok(manifests) => dropped.extend(manifests.into_iter().map(by_path)),
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                // Its files become orphans, which are found by listing.
                tracing::warn!(table = %table.ident(), %error, "expired snapshot is unreadable");
            }
            Err(error) => return Err(error),
        }
        unneeded.metadata.push(snapshot.manifest_list().to_owned());
    }
    dropped.retain(|path, _| !kept.contains_key(path));
    let mut data: HashSet<String> = HashSet::new();
    for manifest in dropped.values() {
        data.extend(live(table, manifest).await?);
    }
    for manifest in kept.values() {
        if data.is_empty() {
            break;
        }
        for location in live(table, manifest).await? {
            data.remove(&location);
        }
    }
    unneeded.data = data.into_iter().collect();
    unneeded.metadata.extend(dropped.into_keys());
    Ok(unneeded)
}

fn by_path(manifest: ManifestFile) -> (String, ManifestFile) {
    (manifest.manifest_path.clone(), manifest)
}

async fn manifests(table: &Table, snapshot: &Snapshot) -> Result<Vec<ManifestFile>> {
    let version = table.metadata().format_version();
    let list = table.warehouse().files().manifest_list(snapshot, version).await?;
    Ok(list.to_vec())
}

/// Locations of the live files of a manifest.
async fn live(table: &Table, manifest: &ManifestFile) -> Result<Vec<String>> {
    let loaded = table.warehouse().files().manifest(manifest).await?;
    Ok(loaded.files.iter().map(|live| live.file.location.clone()).collect())
}
