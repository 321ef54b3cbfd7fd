//! The local disk as an object store whose writes are durable.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, TryFutureExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    Result, UploadPart,
};
use stoa_env::task::spawn_blocking;

use crate::durable::{Replace, Staged, create_directory};

/// Local files from the root directory on; reads are [`LocalFileSystem`]'s, writes are durable
/// when they return (temporary name, fsync, link or rename, fsync of the directory).
#[derive(Clone, Debug)]
pub struct LocalStore {
    files: Arc<LocalFileSystem>,
}

impl LocalStore {
    /// The whole file system; paths are absolute without their first slash.
    pub fn new() -> Self {
        Self { files: Arc::new(LocalFileSystem::new()) }
    }
}

impl Default for LocalStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("local files")
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ObjectStore for LocalStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let replace = match options.mode {
            PutMode::Create => Replace::Never,
            PutMode::Overwrite => Replace::Whole,
            // Local files have no version to compare with.
            PutMode::Update(_) => return self.files.put_opts(location, payload, options).await,
        };
        let target = self.files.path_to_filesystem(location)?;
        let place = location.to_string();
        blocking(place, move || {
            let staged = Staged::create(target)?;
            let mut file = staged.file();
            payload.iter().try_for_each(|part| file.write_all(part))?;
            staged.publish(replace)
        })
        .await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let target = self.files.path_to_filesystem(location)?;
        let place = location.to_string();
        let (staged, file) = blocking(place.clone(), move || {
            let staged = Staged::create(target)?;
            let file = Arc::new(staged.file().try_clone()?);
            Ok((staged, file))
        })
        .await?;
        Ok(Box::new(LocalUpload { staged: Some(staged), file, offset: 0, place }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.files.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let target = self.files.path_to_filesystem(to)?;
        let Some(parent) = target.parent().map(std::path::Path::to_owned) else {
            return self.files.rename_opts(from, to, options).await;
        };
        let (place, made) = (to.to_string(), parent.clone());
        blocking(place.clone(), move || create_directory(&made)).await?;
        self.files.rename_opts(from, to, options).await?;
        // As what is written, a name survives a power cut once this returns.
        blocking(place, move || std::fs::File::open(&parent)?.sync_all()).await
    }
}

/// A file growing part by part under a temporary name; dropped unfinished, it is removed.
#[derive(Debug)]
struct LocalUpload {
    staged: Option<Staged>,
    file: Arc<File>,
    offset: u64,
    place: String,
}

#[async_trait]
impl MultipartUpload for LocalUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let mut offset = self.offset;
        self.offset += data.content_length() as u64;
        let file = self.file.clone();
        blocking(self.place.clone(), move || {
            for part in &data {
                file.write_all_at(part, offset)?;
                offset += part.len() as u64;
            }
            Ok(())
        })
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let staged = self.staged.take().ok_or_else(|| finished(&self.place))?;
        blocking(self.place.clone(), move || staged.publish(Replace::Whole)).await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        let staged = self.staged.take().ok_or_else(|| finished(&self.place))?;
        blocking(self.place.clone(), move || {
            drop(staged);
            Ok(())
        })
        .await
    }
}

/// Runs `work` where it may block; errors name `place`.
fn blocking<T: Send + 'static>(
    place: String,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> impl Future<Output = Result<T>> + Send + 'static {
    spawn_blocking(work)
        .map_err(|source| Error::JoinError { source })
        .map(move |joined| joined?.map_err(|source| store_error(place, source)))
}

fn store_error(path: String, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotFound => Error::NotFound { path, source: source.into() },
        io::ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: source.into() },
        io::ErrorKind::PermissionDenied => Error::PermissionDenied { path, source: source.into() },
        _ => Error::Generic { store: "local files", source: Box::new(Failed { path, source }) },
    }
}

/// An error of the operating system, with the path.
#[derive(Debug)]
struct Failed {
    path: String,
    source: io::Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.source)
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn finished(place: &str) -> Error {
    Error::Generic {
        store: "local files",
        source: format!("{place}: the upload is finished already").into(),
    }
}
