//! One request: sent, measured, sent again if it fails, sent twice if it is slow.

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use stoa_env::timer::{self, sleep};
use stoa_error::{Error, Result};

use crate::measure::Estimator;
use crate::{Pin, ReadMetrics, ReaderOptions};

/// What is needed to read one range.
pub(crate) struct Request<'a> {
    pub store: &'a Arc<dyn ObjectStore>,
    pub options: &'a ReaderOptions,
    pub estimator: &'a Estimator,
    pub metrics: &'a ReadMetrics,
    /// Counts for all who read from the store: hedges are bounded by these.
    pub sent: &'a ReadMetrics,
    pub pin: Option<&'a Pin>,
    pub path: &'a Path,
    pub range: Range<u64>,
}

impl Request<'_> {
    /// The bytes of the range.
    ///
    /// # Errors
    /// The last failure, once no retry is left or none would help.
    pub async fn send(&self) -> Result<Bytes> {
        let mut wait = self.options.retry_wait;
        let mut retries_left = self.options.retries;
        loop {
            match self.hedged().await {
                Ok(bytes) => return Ok(bytes),
                Err(e) if retries_left == 0 || !may_pass(&e) => {
                    return Err(store_error(self.path, e));
                }
                Err(_) => {
                    retries_left -= 1;
                    self.metrics.add_retry();
                    sleep(with_jitter(wait)).await;
                    wait = wait.saturating_mul(2);
                }
            }
        }
    }

    /// One try, with a second request beside it if the first is a straggler.
    async fn hedged(&self) -> object_store::Result<Bytes> {
        let Some(hedge) = self.options.hedge else {
            return self.once().await;
        };
        let bytes = self.range.end - self.range.start;
        let expected = self.estimator.profile().request_seconds(bytes) * hedge.expected_times;
        let patience =
            Duration::try_from_secs_f64(expected).unwrap_or(Duration::MAX).max(hedge.wait_min);
        let first = pin!(self.once());
        let first = match select(first, pin!(sleep(patience))).await {
            Either::Left((answer, _)) => return answer,
            Either::Right((_, first)) => first,
        };
        if !self.sent.try_add_hedge(hedge.share_max) {
            return first.await;
        }
        self.metrics.add_hedge();
        let second = pin!(self.once());
        match select(first, second).await {
            Either::Left((Ok(bytes), _)) | Either::Right((Ok(bytes), _)) => Ok(bytes),
            // One failed: the other still may answer.
            Either::Left((Err(_), second)) => second.await,
            Either::Right((Err(_), first)) => first.await,
        }
    }

    async fn once(&self) -> object_store::Result<Bytes> {
        self.metrics.add_request();
        self.sent.add_request();
        let started = timer::now();
        let range = Some(GetRange::Bounded(self.range.clone()));
        let options = GetOptions { range, ..GetOptions::default() };
        let answer = self.store.get_opts(self.path, options).await?;
        if let Some(pin) = self.pin {
            pin.check(self.path, &answer.meta)?;
        }
        let first_byte = started.elapsed();
        let bytes = answer.bytes().await?;
        if self.options.measure {
            let flow = started.elapsed().saturating_sub(first_byte);
            self.estimator.sample(first_byte, flow, bytes.len() as u64);
        }
        Ok(bytes)
    }
}

/// Between half of `wait` and all of it, so that those who failed together do not return together.
fn with_jitter(wait: Duration) -> Duration {
    let share = (stoa_env::random::u64() % 1024) as u32;
    wait / 2 + wait / 2 * share / 1024
}

/// Whether the same request may succeed later.
fn may_pass(error: &object_store::Error) -> bool {
    use object_store::Error as E;
    !matches!(
        error,
        E::NotFound { .. }
            | E::InvalidPath { .. }
            | E::NotSupported { .. }
            | E::NotImplemented { .. }
            | E::Precondition { .. }
            | E::NotModified { .. }
            | E::PermissionDenied { .. }
            | E::Unauthenticated { .. }
            | E::UnknownConfigurationKey { .. }
    )
}

/// The error that readers of `path` get.
pub(crate) fn store_error(path: &Path, error: object_store::Error) -> Error {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => Error::not_found(format!("object {path} does not exist"))
            .with_hint("it may have been removed by a clean-up; run the query again"),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
            Error::new(stoa_error::ErrorKind::Forbidden, format!("the store refuses {path}"))
                .with_hint("check the credentials of the warehouse")
        }
        E::Precondition { .. } => Error::conflict(format!("object {path} was overwritten"))
            .with_hint("data files must not be changed in place; run the query again"),
        _ => Error::unavailable(format!("cannot read {path}")),
    }
    .with_source(error)
}
