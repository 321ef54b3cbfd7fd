//! A store that is as slow as asked for: latency, bandwidth, stragglers and failures, for tests
//! and benches. All waits are on tokio's clock, so a paused runtime runs them in no time.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use stoa_env::timer::{self, Instant, sleep, sleep_until};

/// Bytes that flow at once.
const PIECE_BYTES: usize = 64 << 10;

/// How slow reads are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttle {
    /// Wait before the first byte of each request.
    pub latency: Duration,
    /// How much longer a request waits, on average: exponentially distributed, the same for the n-th request in each run.
    pub jitter: Duration,
    /// Bytes per second of one request; `None` = no limit.
    pub bandwidth: Option<f64>,
    /// Bytes per second of all requests together; `None` = no limit.
    pub bandwidth_total: Option<f64>,
    /// Every n-th request (1 = all) waits `straggle` longer; 0 = none.
    pub straggler_every: u64,
    /// How much longer.
    pub straggle: Duration,
    /// Every n-th request (1 = all) fails after its latency; 0 = none.
    pub failure_every: u64,
}

/// Slows down the reads of another store. Writes, lists and the rest pass through.
#[derive(Debug)]
pub struct ThrottledStore {
    inner: Arc<dyn ObjectStore>,
    throttle: Throttle,
    requests: AtomicU64,
    /// When the network card is free again.
    busy_until: Arc<Mutex<Option<Instant>>>,
}

impl ThrottledStore {
    /// Slows down `inner`.
    pub fn new(inner: Arc<dyn ObjectStore>, throttle: Throttle) -> Self {
        Self { inner, throttle, requests: AtomicU64::new(0), busy_until: Arc::default() }
    }

    /// Read requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    async fn wait_for_first_byte(&self) -> Result<()> {
        let number = self.requests.fetch_add(1, Relaxed) + 1;
        let is_nth = |every: u64| every > 0 && number.is_multiple_of(every);
        let mut wait = self.throttle.latency;
        if is_nth(self.throttle.straggler_every) {
            wait += self.throttle.straggle;
        }
        wait += self.throttle.jitter.mul_f64(exponential(number));
        sleep(wait).await;
        if is_nth(self.throttle.failure_every) {
            return Err(object_store::Error::Generic {
                store: "throttled",
                source: "a failure that was asked for".into(),
            });
        }
        Ok(())
    }

    /// Hands out `bytes` no faster than allowed.
    fn flow(&self, bytes: Bytes) -> BoxStream<'static, Result<Bytes>> {
        let throttle = self.throttle;
        let busy_until = self.busy_until.clone();
        let at = timer::now();
        Box::pin(stream::unfold((bytes, at), move |(mut rest, at)| {
            let busy_until = busy_until.clone();
            async move {
                if rest.is_empty() {
                    return None;
                }
                let piece = rest.split_to(rest.len().min(PIECE_BYTES));
                let takes = |per_second: Option<f64>| {
                    let seconds = per_second.map_or(0.0, |rate| piece.len() as f64 / rate);
                    Duration::try_from_secs_f64(seconds).unwrap_or_default()
                };
                let mut until = at + takes(throttle.bandwidth);
                if throttle.bandwidth_total.is_some() {
                    let mut busy = busy_until.lock().unwrap_or_else(|e| e.into_inner());
                    let free = busy.map_or(at, |free| free.max(at));
                    let through = free + takes(throttle.bandwidth_total);
                    *busy = Some(through);
                    until = until.max(through);
                }
                sleep_until(until).await;
                Some((Ok(piece), (rest, until)))
            }
        }))
    }
}

/// The n-th of numbers that are exponentially distributed with the mean 1, and look random.
fn exponential(n: u64) -> f64 {
    // SplitMix64 (Steele, Lea, Flood 2014).
    let mut bits = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    let uniform = ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln()
}

impl fmt::Display for ThrottledStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "throttled {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for ThrottledStore {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.wait_for_first_byte().await?;
        let result = self.inner.get_opts(location, options).await?;
        let (meta, range, attributes) =
            (result.meta.clone(), result.range.clone(), result.attributes.clone());
        let bytes = result.bytes().await?;
        let payload = GetResultPayload::Stream(self.flow(bytes));
        Ok(GetResult { payload, meta, range, attributes })
    }

    /// One request per range, one after the other: who wants better uses a range reader.
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let mut all = Vec::with_capacity(ranges.len());
        for range in ranges {
            let options = GetOptions { range: Some(range.clone().into()), ..Default::default() };
            all.push(self.get_opts(location, options).await?.bytes().await?);
        }
        Ok(all)
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use super::exponential;

    #[test]
    fn jitter_is_exponentially_distributed() {
        let numbers: Vec<f64> = (1..=100_000).map(exponential).collect();
        let share = |above: f64| {
            numbers.iter().filter(|number| **number > above).count() as f64 / numbers.len() as f64
        };
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        for above in [0.5_f64, 1.0, 3.0] {
            assert!((share(above) - (-above).exp()).abs() < 0.005, "{above}: {}", share(above));
        }
        assert!(numbers.iter().all(|number| (0.0..40.0).contains(number)));
    }
}
