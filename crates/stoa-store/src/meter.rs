//! Counts what a store is asked for: [`Metered`] by calls, `s3` by requests.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use stoa_env::clock::monotonic;

/// Running totals of one store.
#[derive(Debug, Default)]
pub struct StoreMetrics {
    reads: AtomicU64,
    heads: AtomicU64,
    writes: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    errors: AtomicU64,
    retries: AtomicU64,
    wait_us: AtomicU64,
}

/// [`StoreMetrics`] at one moment.
///
/// An object store is counted where requests leave: each page of a listing, each part of an upload
/// and each retry is one. A local disk is counted by calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreTotals {
    /// Read requests (GET); of a local disk, ranges.
    pub reads: u64,
    /// Requests for an object's size only (HEAD).
    pub heads: u64,
    /// Write requests (PUT, POST): whole objects, parts, beginnings and ends of uploads.
    pub writes: u64,
    /// Requests that list (LIST).
    pub lists: u64,
    /// Requests that delete, of one object or of many; of a local disk, files.
    pub deletes: u64,
    /// Bytes that reads gave.
    pub bytes_read: u64,
    /// Bytes sent.
    pub bytes_written: u64,
    /// Requests that failed in a way that may pass: no connection, 5xx, 429, 408; of a local disk,
    /// any error but a missing file.
    pub errors: u64,
    /// Failed requests that were sent again.
    pub retries: u64,
    /// Time until answers began, summed over requests, in microseconds.
    pub wait_us: u64,
}

impl StoreTotals {
    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.reads + self.heads + self.writes + self.lists + self.deletes
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            heads: self.heads + other.heads,
            writes: self.writes + other.writes,
            lists: self.lists + other.lists,
            deletes: self.deletes + other.deletes,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
            errors: self.errors + other.errors,
            retries: self.retries + other.retries,
            wait_us: self.wait_us + other.wait_us,
        }
    }
}

/// Kinds of requests, as price lists know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Read,
    Head,
    Write,
    List,
    Delete,
}

impl StoreMetrics {
    /// The totals so far.
    pub fn totals(&self) -> StoreTotals {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreTotals {
            reads: get(&self.reads),
            heads: get(&self.heads),
            writes: get(&self.writes),
            lists: get(&self.lists),
            deletes: get(&self.deletes),
            bytes_read: get(&self.bytes_read),
            bytes_written: get(&self.bytes_written),
            errors: get(&self.errors),
            retries: get(&self.retries),
            wait_us: get(&self.wait_us),
        }
    }

    /// Counts all of `totals`.
    pub(crate) fn add(&self, totals: &StoreTotals) {
        add(&self.reads, totals.reads);
        add(&self.heads, totals.heads);
        add(&self.writes, totals.writes);
        add(&self.lists, totals.lists);
        add(&self.deletes, totals.deletes);
        add(&self.bytes_read, totals.bytes_read);
        add(&self.bytes_written, totals.bytes_written);
        add(&self.errors, totals.errors);
        add(&self.retries, totals.retries);
        add(&self.wait_us, totals.wait_us);
    }

    /// Counts a request that took `bytes` along and whose answer began after `wait`.
    pub(crate) fn add_request(&self, kind: RequestKind, bytes: u64, wait: Duration) {
        self.add_requests(kind, 1);
        add(&self.bytes_written, bytes);
        add(&self.wait_us, wait.as_micros().try_into().unwrap_or(u64::MAX));
    }

    pub(crate) fn add_bytes_read(&self, bytes: u64) {
        add(&self.bytes_read, bytes);
    }

    pub(crate) fn add_error(&self) {
        add(&self.errors, 1);
    }

    pub(crate) fn add_retry(&self) {
        add(&self.retries, 1);
    }

    fn add_requests(&self, kind: RequestKind, requests: u64) {
        let counter = match kind {
            RequestKind::Read => &self.reads,
            RequestKind::Head => &self.heads,
            RequestKind::Write => &self.writes,
            RequestKind::List => &self.lists,
            RequestKind::Delete => &self.deletes,
        };
        add(counter, requests);
    }

    fn check<T>(&self, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome
            && !matches!(error, object_store::Error::NotFound { .. })
        {
            self.add_error();
        }
        outcome
    }
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
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
        let bytes = payload.content_length() as u64;
        let started = monotonic();
        let outcome = self.store.put_opts(location, payload, options).await;
        self.metrics.add_request(RequestKind::Write, bytes, started.elapsed());
        self.metrics.check(outcome)
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
        let kind = if head { RequestKind::Head } else { RequestKind::Read };
        let started = monotonic();
        let outcome = self.store.get_opts(location, options).await;
        self.metrics.add_request(kind, 0, started.elapsed());
        let result = self.metrics.check(outcome)?;
        if !head {
            self.metrics.add_bytes_read(result.range.end - result.range.start);
        }
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let started = monotonic();
        let outcome = self.store.get_ranges(location, ranges).await;
        self.metrics.add_request(RequestKind::Read, 0, started.elapsed());
        let parts = self.metrics.check(outcome)?;
        self.metrics.add_requests(RequestKind::Read, (parts.len() as u64).saturating_sub(1));
        self.metrics.add_bytes_read(parts.iter().map(|part| part.len() as u64).sum());
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
                metrics.add_requests(RequestKind::Delete, 1);
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.metrics.add_requests(RequestKind::List, 1);
        self.store.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.metrics.add_requests(RequestKind::List, 1);
        self.store.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.metrics.add_requests(RequestKind::List, 1);
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.metrics.add_requests(RequestKind::Write, 1);
        self.store.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.metrics.add_requests(RequestKind::Write, 1);
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
        self.metrics.add_request(RequestKind::Write, data.content_length() as u64, Duration::ZERO);
        self.upload.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}
