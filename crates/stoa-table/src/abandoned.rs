//! Directories of tables that never came to be.
//!
//! A writer of a staged table that is killed before its commit leaves data files that belong to no
//! table, so no table's clean-up finds them. Such a directory has no metadata file: a table that
//! was dropped without its files has one and is left alone, and so is a table of another catalog.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::TryStreamExt;
use futures::future::BoxFuture;
use object_store::ObjectMeta;
use stoa_error::Result;
use stoa_store::{from_object_store, literal_of};

use crate::{Orphan, RemovedOrphans, Warehouse};

impl Warehouse {
    /// Files in directories `<namespace>/<name>` that hold no table metadata and belong to no
    /// table. A load of another process that makes a new table has such a directory, too.
    ///
    /// # Errors
    /// `Unavailable` where the catalog or the store fails.
    pub fn abandoned(&self) -> BoxFuture<'_, Result<Vec<Orphan>>> {
        Box::pin(async move {
            let root = literal_of(self.url())?;
            let place = self.stores().resolve(&root)?;
            let listing = place.store.list(Some(&place.path));
            let files: Vec<ObjectMeta> =
                listing.try_collect().await.map_err(|source| from_object_store(&root, source))?;
            // Asked for before the tables are: a table that comes to be in between is taken then.
            let working = self.writers().now();
            let mut directories: BTreeMap<String, Vec<ObjectMeta>> = BTreeMap::new();
            for file in files {
                let Some(inside) = file.location.prefix_match(&place.path) else { continue };
                let parts: Vec<String> = inside.map(|part| part.as_ref().to_owned()).collect();
                if let [namespace, name, "data" | "metadata", ..] =
                parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
                // Beside the namespaces there are commit logs and catalogs of other warehouses.
                && !namespace.starts_with('_')
                {
                    directories.entry(format!("{root}/{namespace}/{name}")).or_default().push(file);
                }
            }
            directories.retain(|_, files| {
                !files.iter().any(|file| file.location.as_ref().ends_with(".metadata.json"))
            });
            if !directories.is_empty() {
                let taken = self.table_locations().await?;
                directories.retain(|location, _| !taken.contains(location));
            }
            let orphan = |file: ObjectMeta| Orphan {
                location: place.literal_of(&file.location),
                bytes: file.size,
                modified: file.last_modified,
            };
            let files = directories.into_values().flatten();
            let idle = files.filter(|file| !working.makes(file.location.as_ref()));
            Ok(idle.map(orphan).collect())
        })
    }

    /// Deletes abandoned files that were last written more than `older_than` ago.
    ///
    /// # Errors
    /// As [`Self::abandoned`].
    pub fn remove_abandoned(&self, older_than: Duration) -> BoxFuture<'_, Result<RemovedOrphans>> {
        Box::pin(async move { remove(self, self.abandoned().await?, older_than).await })
    }

    async fn table_locations(&self) -> Result<HashSet<String>> {
        let mut locations = HashSet::new();
        for ident in self.all_tables().await? {
            // A table that cannot be read has a metadata file all the same.
            if let Ok(table) = self.table(&ident).await {
                locations.insert(table.location().to_owned());
            }
        }
        Ok(locations)
    }
}

/// Deletes those of `orphans` that are old enough.
pub(crate) async fn remove(
    warehouse: &Warehouse,
    orphans: Vec<Orphan>,
    older_than: Duration,
) -> Result<RemovedOrphans> {
    let age = TimeDelta::from_std(older_than).unwrap_or(TimeDelta::MAX);
    let oldest_kept =
        warehouse.env().now_utc().checked_sub_signed(age).unwrap_or(DateTime::<Utc>::MIN_UTC);
    let (old, young): (Vec<_>, Vec<_>) =
        orphans.into_iter().partition(|orphan| orphan.modified <= oldest_kept);
    let locations: Vec<String> = old.iter().map(|orphan| orphan.location.clone()).collect();
    let files = warehouse.files().delete(&locations).await?;
    let bytes = old.iter().map(|orphan| orphan.bytes).sum();
    Ok(RemovedOrphans { files, bytes, kept: young.len() })
}
