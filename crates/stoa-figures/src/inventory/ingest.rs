//! Fresh rows by table.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// A table that was written to since the start.
#[derive(Clone, Debug, Default)]
pub struct IngestTable {
    /// Namespace and name.
    pub table: String,
    /// Rows in the log and in no file yet.
    pub fresh_rows: u64,
    /// Memory that they take.
    pub fresh_bytes: u64,
    /// How long the oldest of them is there, milliseconds.
    pub oldest_ms: Option<u64>,
    /// Flushes that succeeded.
    pub flushes: u64,
    /// Rows that they brought into files.
    pub flushed_rows: u64,
    /// When the last of them ended, milliseconds since 1970-01-01 UTC.
    pub last_flush_unix_ms: Option<i64>,
    /// Flushes that failed since then.
    pub failures: u64,
    /// Why the last one failed.
    pub last_error: Option<String>,
}

type This = Figure<IngestTable>;

const FIGURES: &[This] = &[
    This::key("table", "Namespace and name of the table.", |s| &s.table),
    This::gauge(
        "fresh_rows",
        Unit::Of("rows"),
        "Rows in the commit log and in no file yet.",
        |s| s.fresh_rows,
    ),
    This::gauge("fresh_bytes", Unit::Bytes, "Memory that they take.", |s| s.fresh_bytes),
    This::maybe_gauge(
        "oldest_ms",
        Unit::Milliseconds,
        "How long the oldest of them has been there; null where there are none.",
        |s| s.oldest_ms,
    ),
    This::counter("flushes", Unit::Of("flushes"), "Flushes that succeeded.", |s| s.flushes),
    This::counter("flushed_rows", Unit::Of("rows"), "Rows that they brought into files.", |s| {
        s.flushed_rows
    }),
    This::maybe_time("last_flush_unix_ms", "When the last of them ended.", |s| {
        s.last_flush_unix_ms
    }),
    This::gauge(
        "failures",
        Unit::Of("flushes"),
        "Flushes that failed since the last good one.",
        |s| s.failures,
    )
    .metric("stoa_flush_failures"),
    This::maybe_text(
        "last_error",
        "Why the last flush failed; null once one has succeeded.",
        |s| s.last_error.as_deref(),
    ),
];

/// `system.ingest`.
pub static INGEST: Group<IngestTable> = Group::new(
    "ingest",
    "IngestTable",
    "Tables that small writes went to since the start, with the rows that are in no file yet.",
    Shape::Many,
    FIGURES,
)
.table()
.in_status()
.for_granted();
