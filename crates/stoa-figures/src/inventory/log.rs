//! The commit log.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// The log, and the memory for rows that are in no file yet.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The directory or URL.
    pub place: String,
    /// Whether rows are taken.
    pub open: bool,
    /// Why the log has stopped, if it has.
    pub stopped: Option<String>,
    /// Rows in the log and in no file yet.
    pub fresh_rows: u64,
    /// Memory that they take.
    pub fresh_bytes: u64,
    /// What they may take.
    pub fresh_bytes_max: u64,
    /// Small writes since the start.
    pub appends: u64,
    /// Their rows.
    pub appended_rows: u64,
    /// Bytes of their records.
    pub appended_bytes: u64,
    /// Small writes that wait for room.
    pub appends_waiting: u64,
    /// Syncs since the start.
    pub syncs: u64,
    /// Segments of the log.
    pub segments: u64,
    /// Their bytes.
    pub segment_bytes: u64,
}

const ROWS: Unit = Unit::Of("rows");
const WRITES: Unit = Unit::Of("writes");

type This = Figure<Log>;

const FIGURES: &[This] = &[
    This::text("place", "The directory or URL.", |s| &s.place),
    This::flag("open", "Whether rows are taken.", |s| s.open),
    This::maybe_text("stopped", "The I/O error that the log has met, if it has.", |s| {
        s.stopped.as_deref()
    }),
    This::flag("is_stopped", "Whether the log has met an I/O error.", |s| s.stopped.is_some())
        .metric("stoa_log_stopped"),
    This::gauge("fresh_rows", ROWS, "Rows in the commit log and in no file yet.", |s| s.fresh_rows)
        .metric("stoa_fresh_rows"),
    This::gauge("fresh_bytes", Unit::Bytes, "Memory of fresh rows.", |s| s.fresh_bytes)
        .metric("stoa_fresh_bytes"),
    This::gauge("fresh_bytes_max", Unit::Bytes, "Memory for them.", |s| s.fresh_bytes_max)
        .metric("stoa_fresh_limit_bytes"),
    This::counter("appends", WRITES, "Small writes.", |s| s.appends)
        .metric("stoa_log_appends_total"),
    This::counter("appended_rows", ROWS, "Rows that small writes brought.", |s| s.appended_rows)
        .metric("stoa_log_rows_total"),
    This::counter("appended_bytes", Unit::Bytes, "Bytes of their records.", |s| s.appended_bytes)
        .metric("stoa_log_bytes_total"),
    This::gauge("appends_waiting", WRITES, "Small writes that wait for room.", |s| {
        s.appends_waiting
    })
    .metric("stoa_fresh_waiting_writes"),
    This::counter("syncs", Unit::Of("syncs"), "Syncs of the commit log.", |s| s.syncs)
        .metric("stoa_log_syncs_total"),
    This::gauge("segments", Unit::Of("segments"), "Segments of the log.", |s| s.segments),
    This::gauge("segment_bytes", Unit::Bytes, "Bytes of the log's segments.", |s| s.segment_bytes)
        .metric("stoa_log_segment_bytes"),
];

/// `system.log`.
pub static LOG: Group<Log> = Group::new(
    "log", "Log",
    "The commit log and the memory for fresh rows, which are in it and in no file yet; nothing where \
     there is no log.",
    Shape::Maybe,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
