//! Taking a backup.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use bytes::Bytes;
use futures::StreamExt;
use stoa_error::{Error, ErrorKind, Result};
use stoa_table::{CATALOG_NAME, CatalogPlace, TableIdent, Warehouse};

use crate::copy::{AT_ONCE, Content, Progress, content_of, copy, size_of, write};
use crate::layout::{Backup, BackupFile, FORMAT, backups, file_in, list_in, open};

/// What a backup that was taken consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The backup.
    pub backup: Backup,
    /// Files that had to be copied; others were in the place already.
    pub copied_files: usize,
    /// Their bytes.
    pub copied_bytes: u64,
}

/// A file that is to be in the backup.
struct Wanted {
    path: String,
    /// Whether it may have been cleaned up meanwhile.
    is_older: bool,
}

/// Takes a backup of `warehouse` to the literal location `to`: of the catalog as it is now, and of all files that tables and
/// views refer to in it. `progress` is told after each file.
///
/// # Errors
/// `Unsupported` where a table lies outside the warehouse; `Conflict` (40001) where files were removed faster than they
/// could be copied: what was copied counts for the next try; `Unavailable` where a store or the catalog fails. No backup
/// is there then.
pub async fn take(
    warehouse: &Warehouse,
    to: &str,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Taken> {
    let to = to.trim_end_matches('/');
    if is_within(to, warehouse.location()) || is_within(warehouse.location(), to) {
        let message = format!("the backup {to} and the warehouse {} overlap", warehouse.location());
        return Err(Error::invalid(message).with_hint("take the backup to another place"));
    }
    let begun = warehouse.env().now_utc();
    let unique = warehouse.env().uuid().simple().to_string();
    let id = format!("{}-{}", begun.format("%Y%m%dT%H%M%S%3fZ"), &unique[..8]);
    let known = known_files(warehouse, to).await?;
    // The catalog first: what it names is copied after it.
    let scratch = tempfile::tempdir().map_err(|source| {
        Error::unavailable("no temporary directory for the catalog can be made").with_source(source)
    })?;
    let file = scratch.path().join("catalog.db");
    let catalog = CatalogPlace::File(file.clone()).open(CATALOG_NAME).await?;
    warehouse.catalog().copy_to(&catalog).await?;
    let (relations, wanted) = files(warehouse, &catalog).await?;
    catalog.close().await;
    let copied = copy_all(warehouse, to, wanted, &known, progress).await?;
    let bytes = whole_database(file).await?;
    let path = format!("catalogs/{id}.db");
    let content = write(warehouse.stores(), &format!("{to}/{path}"), bytes.into()).await?;
    let backup = Backup {
        format: FORMAT,
        id: id.clone(),
        begun,
        warehouse: warehouse.location().to_owned(),
        catalog: BackupFile { path, bytes: content.bytes, crc32c: content.crc32c },
        relations,
        files: copied.files,
    };
    let json = serde_json::to_vec(&backup).map_err(|source| {
        Error::internal("the list of the backup cannot be written").with_source(source)
    })?;
    write(warehouse.stores(), &list_in(to, &id), Bytes::from(json)).await?;
    Ok(Taken { backup, copied_files: copied.count, copied_bytes: copied.bytes })
}

/// A SQLite database as one file, without a write-ahead log beside it.
async fn whole_database(file: PathBuf) -> Result<Vec<u8>> {
    let read = move || {
        let whole = file.with_extension("whole");
        let database = rusqlite::Connection::open(&file).map_err(uncopied)?;
        let name = whole.to_string_lossy();
        database.execute("VACUUM INTO ?1", [name.as_ref()]).map_err(uncopied)?;
        std::fs::read(&whole).map_err(uncopied)
    };
    stoa_env::task::spawn_blocking(read).await.map_err(uncopied)?
}

fn uncopied(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::unavailable("the catalog cannot be copied").with_source(source)
}

fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The files of the newest backup, whose checksums are known.
async fn known_files(warehouse: &Warehouse, to: &str) -> Result<HashMap<String, Content>> {
    if backups(warehouse.stores(), to).await?.is_empty() {
        return Ok(HashMap::new());
    }
    let newest = open(warehouse.stores(), to, None).await?;
    if newest.warehouse != warehouse.location() {
        return Err(Error::invalid(format!(
            "{to} holds backups of {}, not of {}",
            newest.warehouse,
            warehouse.location()
        ))
        .with_hint("take the backup to a place of its own"));
    }
    let content =
        |file: BackupFile| (file.path, Content { bytes: file.bytes, crc32c: file.crc32c });
    Ok(newest.files.into_iter().map(content).collect())
}

/// The relations of a catalog, and the files that they need.
async fn files(
    warehouse: &Warehouse,
    catalog: &stoa_catalog::Catalog,
) -> Result<(Vec<String>, Vec<Wanted>)> {
    let mut relations = Vec::new();
    let (mut needed, mut older) = (BTreeSet::new(), BTreeSet::new());
    for listing in catalog.listing().await? {
        for name in listing.tables {
            let ident = TableIdent::new(&listing.namespace, name);
            let location = catalog.pointer(&ident).await?;
            let table = warehouse.table_at(&ident, &location).await.map_err(is_gone)?;
            let files = table.files().await.map_err(is_gone)?;
            for (files, all) in [(files.needed, &mut needed), (files.older, &mut older)] {
                for file in files {
                    all.insert(below(warehouse, &ident, &file)?);
                }
            }
            relations.push(ident.to_string());
        }
        for name in listing.views {
            let ident = TableIdent::new(&listing.namespace, name);
            let location = catalog.relation(&ident).await?.location;
            needed.insert(below(warehouse, &ident, &location)?);
            relations.push(ident.to_string());
        }
    }
    older.retain(|path| !needed.contains(path));
    let wanted = |is_older| move |path| Wanted { path, is_older };
    let files = needed.into_iter().map(wanted(false)).chain(older.into_iter().map(wanted(true)));
    Ok((relations, files.collect()))
}

/// The path of a file below the warehouse.
fn below(warehouse: &Warehouse, ident: &TableIdent, file: &str) -> Result<String> {
    let path = file.strip_prefix(warehouse.location()).and_then(|path| path.strip_prefix('/'));
    path.map(ToOwned::to_owned).ok_or_else(|| {
        Error::unsupported(format!("{ident} has files outside the warehouse"))
            .with_detail(format!("{file} is not below {}", warehouse.location()))
            .with_hint("drop it from the catalog, or copy the table into the warehouse (CREATE TABLE … AS)")
    })
}

struct Copied {
    files: Vec<BackupFile>,
    count: usize,
    bytes: u64,
}

async fn copy_all(
    warehouse: &Warehouse,
    to: &str,
    wanted: Vec<Wanted>,
    known: &HashMap<String, Content>,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Copied> {
    let mut done = Progress { files_total: wanted.len(), ..Progress::default() };
    let mut copied = Copied { files: Vec::with_capacity(wanted.len()), count: 0, bytes: 0 };
    let copies: Vec<_> = wanted.iter().map(|file| copy_one(warehouse, to, file, known)).collect();
    let mut copies = futures::stream::iter(copies).buffer_unordered(AT_ONCE);
    while let Some(file) = copies.next().await {
        done.files += 1;
        if let Some((file, is_new)) = file? {
            if is_new {
                copied.count += 1;
                copied.bytes += file.bytes;
                done.bytes += file.bytes;
            }
            copied.files.push(file);
        }
        progress(done);
    }
    copied.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(copied)
}

/// The file in the backup, and whether it had to be copied; `None` for an older one that is gone.
async fn copy_one(
    warehouse: &Warehouse,
    to: &str,
    wanted: &Wanted,
    known: &HashMap<String, Content>,
) -> Result<Option<(BackupFile, bool)>> {
    let stores = warehouse.stores();
    let path = &wanted.path;
    let (from, target) = (format!("{}/{path}", warehouse.location()), file_in(to, path));
    let file = |content: Content| BackupFile {
        path: path.clone(),
        bytes: content.bytes,
        crc32c: content.crc32c,
    };
    let there = size_of(&stores.resolve(&target)?, &target).await?;
    if there.is_some() {
        // One that an interrupted backup has left is not in any list.
        let content = match known.get(path) {
            Some(content) if there == Some(content.bytes) => *content,
            _ => content_of(stores, &target).await?,
        };
        let source = size_of(&stores.resolve(&from)?, &from).await?;
        if source.is_some_and(|bytes| bytes != content.bytes) {
            return Err(Error::corrupt(format!(
                "{target} has {} bytes, {from} has {}",
                content.bytes,
                source.unwrap_or_default()
            ))
            .with_hint("take the backup to a new place, and find out what changed the file"));
        }
        return Ok(Some((file(content), false)));
    }
    match copy(stores, &from, &target).await {
        Ok(content) => Ok(Some((file(content), true))),
        Err(error) if wanted.is_older && error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(is_gone(error)),
    }
}

/// A file that was there when the catalog was copied was removed since.
fn is_gone(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => {
            Error::conflict("a file was removed before it could be copied")
                .with_sqlstate("40001")
                .with_hint("take the backup again: what was copied is not copied again. If it happens again, let tables keep their snapshots longer (history.expire.max-snapshot-age-ms)")
                .with_source(error)
        }
        _ => error,
    }
}
