//! Counts what a store is asked for.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};

/// Running totals of one or more stores.
#[derive(Debug, Default)]
pub struct StoreMetrics {
    reads: AtomicU64,
    bytes_read: AtomicU64,
    writes: AtomicU64,
    bytes_written: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
}

/// [`StoreMetrics`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreTotals {
    /// Read requests (one per range).
    pub reads: u64,
    /// Bytes asked for by reads.
    pub bytes_read: u64,
    /// Write requests: whole objects and parts.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Listings started.
    pub lists: u64,
    /// Objects deleted.
    pub deletes: u64,
}

impl StoreMetrics {
    /// The totals so far.
    pub fn totals(&self) -> StoreTotals {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreTotals {
            reads: get(&self.reads),
            bytes_read: get(&self.bytes_read),
            writes: get(&self.writes),
            bytes_written: get(&self.bytes_written),
            lists: get(&self.lists),
            deletes: get(&self.deletes),
        }
    }

    fn wrote(&self, bytes: usize) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn read(&self, requests: usize, bytes: u64) {
        self.reads.fetch_add(requests as u64, Ordering::Relaxed);
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A store whose requests and bytes are counted into shared [`StoreMetrics`].
#[derive(Debug)]
pub struct Metered<S> {
    store: S,
    metrics: Arc<StoreMetrics>,
}

impl<S> Metered<S> {
    /// Counts what goes to `store` into `metrics`.
    pub fn new(store: S, metrics: Arc<StoreMetrics>) -> Self {
        Self { store, metrics }
    }
}

impl<S: fmt::Display> fmt::Display for Metered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: ObjectStore> ObjectStore for Metered<S> {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.metrics.wrote(payload.content_length());
        self.store.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.store.put_multipart_opts(location, options).await?;
        Ok(Box::new(MeteredUpload { upload, metrics: self.metrics.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        let result = self.store.get_opts(location, options).await?;
        let bytes = if head { 0 } else { result.range.end - result.range.start };
        self.metrics.read(1, bytes);
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let parts = self.store.get_ranges(location, ranges).await?;
        self.metrics.read(parts.len(), parts.iter().map(|part| part.len() as u64).sum());
        Ok(parts)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let metrics = self.metrics.clone();
        let deleted = self.store.delete_stream(locations);
        deleted
            .inspect(move |_| {
                metrics.deletes.fetch_add(1, Ordering::Relaxed);
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.metrics.lists.fetch_add(1, Ordering::Relaxed);
        self.store.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.metrics.lists.fetch_add(1, Ordering::Relaxed);
        self.store.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.metrics.lists.fetch_add(1, Ordering::Relaxed);
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.metrics.wrote(0);
        self.store.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.metrics.wrote(0);
        self.store.rename_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct MeteredUpload {
    upload: Box<dyn MultipartUpload>,
    metrics: Arc<StoreMetrics>,
}

#[async_trait]
impl MultipartUpload for MeteredUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.metrics.wrote(data.content_length());
        self.upload.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}
