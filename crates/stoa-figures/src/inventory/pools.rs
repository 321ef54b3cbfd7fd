//! Pools of queries.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Shape;

/// One pool.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Its name.
    pub pool: String,
    /// Queries that may compute at the same time.
    pub slots: u64,
    /// Those that do.
    pub running: u64,
    /// Those that wait for a slot.
    pub waiting: u64,
    /// Most that may wait.
    pub queue_max: u64,
    /// Queries refused since the start because too many waited.
    pub refused: u64,
    /// Memory of its queries.
    pub memory_bytes: u64,
    /// Bound on it, if it has one of its own.
    pub memory_bytes_max: Option<u64>,
    /// Statements ended because they took too long or read too much.
    pub ended: u64,
    /// Its queries that finished within the last minute.
    pub queries: u64,
    /// What half of these did not exceed, milliseconds; waiting for a slot included, as in the next two.
    pub p50_ms: Option<f64>,
    /// The same for 95 %.
    pub p95_ms: Option<f64>,
    /// The same for 99 %.
    pub p99_ms: Option<f64>,
    /// What 99 % of those that needed a slot waited for it at most, milliseconds.
    pub wait_p99_ms: Option<f64>,
}

const QUERIES: Unit = Unit::Of("queries");

type This = Figure<Pool>;

const FIGURES: &[This] = &[
    This::key("pool", "Name of the pool.", |s| &s.pool),
    This::gauge("slots", QUERIES, "Queries that may compute at the same time.", |s| s.slots)
        .metric("stoa_pool_slots"),
    This::gauge("running", QUERIES, "Queries that have a slot.", |s| s.running)
        .metric("stoa_pool_running_queries"),
    This::gauge("waiting", QUERIES, "Queries that wait for a slot.", |s| s.waiting)
        .metric("stoa_pool_waiting_queries"),
    This::gauge("queue_max", QUERIES, "Queries that may wait; one more is refused.", |s| {
        s.queue_max
    }),
    This::counter(
        "refused",
        QUERIES,
        "Queries refused because too many of the pool waited.",
        |s| s.refused,
    )
    .metric("stoa_pool_refused_queries_total"),
    This::gauge("memory_bytes", Unit::Bytes, "Memory of queries.", |s| s.memory_bytes)
        .metric("stoa_pool_memory_bytes"),
    This::maybe_gauge(
        "memory_bytes_max",
        Unit::Bytes,
        "Bound on it; null where the pool has none of its own.",
        |s| s.memory_bytes_max,
    ),
    This::counter(
        "ended",
        Unit::Of("statements"),
        "Statements ended because they took too long or read too much.",
        |s| s.ended,
    )
    .metric("stoa_pool_ended_queries_total"),
    This::gauge(
        "queries",
        QUERIES,
        "Queries of the pool that finished within the last minute.",
        |s| s.queries,
    ),
    This::maybe_float(
        "p50_ms",
        Kind::Gauge,
        Unit::Milliseconds,
        "What half of these did not exceed, waiting for a slot included; null where there were none, here and below.",
        |s| s.p50_ms,
    ),
    This::maybe_float(
        "p95_ms",
        Kind::Gauge,
        Unit::Milliseconds,
        "What 95 % of them did not exceed.",
        |s| s.p95_ms,
    ),
    This::maybe_float(
        "p99_ms",
        Kind::Gauge,
        Unit::Milliseconds,
        "What 99 % of them did not exceed.",
        |s| s.p99_ms,
    ),
    This::maybe_float(
        "wait_p99_ms",
        Kind::Gauge,
        Unit::Milliseconds,
        "What 99 % of those that needed a slot waited for it at most.",
        |s| s.wait_p99_ms,
    ),
];

/// `system.pools`.
pub static POOLS: Group<Pool> = Group::new(
    "pools",
    "Pool",
    "Pools: queries that share slots, a queue and memory.",
    Shape::Many,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
