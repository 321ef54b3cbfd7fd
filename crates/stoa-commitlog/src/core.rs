//! What a log's handle and its writer share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use stoa_error::{Error, Result};
use tokio::sync::watch;

use crate::failpoint;
use crate::poison::Poison;
use crate::queue::Queue;
use crate::recover::SegmentInfo;
use crate::status::LogStatus;
use crate::storage::{LogStorage, StorageKind};
use crate::{LogId, LogPosition};

/// Claims of this many openings are kept on put-if-absent storage: a writer that slept through
/// fewer takeovers is still refused.
const CLAIMS_KEPT: u64 = 64;

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) log: LogId,
    pub(crate) epoch: u64,
    pub(crate) place: String,
    pub(crate) storage: Arc<dyn LogStorage>,
    pub(crate) queue: Queue,
    /// All segments, the newest last; only that one grows.
    pub(crate) segments: Mutex<VecDeque<SegmentInfo>>,
    pub(crate) written: AtomicU64,
    pub(crate) durable: AtomicU64,
    pub(crate) released: AtomicU64,
    /// Whether the writer is gone.
    pub(crate) stopped: watch::Sender<bool>,
}

impl Core {
    pub(crate) fn durable(&self) -> LogPosition {
        self.log.at(self.durable.load(Ordering::Acquire))
    }

    /// Refuses positions of other logs.
    pub(crate) fn check_own(&self, position: LogPosition) -> Result<()> {
        if position.log == self.log {
            return Ok(());
        }
        let message =
            format!("position {position} is of another log than {} in {}", self.log, self.place);
        Err(Error::invalid(message)
            .with_hint("a log that was made anew has a new id; its old positions mean nothing"))
    }

    /// Removes segments whose frames are all at or before `up_to`, the newest excepted; returns
    /// how many.
    pub(crate) fn release(&self, up_to: LogPosition) -> Result<usize> {
        self.check_own(up_to)?;
        let durable = self.durable();
        if up_to.sequence > durable.sequence {
            return Err(Error::invalid(format!(
                "position {up_to} cannot be released: the log is durable up to {durable}"
            ))
            .with_hint("sync the log before what it holds is published elsewhere"));
        }
        if let Some(poison) = self.queue.poison() {
            // A fenced log's segments are another writer's.
            return Err(poison.refusal());
        }
        self.released.fetch_max(up_to.sequence, Ordering::AcqRel);
        let mut removed = 0;
        while let Some(number) = self.first_removable(up_to.sequence) {
            // Outside the lock: the writer must not wait for a removal. Removing twice is fine.
            self.storage.remove(number).map_err(|error| self.removal_failed(error))?;
            failpoint::at("log.segment_removed")?;
            let mut segments = self.segments.lock();
            let place = segments.iter().position(|segment| segment.number == number);
            removed += usize::from(place.and_then(|place| segments.remove(place)).is_some());
        }
        Ok(removed)
    }

    /// Stops the log: from here on it takes no appends, and those queued are refused.
    pub(crate) fn poison(&self, cause: &Error) -> Arc<Poison> {
        let poison = Arc::new(Poison::new(&self.place, cause));
        tracing::error!(
            log = %self.log,
            place = %self.place,
            error = poison.cause(),
            "commit log stopped: no more writes until it is opened again"
        );
        self.queue.fail(&poison);
        poison
    }

    /// A disk that cannot change a directory is not to be relied on; an object that was not
    /// deleted does no harm.
    fn removal_failed(&self, error: Error) -> Error {
        match self.storage.kind() {
            StorageKind::Appendable => self.poison(&error).refusal(),
            StorageKind::PutIfAbsent => error,
        }
    }

    fn first_removable(&self, up_to: u64) -> Option<u64> {
        let segments = self.segments.lock();
        let older = segments.len().saturating_sub(1);
        let mut done = segments.iter().take(older).take_while(|segment| segment.last <= up_to);
        done.find(|segment| !self.is_kept_claim(segment)).map(|segment| segment.number)
    }

    fn is_kept_claim(&self, segment: &SegmentInfo) -> bool {
        self.storage.kind() == StorageKind::PutIfAbsent
            && segment.frames == 0
            && segment.epoch.saturating_add(CLAIMS_KEPT) > self.epoch
    }

    pub(crate) fn status(&self) -> LogStatus {
        let (segments, segment_bytes) = {
            let segments = self.segments.lock();
            (segments.len(), segments.iter().map(|segment| segment.bytes).sum())
        };
        let stats = &self.queue.stats;
        let at = |counter: &AtomicU64| self.log.at(counter.load(Ordering::Acquire));
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let sync_us = stats.sync_us.distribution();
        LogStatus {
            place: self.place.clone(),
            log: self.log,
            epoch: self.epoch,
            segments,
            segment_bytes,
            written: at(&self.written),
            durable: self.durable(),
            released: at(&self.released),
            in_flight_bytes: self.queue.in_flight_bytes(),
            appends: get(&stats.appends),
            payload_bytes: get(&stats.payload_bytes),
            waits: get(&stats.waits),
            refusals: get(&stats.refusals),
            syncs: sync_us.count,
            group_frames: stats.group_frames.distribution(),
            group_bytes: stats.group_bytes.distribution(),
            sync_us,
            poisoned: self.queue.poison().map(|poison| poison.cause().to_owned()),
        }
    }
}
