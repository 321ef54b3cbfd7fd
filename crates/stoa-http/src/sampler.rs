//! One sample a second of how many queries end, how long they take and what they find, for live
//! charts.
//!
//! In: the engine's counters. Out: [`Sample`]s of the last [`SAMPLES_MAX`] seconds. Percentiles
//! and ratios of a sample cover the [`WINDOW`] seconds before it, so that few queries still make a
//! line.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_env::clock;
use stoa_env::timer::{MissedTickBehavior, interval};
use stoa_figures::Sample;
use stoa_query::{CacheStatus, Engine, IngestStatus, LatencyHistogram, Totals};

/// Samples that are kept.
pub(crate) const SAMPLES_MAX: usize = 600;
/// Seconds that the percentiles of one sample cover.
pub(crate) const WINDOW: usize = 10;
/// Seconds that the latest rate and percentiles cover.
pub(crate) const RECENT: usize = 60;

/// Latencies in milliseconds that 50, 95 and 99 % of queries did not exceed.
pub(crate) type Percentiles = [Option<f64>; 3];

pub(crate) struct Sampler {
    engine: Arc<Engine>,
    inner: Mutex<Inner>,
}

struct Inner {
    samples: VecDeque<Sample>,
    /// Counters as they were at the last [`RECENT`] + 1 ticks, oldest first.
    marks: VecDeque<Mark>,
}

struct Mark {
    at: Instant,
    totals: Totals,
    latencies: Vec<u64>,
    /// The longest since the mark before, microseconds.
    longest_us: u64,
    cache: CacheStatus,
    writes: Option<Writes>,
}

/// Small writes at one moment.
#[derive(Clone, Copy)]
struct Writes {
    /// Since the start.
    appended_rows: u64,
    fresh_rows: u64,
    waiting: usize,
}

impl Sampler {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let first = Mark::next(&engine);
        let inner = Inner { samples: VecDeque::new(), marks: VecDeque::from([first]) };
        Self { engine, inner: Mutex::new(inner) }
    }

    /// Samples each second until the task is ended.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.sample();
        }
    }

    fn sample(&self) {
        let mark = Mark::next(&self.engine);
        let admission = self.engine.admission_status();
        let mut inner = self.inner.lock();
        let Some(before) = inner.marks.back() else { return };
        let seconds = mark.at.duration_since(before.at).as_secs_f64().max(1e-3);
        let finished = mark.totals.finished.saturating_sub(before.totals.finished);
        let failed = mark.totals.failed.saturating_sub(before.totals.failed);
        let window = inner.marks.len().saturating_sub(WINDOW);
        let from = inner.marks.get(window).unwrap_or(before);
        let longest_us = inner.longest_us(window, &mark);
        let [p50_ms, p95_ms, p99_ms] = percentiles(from, &mark, longest_us);
        let writes = before.writes.zip(mark.writes);
        let sample = Sample {
            unix_ms: clock::unix_ms(),
            per_second: finished as f64 / seconds,
            failed,
            running: self.engine.queries().running_count() as u64,
            p50_ms,
            p95_ms,
            p99_ms,
            computing: admission.running as u64,
            waiting: admission.waiting as u64,
            cache_bytes: mark.cache.bytes,
            hit_ratio: hit_ratio(from, &mark),
            fresh_rows: writes.map(|(_, now)| now.fresh_rows),
            rows_per_second: writes.map(|(before, now)| now.rows_since(before) / seconds),
            appends_waiting: writes.map(|(_, now)| now.waiting as u64),
        };
        push_bounded(&mut inner.samples, sample, SAMPLES_MAX);
        push_bounded(&mut inner.marks, mark, RECENT + 1);
    }

    /// Samples taken after `since_unix_ms`, oldest first.
    pub(crate) fn samples_since(&self, since_unix_ms: i64) -> Vec<Sample> {
        let inner = self.inner.lock();
        inner.samples.iter().filter(|sample| sample.unix_ms > since_unix_ms).cloned().collect()
    }

    /// Queries per second over the last [`WINDOW`] seconds.
    pub(crate) fn rate(&self) -> f64 {
        let inner = self.inner.lock();
        let from = inner.marks.get(inner.marks.len().saturating_sub(WINDOW + 1));
        let Some((from, to)) = from.zip(inner.marks.back()) else { return 0.0 };
        let seconds = to.at.duration_since(from.at).as_secs_f64();
        let finished = to.totals.finished.saturating_sub(from.totals.finished);
        if seconds > 0.0 { finished as f64 / seconds } else { 0.0 }
    }

    /// Counts of latencies as [`LatencyHistogram::snapshot`] gives them, over the last [`RECENT`] seconds, and the longest
    /// of them in microseconds.
    pub(crate) fn recent_latencies(&self) -> (Vec<u64>, u64) {
        let now = Mark::now(&self.engine);
        let inner = self.inner.lock();
        let counts = inner.marks.front().map_or_else(Vec::new, |from| now.latencies_since(from));
        (counts, inner.longest_us(0, &now))
    }

    /// Percentiles over the last [`RECENT`] seconds, including what ended since the last tick.
    pub(crate) fn recent_percentiles(&self) -> Percentiles {
        let now = Mark::now(&self.engine);
        let inner = self.inner.lock();
        let longest_us = inner.longest_us(0, &now);
        inner.marks.front().map_or([None; 3], |from| percentiles(from, &now, longest_us))
    }
}

impl Inner {
    /// The longest after the mark `from`, and until `now`.
    fn longest_us(&self, from: usize, now: &Mark) -> u64 {
        let since = self.marks.iter().skip(from + 1).map(|mark| mark.longest_us);
        since.fold(now.longest_us, u64::max)
    }
}

impl Mark {
    fn latencies_since(&self, from: &Self) -> Vec<u64> {
        let counts = self.latencies.iter().zip(&from.latencies);
        counts.map(|(after, before)| after.saturating_sub(*before)).collect()
    }

    /// The next mark that is kept.
    fn next(engine: &Engine) -> Self {
        let longest_us = engine.queries().latency().take_longest_us();
        Self { longest_us, ..Self::now(engine) }
    }

    fn now(engine: &Engine) -> Self {
        let registry = engine.queries();
        Self {
            at: clock::monotonic(),
            totals: registry.totals(),
            latencies: registry.latency().snapshot(),
            longest_us: registry.latency().longest_us(),
            cache: engine.cache_status(),
            writes: engine.ingest().map(|ingest| Writes::of(&ingest.status())),
        }
    }
}

impl Writes {
    fn of(status: &IngestStatus) -> Self {
        Self {
            appended_rows: status.appended_rows,
            fresh_rows: status.tables.iter().map(|table| table.fresh_rows).sum(),
            waiting: status.appends_waiting,
        }
    }

    fn rows_since(self, before: Self) -> f64 {
        self.appended_rows.saturating_sub(before.appended_rows) as f64
    }
}

fn hit_ratio(from: &Mark, to: &Mark) -> Option<f64> {
    let hits = to.cache.chunk_hits.saturating_sub(from.cache.chunk_hits);
    let misses = to.cache.chunk_misses.saturating_sub(from.cache.chunk_misses);
    let asked = hits + misses;
    (asked > 0).then(|| hits as f64 / asked as f64)
}

fn percentiles(from: &Mark, to: &Mark, longest_us: u64) -> Percentiles {
    let counts = to.latencies_since(from);
    [0.50, 0.95, 0.99].map(|share| {
        LatencyHistogram::percentile_us(&counts, share, longest_us).map(|us| us / 1000.0)
    })
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, max: usize) {
    if queue.len() == max {
        queue.pop_front();
    }
    queue.push_back(item);
}
