//! Metadata files on the store: table metadata, manifest lists, manifests.
//!
//! Reading goes through caches (the files are immutable); writing is durable when it returns and
//! never replaces a file.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use iceberg::io::FileIO;
use iceberg::spec::{
    FormatVersion, Manifest, ManifestContentType, ManifestFile, ManifestList, ManifestListWriter,
    ManifestWriter, ManifestWriterBuilder, PartitionSpec, Schema, Snapshot, Struct, TableMetadata,
};
use object_store::ObjectStoreExt;
use stoa_error::{Error, ErrorKind, Place, Result};
use stoa_store::{Stores, from_object_store};

use crate::cache::Cache;
use crate::declared;
use crate::deletes::{DeleteCache, DeleteFile};
use crate::error::from_iceberg;
use crate::lineage::Lineage;
use crate::scan::{ScanFile, file_entry};

/// A parsed table metadata file.
#[derive(Debug)]
pub(crate) struct LoadedMetadata {
    pub(crate) metadata: Arc<TableMetadata>,
    pub(crate) schema: arrow_schema::SchemaRef,
    /// Of the file, unpacked; 0 where there is none yet.
    pub(crate) bytes: usize,
}

/// Live files of one manifest.
#[derive(Debug)]
pub(crate) struct LoadedManifest {
    /// In the order of the manifest's live entries.
    pub(crate) files: Vec<LiveFile>,
    /// The partition spec of all of them.
    pub(crate) spec_id: i32,
}

/// One live file of a manifest.
#[derive(Debug)]
pub(crate) struct LiveFile {
    pub(crate) file: Arc<ScanFile>,
    /// Partition values as the manifest holds them.
    pub(crate) partition: Struct,
    pub(crate) sequence_number: i64,
    /// What it deletes, if it is a delete file.
    pub(crate) delete: Option<Arc<DeleteFile>>,
}

/// What all entries of a manifest have in common.
#[derive(Debug)]
pub(crate) struct ManifestKind {
    pub(crate) content: ManifestContentType,
    pub(crate) schema: Arc<Schema>,
    pub(crate) spec: PartitionSpec,
}

/// What caches may hold in total, by estimate.
const METADATA_CACHE_BYTES: usize = 64 << 20;
const MANIFEST_LIST_CACHE_BYTES: usize = 32 << 20;
const MANIFEST_CACHE_BYTES: usize = 256 << 20;

/// A metadata file of a table may have so many bytes, packed or unpacked.
pub(crate) const METADATA_BYTES_MAX: usize = 1 << 30;

/// Reads and writes metadata files.
#[derive(Debug)]
pub(crate) struct MetadataFiles {
    stores: Stores,
    metadata: Cache<LoadedMetadata>,
    lists: Cache<Vec<ManifestFile>>,
    manifests: Cache<LoadedManifest>,
    deletes: DeleteCache,
}

impl MetadataFiles {
    pub(crate) fn new(stores: Stores) -> Self {
        Self {
            stores,
            metadata: Cache::new(METADATA_CACHE_BYTES),
            lists: Cache::new(MANIFEST_LIST_CACHE_BYTES),
            manifests: Cache::new(MANIFEST_CACHE_BYTES),
            deletes: DeleteCache::new(),
        }
    }

    /// What delete files hold.
    pub(crate) fn deletes(&self) -> &DeleteCache {
        &self.deletes
    }

    /// The table metadata at `location`.
    pub(crate) async fn table_metadata(&self, location: &str) -> Result<Arc<LoadedMetadata>> {
        match self.metadata.get(location) {
            Some(known) => Ok(known),
            None => self.read_table_metadata(location).await,
        }
    }

    /// Boxed, so that who opens a table that is known makes no room for this.
    fn read_table_metadata<'a>(
        &'a self,
        location: &'a str,
    ) -> BoxFuture<'a, Result<Arc<LoadedMetadata>>> {
        Box::pin(async move {
            let json = self.read_json(location, METADATA_BYTES_MAX).await?;
            let metadata: TableMetadata = serde_json::from_slice(&json).map_err(|source| {
                Error::corrupt("the table metadata is not valid")
                    .at(Place::file(location))
                    .with_source(source)
            })?;
            let bytes = json.len();
            Ok(self.metadata.put(location, loaded(metadata, bytes)?, bytes * 4))
        })
    }

    /// Writes table metadata; it must not exist.
    pub(crate) async fn write_table_metadata(
        &self,
        location: &str,
        metadata: TableMetadata,
    ) -> Result<Arc<LoadedMetadata>> {
        let json = serde_json::to_vec(&metadata).map_err(|source| {
            Error::internal("the table metadata cannot be written")
                .at(Place::file(location))
                .with_source(source)
        })?;
        let bytes = json.len();
        self.write(location, json.into()).await?;
        Ok(self.metadata.put(location, loaded(metadata, bytes)?, bytes * 4))
    }

    /// The manifests of `snapshot`.
    pub(crate) async fn manifest_list(
        &self,
        snapshot: &Snapshot,
        version: FormatVersion,
    ) -> Result<Arc<Vec<ManifestFile>>> {
        let location = snapshot.manifest_list();
        if let Some(known) = self.lists.get(location) {
            return Ok(known);
        }
        let bytes = self.read(location).await?;
        let list = ManifestList::parse_with_version(&bytes, version)
            .map_err(|e| from_iceberg(location, e))?;
        let entries: Vec<_> = list.consume_entries().into_iter().collect();
        Ok(self.lists.put(location, entries, bytes.len() * 4))
    }

    /// The live files of `manifest`.
    pub(crate) async fn manifest(&self, manifest: &ManifestFile) -> Result<Arc<LoadedManifest>> {
        let location = &manifest.manifest_path;
        if let Some(known) = self.manifests.get(location) {
            return Ok(known);
        }
        let (parsed, bytes) = self.parse_manifest(manifest).await?;
        let loaded = self.live_files(manifest, &parsed)?;
        Ok(self.manifests.put(location, loaded, bytes * 8))
    }

    /// The manifest with all its entries, uncached, and its size in bytes.
    pub(crate) async fn parse_manifest(
        &self,
        manifest: &ManifestFile,
    ) -> Result<(Manifest, usize)> {
        let location = &manifest.manifest_path;
        if manifest.key_metadata.as_ref().is_some_and(|key| !key.is_empty()) {
            return Err(Error::unsupported("the manifest is encrypted").at(Place::file(location)));
        }
        let bytes = self.read(location).await?;
        let parsed = Manifest::parse_avro(&bytes).map_err(|e| from_iceberg(location, e))?;
        Ok((parsed, bytes.len()))
    }

    fn live_files(&self, list_entry: &ManifestFile, manifest: &Manifest) -> Result<LoadedManifest> {
        let mut files = Vec::with_capacity(manifest.entries().len());
        for entry in manifest.entries().iter().filter(|entry| entry.is_alive()) {
            let file = entry.data_file();
            let lineage = Lineage::of(list_entry, entry);
            let described =
                file_entry(&self.stores, manifest.metadata(), file, lineage.snapshot_id)?;
            let described = Arc::new(described);
            let delete = match list_entry.content {
                ManifestContentType::Data => None,
                ManifestContentType::Deletes => {
                    let delete = DeleteFile::of(described.clone(), file, lineage.sequence_number);
                    let delete = delete.map_err(|what| {
                        Error::corrupt(format!(
                            "{}: an entry is not valid",
                            list_entry.manifest_path
                        ))
                        .with_detail(format!("{}: {what}", file.file_path()))
                    });
                    Some(Arc::new(delete?))
                }
            };
            files.push(LiveFile {
                file: described,
                partition: file.partition().clone(),
                sequence_number: lineage.sequence_number,
                delete,
            });
        }
        Ok(LoadedManifest { files, spec_id: list_entry.partition_spec_id })
    }

    /// Writes a manifest whose entries `fill` adds, and gives back its entry for the manifest list.
    pub(crate) async fn write_manifest_with(
        &self,
        location: &str,
        snapshot_id: i64,
        kind: ManifestKind,
        fill: impl FnOnce(&mut ManifestWriter) -> iceberg::Result<()>,
    ) -> Result<ManifestFile> {
        let failed = |e| from_iceberg(location, e);
        let memory = FileIO::new_with_memory();
        let output = memory.new_output(SCRATCH).map_err(failed)?;
        let ManifestKind { content, schema, spec } = kind;
        let builder = ManifestWriterBuilder::new(output, Some(snapshot_id), schema, spec);
        let mut writer = match content {
            ManifestContentType::Data => builder.build_v2_data(),
            ManifestContentType::Deletes => builder.build_v2_deletes(),
        };
        fill(&mut writer).map_err(failed)?;
        let mut entry = writer.write_manifest_file().await.map_err(failed)?;
        let bytes = scratch_bytes(&memory).await.map_err(failed)?;
        entry.manifest_path = location.to_owned();
        entry.manifest_length = bytes.len() as i64;
        self.write(location, bytes).await?;
        Ok(entry)
    }

    /// Writes a manifest list.
    pub(crate) async fn write_manifest_list(
        &self,
        location: &str,
        snapshot_id: i64,
        parent: Option<i64>,
        sequence_number: i64,
        manifests: Vec<ManifestFile>,
    ) -> Result<()> {
        let failed = |e| from_iceberg(location, e);
        let memory = FileIO::new_with_memory();
        let output = memory.new_output(SCRATCH).map_err(failed)?;
        let file = output.writer().await.map_err(failed)?;
        let mut writer = ManifestListWriter::v2(file, snapshot_id, parent, sequence_number);
        writer.add_manifests(manifests.into_iter()).map_err(failed)?;
        writer.close().await.map_err(failed)?;
        let bytes = scratch_bytes(&memory).await.map_err(failed)?;
        self.write(location, bytes).await
    }

    /// The metadata file at `location`, unpacked where another engine wrote it compressed
    /// (`….gz.metadata.json`).
    ///
    /// # Errors
    /// `Corrupt` where it is missing or damaged; `Unsupported` (54000) where it has more than `bytes_max`
    /// bytes.
    pub(crate) async fn read_json(&self, location: &str, bytes_max: usize) -> Result<Bytes> {
        let bytes = self.read_up_to(location, bytes_max).await?;
        gunzip(location, &bytes, bytes_max)
    }

    /// The whole file at `location`.
    pub(crate) async fn read(&self, location: &str) -> Result<Bytes> {
        self.read_up_to(location, usize::MAX).await
    }

    async fn read_up_to(&self, location: &str, bytes_max: usize) -> Result<Bytes> {
        let place = self.stores.resolve(location)?;
        let get = place.store.get(&place.path).await;
        if get.as_ref().is_ok_and(|file| file.meta.size > bytes_max as u64) {
            return Err(too_large(location, bytes_max));
        }
        let read = async { get?.bytes().await };
        read.await.map_err(|source| match source {
            // A metadata file that another metadata file names must be there.
            object_store::Error::NotFound { .. } => {
                Error::new(ErrorKind::Corrupt, format!("{location}: the file is missing"))
                    .with_hint("`stoa table check` lists everything that is missing")
                    .with_source(source)
            }
            other => from_object_store(location, other),
        })
    }

    /// Writes a new file, durable when this returns.
    pub(crate) async fn write(&self, location: &str, bytes: Bytes) -> Result<()> {
        let place = self.stores.resolve(location)?;
        place.put_new(&bytes).await.map_err(|source| from_object_store(location, source))
    }

    /// Deletes files that nothing refers to; ones that are gone already do not matter. Gives back
    /// how many were deleted.
    pub(crate) async fn delete(&self, locations: &[String]) -> Result<usize> {
        // Made before they are streamed; see `scan::plan`.
        let deletions: Vec<_> =
            locations.iter().map(|location| self.delete_one(location)).collect();
        let counts: Vec<Result<usize>> =
            futures::stream::iter(deletions).buffer_unordered(8).collect().await;
        counts.into_iter().sum()
    }

    async fn delete_one(&self, location: &str) -> Result<usize> {
        let place = self.stores.resolve(location)?;
        match place.store.delete(&place.path).await {
            Ok(()) => Ok(1),
            Err(object_store::Error::NotFound { .. }) => Ok(0),
            Err(source) => Err(from_object_store(location, source)),
        }
    }
}

/// Name of the one file in a memory store.
const SCRATCH: &str = "memory://scratch";

async fn scratch_bytes(memory: &FileIO) -> iceberg::Result<Bytes> {
    memory.new_input(SCRATCH)?.read().await
}

fn loaded(metadata: TableMetadata, bytes: usize) -> Result<LoadedMetadata> {
    let schema = declared::schema_of(&metadata)?;
    Ok(LoadedMetadata { metadata: Arc::new(metadata), schema, bytes })
}

/// Unpacks metadata that is compressed.
fn gunzip(location: &str, bytes: &Bytes, bytes_max: usize) -> Result<Bytes> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes.clone());
    }
    let mut json = Vec::new();
    let mut unpacked = flate2::read::GzDecoder::new(&bytes[..]).take(bytes_max as u64 + 1);
    unpacked.read_to_end(&mut json).map_err(|source| {
        Error::corrupt("the metadata cannot be unpacked")
            .at(Place::file(location))
            .with_source(source)
    })?;
    match json.len() > bytes_max {
        true => Err(too_large(location, bytes_max)),
        false => Ok(json.into()),
    }
}

fn too_large(location: &str, bytes_max: usize) -> Error {
    Error::unsupported(format!("the metadata file has more than {bytes_max} bytes"))
        .at(Place::file(location))
        .with_sqlstate("54000")
        .with_hint("shorten its history with the engine that wrote it")
}
