//! All files that a version of a table refers to.

use std::collections::{BTreeSet, HashSet};

use futures::future::BoxFuture;
use stoa_error::Result;

use crate::Table;

/// Literal locations of files of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFiles {
    /// The metadata file, and manifest lists, manifests, data files, files of row-level deletes and statistics of all
    /// retained snapshots. All of them are there.
    pub needed: BTreeSet<String>,
    /// Older metadata files, which may have been cleaned up.
    pub older: BTreeSet<String>,
}

impl Table {
    /// The files that this version refers to.
    ///
    /// # Errors
    /// `Corrupt` where a manifest list or a manifest is damaged or gone; `Unavailable` where the store fails.
    pub fn files(&self) -> BoxFuture<'_, Result<TableFiles>> {
        Box::pin(async move {
            let metadata = self.metadata();
            let mut files = TableFiles::default();
            files.needed.insert(self.metadata_location().to_owned());
            files.older.extend(metadata.metadata_log().iter().map(|log| log.metadata_file.clone()));
            files.needed.extend(metadata.statistics_iter().map(|of| of.statistics_path.clone()));
            let partitions = metadata.partition_statistics_iter();
            files.needed.extend(partitions.map(|of| of.statistics_path.clone()));
            let read = self.warehouse().files();
            let mut seen = HashSet::new();
            for snapshot in metadata.snapshots() {
                files.needed.insert(snapshot.manifest_list().to_owned());
                let manifests = read.manifest_list(snapshot, metadata.format_version()).await?;
                for manifest in manifests.iter() {
                    if !seen.insert(manifest.manifest_path.clone()) {
                        continue;
                    }
                    files.needed.insert(manifest.manifest_path.clone());
                    let (parsed, _) = read.parse_manifest(manifest).await?;
                    let alive = parsed.entries().iter().filter(|entry| entry.is_alive());
                    files
                        .needed
                        .extend(alive.map(|entry| entry.data_file().file_path().to_owned()));
                }
            }
            files.older.retain(|file| !files.needed.contains(file));
            Ok(files)
        })
    }
}
