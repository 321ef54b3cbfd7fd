//! How fast queries were answered lately.

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

/// Queries a second.
pub static RATE: Group<Rate> = Group::new(
    "rate",
    "Rate",
    "Queries that finished, over the last `window_s` seconds.",
    Shape::One,
    RATE_FIGURES,
)
.table()
.in_status()
.for_everyone();

/// How long they took.
pub static LATENCY: Group<Latency> = Group::new(
    "latency", "Latency",
    "How long queries took that finished, over the last `window_s` seconds; null where there were none.",
    Shape::One,
    LATENCY_FIGURES,
)
.table()
.in_status()
.for_everyone();
