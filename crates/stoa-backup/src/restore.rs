//! Restoring a backup into an empty warehouse.

use std::collections::HashMap;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use stoa_catalog::Catalog;
use stoa_error::{Error, Result};
use stoa_store::{Stores, from_object_store, literal_of};
use stoa_table::{CATALOG_NAME, CatalogPlace, Warehouse, WarehouseOptions};

use crate::copy::{AT_ONCE, Content, Progress, copy, read, write};
use crate::layout::{Backup, BackupFile, file_in, open};
use crate::relocate::{Kind, Move, kind_of};
use crate::verify::check;

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The backup.
    pub backup: Backup,
    /// The literal location of the warehouse.
    pub warehouse: String,
    /// Tables that were checked: all of their files are there, with their sizes and rows.
    pub tables: usize,
}

/// Restores the backup `id` at the literal location `backup`, or the newest one, as the warehouse that `options` describe,
/// which must be empty, and checks its tables. Rows that were in commit logs only are not in a backup.
///
/// # Errors
/// `AlreadyExists` where the warehouse or its catalog holds anything; `Corrupt` where a file of the backup is not as it
/// was; `Unsupported` where tables cannot be moved; `NotFound` where there is no such backup. The catalog is written after
/// all files: if one of them cannot be restored there is none, but files, which have to be removed before the next try.
pub async fn restore(
    backup: &str,
    id: Option<&str>,
    options: &WarehouseOptions,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Restored> {
    let location = backup.trim_end_matches('/');
    let stores = Stores::with_s3(options.s3.clone());
    let backup = open(&stores, location, id).await?;
    let target = literal_of(&options.url)?;
    refuse_contents(&stores, &target, &options.catalog_place()?).await?;
    let scratch = tempfile::tempdir().map_err(|source| {
        Error::unavailable("no temporary directory for the catalog can be made").with_source(source)
    })?;
    let file = scratch.path().join("catalog.db");
    let stored = format!("{location}/{}", backup.catalog.path);
    let bytes = sound(&stores, &stored, &backup.catalog).await?;
    tokio::fs::write(&file, &bytes).await.map_err(|source| {
        Error::unavailable("the copy of the catalog cannot be written").with_source(source)
    })?;
    let catalog = CatalogPlace::File(file).open(CATALOG_NAME).await?;
    let to = Move { from: backup.warehouse.clone(), to: target.clone() };
    catalog.relocate(&to.from, &to.to).await?;
    Files { stores: &stores, location, backup: &backup, to: &to }.restore(progress).await?;
    let tables = name_and_check(&catalog, options).await?;
    catalog.close().await;
    Ok(Restored { backup, warehouse: target, tables })
}

/// Puts the names into the catalog of the warehouse, and checks all tables; gives back how many there are.
async fn name_and_check(catalog: &Catalog, options: &WarehouseOptions) -> Result<usize> {
    let place = options.catalog_place()?;
    let named = place.open(CATALOG_NAME).await?;
    catalog.copy_to(&named).await?;
    named.close().await;
    let warehouse = Warehouse::open_with(options).await?;
    let idents = warehouse.all_tables().await?;
    let mut problems = Vec::new();
    for ident in &idents {
        let report = warehouse.table(ident).await?.check().await?;
        let named =
            |problem: &stoa_table::Problem| format!("{ident}: {}: {}", problem.place, problem.what);
        problems.extend(report.problems.iter().map(named));
    }
    match problems.is_empty() {
        true => Ok(idents.len()),
        false => Err(Error::corrupt(format!("{} problems in what was restored", problems.len()))
            .with_detail(problems.join("\n"))
            .with_hint("`stoa table check` lists them again")),
    }
}

/// Refuses a warehouse that is not empty.
async fn refuse_contents(stores: &Stores, target: &str, catalog: &CatalogPlace) -> Result<()> {
    let refused = |what: String| {
        Error::already_exists(what)
            .with_hint("restore into an empty place; move away or remove what is there")
    };
    if let Some(file) = catalog.file().filter(|file| file.exists()) {
        return Err(refused(format!("there is a catalog {} already", file.display())));
    }
    let place = stores.resolve(target)?;
    let first = place.store.list(Some(&place.path)).try_next().await;
    match first.map_err(|source| from_object_store(target, source))? {
        Some(file) => {
            Err(refused(format!("{} is there already", place.literal_of(&file.location))))
        }
        None => Ok(()),
    }
}

/// A small file of the backup, whole.
async fn sound(stores: &Stores, literal: &str, file: &BackupFile) -> Result<Bytes> {
    if let (_, Some(problem)) = check(stores, literal, file).await? {
        return Err(damaged(problem));
    }
    read(stores, literal).await
}

fn damaged(problem: String) -> Error {
    Error::corrupt("a file of the backup is damaged")
        .with_detail(problem)
        .with_hint("restore another backup; `stoa backup verify` checks one")
}

/// The files of a backup on their way.
struct Files<'a> {
    stores: &'a Stores,
    location: &'a str,
    backup: &'a Backup,
    to: &'a Move,
}

impl Files<'_> {
    async fn restore(&self, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        let mut done = Progress { files_total: self.backup.files.len(), ..Progress::default() };
        let is_moved = self.to.from != self.to.to;
        let is_metadata = |file: &&BackupFile| {
            is_moved && (file.path.ends_with(".avro") || file.path.ends_with(".metadata.json"))
        };
        let (metadata, plain): (Vec<_>, Vec<_>) = self.backup.files.iter().partition(is_metadata);
        let copies: Vec<_> = plain.into_iter().map(|file| self.copied(file)).collect();
        let mut copies = futures::stream::iter(copies).buffer_unordered(AT_ONCE);
        while let Some(bytes) = copies.next().await {
            done.files += 1;
            done.bytes += bytes?;
            progress(done);
        }
        // Lists state the sizes of manifests, so these come first.
        let mut lists = Vec::new();
        let mut sizes = HashMap::new();
        for file in metadata {
            let bytes = sound(self.stores, &file_in(self.location, &file.path), file).await?;
            let target = self.target(&file.path);
            let moved = match kind_of(&file.path, &bytes) {
                Kind::ManifestList => {
                    lists.push((file, bytes));
                    continue;
                }
                Kind::Manifest => {
                    let moved = self.to.avro(&file.path, &bytes, &sizes)?;
                    sizes.insert(target.clone(), moved.len() as u64);
                    moved
                }
                Kind::Other if file.path.ends_with(".json") => self.to.json(&file.path, &bytes)?,
                Kind::Other => bytes,
            };
            done.files += 1;
            done.bytes += self.written(&target, moved).await?;
            progress(done);
        }
        for (file, bytes) in lists {
            let moved = self.to.avro(&file.path, &bytes, &sizes)?;
            done.files += 1;
            done.bytes += self.written(&self.target(&file.path), moved).await?;
            progress(done);
        }
        Ok(())
    }

    fn target(&self, path: &str) -> String {
        format!("{}/{path}", self.to.to)
    }

    async fn written(&self, target: &str, bytes: Bytes) -> Result<u64> {
        Ok(write(self.stores, target, bytes).await?.bytes)
    }

    /// Copies a file as it is, and compares it with what the backup says; gives back its size.
    async fn copied(&self, file: &BackupFile) -> Result<u64> {
        let from = file_in(self.location, &file.path);
        let content = copy(self.stores, &from, &self.target(&file.path)).await?;
        match content == (Content { bytes: file.bytes, crc32c: file.crc32c }) {
            true => Ok(content.bytes),
            false => {
                Err(damaged(format!("{from}: its bytes are not those that were copied (CRC-32C)")))
            }
        }
    }
}
