//! Queries that run, and those that ended lately.

use crate::figure::Figure;
use crate::group::Group;
use crate::inventory::spent::{Spent, with_spent};
use crate::kind::{Kind, Unit};
use crate::seen::Shape;

/// One query.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Unique within this process, counted from 1.
    pub id: u64,
    /// `queued`, `running`, `finished`, `failed`, `cancelled`.
    pub state: &'static str,
    /// Who asked.
    pub user: String,
    /// Over which protocol.
    pub protocol: &'static str,
    /// Start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: i64,
    /// Time from start to now or to the end, milliseconds.
    pub elapsed_ms: f64,
    /// Whether it was answered without the planner.
    pub short_path: bool,
    /// On which way it was answered: `short`, `planned`, `reused` or `other`.
    pub path: &'static str,
    /// How long it waited for a slot, milliseconds.
    pub wait_ms: f64,
    /// Share of its files' rows that were scanned.
    pub progress: Option<f64>,
    /// Rows returned or written so far.
    pub rows: u64,
    /// Bytes read from storage so far.
    pub bytes_read: u64,
    /// Read requests to storage so far.
    pub requests: u64,
    /// What it took of caches and object stores.
    pub spent: Spent,
    /// Whose slots, queue and memory it shares.
    pub pool: String,
    /// Memory of its sorts, joins and groups.
    pub memory_bytes: u64,
    /// The most that this came to.
    pub memory_peak_bytes: u64,
    /// SQLSTATE of the error it ended with.
    pub sqlstate: Option<&'static str>,
    /// Its message.
    pub error: Option<String>,
    /// The statement.
    pub sql: String,
}

type This = Figure<Query>;

const FIGURES: &[This] = with_spent!(
    [
        This::number("id", "number", "Unique in this process, counted from 1.", |s| s.id),
        This::text("state", "queued, running, finished, failed or cancelled.", |s| s.state),
        This::text("user", "Who asked.", |s| &s.user),
        This::text("protocol", "postgresql, http, flight, hive, hql or shell.", |s| s.protocol),
        This::time("started_unix_ms", "When it was started.", |s| s.started_unix_ms),
        This::float(
            "elapsed_ms",
            Kind::Gauge,
            Unit::Milliseconds,
            "Time from start to now or to the end.",
            |s| s.elapsed_ms,
        ),
        This::flag("short_path", "Whether it was answered without the planner.", |s| s.short_path),
        This::text(
            "path",
            "short: on the short path; planned: by a plan; reused: with the answer of an equal one; other: without a plan.",
            |s| s.path
        ),
        This::float(
            "wait_ms",
            Kind::Gauge,
            Unit::Milliseconds,
            "How long it waited for a slot, which elapsed_ms includes.",
            |s| s.wait_ms,
        ),
        This::maybe_float(
            "progress",
            Kind::Gauge,
            Unit::Ratio,
            "Share of its files' rows that were scanned; null where it scans none.",
            |s| s.progress,
        ),
        This::gauge("rows", Unit::Of("rows"), "Returned or written so far.", |s| s.rows),
        This::gauge("bytes_read", Unit::Bytes, "Read from storage so far.", |s| s.bytes_read),
        This::gauge("requests", Unit::Of("requests"), "Read requests to storage.", |s| s.requests),
    ],
    [
        This::text("pool", "Whose slots, queue and memory it shares.", |s| &s.pool),
        This::gauge("memory_bytes", Unit::Bytes, "Of sorts, joins and groups, now.", |s| {
            s.memory_bytes
        }),
        This::gauge("memory_peak_bytes", Unit::Bytes, "The most that this came to.", |s| {
            s.memory_peak_bytes
        }),
        This::maybe_text("sqlstate", "Of the error it ended with.", |s| s.sqlstate),
        This::maybe_text("error", "Message of that error.", |s| s.error.as_deref()),
        This::text("sql", "The statement, cut at 4 KiB.", |s| &s.sql),
    ]
);

/// `system.queries`, and the objects of `/v1/queries`.
pub static QUERIES: Group<Query> = Group::new(
    "queries",
    "Query",
    "Queries that run or wait, and those that ended lately.",
    Shape::Many,
    FIGURES,
)
.table()
.in_json()
.for_owner(|query| &query.user);
