//! What a running query counts; shared with its scan operators.
//!
//! In: counts, from whatever thread. Out: figures of [`crate::QueryInfo`], and how the query is executed.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_env::clock;
use stoa_report::ReportWork;
use stoa_store::Charge;

use crate::run::live_plan::Execution;
use crate::run::paths::QueryPath;
use crate::run::spent::Spent;
use crate::run::spread::DoneByDaemon;

/// Counters of one query.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    number: Number,
    pub(crate) rows: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) memory_bytes: AtomicU64,
    pub(crate) memory_peak_bytes: AtomicU64,
    rows_planned: AtomicU64,
    rows_scanned: AtomicU64,
    pub(crate) queued: AtomicBool,
    begun: OnceLock<Instant>,
    /// A [`QueryPath`].
    path: AtomicU8,
    /// What it waited for its first slot.
    waited: OnceLock<Duration>,
    hedges: AtomicU64,
    chunk_hits: AtomicU64,
    chunk_misses: AtomicU64,
    /// What it asks of object stores.
    pub(crate) charge: Arc<Charge>,
    execution: Mutex<Execution>,
    elsewhere: Elsewhere,
}

/// Tells queries of this process apart.
#[derive(Debug)]
struct Number(u64);

impl Default for Number {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What other daemons have done of the query, as they last told.
#[derive(Debug, Default)]
struct Elsewhere {
    rows_scanned: AtomicU64,
    bytes_read: AtomicU64,
    requests: AtomicU64,
    memory_bytes: AtomicU64,
    memory_peak_bytes: AtomicU64,
}

impl Progress {
    /// A number that no other query of this process has.
    pub(crate) fn number(&self) -> u64 {
        self.number.0
    }

    /// Notes whether the query waits for an executor.
    pub(crate) fn set_queued(&self, queued: bool) {
        self.queued.store(queued, Ordering::Relaxed);
    }

    /// Notes that the query was let in; the first time counts.
    pub(crate) fn set_begun(&self) {
        let _ = self.begun.set(clock::monotonic());
    }

    /// Time since the query was let in; nothing if it waits, is planned, or needs no plan.
    pub(crate) fn execution_time(&self) -> Duration {
        self.begun.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Counts rows of files that will be scanned.
    pub(crate) fn plan_rows(&self, rows: u64) {
        self.rows_planned.fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts no rows any more that will be scanned: the statement is planned anew.
    pub(crate) fn forget_planned_rows(&self) {
        self.rows_planned.store(0, Ordering::Relaxed);
    }

    /// Notes what other daemons have done of the query by now, all of them together.
    pub(crate) fn note_elsewhere<'a>(&self, others: impl Iterator<Item = &'a DoneByDaemon>) {
        let mut sum = DoneByDaemon::default();
        for other in others {
            sum.add(other);
        }
        let Elsewhere { rows_scanned, bytes_read, requests, memory_bytes, memory_peak_bytes } =
            &self.elsewhere;
        // One that did not answer this time has still done what it told before.
        rows_scanned.fetch_max(sum.rows_scanned, Ordering::Relaxed);
        bytes_read.fetch_max(sum.bytes_read, Ordering::Relaxed);
        requests.fetch_max(sum.requests, Ordering::Relaxed);
        memory_bytes.store(sum.memory_bytes, Ordering::Relaxed);
        memory_peak_bytes.fetch_max(sum.memory_peak_bytes, Ordering::Relaxed);
    }

    /// What this daemon has done of the query.
    pub(crate) fn done_here(&self) -> DoneByDaemon {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DoneByDaemon {
            rows_scanned: load(&self.rows_scanned),
            bytes_read: load(&self.bytes_read),
            requests: load(&self.requests),
            memory_bytes: load(&self.memory_bytes),
            memory_peak_bytes: load(&self.memory_peak_bytes),
            ..DoneByDaemon::default()
        }
    }

    /// What all daemons together have done of the query. The peak is the sum of each one's.
    pub(crate) fn done(&self) -> DoneByDaemon {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut done = self.done_here();
        done.add(&DoneByDaemon {
            rows_scanned: load(&self.elsewhere.rows_scanned),
            bytes_read: load(&self.elsewhere.bytes_read),
            requests: load(&self.elsewhere.requests),
            memory_bytes: load(&self.elsewhere.memory_bytes),
            memory_peak_bytes: load(&self.elsewhere.memory_peak_bytes),
            ..DoneByDaemon::default()
        });
        done
    }

    /// Bytes of memory that other daemons use for the query.
    pub(crate) fn memory_elsewhere(&self) -> u64 {
        self.elsewhere.memory_bytes.load(Ordering::Relaxed)
    }

    /// Counts rows of files that were scanned or left out.
    pub(crate) fn scan_rows(&self, rows: u64) {
        self.rows_scanned.fetch_add(rows, Ordering::Relaxed);
    }

    /// The share of its rows that were scanned, 0 to 1; `None` if it scans no files.
    pub(crate) fn share(&self) -> Option<f64> {
        let planned = self.rows_planned.load(Ordering::Relaxed);
        let scanned = self.done().rows_scanned;
        (planned > 0).then(|| (scanned as f64 / planned as f64).min(1.0))
    }

    /// Counts memory that was taken.
    pub(crate) fn take_memory(&self, bytes: usize) {
        let bytes = bytes as u64;
        let now = self.memory_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.memory_peak_bytes.fetch_max(now, Ordering::Relaxed);
    }

    /// Counts memory that was given back.
    pub(crate) fn give_memory_back(&self, bytes: usize) {
        self.memory_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Notes on which way the query is answered; the last one counts.
    pub(crate) fn set_path(&self, path: QueryPath) {
        self.path.store(path as u8, Ordering::Relaxed);
    }

    /// On which way the query is answered.
    pub(crate) fn path(&self) -> QueryPath {
        QueryPath::of(self.path.load(Ordering::Relaxed))
    }

    /// Notes how long the query waited for a slot; the first time counts.
    pub(crate) fn set_waited(&self, time: Duration) {
        let _ = self.waited.set(time);
    }

    /// What the query waited for a slot, microseconds; `None` where it needed none, or waits now.
    pub(crate) fn wait_us(&self) -> Option<u64> {
        let waited = self.waited.get()?;
        Some(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX))
    }

    /// Counts reads that were sent a second time.
    pub(crate) fn add_hedges(&self, hedges: u64) {
        self.hedges.fetch_add(hedges, Ordering::Relaxed);
    }

    /// Counts what finding rows in the memory of reports took.
    pub(crate) fn add_work(&self, work: &ReportWork) {
        self.requests.fetch_add(work.requests, Ordering::Relaxed);
        self.bytes_read.fetch_add(work.bytes_read, Ordering::Relaxed);
        self.chunk_hits.fetch_add(work.chunk_hits, Ordering::Relaxed);
        self.chunk_misses.fetch_add(work.chunk_misses, Ordering::Relaxed);
        self.add_hedges(work.hedges);
    }

    /// What it took of caches and object stores so far.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            store: self.charge.charged(),
            hedges: self.hedges.load(Ordering::Relaxed),
            chunk_hits: self.chunk_hits.load(Ordering::Relaxed),
            chunk_misses: self.chunk_misses.load(Ordering::Relaxed),
        }
    }

    /// Notes how the query is executed; the last of its plans counts.
    pub(crate) fn set_execution(&self, execution: Execution) {
        *self.execution.lock() = execution;
    }

    /// How the query is executed.
    pub(crate) fn execution(&self) -> Execution {
        self.execution.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_rows_planned() {
        let progress = Progress::default();
        assert_eq!(progress.share(), None);
        progress.scan_rows(5);
        assert_eq!(progress.share(), None);
        progress.plan_rows(20);
        assert_eq!(progress.share(), Some(0.25));
        progress.plan_rows(20);
        assert_eq!(progress.share(), Some(0.125));
        // Fresh rows that came meanwhile.
        progress.scan_rows(100);
        assert_eq!(progress.share(), Some(1.0));
    }

    #[test]
    fn the_most_memory_is_remembered() {
        let progress = Progress::default();
        for (taken, given_back) in [(100, 40), (20, 80), (50, 50)] {
            progress.take_memory(taken);
            progress.give_memory_back(given_back);
        }
        assert_eq!(progress.memory_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(progress.memory_peak_bytes.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn what_others_do_counts_once_however_often_they_tell() {
        let progress = Progress::default();
        progress.plan_rows(100);
        progress.scan_rows(10);
        progress.bytes_read.fetch_add(1, Ordering::Relaxed);
        let other = |rows_scanned, memory_bytes| DoneByDaemon {
            rows_scanned,
            memory_bytes,
            bytes_read: 2 * rows_scanned,
            memory_peak_bytes: memory_bytes,
            ..DoneByDaemon::default()
        };
        for (one, two) in [((10, 7), (20, 3)), ((20, 5), (30, 2))] {
            progress.note_elsewhere([other(one.0, one.1), other(two.0, two.1)].iter());
        }
        assert_eq!(progress.share(), Some(0.6));
        // One does not answer.
        progress.note_elsewhere([other(20, 5)].iter());
        let done = progress.done();
        assert_eq!((done.rows_scanned, done.bytes_read), (60, 101));
        assert_eq!((done.memory_bytes, done.memory_peak_bytes), (5, 10));
        assert_eq!((progress.memory_elsewhere(), progress.done_here().rows_scanned), (5, 10));
    }

    #[test]
    fn hedges_of_scans_and_reports_are_summed() {
        let progress = Progress::default();
        progress.add_hedges(2);
        let work =
            ReportWork { hedges: 3, chunk_hits: 6, chunk_misses: 2, ..ReportWork::default() };
        progress.add_work(&work);
        let spent = progress.spent();
        assert_eq!((spent.hedges, spent.chunk_hits, spent.chunk_misses), (5, 6, 2));
        assert_eq!(spent.hit_ratio(), Some(0.75));
        assert_eq!(Spent::default().hit_ratio(), None);
        let twice = spent.plus(&spent);
        assert_eq!((twice.hedges, twice.chunk_hits), (10, 12));
    }
}
