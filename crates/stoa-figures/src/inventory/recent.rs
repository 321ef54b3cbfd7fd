//! How fast queries were answered lately, and each second of the last minutes.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Shape;
use crate::value::Histogram;

/// Queries that finished lately.
#[derive(Clone, Debug, Default)]
pub struct Rate {
    /// How many a second.
    pub per_second: f64,
    /// Over how many seconds.
    pub window_s: u64,
}

/// How long they took.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    /// What half of them did not exceed, milliseconds.
    pub p50_ms: Option<f64>,
    /// What 95 % did not exceed.
    pub p95_ms: Option<f64>,
    /// What 99 % did not exceed.
    pub p99_ms: Option<f64>,
    /// Over how many seconds.
    pub window_s: u64,
    /// All since the start.
    pub duration: Histogram,
}

/// One second.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Its end, milliseconds since 1970-01-01 UTC.
    pub unix_ms: i64,
    /// Queries that finished.
    pub per_second: f64,
    /// Queries that failed.
    pub failed: u64,
    /// Queries that ran or waited at its end.
    pub running: u64,
    /// Over the ten seconds before, milliseconds.
    pub p50_ms: Option<f64>,
    /// The same for 95 %.
    pub p95_ms: Option<f64>,
    /// The same for 99 %.
    pub p99_ms: Option<f64>,
    /// Queries that had a slot at its end.
    pub computing: u64,
    /// Queries that waited for one.
    pub waiting: u64,
    /// Memory of the cache.
    pub cache_bytes: u64,
    /// Share of chunks that were there, over the ten seconds before.
    pub hit_ratio: Option<f64>,
    /// Rows in no file yet; `None` without a log.
    pub fresh_rows: Option<u64>,
    /// Rows that came in the second.
    pub rows_per_second: Option<f64>,
    /// Small writes that waited for room.
    pub appends_waiting: Option<u64>,
}

const QUERIES: Unit = Unit::Of("queries");
const PER_SECOND: Unit = Unit::Of("queries/s");
const MILLIS: Unit = Unit::Milliseconds;
const GAUGE: Kind = Kind::Gauge;

const RATE_FIGURES: &[Figure<Rate>] = &[
    Figure::<Rate>::float("per_second", GAUGE, PER_SECOND, "Queries that finished.", |s| {
        s.per_second
    }),
    Figure::<Rate>::float(
        "per_hour",
        GAUGE,
        Unit::Of("queries/h"),
        "Queries that finished, by the hour.",
        |s| s.per_second * 3600.0,
    ),
    Figure::<Rate>::gauge("window_s", Unit::Seconds, "Length of the window.", |s| s.window_s),
];

const LATENCY_FIGURES: &[Figure<Latency>] = &[
    Figure::<Latency>::maybe_float(
        "p50_ms",
        GAUGE,
        MILLIS,
        "What half of them did not exceed.",
        |s| s.p50_ms,
    ),
    Figure::<Latency>::maybe_float("p95_ms", GAUGE, MILLIS, "What 95 % did not exceed.", |s| {
        s.p95_ms
    }),
    Figure::<Latency>::maybe_float("p99_ms", GAUGE, MILLIS, "What 99 % did not exceed.", |s| {
        s.p99_ms
    }),
    Figure::<Latency>::gauge("window_s", Unit::Seconds, "Length of the window.", |s| s.window_s),
    Figure::<Latency>::histogram(
        "duration_s",
        "Time of finished queries; the sum is estimated from buckets.",
        |s| &s.duration,
    )
    .metric("stoa_query_duration_seconds"),
];

const SAMPLE_FIGURES: &[Figure<Sample>] = &[
    Figure::<Sample>::time("unix_ms", "The end of the second.", |s| s.unix_ms),
    Figure::<Sample>::float("per_second", GAUGE, PER_SECOND, "Queries that finished.", |s| {
        s.per_second
    }),
    Figure::<Sample>::gauge("failed", QUERIES, "Queries that failed.", |s| s.failed),
    Figure::<Sample>::gauge("running", QUERIES, "Queries that ran or waited at its end.", |s| {
        s.running
    }),
    Figure::<Sample>::maybe_float(
        "p50_ms",
        GAUGE,
        MILLIS,
        "What half of the queries of the last ten seconds did not exceed.",
        |s| s.p50_ms,
    ),
    Figure::<Sample>::maybe_float(
        "p95_ms",
        GAUGE,
        MILLIS,
        "What 95 % of them did not exceed.",
        |s| s.p95_ms,
    ),
    Figure::<Sample>::maybe_float(
        "p99_ms",
        GAUGE,
        MILLIS,
        "What 99 % of them did not exceed.",
        |s| s.p99_ms,
    ),
    Figure::<Sample>::gauge("computing", QUERIES, "Queries that had a slot at its end.", |s| {
        s.computing
    }),
    Figure::<Sample>::gauge("waiting", QUERIES, "Queries that waited for one.", |s| s.waiting),
    Figure::<Sample>::gauge("cache_bytes", Unit::Bytes, "Memory of the cache.", |s| s.cache_bytes),
    Figure::<Sample>::maybe_float(
        "hit_ratio",
        GAUGE,
        Unit::Ratio,
        "Share of chunks that were in the cache, over the last ten seconds.",
        |s| s.hit_ratio,
    ),
    Figure::<Sample>::maybe_gauge(
        "fresh_rows",
        Unit::Of("rows"),
        "Rows in no file yet; null without a log, here and below.",
        |s| s.fresh_rows,
    ),
    Figure::<Sample>::maybe_float(
        "rows_per_second",
        GAUGE,
        Unit::Of("rows/s"),
        "Rows that small writes brought.",
        |s| s.rows_per_second,
    ),
    Figure::<Sample>::maybe_gauge(
        "appends_waiting",
        Unit::Of("writes"),
        "Writes that waited for room.",
        |s| s.appends_waiting,
    ),
];

/// Queries a second.
pub static RATE: Group<Rate> = Group::new(
    "rate",
    "Rate",
    "Queries that finished, over the last `window_s` seconds.",
    Shape::One,
    RATE_FIGURES,
)
.in_status()
.for_everyone();

/// How long they took.
pub static LATENCY: Group<Latency> = Group::new(
    "latency", "Latency",
    "How long queries took that finished, over the last `window_s` seconds; null where there were none.",
    Shape::One,
    LATENCY_FIGURES,
)
.in_status()
.for_everyone();

/// The last ten minutes.
pub static HISTORY: Group<Sample> = Group::new(
    "history",
    "Sample",
    "One sample per second, oldest first, at most 600.",
    Shape::Many,
    SAMPLE_FIGURES,
)
.in_status()
.for_everyone();
