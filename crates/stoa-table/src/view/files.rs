//! The metadata files of views on the store.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use stoa_error::{Error, ErrorKind, Place, Result};
use stoa_store::from_object_store;
use uuid::Uuid;

use super::build::{DELETE_OLD, boolean, forget_oldest};
use super::metadata::{ViewMetadata, view_uuid};
use crate::Warehouse;
use crate::commit::version_of;

/// A metadata file may have so many bytes, unpacked.
pub(super) const METADATA_BYTES_MAX: usize = 16 << 20;

/// So many earlier metadata files stay, for readers that have just read the pointer.
const PREVIOUS_FILES: u64 = 20;

/// Old files that one change deletes at most.
const DELETED_AT_ONCE_MAX: usize = 100;

/// Files that are read at the same time.
const READ_AT_ONCE_MAX: usize = 8;

impl Warehouse {
    /// The view metadata at `location`.
    pub(crate) async fn view_metadata(&self, location: &str) -> Result<Arc<ViewMetadata>> {
        if let Some(cached) = self.view_cache().get(location) {
            return Ok(cached);
        }
        let json = self.files().read_json(location, METADATA_BYTES_MAX).await?;
        let metadata = ViewMetadata::parse(location, &json)?;
        Ok(self.view_cache().put(location, metadata, json.len() * 4))
    }

    /// Writes the metadata of a view as its file `number`; gives back where. Versions that make it too
    /// large are left out, the oldest first.
    pub(super) async fn write_view_metadata(
        &self,
        mut metadata: ViewMetadata,
        number: u64,
    ) -> Result<(String, Arc<ViewMetadata>)> {
        let directory = directory_of(&metadata);
        let location = format!("{directory}/{number:05}-{}.metadata.json", self.env().uuid());
        let json = loop {
            let json = serde_json::to_vec(&metadata).map_err(|source| {
                Error::internal("the view metadata cannot be written")
                    .at(Place::file(&location))
                    .with_source(source)
            })?;
            if json.len() <= METADATA_BYTES_MAX {
                break json;
            }
            if !forget_oldest(&mut metadata) {
                return Err(too_large(json.len()));
            }
        };
        let bytes = json.len();
        let written = self.files().write(&location, json.into()).await;
        match written {
            Ok(()) => {
                let cached = self.view_cache().put(&location, metadata, bytes * 4);
                Ok((location, cached))
            }
            Err(error) => {
                // Nothing points to it; but it may be there, and `recover` would take it for a version.
                self.forget_view_file(&location).await;
                Err(error)
            }
        }
    }

    /// Deletes a metadata file that nothing points to.
    pub(super) async fn forget_view_file(&self, location: &str) {
        if let Err(error) = self.files().delete(&[location.to_owned()]).await {
            tracing::warn!(%location, %error, "a file of a change that was not made stays behind");
        }
    }

    /// Deletes metadata files from long before `location`, which is the view's newest.
    pub(super) async fn forget_old_view_files(&self, metadata: &ViewMetadata, location: &str) {
        if metadata.properties.get(DELETE_OLD).is_some_and(|text| boolean(text) == Some(false)) {
            return;
        }
        let number = version_of(location);
        let is_old = |file: &str| version_of(file).saturating_add(PREVIOUS_FILES) < number;
        if number <= PREVIOUS_FILES {
            return;
        }
        if let Err(error) = self.delete_view_files(metadata, is_old, DELETED_AT_ONCE_MAX).await {
            tracing::warn!(%location, %error, "old files of a view stay behind");
        }
    }

    /// Deletes all metadata files of a view that was dropped.
    pub(super) async fn forget_all_view_files(&self, metadata: &ViewMetadata) -> Result<()> {
        self.delete_view_files(metadata, |_| true, usize::MAX).await
    }

    /// Deletes metadata files of this view only: another engine may have put the view into a directory
    /// that still has files of a table.
    async fn delete_view_files(
        &self,
        metadata: &ViewMetadata,
        chosen: impl Fn(&str) -> bool,
        count_max: usize,
    ) -> Result<()> {
        let directory = directory_of(metadata);
        let place = self.stores().resolve(&directory)?;
        let listed = place.store.list(Some(&place.path)).map_ok(|file| file.location);
        let listed: Vec<_> =
            listed.try_collect().await.map_err(|source| from_object_store(&directory, source))?;
        let named = listed.iter().map(|path| place.literal_of(path));
        let files = named.filter(|file| file.ends_with(".metadata.json") && chosen(file));
        // Made before they are streamed; see `scan::plan`.
        let reads: Vec<_> = files
            .take(count_max)
            .map(|file| async move {
                let owner = self.uuid_in(&file).await?;
                Ok::<_, Error>((owner == Some(metadata.view_uuid)).then_some(file))
            })
            .collect();
        let own: Vec<Option<String>> =
            futures::stream::iter(reads).buffered(READ_AT_ONCE_MAX).try_collect().await?;
        let own: Vec<String> = own.into_iter().flatten().collect();
        self.files().delete(&own).await.map(|_| ())
    }

    /// Whose metadata file it is; `None` for a table's, or where nothing can be made of it.
    async fn uuid_in(&self, location: &str) -> Result<Option<Uuid>> {
        match self.files().read_json(location, METADATA_BYTES_MAX).await {
            Ok(json) => Ok(view_uuid(&json)),
            // Damaged, too large for a view, or gone already.
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn directory_of(metadata: &ViewMetadata) -> String {
    format!("{}/metadata", metadata.location.trim_end_matches('/'))
}

fn too_large(bytes: usize) -> Error {
    Error::invalid(format!("the view takes {bytes} bytes, more than {METADATA_BYTES_MAX}"))
        .with_sqlstate("54000")
        .with_hint("put parts of its query into views of their own")
}
