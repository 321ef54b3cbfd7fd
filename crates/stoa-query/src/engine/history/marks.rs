//! Counters at one moment, and what lies between two of them.

use std::collections::BTreeMap;
use std::time::Instant;

use stoa_env::clock;
use stoa_figures::{Machine, Sample};

use crate::engine::Engine;
use crate::engine::machine;
use crate::run::latency::LatencyHistogram;
use crate::run::paths::{SERIES, Series};
use crate::run::registry::Totals;

/// Counts of a histogram that are not 0, by bucket, and the longest since the mark before.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    buckets: Vec<(u16, u64)>,
    pub(super) longest_us: u64,
}

impl Counts {
    fn of(histogram: &LatencyHistogram, longest_us: u64) -> Self {
        let all = histogram.snapshot().into_iter().enumerate();
        let buckets = all.filter(|(_, count)| *count > 0).map(|(index, n)| (index as u16, n));
        Self { buckets: buckets.collect(), longest_us }
    }

    /// What was added after `from`, as [`LatencyHistogram::snapshot`] has it.
    pub(super) fn since(&self, from: Option<&Self>) -> Vec<u64> {
        let end = self.buckets.last().map_or(0, |(index, _)| usize::from(*index) + 1);
        let mut counts = vec![0_u64; end];
        for (index, count) in &self.buckets {
            counts[usize::from(*index)] = *count;
        }
        for (index, count) in from.iter().flat_map(|from| &from.buckets) {
            if let Some(now) = counts.get_mut(usize::from(*index)) {
                *now = now.saturating_sub(*count);
            }
        }
        counts
    }
}

/// What some time came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// As [`LatencyHistogram::snapshot`] has them; buckets at the end that are empty may be missing.
    pub(crate) counts: Vec<u64>,
    pub(crate) longest_us: u64,
}

impl Window {
    /// How many there were.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// What a `share` (0 to 1) did not exceed, milliseconds; `None` where there were none.
    pub(crate) fn percentile_ms(&self, share: f64) -> Option<f64> {
        let us = LatencyHistogram::percentile_us(&self.counts, share, self.longest_us)?;
        Some(us / 1000.0)
    }

    /// For 50, 95 and 99 %.
    pub(crate) fn percentiles_ms(&self) -> [Option<f64>; 3] {
        [0.50, 0.95, 0.99].map(|share| self.percentile_ms(share))
    }
}

/// Small writes at one moment.
#[derive(Clone, Copy, Debug)]
struct Writes {
    /// Since the start.
    appended_rows: u64,
    fresh_rows: u64,
    waiting: u64,
}

/// Counters at one moment.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    at: Instant,
    totals: Totals,
    pub(super) all: Counts,
    /// In the order of [`SERIES`].
    pub(super) paths: [Counts; SERIES.len()],
    /// Latencies and waits.
    pub(super) pools: BTreeMap<String, [Counts; 2]>,
    cache_bytes: u64,
    chunk_hits: u64,
    chunk_misses: u64,
    writes: Option<Writes>,
    pub(super) machine: Machine,
}

/// The longest of each histogram over some time, microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Longest {
    pub(super) all: u64,
    pub(super) paths: [u64; SERIES.len()],
}

impl Longest {
    /// With the time before a mark.
    pub(super) fn absorb(&mut self, mark: &Mark) {
        let other = mark.longest();
        self.all = self.all.max(other.all);
        for (own, other) in self.paths.iter_mut().zip(other.paths) {
            *own = (*own).max(other);
        }
    }
}

impl Mark {
    /// Of an engine that has just been started.
    pub(super) fn first() -> Self {
        Self { machine: machine::read(), ..Self::nothing() }
    }

    /// The next one that is kept.
    pub(super) fn next(engine: &Engine) -> Self {
        let cache = engine.cache_status();
        let ingest = engine.ingest().map(|ingest| ingest.status());
        let latencies = Self::latencies(engine, |histogram| {
            let longest_us = histogram.take_longest_us();
            Counts::of(histogram, longest_us)
        });
        Self {
            cache_bytes: cache.bytes,
            chunk_hits: cache.chunk_hits,
            chunk_misses: cache.chunk_misses,
            writes: ingest.map(|status| Writes {
                appended_rows: status.appended_rows,
                fresh_rows: status.tables.iter().map(|table| table.fresh_rows).sum(),
                waiting: status.appends_waiting as u64,
            }),
            machine: machine::read(),
            ..latencies
        }
    }

    /// One that is not kept, with totals and latencies only: those who look at a server ask for it often.
    pub(super) fn now(engine: &Engine) -> Self {
        Self::latencies(engine, |histogram| Counts::of(histogram, histogram.longest_us()))
    }

    fn latencies(engine: &Engine, counts: impl Fn(&LatencyHistogram) -> Counts) -> Self {
        let registry = engine.queries();
        let pools = engine.handles.runner.pools().all();
        let of_pool = pools
            .iter()
            .map(|pool| (pool.options.name.clone(), [counts(&pool.latency), counts(&pool.waits)]));
        Self {
            at: clock::monotonic(),
            totals: registry.totals(),
            all: counts(registry.latency()),
            paths: SERIES.map(|series| counts(registry.paths().of(series))),
            pools: of_pool.collect(),
            ..Self::nothing()
        }
    }

    fn nothing() -> Self {
        Self {
            at: clock::monotonic(),
            totals: Totals::default(),
            all: Counts::default(),
            paths: Default::default(),
            pools: BTreeMap::new(),
            cache_bytes: 0,
            chunk_hits: 0,
            chunk_misses: 0,
            writes: None,
            machine: Machine::default(),
        }
    }

    pub(super) fn longest(&self) -> Longest {
        let paths = SERIES.map(|series| self.paths[series as usize].longest_us);
        Longest { all: self.all.longest_us, paths }
    }

    pub(super) fn seconds_since(&self, from: &Self) -> f64 {
        self.at.saturating_duration_since(from.at).as_secs_f64().max(1e-3)
    }

    pub(super) fn finished_since(&self, from: &Self) -> f64 {
        self.totals.finished.saturating_sub(from.totals.finished) as f64
    }
}

/// The time before a mark.
pub(super) struct Between<'a> {
    /// Where rates are counted from.
    pub(super) rates: &'a Mark,
    /// Where percentiles and the hit ratio are counted from, which may be earlier.
    pub(super) from: &'a Mark,
    /// Since `from`.
    pub(super) longest: Longest,
}

impl Between<'_> {
    /// The sample of a second.
    pub(super) fn sample(&self, to: &Mark, engine: &Engine) -> Sample {
        let admission = engine.admission_status();
        Sample {
            step_s: 1,
            running: engine.queries().running_count() as u64,
            computing: admission.running as u64,
            waiting: admission.waiting as u64,
            cache_bytes: to.cache_bytes,
            fresh_rows: to.writes.map(|writes| writes.fresh_rows),
            appends_waiting: to.writes.map(|writes| writes.waiting),
            ..self.counted(to, clock::unix_ms())
        }
    }

    /// What is counted, without what is at a moment.
    pub(super) fn counted(&self, to: &Mark, unix_ms: i64) -> Sample {
        let Self { rates, from, longest } = self;
        let seconds = to.seconds_since(rates);
        let all = Window { counts: to.all.since(Some(&from.all)), longest_us: longest.all };
        let [p50_ms, p95_ms, p99_ms] = all.percentiles_ms().map(rounded);
        let p99 = |series: Series| {
            let (to, from) = (&to.paths[series as usize], &from.paths[series as usize]);
            let window =
                Window { counts: to.since(Some(from)), longest_us: longest.paths[series as usize] };
            rounded(window.percentile_ms(0.99))
        };
        let reused = Series::Reused as usize;
        let reused: u64 = to.paths[reused].since(Some(&rates.paths[reused])).iter().sum();
        let (now, before) = (&to.machine, &rates.machine);
        let speed = |now: Option<u64>, before: Option<u64>| {
            let (now, before) = now.zip(before)?;
            rounded(Some(now.saturating_sub(before) as f64 / seconds))
        };
        // At the start, nothing had come.
        let before_rows = rates.writes.map_or(0, |writes| writes.appended_rows);
        let appended = to.writes.map(|writes| writes.appended_rows.saturating_sub(before_rows));
        Sample {
            unix_ms,
            per_second: to.finished_since(rates) / seconds,
            reused_per_second: reused as f64 / seconds,
            failed: to.totals.failed.saturating_sub(rates.totals.failed),
            p50_ms,
            p95_ms,
            p99_ms,
            short_p99_ms: p99(Series::Short),
            planned_p99_ms: p99(Series::Planned),
            reused_p99_ms: p99(Series::Reused),
            wait_p99_ms: p99(Series::Waiting),
            hit_ratio: rounded(hit_ratio(from, to)),
            rows_per_second: rounded(appended.map(|rows| rows as f64 / seconds)),
            process_cpu_ratio: rounded(process_cpu(before, now, seconds)),
            machine_cpu_ratio: rounded(machine_cpu(before, now)),
            process_read_per_second: speed(now.process_bytes_read, before.process_bytes_read),
            process_written_per_second: speed(
                now.process_bytes_written,
                before.process_bytes_written,
            ),
            disk_read_per_second: speed(now.disk_bytes_read, before.disk_bytes_read),
            disk_written_per_second: speed(now.disk_bytes_written, before.disk_bytes_written),
            received_per_second: speed(now.bytes_received, before.bytes_received),
            sent_per_second: speed(now.bytes_sent, before.bytes_sent),
            ..Sample::default()
        }
    }
}

fn hit_ratio(from: &Mark, to: &Mark) -> Option<f64> {
    let hits = to.chunk_hits.saturating_sub(from.chunk_hits);
    let misses = to.chunk_misses.saturating_sub(from.chunk_misses);
    let asked = hits + misses;
    (asked > 0).then(|| hits as f64 / asked as f64)
}

fn process_cpu(before: &Machine, now: &Machine, seconds: f64) -> Option<f64> {
    let used = (now.process_cpu_s? - before.process_cpu_s?).max(0.0);
    Some((used / seconds / now.processors.max(1) as f64).min(1.0))
}

fn machine_cpu(before: &Machine, now: &Machine) -> Option<f64> {
    let busy = (now.cpu_busy_s? - before.cpu_busy_s?).max(0.0);
    let idle = (now.cpu_idle_s? - before.cpu_idle_s?).max(0.0);
    (busy + idle > 0.0).then(|| busy / (busy + idle))
}

/// To four digits: samples are many, and none is more exact.
fn rounded(value: Option<f64>) -> Option<f64> {
    let value = value?;
    if value == 0.0 || !value.is_finite() {
        return value.is_finite().then_some(value);
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let factor = 10_f64.powi(digits.abs());
    Some(if digits >= 0 {
        (value * factor).round() / factor
    } else {
        (value / factor).round() * factor
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_enough() {
        let check = |value: f64, wanted: f64| assert_eq!(rounded(Some(value)), Some(wanted));
        check(0.0, 0.0);
        check(1.234_567, 1.235);
        check(0.000_123_456, 0.000_123_5);
        check(987_654.3, 987_700.0);
        check(-12.3456, -12.35);
        assert_eq!(rounded(Some(f64::NAN)), None);
        assert_eq!(rounded(None), None);
    }

    #[test]
    fn a_window_has_what_was_added_since() {
        let histogram = LatencyHistogram::default();
        (0..10).for_each(|_| histogram.record(100));
        let before = Counts::of(&histogram, histogram.take_longest_us());
        (0..3).for_each(|_| histogram.record(5000));
        let after = Counts::of(&histogram, histogram.take_longest_us());
        let window = Window { counts: after.since(Some(&before)), longest_us: after.longest_us };
        assert_eq!((window.total(), window.longest_us), (3, 5000));
        assert!((window.percentile_ms(0.5).unwrap() - 5.0).abs() < 0.6);
        assert_eq!(after.since(None).iter().sum::<u64>(), 13);
        assert_eq!(Window::default().percentiles_ms(), [None; 3]);
    }

    #[test]
    fn shares_of_processors_are_between_nothing_and_all() {
        let before = Machine {
            processors: 2,
            cpu_busy_s: Some(10.0),
            cpu_idle_s: Some(10.0),
            process_cpu_s: Some(1.0),
            ..Machine::default()
        };
        let now = Machine {
            cpu_busy_s: Some(11.5),
            cpu_idle_s: Some(10.5),
            process_cpu_s: Some(1.5),
            ..before
        };
        assert_eq!(machine_cpu(&before, &now), Some(0.75));
        assert_eq!(process_cpu(&before, &now, 1.0), Some(0.25));
        assert_eq!(process_cpu(&before, &Machine { process_cpu_s: None, ..now }, 1.0), None);
        assert_eq!(machine_cpu(&now, &now), None, "no time has passed");
    }
}
