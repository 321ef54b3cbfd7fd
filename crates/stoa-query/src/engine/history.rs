//! How the server is and was: rates and latencies of the last minute, and samples of the last week.
//!
//! In: the counters of an engine, once a second. Out: [`Sample`]s in steps that grow with their age ([`STEPS`]), and what
//! the last seconds came to. Of a server, samples are also in a file (`ring`), so that they outlive it.
//!
//! ```text
//!  counters ─► mark ─┬─ less the mark of a second ago ──────► sample of a second ─┬─► memory (levels)
//!                    └─ less the mark at the last boundary ─► of 10 s, 60 s, 600 s ┴─► file (ring)
//! ```
//!
//! **Invariants:** memory and file are bounded by [`STEPS`]. Percentiles of a step are those of all queries in it, and no
//! mean of percentiles. What is wrong with the file costs history, never a start or a query.

pub(crate) mod levels;
mod marks;
mod ring;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use stoa_env::task;
use stoa_env::timer::{MissedTickBehavior, interval};
use stoa_figures::{Histogram, Latency, LatencyPath, Machine, Rate, Sample};

use crate::engine::Engine;
use crate::engine::history::levels::Levels;
use crate::engine::history::marks::{Between, Mark, Window};
use crate::engine::history::ring::Ring;
use crate::engine::machine;
use crate::run::latency::LatencyHistogram;
use crate::run::paths::SERIES;

pub(crate) use crate::engine::history::levels::STEPS;

/// Seconds that the percentiles of the sample of a second cover.
const WINDOW: usize = 10;
/// Seconds that the latest rate covers.
const RATE_S: usize = 10;
/// Seconds that the latest percentiles cover.
pub const RECENT_S: usize = 60;

/// The history of one engine.
pub(crate) struct History {
    inner: Mutex<Inner>,
    is_sampled: AtomicBool,
}

struct Inner {
    /// Counters as they were at the last [`RECENT_S`] + 1 ticks, oldest first.
    marks: VecDeque<Mark>,
    levels: Levels,
    ring: Option<Arc<Ring>>,
}

/// Latencies of one pool within the last minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolLatency {
    pub(crate) latency: Window,
    pub(crate) waits: Window,
}

impl History {
    /// Of an engine that has just been started, with what is in a file of `directory` from earlier ones.
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        let mut levels = Levels::default();
        let ring = directory.and_then(|directory| Ring::open(directory, &mut levels));
        let inner =
            Inner { marks: VecDeque::from([Mark::first()]), levels, ring: ring.map(Arc::new) };
        Self { inner: Mutex::new(inner), is_sampled: AtomicBool::new(false) }
    }

    fn sample(&self, engine: &Engine) -> Vec<Sample> {
        let mark = Mark::next(engine);
        let mut inner = self.inner.lock();
        let last = inner.marks.len() - 1;
        let window = inner.marks.len().saturating_sub(WINDOW);
        let between = Between {
            rates: &inner.marks[last],
            from: &inner.marks[window],
            longest: inner.longest(window, &mark),
        };
        let second = between.sample(&mark, engine);
        let done = inner.levels.add(second, &mark);
        if inner.marks.len() > RECENT_S {
            inner.marks.pop_front();
        }
        inner.marks.push_back(mark);
        done
    }

    fn ring(&self) -> Option<Arc<Ring>> {
        self.inner.lock().ring.clone()
    }

    /// Samples of `step_s` seconds that ended after `since_unix_ms`, oldest first; none of another step than [`STEPS`]
    /// has.
    fn samples(&self, step_s: u64, since_unix_ms: i64) -> Vec<Sample> {
        self.inner.lock().levels.since(step_s, since_unix_ms)
    }

    /// What the last [`RECENT_S`] seconds came to, including what ended since the last tick.
    fn recent<T>(&self, engine: &Engine, read: impl FnOnce(&Inner, &Mark) -> T) -> T {
        let now = Mark::now(engine);
        read(&self.inner.lock(), &now)
    }
}

impl Inner {
    /// The longest of each histogram after the mark `from` and until `now`.
    fn longest(&self, from: usize, now: &Mark) -> marks::Longest {
        let mut longest = now.longest();
        self.marks.iter().skip(from + 1).for_each(|mark| longest.absorb(mark));
        longest
    }
}

impl Engine {
    /// Samples once a second until the task is ended; whoever comes second does nothing.
    pub fn keep_history(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if self.history.is_sampled.swap(true, Ordering::AcqRel) {
                return;
            }
            let _sampling = Sampling(Arc::clone(&self));
            let mut ticks = interval(Duration::from_secs(1));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                let samples = self.history.sample(&self);
                let Some(ring) = self.history.ring() else { continue };
                // A disk that stands still holds up nothing but this.
                if task::spawn_blocking(move || ring.write(&samples)).await.is_err() {
                    tracing::error!("a sample was not written");
                }
            }
        })
    }

    /// Samples of `step_s` seconds (1, 10, 60 or 600) that ended after `since_unix_ms`, oldest first.
    pub fn samples_since(&self, step_s: u64, since_unix_ms: i64) -> Vec<Sample> {
        self.history.samples(step_s, since_unix_ms)
    }

    /// All samples, the coarsest first; those that finer ones cover included.
    pub(crate) fn all_samples(&self) -> Vec<Sample> {
        STEPS.iter().rev().flat_map(|step| self.samples_since(step.seconds, i64::MIN)).collect()
    }

    /// What the machine does: as of the last sample where there are samples, else of now.
    pub(crate) fn machine(&self) -> Machine {
        if !self.history.is_sampled.load(Ordering::Acquire) {
            return machine::read();
        }
        let inner = self.history.inner.lock();
        inner.marks.back().map_or_else(machine::read, |mark| mark.machine)
    }

    /// Queries a second over the last [`RATE_S`] seconds.
    pub(crate) fn rate(&self) -> Rate {
        let inner = self.history.inner.lock();
        let from = inner.marks.get(inner.marks.len().saturating_sub(RATE_S + 1));
        let per_second = from
            .zip(inner.marks.back())
            .map_or(0.0, |(from, to)| to.finished_since(from) / to.seconds_since(from));
        Rate { per_second, window_s: RATE_S as u64 }
    }

    /// Counts of latencies as [`LatencyHistogram::snapshot`] gives them, over the last [`RECENT_S`] seconds, and the
    /// longest of them in microseconds.
    pub fn recent_latencies(&self) -> (Vec<u64>, u64) {
        let window = self.recent_window();
        (window.counts, window.longest_us)
    }

    fn recent_window(&self) -> Window {
        self.history.recent(self, |inner, now| {
            let longest_us = inner.longest(0, now).all;
            Window { counts: now.all.since(inner.marks.front().map(|from| &from.all)), longest_us }
        })
    }

    /// How long queries took within the last minute.
    pub(crate) fn latency(&self) -> Latency {
        let [p50_ms, p95_ms, p99_ms] = self.recent_window().percentiles_ms();
        let duration = histogram(&self.queries().latency().snapshot());
        Latency { p50_ms, p95_ms, p99_ms, window_s: RECENT_S as u64, duration }
    }

    /// The same by path.
    pub(crate) fn latency_paths(&self) -> Vec<LatencyPath> {
        let windows = self.history.recent(self, |inner, now| {
            let longest = inner.longest(0, now);
            SERIES.map(|series| Window {
                counts: now.paths[series as usize]
                    .since(inner.marks.front().map(|from| &from.paths[series as usize])),
                longest_us: longest.paths[series as usize],
            })
        });
        let rows = SERIES.into_iter().zip(windows);
        rows.map(|(series, window)| {
            let [p50_ms, p95_ms, p99_ms] = window.percentiles_ms();
            let queries = window.total();
            LatencyPath {
                path: series.name(),
                queries,
                p50_ms,
                p95_ms,
                p99_ms,
                max_ms: (queries > 0).then_some(window.longest_us as f64 / 1000.0),
                duration: histogram(&self.queries().paths().of(series).snapshot()),
            }
        })
        .collect()
    }

    /// The same by pool.
    pub(crate) fn pool_latencies(&self) -> BTreeMap<String, PoolLatency> {
        self.history.recent(self, |inner, now| {
            let from = inner.marks.front();
            let of = |(name, [latency, waits]): (&String, &[marks::Counts; 2])| {
                let before = from.and_then(|from| from.pools.get(name));
                let longest = |which: usize| {
                    let later = inner.marks.iter().skip(1).filter_map(|mark| mark.pools.get(name));
                    let all = later.chain(now.pools.get(name)).map(|both| both[which].longest_us);
                    all.max().unwrap_or_default()
                };
                let window = |which: usize, counts: &marks::Counts| Window {
                    counts: counts.since(before.map(|both| &both[which])),
                    longest_us: longest(which),
                };
                let (latency, waits) = (window(0, latency), window(1, waits));
                (name.clone(), PoolLatency { latency, waits })
            };
            now.pools.iter().map(of).collect()
        })
    }
}

/// Lets another task sample once this one has ended.
struct Sampling(Arc<Engine>);

impl Drop for Sampling {
    fn drop(&mut self) {
        self.0.history.is_sampled.store(false, Ordering::Release);
    }
}

/// The registry's buckets grow by a quarter of a power of two; here by a whole one, from 64 µs on.
fn histogram(counts: &[u64]) -> Histogram {
    const BUCKETS_PER_LIMIT: usize = 4;
    let mut histogram = Histogram::default();
    for (index, count) in counts.iter().enumerate() {
        histogram.count += count;
        // The middle of the bucket, as ratios go.
        let upper_s = LatencyHistogram::bucket_upper_us(index) / 1e6;
        histogram.sum += *count as f64 * upper_s / 2_f64.powf(0.5 / BUCKETS_PER_LIMIT as f64);
        let is_limit = index % BUCKETS_PER_LIMIT == BUCKETS_PER_LIMIT - 1;
        if is_limit && (6..30).contains(&(index / BUCKETS_PER_LIMIT)) {
            histogram.buckets.push((upper_s, histogram.count));
        }
    }
    histogram
}
