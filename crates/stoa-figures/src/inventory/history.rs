//! How the server was at times of the last week.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Shape;

/// One step of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Its end, milliseconds since 1970-01-01 UTC.
    pub unix_ms: i64,
    /// Its length, seconds.
    pub step_s: u64,
    /// Queries that finished.
    pub per_second: f64,
    /// Those of them that were given the answer of an equal one.
    pub reused_per_second: f64,
    /// Queries that failed in the step.
    pub failed: u64,
    /// The most queries that ran or waited at the end of a second.
    pub running: u64,
    /// Over the step, and at least the ten seconds before its end, milliseconds; so are all latencies.
    pub p50_ms: Option<f64>,
    /// The same for 95 %.
    pub p95_ms: Option<f64>,
    /// The same for 99 %.
    pub p99_ms: Option<f64>,
    /// 99 % of the reports on the short path.
    pub short_p99_ms: Option<f64>,
    /// 99 % of the planned queries, without the time that they waited for a slot.
    pub planned_p99_ms: Option<f64>,
    /// 99 % of the queries that were given the answer of an equal one.
    pub reused_p99_ms: Option<f64>,
    /// What 99 % of the planned queries waited at most for a slot.
    pub wait_p99_ms: Option<f64>,
    /// The most queries that had a slot at the end of a second.
    pub computing: u64,
    /// The most that waited for one.
    pub waiting: u64,
    /// The most memory of the cache.
    pub cache_bytes: u64,
    /// Share of chunks that were there, over the same time as latencies.
    pub hit_ratio: Option<f64>,
    /// The most rows in no file yet; `None` without a log.
    pub fresh_rows: Option<u64>,
    /// Rows that small writes brought.
    pub rows_per_second: Option<f64>,
    /// The most small writes that waited for room.
    pub appends_waiting: Option<u64>,
    /// Share of the machine's processors that the process used; this and what follows is `None` where the system
    /// does not tell.
    pub process_cpu_ratio: Option<f64>,
    /// Share that the whole machine used.
    pub machine_cpu_ratio: Option<f64>,
    /// Bytes a second that the process read from disks.
    pub process_read_per_second: Option<f64>,
    /// Bytes a second that it wrote.
    pub process_written_per_second: Option<f64>,
    /// Bytes a second that the disks of the machine read.
    pub disk_read_per_second: Option<f64>,
    /// Bytes a second that they wrote.
    pub disk_written_per_second: Option<f64>,
    /// Bytes a second that the machine received over the network.
    pub received_per_second: Option<f64>,
    /// Bytes a second that it sent.
    pub sent_per_second: Option<f64>,
}

const QUERIES: Unit = Unit::Of("queries");
const PER_SECOND: Unit = Unit::Of("queries/s");
const BYTES_PER_SECOND: Unit = Unit::Of("bytes/s");
const MILLIS: Unit = Unit::Milliseconds;
const GAUGE: Kind = Kind::Gauge;

type This = Figure<Sample>;

const FIGURES: &[This] = &[
    This::time("unix_ms", "The end of the step.", |s| s.unix_ms),
    This::gauge("step_s", Unit::Seconds, "Its length: 1, 10, 60 or 600.", |s| s.step_s),
    This::float("per_second", GAUGE, PER_SECOND, "Queries that finished.", |s| s.per_second),
    This::float(
        "reused_per_second",
        GAUGE,
        PER_SECOND,
        "Those of them that were given the answer of an equal one.",
        |s| s.reused_per_second,
    ),
    This::gauge("failed", QUERIES, "Queries that failed in the step.", |s| s.failed),
    This::gauge(
        "running",
        QUERIES,
        "The most queries that ran or waited at the end of a second.",
        |s| s.running,
    ),
    This::maybe_float(
        "p50_ms",
        GAUGE,
        MILLIS,
        "What half of the queries did not exceed, over the step and at least the last ten seconds, as all latencies here.",
        |s| s.p50_ms,
    ),
    This::maybe_float("p95_ms", GAUGE, MILLIS, "What 95 % did not exceed.", |s| s.p95_ms),
    This::maybe_float("p99_ms", GAUGE, MILLIS, "What 99 % did not exceed.", |s| s.p99_ms),
    This::maybe_float(
        "short_p99_ms",
        GAUGE,
        MILLIS,
        "What 99 % of the reports on the short path did not exceed.",
        |s| s.short_p99_ms,
    ),
    This::maybe_float(
        "planned_p99_ms",
        GAUGE,
        MILLIS,
        "What 99 % of the planned queries did not exceed, without waiting for a slot.",
        |s| s.planned_p99_ms,
    ),
    This::maybe_float(
        "reused_p99_ms",
        GAUGE,
        MILLIS,
        "What 99 % of the queries did not exceed that were given the answer of an equal one.",
        |s| s.reused_p99_ms,
    ),
    This::maybe_float(
        "wait_p99_ms",
        GAUGE,
        MILLIS,
        "What 99 % of the planned queries waited at most for a slot.",
        |s| s.wait_p99_ms,
    ),
    This::gauge(
        "computing",
        QUERIES,
        "The most queries that had a slot at the end of a second.",
        |s| s.computing,
    ),
    This::gauge("waiting", QUERIES, "The most that waited for one.", |s| s.waiting),
    This::gauge("cache_bytes", Unit::Bytes, "The most memory of the cache.", |s| s.cache_bytes),
    This::maybe_float(
        "hit_ratio",
        GAUGE,
        Unit::Ratio,
        "Share of chunks that were in the cache, over the same time as latencies.",
        |s| s.hit_ratio,
    ),
    This::maybe_gauge(
        "fresh_rows",
        Unit::Of("rows"),
        "The most rows in no file yet; null without a log, here and in the next two.",
        |s| s.fresh_rows,
    ),
    This::maybe_float(
        "rows_per_second",
        GAUGE,
        Unit::Of("rows/s"),
        "Rows that small writes brought.",
        |s| s.rows_per_second,
    ),
    This::maybe_gauge(
        "appends_waiting",
        Unit::Of("writes"),
        "The most writes that waited for room.",
        |s| s.appends_waiting,
    ),
    This::maybe_float(
        "process_cpu_ratio",
        GAUGE,
        Unit::Ratio,
        "Share of the machine's processors that the process used; null where the system does not tell, here and below.",
        |s| s.process_cpu_ratio,
    ),
    This::maybe_float(
        "machine_cpu_ratio",
        GAUGE,
        Unit::Ratio,
        "Share of its processors that the machine used.",
        |s| s.machine_cpu_ratio,
    ),
    This::maybe_float(
        "process_read_per_second",
        GAUGE,
        BYTES_PER_SECOND,
        "What the process read from disks.",
        |s| s.process_read_per_second,
    ),
    This::maybe_float(
        "process_written_per_second",
        GAUGE,
        BYTES_PER_SECOND,
        "What it wrote to them.",
        |s| s.process_written_per_second,
    ),
    This::maybe_float(
        "disk_read_per_second",
        GAUGE,
        BYTES_PER_SECOND,
        "What the disks of the machine read.",
        |s| s.disk_read_per_second,
    ),
    This::maybe_float(
        "disk_written_per_second",
        GAUGE,
        BYTES_PER_SECOND,
        "What they wrote.",
        |s| s.disk_written_per_second,
    ),
    This::maybe_float(
        "received_per_second",
        GAUGE,
        BYTES_PER_SECOND,
        "What the machine received over the network, loopback left out.",
        |s| s.received_per_second,
    ),
    This::maybe_float("sent_per_second", GAUGE, BYTES_PER_SECOND, "What it sent.", |s| {
        s.sent_per_second
    }),
];

/// The last week, in steps that grow with age.
pub static HISTORY: Group<Sample> = Group::new(
    "history",
    "Sample",
    "Samples, oldest first: of each second of the last ten minutes, 10 s of the last hour, minute of the last day and \
     10 minutes of the last week. `/v1/status` has those of a second.",
    Shape::Many,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
