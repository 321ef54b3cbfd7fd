//! Runs a plan on a store.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use stoa_env::clock;
use stoa_error::{Error, Result};

use crate::plan::union;
use crate::{PlannedRead, ReadMetrics, ReaderOptions, plan};

/// Reads byte ranges of objects in one store. Cheap to clone; clones share their counters.
#[derive(Clone, Debug)]
pub struct RangeReader {
    store: Arc<dyn ObjectStore>,
    options: Arc<ReaderOptions>,
    metrics: Arc<ReadMetrics>,
}

impl RangeReader {
    /// A reader on `store`.
    pub fn new(store: Arc<dyn ObjectStore>, options: ReaderOptions) -> Self {
        Self { store, options: Arc::new(options), metrics: Arc::default() }
    }

    /// The same reader with counters of its own, for instance those of one query.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<ReadMetrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// The counters of this reader and its clones.
    pub fn metrics(&self) -> &Arc<ReadMetrics> {
        &self.metrics
    }

    /// Reads `ranges` of the object at `path`; returns chunks as (offset, bytes), sorted.
    ///
    /// Every range asked for lies whole inside one chunk. Chunks may hold bytes nobody asked
    /// for. Dropping the future cancels what is in flight.
    ///
    /// # Errors
    /// `NotFound` if the object is missing, `Corrupt` if it is shorter than a range asks for,
    /// `Unavailable` if the store does not answer.
    pub async fn read(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<(u64, Bytes)>> {
        let started = clock::monotonic();
        let wanted = union(ranges);
        let needed = wanted.iter().map(|range| range.end - range.start).sum();
        let reads = plan(&wanted, &self.options.plan);
        let chunks = if self.options.one_call {
            self.read_in_one_call(path, reads).await
        } else {
            self.read_in_parallel(path, reads).await
        }?;
        self.metrics.add_call(needed, clock::monotonic() - started);
        Ok(stitch(chunks, &wanted))
    }

    async fn read_in_one_call(
        &self,
        path: &Path,
        reads: Vec<PlannedRead>,
    ) -> Result<Vec<(u64, Bytes)>> {
        let ranges: Vec<Range<u64>> = reads.iter().map(|read| read.range.clone()).collect();
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        self.metrics.add_request();
        let all = self.store.get_ranges(path, &ranges).await.map_err(|e| store_error(path, e))?;
        let mut chunks = Vec::with_capacity(reads.len());
        for (read, bytes) in reads.iter().zip(all) {
            self.take(path, read, bytes, &mut chunks)?;
        }
        Ok(chunks)
    }

    async fn read_in_parallel(
        &self,
        path: &Path,
        reads: Vec<PlannedRead>,
    ) -> Result<Vec<(u64, Bytes)>> {
        let answers = stream::iter(reads)
            .map(|read| async move {
                self.metrics.add_request();
                let bytes = self
                    .store
                    .get_range(path, read.range.clone())
                    .await
                    .map_err(|e| store_error(path, e))?;
                Ok::<_, Error>((read, bytes))
            })
            .buffered(self.options.parallelism.max(1))
            .try_collect::<Vec<_>>()
            .await?;
        let mut chunks = Vec::with_capacity(answers.len());
        for (read, bytes) in answers {
            self.take(path, &read, bytes, &mut chunks)?;
        }
        Ok(chunks)
    }

    /// Checks one answer and adds its chunks: the whole read, or copies of the needed parts.
    fn take(
        &self,
        path: &Path,
        read: &PlannedRead,
        bytes: Bytes,
        chunks: &mut Vec<(u64, Bytes)>,
    ) -> Result<()> {
        self.metrics.add_bytes_read(bytes.len() as u64);
        if bytes.len() as u64 != read.read_bytes() {
            return Err(Error::corrupt(format!(
                "{path} bytes {}..{}: the store returned {} bytes, the file is shorter than its metadata says",
                read.range.start,
                read.range.end,
                bytes.len()
            )));
        }
        let needed = read.needed_bytes();
        let extra = read.read_bytes() - needed;
        if extra as f64 <= self.options.plan.tolerance * needed as f64 {
            chunks.push((read.range.start, bytes));
            return Ok(());
        }
        for part in &read.parts {
            let start = (part.start - read.range.start) as usize;
            let end = (part.end - read.range.start) as usize;
            chunks.push((part.start, Bytes::copy_from_slice(&bytes[start..end])));
        }
        Ok(())
    }
}

/// Joins chunks where a wanted range spans several of them.
///
/// `chunks` and `wanted` are sorted and disjoint.
fn stitch(chunks: Vec<(u64, Bytes)>, wanted: &[Range<u64>]) -> Vec<(u64, Bytes)> {
    let mut out: Vec<(u64, Bytes)> = Vec::with_capacity(chunks.len());
    let mut open: Option<(u64, BytesMut)> = None;
    let mut wanted = wanted.iter().peekable();
    for (offset, bytes) in chunks {
        let end = offset + bytes.len() as u64;
        while wanted.peek().is_some_and(|range| range.end <= offset) {
            wanted.next();
        }
        // The range that crosses the end of this chunk, if any, goes on in the next one.
        while wanted.peek().is_some_and(|range| range.end <= end) {
            wanted.next();
        }
        let goes_on = wanted.peek().is_some_and(|range| range.start < end);
        match (open.take(), goes_on) {
            (None, false) => out.push((offset, bytes)),
            (None, true) => open = Some((offset, BytesMut::from(bytes.as_ref()))),
            (Some((start, mut joined)), goes_on) => {
                joined.extend_from_slice(&bytes);
                if goes_on {
                    open = Some((start, joined));
                } else {
                    out.push((start, joined.freeze()));
                }
            }
        }
    }
    out
}

fn store_error(path: &Path, error: object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => {
            Error::not_found(format!("object {path} does not exist"))
                .with_hint("it may have been removed by a clean-up; run the query again")
                .with_source(error)
        }
        error => Error::unavailable(format!("cannot read {path}")).with_source(error),
    }
}
