//! Runs a plan on a store.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use stoa_env::timer;
use stoa_error::{Error, Result};
use tokio::sync::Semaphore;

use crate::chunks::{stitch, take_parts};
use crate::measure::Estimator;
use crate::pack::union;
use crate::plan::plan;
use crate::request::{Request, store_error};
use crate::{Pin, PlannedRead, ReadMetrics, ReaderOptions, StoreProfile};

/// Reads byte ranges of objects in one store.
///
/// Cheap to clone; clones share counters, measurements, and the bounds on requests in flight and on
/// hedges. Make one per store and keep it: what it measures makes later plans better.
#[derive(Clone, Debug)]
pub struct RangeReader {
    shared: Arc<Shared>,
    metrics: Arc<ReadMetrics>,
    pin: Option<Arc<Pin>>,
    over_read_max: f64,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn ObjectStore>,
    options: ReaderOptions,
    estimator: Estimator,
    in_flight: Semaphore,
    /// Requests and hedges of all clones, whatever counters they have: what the store bears.
    sent: ReadMetrics,
}

impl RangeReader {
    /// A reader on `store`.
    pub fn new(store: Arc<dyn ObjectStore>, mut options: ReaderOptions) -> Self {
        // What is planned for is what will run.
        if let Some(profile) = &mut options.plan.profile {
            profile.parallelism = options.parallelism.max(1);
        }
        let profile = options.plan.profile.unwrap_or_default();
        let in_flight = Semaphore::new(options.in_flight_max.clamp(1, Semaphore::MAX_PERMITS));
        let (estimator, sent) = (Estimator::new(profile), ReadMetrics::default());
        let shared = Shared { store, options, estimator, in_flight, sent };
        Self {
            shared: Arc::new(shared),
            metrics: Arc::default(),
            pin: None,
            over_read_max: f64::INFINITY,
        }
    }

    /// The same reader with counters of its own, for instance those of one query.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<ReadMetrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// The same reader for one object, whose content must be the one that `pin` knows. Where answers
    /// do not tell what they are from (local files), it asks beside each read.
    #[must_use]
    pub fn with_pin(mut self, pin: Arc<Pin>) -> Self {
        self.pin = Some(pin);
        self
    }

    /// The same reader with plans whose extra bytes are at most `share` of the needed ones, where the
    /// options allow more (`max_over_read`): more requests for fewer bytes.
    #[must_use]
    pub fn with_over_read_max(mut self, share: f64) -> Self {
        self.over_read_max = share;
        self
    }

    /// The counters of this reader and its clones.
    pub fn metrics(&self) -> &Arc<ReadMetrics> {
        &self.metrics
    }

    /// Reads that this reader and all clones of it, whatever their counters, sent a second time because
    /// the first was slow.
    pub fn hedges(&self) -> u64 {
        self.shared.sent.counts().hedges
    }

    /// What the store is taken for: the preset, corrected by what was measured.
    pub fn profile(&self) -> StoreProfile {
        self.shared.estimator.profile()
    }

    /// Reads `ranges` of the object at `path`; returns chunks as (offset, bytes), sorted.
    ///
    /// Every range asked for lies whole inside one chunk. Chunks may hold bytes nobody asked
    /// for. Dropping the future cancels what is in flight.
    ///
    /// # Errors
    /// `NotFound` if the object is missing, `Corrupt` if it is shorter than a range asks for,
    /// `Unavailable` if the store does not answer after all retries, `Conflict` if it is not the one
    /// of [`Self::with_pin`].
    pub async fn read(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<(u64, Bytes)>> {
        // Tokio's clock, because a paused runtime drives it together with the waits.
        let started = timer::now();
        let wanted = union(ranges);
        let needed = wanted.iter().map(|range| range.end - range.start).sum();
        let reads = self.plan(&wanted);
        let chunks = if self.shared.options.one_call {
            self.read_in_one_call(path, reads).await
        } else {
            self.read_in_parallel(path, reads).await
        };
        self.metrics.add_call(needed, started.elapsed());
        Ok(stitch(chunks?, &wanted))
    }

    /// Reads one range.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_one(&self, path: &Path, range: Range<u64>) -> Result<Bytes> {
        let chunks = self.read(path, std::slice::from_ref(&range)).await?;
        let covers = |(at, bytes): &(u64, Bytes)| {
            let from = usize::try_from(range.start.checked_sub(*at)?).ok()?;
            let to = from.checked_add(usize::try_from(range.end - range.start).ok()?)?;
            (to <= bytes.len()).then(|| bytes.slice(from..to))
        };
        match chunks.iter().find_map(covers) {
            Some(bytes) => Ok(bytes),
            None if range.is_empty() => Ok(Bytes::new()),
            None => Err(Error::internal(format!("{path}: no chunk covers {range:?}"))),
        }
    }

    /// The reads that [`Self::read`] would do now.
    pub fn plan(&self, ranges: &[Range<u64>]) -> Vec<PlannedRead> {
        let options = &self.shared.options;
        let mut plan_options = options.plan.clone();
        plan_options.max_over_read = plan_options.max_over_read.min(self.over_read_max);
        if options.measure && options.plan.profile.is_some() {
            plan_options.profile = Some(self.profile());
        }
        plan(ranges, &plan_options)
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
        let _permit = self.permit().await?;
        self.metrics.add_request();
        // Before the first read, so that it is not later than what the pin says; then after each.
        if self.pin.as_ref().is_some_and(|pin| pin.tag().is_none()) {
            self.check_pin(path).await?;
        }
        let all = self.shared.store.get_ranges(path, &ranges).await;
        self.check_pin(path).await?;
        let all = all.map_err(|e| store_error(path, e))?;
        let mut chunks = Vec::with_capacity(reads.len());
        for (read, bytes) in reads.iter().zip(all) {
            self.take(path, read, bytes, &mut chunks)?;
        }
        Ok(chunks)
    }

    async fn check_pin(&self, path: &Path) -> Result<()> {
        let Some(pin) = &self.pin else { return Ok(()) };
        let found = self.shared.store.head(path).await;
        found.and_then(|found| pin.check(path, &found)).map_err(|e| store_error(path, e))
    }

    async fn read_in_parallel(
        &self,
        path: &Path,
        mut reads: Vec<PlannedRead>,
    ) -> Result<Vec<(u64, Bytes)>> {
        // The longest first, so that none is left to run alone at the end.
        reads.sort_by_key(|read| std::cmp::Reverse(read.read_bytes()));
        let mut answers = stream::iter(reads)
            .map(|read| async move {
                let _permit = self.permit().await?;
                let request = Request {
                    store: &self.shared.store,
                    options: &self.shared.options,
                    estimator: &self.shared.estimator,
                    metrics: &self.metrics,
                    sent: &self.shared.sent,
                    pin: self.pin.as_deref(),
                    path,
                    range: read.range.clone(),
                };
                let bytes = request.send().await?;
                Ok::<_, Error>((read, bytes))
            })
            .buffer_unordered(self.shared.options.parallelism.max(1));
        let mut chunks = Vec::new();
        while let Some(answer) = answers.next().await {
            let (read, bytes) = answer?;
            self.take(path, &read, bytes, &mut chunks)?;
        }
        chunks.sort_unstable_by_key(|(offset, _)| *offset);
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
                "{path} bytes {}..{}: the store returned {} bytes, the object is shorter than \
                 its metadata says",
                read.range.start,
                read.range.end,
                bytes.len()
            )));
        }
        take_parts(read, bytes, self.shared.options.plan.tolerance, chunks);
        Ok(())
    }

    async fn permit(&self) -> Result<tokio::sync::SemaphorePermit<'_>> {
        let permit = self.shared.in_flight.acquire().await;
        permit.map_err(|e| Error::internal("the range reader is closed").with_source(e))
    }
}
