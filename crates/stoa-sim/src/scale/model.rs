//! Formulas: cache, requests to the store, statements to the database, messages between daemons.

/// Rows of thirteen months: 3.3 billion per day.
pub const ROWS: f64 = 1.3e12;
/// New rows per day.
pub const ROWS_PER_DAY: f64 = 3.3e9;
/// Bytes of a row before encoding.
pub const ROW_BYTES: f64 = 800.0;
/// Bytes of the four columns of a report in the chunk cache, at most: 1, 2 or 4 each.
pub const REPORT_BYTES: f64 = 16.0;
/// Cache of one daemon on memory and disk, in GiB.
pub const CACHE_GIB: f64 = 512.0;
/// Bytes that one GET of a cache fill reads.
pub const GET_BYTES: f64 = 4.0 * 1024.0 * 1024.0;
/// GETs of a report that finds nothing cached: one for each monthly file.
pub const GETS_PER_COLD_REPORT: f64 = 13.0;
/// Dollars per GET and per PUT.
pub const GET_DOLLARS: f64 = 0.40e-6;
/// Dollars per PUT.
pub const PUT_DOLLARS: f64 = 5.0e-6;
/// Groups that a log puts per second, at most.
pub const GROUPS_PER_SECOND: f64 = 10.0;
/// Seconds between flushes of one daemon, unless memory for fresh rows ends first.
pub const FLUSH_SECONDS: f64 = 30.0;
/// Memory for fresh rows of one daemon, in MiB.
pub const FRESH_MIB: f64 = 256.0;
/// CPU of a warm report, in seconds.
pub const REPORT_CPU_SECONDS: f64 = 24e-6;
/// Bytes of one row of the table of members.
pub const MEMBER_BYTES: f64 = 100.0;
/// Heartbeats that a database took per second.
pub const HEARTBEATS_MAX: f64 = 25_000.0;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// New rows per second, over all daemons.
pub fn rows_per_second() -> f64 {
    ROWS_PER_DAY / 86_400.0
}

/// GiB of report columns per daemon, on the fullest.
pub fn cache_gib(daemons: f64, balance: f64) -> f64 {
    ROWS * REPORT_BYTES / daemons * balance / GIB
}

/// The share of the report columns that all caches together hold, each part once.
pub fn cached_share(daemons: f64) -> f64 {
    (CACHE_GIB * GIB * daemons / (ROWS * REPORT_BYTES)).min(1.0)
}

/// GETs per hour that bring new data into the cache of its home.
pub fn gets_for_new_data() -> f64 {
    ROWS_PER_DAY / 24.0 * REPORT_BYTES / GET_BYTES
}

/// GETs per hour of reports on data that no cache holds, if all data were asked for equally often.
pub fn gets_for_misses(daemons: f64, reports_per_hour: f64) -> f64 {
    reports_per_hour * (1.0 - cached_share(daemons)) * GETS_PER_COLD_REPORT
}

/// GETs to fill caches again after one daemon is lost.
pub fn gets_for_loss(daemons: f64, moved: f64) -> f64 {
    let cached = ROWS * REPORT_BYTES * cached_share(daemons);
    cached * moved / daemons / GET_BYTES
}

/// PUTs of all logs per hour, if all are always busy.
pub fn log_puts(daemons: f64) -> f64 {
    daemons * GROUPS_PER_SECOND * 3600.0
}

/// Seconds until the fresh rows of all daemons, which each daemon holds, fill its memory.
pub fn seconds_until_full() -> f64 {
    FRESH_MIB * MIB / (rows_per_second() * ROW_BYTES)
}

/// Commits per second to the one table.
pub fn commits(daemons: f64) -> f64 {
    daemons / FLUSH_SECONDS.min(seconds_until_full())
}

/// Statements per second to the database: a renewal per second, a read every two, two per commit, and looks for moves of
/// pointers by all daemons, as they all answer reports.
pub fn statements(daemons: f64) -> f64 {
    daemons * (1.5 + looks(daemons)) + commits(daemons) * 2.0
}

/// Looks for moves per second and daemon. The figures are those of `stoa-catalog`'s `read_lease`.
pub fn looks(daemons: f64) -> f64 {
    let lease_seconds = (daemons * 0.0004).clamp(0.020, 0.250);
    1.0 / (lease_seconds * 0.4)
}

/// MB per second that reads of all members by all daemons return.
pub fn member_reads_mb(daemons: f64) -> f64 {
    daemons * daemons / 2.0 * MEMBER_BYTES / 1e6
}

/// Messages per second that one daemon receives: pushes with records, pushes of "durable", answers to its own.
pub fn messages(daemons: f64) -> f64 {
    (daemons - 1.0) * GROUPS_PER_SECOND * 4.0
}

/// MB per second of new rows that one daemon receives from the others.
pub fn pushed_mb(daemons: f64) -> f64 {
    rows_per_second() * ROW_BYTES * (daemons - 1.0) / daemons / 1e6
}
