//! An ORC file on a slow store, read through a range reader.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use stoa_error::{Error, Result};
use stoa_orc::{Decoder, FileMetadata, ReadOptions, Step, TailDecoder, TailStep};
use stoa_rangeio::throttle::{Throttle, ThrottledStore};
use stoa_rangeio::{PlanOptions, RangeReader, ReaderOptions, StoreProfile};

/// How slow the store is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slowness {
    pub(super) latency_ms: u64,
    /// Bytes per second of a connection.
    pub(super) bandwidth: f64,
    /// Connections.
    pub(super) parallelism: usize,
    /// How much longer than the latency a request waits on average.
    pub(super) jitter_ms: u64,
}

impl Slowness {
    /// All that are tried.
    pub(super) fn all() -> impl Iterator<Item = Self> + Clone {
        super::LATENCIES_MS.into_iter().flat_map(|latency_ms| {
            super::BANDWIDTHS.into_iter().flat_map(move |bandwidth| {
                super::PARALLELISMS.into_iter().map(move |parallelism| Self {
                    latency_ms,
                    bandwidth,
                    parallelism,
                    jitter_ms: 0,
                })
            })
        })
    }

    /// Those with several connections.
    pub(super) fn in_parallel() -> impl Iterator<Item = Self> + Clone {
        Self::all().filter(|slowness| slowness.parallelism > 1)
    }

    /// As [`Self::in_parallel`], with latencies of which half are certain and half vary.
    pub(super) fn with_jitter() -> impl Iterator<Item = Self> + Clone {
        Self::in_parallel().map(|slowness| {
            let jitter_ms = slowness.latency_ms / 2;
            Self { latency_ms: slowness.latency_ms - jitter_ms, jitter_ms, ..slowness }
        })
    }

    /// What an adaptive plan is told.
    pub(super) fn profile(self) -> StoreProfile {
        StoreProfile {
            latency: Duration::from_millis(self.latency_ms + self.jitter_ms),
            bandwidth: self.bandwidth,
            parallelism: self.parallelism,
            ..StoreProfile::default()
        }
    }
}

/// A file on a slow store.
pub(super) struct RemoteFile {
    pub(super) reader: RangeReader,
    path: Path,
    bytes: u64,
}

impl RemoteFile {
    pub(super) async fn new(file: Bytes, slowness: Slowness, plan: PlanOptions) -> Result<Self> {
        let path = Path::from("file.orc");
        let bytes = file.len() as u64;
        let memory = InMemory::new();
        memory
            .put(&path, file.into())
            .await
            .map_err(|e| Error::internal("cannot put a file into memory").with_source(e))?;
        let throttle = Throttle {
            latency: Duration::from_millis(slowness.latency_ms),
            jitter: Duration::from_millis(slowness.jitter_ms),
            bandwidth: Some(slowness.bandwidth),
            bandwidth_total: Some(StoreProfile::default().bandwidth_total),
            ..Throttle::default()
        };
        let store: Arc<dyn ObjectStore> = Arc::new(ThrottledStore::new(Arc::new(memory), throttle));
        let options = ReaderOptions {
            plan,
            parallelism: slowness.parallelism,
            ..ReaderOptions::object_store()
        };
        Ok(Self { reader: RangeReader::new(store, options), path, bytes })
    }

    /// Reads the tail; in one round trip if the first guess of its length is enough.
    pub(super) async fn metadata(&self) -> Result<Arc<FileMetadata>> {
        let mut tail = TailDecoder::new(self.bytes);
        let mut wanted = tail.first_read();
        loop {
            let range = self.bytes - wanted..self.bytes;
            match tail.decode(self.reader.read_one(&self.path, range).await?)? {
                TailStep::NeedsTail(more) => wanted = more,
                TailStep::Done(metadata) => return Ok(Arc::new(metadata)),
            }
        }
    }

    /// Hands all batches to `sink`.
    pub(super) async fn read(
        &self,
        metadata: Arc<FileMetadata>,
        options: ReadOptions,
        sink: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let mut decoder = Decoder::new(metadata, options)?;
        loop {
            match decoder.next()? {
                Step::NeedsData(ranges) => {
                    for (offset, bytes) in self.reader.read(&self.path, &ranges).await? {
                        decoder.push(offset, bytes);
                    }
                }
                Step::Batch(batch) => sink(batch)?,
                Step::Finished => return Ok(()),
            }
        }
    }
}
