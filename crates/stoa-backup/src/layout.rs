//! Where the parts of a backup are, and the list of what belongs to it.

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use serde::{Deserialize, Serialize};
use stoa_error::{Error, Place, Result};
use stoa_store::{Stores, from_object_store};

/// The version of the layout.
pub(crate) const FORMAT: u32 = 1;

/// One backup: all that is needed to restore it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// The version of the layout.
    pub format: u32,
    /// Its name: when it was begun, and something random. Later ones are greater.
    pub id: String,
    /// When it was begun.
    pub begun: DateTime<Utc>,
    /// The literal location of the warehouse.
    pub warehouse: String,
    /// The copy of the catalog, below the backup's location.
    pub catalog: BackupFile,
    /// Tables and views, as `namespace.name`.
    pub relations: Vec<String>,
    /// The files of tables and views, by their paths below the warehouse; in the backup they are below `files`.
    pub files: Vec<BackupFile>,
}

impl Backup {
    /// The bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// Its path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// The CRC-32C of its bytes.
    pub crc32c: u32,
}

/// The literal location of a file of a table in a backup.
pub(crate) fn file_in(backup: &str, path: &str) -> String {
    format!("{backup}/files/{path}")
}

pub(crate) fn list_in(backup: &str, id: &str) -> String {
    format!("{backup}/backups/{id}.json")
}

/// The names of all backups at the literal location `backup`, the oldest first.
///
/// # Errors
/// `Unavailable` where the store fails.
pub async fn backups(stores: &Stores, backup: &str) -> Result<Vec<String>> {
    let location = format!("{backup}/backups");
    let place = stores.resolve(&location)?;
    let found: Vec<_> = place
        .store
        .list(Some(&place.path))
        .try_collect()
        .await
        .map_err(|source| from_object_store(&location, source))?;
    let id = |path: &object_store::path::Path| {
        path.filename().and_then(|name| name.strip_suffix(".json")).map(ToOwned::to_owned)
    };
    let mut ids: Vec<String> = found.iter().filter_map(|file| id(&file.location)).collect();
    ids.sort();
    Ok(ids)
}

/// The backup `id`, or the newest one.
///
/// # Errors
/// `NotFound` where there is none; `Corrupt` where its list is damaged.
pub(crate) async fn open(stores: &Stores, backup: &str, id: Option<&str>) -> Result<Backup> {
    let ids = backups(stores, backup).await?;
    let id = match id {
        Some(id) if ids.iter().any(|known| known == id) => id.to_owned(),
        Some(id) => {
            return Err(Error::not_found(format!("there is no backup {id} in {backup}"))
                .with_hint(format!("there are: {}", ids.join(", "))));
        }
        None => ids.last().cloned().ok_or_else(|| {
            Error::not_found(format!("there is no backup in {backup}"))
                .with_hint("name the location that the backup was taken to")
        })?,
    };
    let location = list_in(backup, &id);
    let place = stores.resolve(&location)?;
    let read = async { place.store.get(&place.path).await?.bytes().await };
    let json = read.await.map_err(|source| from_object_store(&location, source))?;
    let list: Backup = serde_json::from_slice(&json).map_err(|source| {
        Error::corrupt("the list of the backup is damaged")
            .at(Place::file(location.as_str()))
            .with_source(source)
    })?;
    if list.format != FORMAT {
        return Err(Error::unsupported(format!(
            "the backup {id} has the format {}, this version knows {FORMAT}",
            list.format
        ))
        .with_hint("restore it with the version that took it, or with a newer one"));
    }
    Ok(list)
}
