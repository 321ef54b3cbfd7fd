//! Statements that differ only in their literals.

use crate::figure::Figure;
use crate::group::Group;
use crate::inventory::spent::{Spent, with_spent};
use crate::kind::{Kind, Unit};
use crate::seen::Shape;

/// Statements of one shape since the start.
#[derive(Clone, Debug, Default)]
pub struct QueryShape {
    /// Statements that ended.
    pub queries: u64,
    /// Those that ended with an error or were cancelled.
    pub failed: u64,
    /// Those that were answered without the planner.
    pub short_path: u64,
    /// Those that were given the answer of an equal one.
    pub reused: u64,
    /// Time of all together, milliseconds.
    pub total_ms: f64,
    /// What half of those that were computed did not exceed, milliseconds.
    pub p50_ms: Option<f64>,
    /// The same for 95 %.
    pub p95_ms: Option<f64>,
    /// The same for 99 %.
    pub p99_ms: Option<f64>,
    /// The longest that was computed, milliseconds.
    pub max_ms: f64,
    /// Rows returned.
    pub rows: u64,
    /// Bytes read from storage.
    pub bytes_read: u64,
    /// Read requests to storage.
    pub requests: u64,
    /// What all together took of caches and object stores.
    pub spent: Spent,
    /// The text without its literals.
    pub sql: String,
}

const STATEMENTS: Unit = Unit::Of("statements");
const MILLIS: Unit = Unit::Milliseconds;
const GAUGE: Kind = Kind::Gauge;

type This = Figure<QueryShape>;

const FIGURES: &[This] = with_spent!(
    [
        This::gauge("queries", STATEMENTS, "Statements that ended.", |s| s.queries),
        This::gauge(
            "failed",
            STATEMENTS,
            "Those that ended with an error or were cancelled.",
            |s| { s.failed }
        ),
        This::gauge("short_path", STATEMENTS, "Those answered without the planner.", |s| {
            s.short_path
        }),
        This::gauge(
            "reused",
            STATEMENTS,
            "Those given the answer of an equal one; latencies are of the others only.",
            |s| { s.reused }
        ),
        This::float("total_ms", GAUGE, MILLIS, "Time of all together.", |s| s.total_ms).summed(),
        This::maybe_float(
            "p50_ms",
            GAUGE,
            MILLIS,
            "What half of those that were computed did not exceed; interpolated, and never above the longest, as the others are.",
            |s| { s.p50_ms }
        ),
        This::maybe_float("p95_ms", GAUGE, MILLIS, "What 95 % did not exceed.", |s| s.p95_ms),
        This::maybe_float("p99_ms", GAUGE, MILLIS, "What 99 % did not exceed.", |s| s.p99_ms),
        This::float("max_ms", GAUGE, MILLIS, "The longest.", |s| s.max_ms),
        This::gauge("rows", Unit::Of("rows"), "Returned.", |s| s.rows),
        This::gauge("bytes_read", Unit::Bytes, "Read from storage.", |s| s.bytes_read),
        This::gauge("requests", Unit::Of("requests"), "Read requests to storage.", |s| s.requests),
    ],
    [This::text(
        "sql",
        "The text with places instead of literals; the last letter is the literal's kind: i integer, \
         n decimal, s text, d date, t timestamp. Of statements that are no plain SELECT, the first 200 \
         characters.",
        |s| &s.sql,
    )]
);

/// `system.query_shapes`, and the objects of `/v1/shapes`.
pub static QUERY_SHAPES: Group<QueryShape> = Group::new(
    "query_shapes", "Shape",
    "Statements that differ only in their literals, counted together since the start; those that took \
     most time first.",
    Shape::Many,
    FIGURES,
)
.table()
.in_json();
