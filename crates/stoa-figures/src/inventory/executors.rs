//! Who computes and who waits.

use crate::figure::{Family, Figure};
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// All pools together, and the threads.
#[derive(Clone, Debug, Default)]
pub struct Executors {
    /// Threads that compute.
    pub executors: u64,
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
    /// Memory that queries hold.
    pub memory_bytes: u64,
    /// What they may hold.
    pub memory_bytes_max: u64,
    /// What clients keep from call to call: prepared statements, values bound to them.
    pub kept_bytes: u64,
    /// Executors, as a runtime.
    pub executor_threads: Stalls,
    /// Threads that plan.
    pub planner_threads: Stalls,
    /// Threads that serve connections.
    pub io_threads: Stalls,
    /// Statements that were cancelled a second ago or more and still compute.
    pub overdue: u64,
}

/// How quickly the threads of a runtime take up tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stalls {
    /// Times that no thread took up a task for a second.
    pub stalls: u64,
    /// The longest that a task waited, microseconds.
    pub wait_max_us: u64,
}

const STALLS: Family = Family {
    name: "stoa_stalls_total",
    label: "threads",
    help: "Times that no thread took up a task for a second.",
};

const QUERIES: Unit = Unit::Of("queries");
const TIMES: Unit = Unit::Of("times");
const MICROS: Unit = Unit::Microseconds;

type This = Figure<Executors>;

const FIGURES: &[This] = &[
    This::gauge("executors", Unit::Of("threads"), "Threads that compute.", |s| s.executors)
        .metric("stoa_admission_executors"),
    This::gauge("slots", QUERIES, "Queries that may compute at the same time.", |s| s.slots)
        .metric("stoa_admission_slots"),
    This::gauge("running", QUERIES, "Queries that have a slot.", |s| s.running)
        .metric("stoa_admission_running_queries"),
    This::gauge("waiting", QUERIES, "Queries that wait for a slot.", |s| s.waiting)
        .metric("stoa_admission_waiting_queries"),
    This::gauge("queue_max", QUERIES, "Queries that may wait; one more is refused.", |s| {
        s.queue_max
    })
    .metric("stoa_admission_waiting_limit_queries"),
    This::counter("refused", QUERIES, "Queries refused because too many waited.", |s| s.refused)
        .metric("stoa_admission_refused_queries_total"),
    This::gauge("memory_bytes", Unit::Bytes, "Memory that queries hold.", |s| s.memory_bytes)
        .metric("stoa_query_memory_reserved_bytes"),
    This::gauge("memory_bytes_max", Unit::Bytes, "Memory that queries may hold.", |s| {
        s.memory_bytes_max
    })
    .metric("stoa_query_memory_limit_bytes"),
    This::gauge(
        "kept_bytes",
        Unit::Bytes,
        "Prepared statements and values bound to them, about.",
        |s| s.kept_bytes,
    )
    .metric("stoa_kept_statements_bytes"),
    This::counter(
        "executor_stalls",
        TIMES,
        "Times that no executor took up a task for a second.",
        |s| s.executor_threads.stalls,
    )
    .part_of(&STALLS, "executor"),
    This::gauge(
        "executor_wait_max_us",
        MICROS,
        "The longest that a task waited for an executor.",
        |s| s.executor_threads.wait_max_us,
    ),
    This::counter(
        "planner_stalls",
        TIMES,
        "Times that no thread that plans took up a task for a second.",
        |s| s.planner_threads.stalls,
    )
    .part_of(&STALLS, "planner"),
    This::gauge(
        "planner_wait_max_us",
        MICROS,
        "The longest that a task waited for a thread that plans.",
        |s| s.planner_threads.wait_max_us,
    ),
    This::counter(
        "io_stalls",
        TIMES,
        "Times that no thread that serves connections took up a task for a second.",
        |s| s.io_threads.stalls,
    )
    .part_of(&STALLS, "io"),
    This::gauge(
        "io_wait_max_us",
        MICROS,
        "The longest that a task waited for a thread that serves connections.",
        |s| s.io_threads.wait_max_us,
    ),
    This::gauge(
        "overdue",
        Unit::Of("statements"),
        "Statements that were cancelled a second ago or more and still compute.",
        |s| s.overdue,
    )
    .metric("stoa_overdue_statements"),
];

/// `system.executors`.
pub static EXECUTORS: Group<Executors> = Group::new(
    "executors", "Executors",
    "Who computes and who waits, in all pools together. Reports on the short path and statements that \
     read no files need no slot.",
    Shape::One,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
