//! How long queries took lately, by the way on which they were answered.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Shape;
use crate::value::Histogram;

/// Queries of one path, or what planned ones waited.
#[derive(Clone, Debug, Default)]
pub struct LatencyPath {
    /// `short`, `planned`, `reused`, `other` or `waiting`.
    pub path: &'static str,
    /// Queries that finished within the last minute.
    pub queries: u64,
    /// What half of them did not exceed, milliseconds.
    pub p50_ms: Option<f64>,
    /// The same for 95 %.
    pub p95_ms: Option<f64>,
    /// The same for 99 %.
    pub p99_ms: Option<f64>,
    /// The longest, milliseconds.
    pub max_ms: Option<f64>,
    /// All since the start.
    pub duration: Histogram,
}

const MILLIS: Unit = Unit::Milliseconds;
const GAUGE: Kind = Kind::Gauge;

type This = Figure<LatencyPath>;

const FIGURES: &[This] = &[
    This::key(
        "path",
        "`short`: reports on the short path; `planned`: queries that a plan computed, without the time that they waited \
         for a slot; `reused`: given the answer of an equal one; `other`: statements without a plan; `waiting`: what \
         planned queries waited for a slot.",
        |s| s.path,
    ),
    This::gauge(
        "queries",
        Unit::Of("queries"),
        "Queries that finished within the last minute.",
        |s| s.queries,
    ),
    This::maybe_float("p50_ms", GAUGE, MILLIS, "What half of them did not exceed.", |s| s.p50_ms),
    This::maybe_float("p95_ms", GAUGE, MILLIS, "What 95 % did not exceed.", |s| s.p95_ms),
    This::maybe_float("p99_ms", GAUGE, MILLIS, "What 99 % did not exceed.", |s| s.p99_ms),
    This::maybe_float("max_ms", GAUGE, MILLIS, "The longest.", |s| s.max_ms),
    This::histogram(
        "duration_s",
        "Time of finished queries by path; the sum is estimated from buckets.",
        |s| &s.duration,
    )
    .metric("stoa_query_path_seconds"),
];

/// `system.latency_paths`.
pub static LATENCY_PATHS: Group<LatencyPath> = Group::new(
    "latency_paths",
    "LatencyPath",
    "How long queries took that finished within the last minute, by the way on which they were answered; null where \
     there were none.",
    Shape::Many,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
