//! The process.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Shape;

/// The server process at one moment.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Version of the program.
    pub version: String,
    /// Why statements are not taken, or not all of them; `None` where they are.
    pub not_ready: Option<String>,
    /// Where the tables are.
    pub warehouse: String,
    /// Start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: i64,
    /// Now, on the same clock.
    pub now_unix_ms: i64,
    /// Time since the start, milliseconds.
    pub uptime_ms: u64,
    /// Resident memory, where the system tells.
    pub resident_bytes: Option<u64>,
    /// CPU time used so far, seconds, where the system tells.
    pub cpu_s: Option<f64>,
}

type This = Figure<Server>;

const FIGURES: &[This] = &[
    This::text("version", "Version of the program.", |s| &s.version).metric("stoa_build_info"),
    This::flag("ready", "Whether statements are taken.", |s| s.not_ready.is_none())
        .metric("stoa_process_ready"),
    This::maybe_text("not_ready", "Why it is not ready, as `/ready` says it.", |s| {
        s.not_ready.as_deref()
    }),
    This::text("warehouse", "Where the tables are.", |s| &s.warehouse),
    This::time("started_unix_ms", "When the server was started.", |s| s.started_unix_ms),
    This::time("now_unix_ms", "The server's clock.", |s| s.now_unix_ms),
    This::gauge("uptime_ms", Unit::Milliseconds, "Time since the start.", |s| s.uptime_ms)
        .metric("stoa_process_uptime_seconds"),
    This::maybe_gauge(
        "resident_bytes",
        Unit::Bytes,
        "Resident memory; null where the system does not tell.",
        |s| s.resident_bytes,
    )
    .metric("stoa_process_resident_memory_bytes"),
    This::maybe_float(
        "cpu_s",
        Kind::Counter,
        Unit::Seconds,
        "CPU time used since the start; null where the system does not tell.",
        |s| s.cpu_s,
    )
    .metric("stoa_process_cpu_seconds_total"),
];

/// Members of `/v1/status` itself.
pub static SERVER: Group<Server> =
    Group::new("server", "Status", "The server process.", Shape::Top, FIGURES)
        .in_status()
        .for_everyone();
