//! Tables and views that the store holds and the catalog does not.
//!
//! The catalog is one file, in an object store's case elsewhere, so one can be there without the
//! other: another machine, a lost disk, a file deleted by mistake. What the newest metadata file of a
//! table or view says is whole, so the names can be put into a catalog anew.

use std::collections::{BTreeMap, HashSet};

use futures::TryStreamExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use stoa_catalog::{RelationKind, TableIdent};
use stoa_error::{Error, ErrorKind, Result};
use stoa_store::{Location, Stores, from_object_store};

use crate::Warehouse;
use crate::commit::version_of;
use crate::files::METADATA_BYTES_MAX;
use crate::view::view_uuid;

/// A table or view found in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredTable {
    /// By its directory, `<namespace>/<table>`; it may have been renamed since.
    pub(crate) ident: TableIdent,
    /// Its directory.
    pub(crate) location: String,
    /// Its newest metadata file.
    pub(crate) metadata: String,
}

impl Warehouse {
    /// Puts the tables and views that the store holds and the catalog does not into the catalog, each at
    /// its newest metadata file and under the name of its directory. Gives back their names.
    ///
    /// Tables that were dropped without their files come back, too. A commit that a process was
    /// killed in, between its metadata file and the catalog, is taken for committed: it is whole,
    /// and nobody was told that it failed.
    ///
    /// # Errors
    /// `AlreadyExists` where another table or view of the catalog has the name; those before it are in the
    /// catalog then. `Unavailable` where the store or the catalog fails.
    pub fn recover(&self) -> BoxFuture<'_, Result<Vec<TableIdent>>> {
        Box::pin(async move {
            let known = self.known_locations().await?;
            let mut recovered = Vec::new();
            for found in stored_tables(self.stores(), self.location(), usize::MAX).await? {
                if known.contains(&found.location) {
                    continue;
                }
                // Looks whether it can be read before it is named.
                let kind = self.kind_of(&found.metadata).await?;
                match self.create_namespace(&found.ident.namespace, &BTreeMap::new()).await {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    other => other?,
                }
                match kind {
                    RelationKind::Table => {
                        self.catalog().create_table(&found.ident, &found.metadata).await?;
                    }
                    RelationKind::View => {
                        self.catalog().create_view(&found.ident, &found.metadata).await?;
                    }
                }
                recovered.push(found.ident);
            }
            Ok(recovered)
        })
    }

    /// What the metadata file `location` is of, once it could be read.
    async fn kind_of(&self, location: &str) -> Result<RelationKind> {
        let json = self.files().read_json(location, METADATA_BYTES_MAX).await?;
        if view_uuid(&json).is_some() {
            self.view_metadata(location).await?;
            return Ok(RelationKind::View);
        }
        self.files().table_metadata(location).await?;
        Ok(RelationKind::Table)
    }

    async fn known_locations(&self) -> Result<HashSet<String>> {
        let mut locations = HashSet::new();
        for namespace in self.namespaces().await? {
            for ident in self.tables(&namespace).await? {
                locations.insert(self.table(&ident).await?.location().to_owned());
            }
            for ident in self.views(&namespace).await? {
                locations.insert(self.view(&ident).await?.location().to_owned());
            }
        }
        Ok(locations)
    }
}

/// Refuses to begin a new catalog for a warehouse that holds tables: they would not be seen, and
/// new ones of their names would be made beside them.
pub(crate) async fn refuse_forgotten(stores: &Stores, root: &str, catalog: &str) -> Result<()> {
    let Some(found) = stored_tables(stores, root, 1).await?.pop() else { return Ok(()) };
    Err(Error::conflict(format!(
        "the warehouse {root} holds tables, such as {}, and there is no catalog {catalog} yet",
        found.ident
    ))
    .with_detail("a new catalog would show none of them")
    .with_hint(
        "name the catalog that they are in (--catalog FILE), or make a new one from what the store \
         holds: stoa table recover",
    ))
}

/// Tables and views under `root`, by name; not more than `count_max`.
async fn stored_tables(stores: &Stores, root: &str, count_max: usize) -> Result<Vec<StoredTable>> {
    let place = stores.resolve(root)?;
    let mut found = Vec::new();
    for namespace in directories(&place, &place.path).await? {
        for directory in directories(&place, &namespace).await? {
            if found.len() >= count_max {
                return Ok(found);
            }
            found.extend(stored_table(&place, &namespace, &directory).await?);
        }
    }
    Ok(found)
}

async fn stored_table(
    place: &Location,
    namespace: &Path,
    directory: &Path,
) -> Result<Option<StoredTable>> {
    let location = place.literal_of(directory);
    let metadata = place.store.list(Some(&directory.clone().join("metadata")));
    let files: Vec<_> =
        metadata.try_collect().await.map_err(|source| from_object_store(&location, source))?;
    let newest = files
        .into_iter()
        .filter(|file| file.location.as_ref().ends_with(".metadata.json"))
        .max_by_key(|file| (version_of(file.location.as_ref()), file.last_modified));
    let name = |path: &Path| path.filename().unwrap_or_default().to_owned();
    Ok(newest.map(|file| StoredTable {
        ident: TableIdent::new(name(namespace), name(directory)),
        metadata: place.literal_of(&file.location),
        location,
    }))
}

/// What is like a directory in `path`; hidden ones and `_log` are no namespaces.
async fn directories(place: &Location, path: &Path) -> Result<Vec<Path>> {
    let listed = match place.store.list_with_delimiter(Some(path)).await {
        Err(object_store::Error::NotFound { .. }) => return Ok(Vec::new()),
        other => other,
    };
    let listed = listed.map_err(|source| from_object_store(&place.literal_of(path), source))?;
    let visible = |path: &Path| path.filename().is_some_and(|name| !name.starts_with(['.', '_']));
    Ok(listed.common_prefixes.into_iter().filter(visible).collect())
}
