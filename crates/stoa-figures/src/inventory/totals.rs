//! Statements since the start.

use crate::figure::{Family, Figure};
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// All statements together.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Statements that run or wait now.
    pub running: u64,
    /// Statements that were started.
    pub started: u64,
    /// Those that finished without an error.
    pub finished: u64,
    /// Those that ended with an error other than a cancel.
    pub failed: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Rows returned or written.
    pub rows: u64,
    /// Bytes that scans read from storage.
    pub bytes_read: u64,
    /// Requests of scans to storage.
    pub requests: u64,
}

const ENDED: Family = Family {
    name: "stoa_query_ended_queries_total",
    label: "state",
    help: "Queries ended, by how they ended.",
};

const QUERIES: Unit = Unit::Of("queries");

type This = Figure<Totals>;

const FIGURES: &[This] = &[
    This::gauge("running", QUERIES, "Queries that run or wait now.", |s| s.running)
        .metric("stoa_query_running_queries"),
    This::counter("started", QUERIES, "Queries started.", |s| s.started)
        .metric("stoa_query_started_queries_total"),
    This::counter("finished", QUERIES, "Queries that finished without an error.", |s| s.finished)
        .part_of(&ENDED, "finished"),
    This::counter("failed", QUERIES, "Queries that ended with an error.", |s| s.failed)
        .part_of(&ENDED, "failed"),
    This::counter("cancelled", QUERIES, "Queries that were cancelled.", |s| s.cancelled)
        .part_of(&ENDED, "cancelled"),
    This::counter("rows", Unit::Of("rows"), "Rows returned or written.", |s| s.rows)
        .metric("stoa_query_rows_total"),
    This::counter("bytes_read", Unit::Bytes, "Bytes that scans read from storage.", |s| {
        s.bytes_read
    })
    .metric("stoa_query_read_bytes_total"),
    This::counter("requests", Unit::Of("requests"), "Requests of scans to storage.", |s| {
        s.requests
    })
    .metric("stoa_query_read_requests_total"),
];

/// `system.totals`.
pub static TOTALS: Group<Totals> =
    Group::new("totals", "Totals", "All queries since the start.", Shape::One, FIGURES)
        .table()
        .in_status()
        .for_everyone();
