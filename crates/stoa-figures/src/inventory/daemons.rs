//! The cluster that the server is a member of.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// One daemon, as this one knows it.
#[derive(Clone, Debug, Default)]
pub struct Daemon {
    /// Its id.
    pub daemon: String,
    /// Its machine.
    pub host: String,
    /// What it does.
    pub state: String,
    /// Whether it is this one.
    pub is_this: bool,
    /// Whether this daemon reaches it.
    pub is_reached: bool,
    /// Lives, counted by the database.
    pub incarnation: u64,
    /// When it joined, milliseconds since 1970-01-01 UTC by the database's clock.
    pub joined_unix_ms: Option<i64>,
    /// Since when it has its state.
    pub state_since_unix_ms: Option<i64>,
    /// Where other daemons reach it.
    pub peer_address: String,
    /// For clients of the PostgreSQL protocol.
    pub pg_address: String,
    /// For HTTP.
    pub http_address: String,
    /// For Arrow Flight SQL.
    pub flight_address: String,
    /// Its zone.
    pub zone: String,
    /// Its build.
    pub build: String,
    /// Threads that compute.
    pub executors: u64,
    /// Memory for what reports use again.
    pub cache_bytes: u64,
    /// Calls of this daemon to it.
    pub calls: u64,
    /// Those that failed.
    pub calls_failed: u64,
    /// Those that wait for an answer.
    pub calls_in_flight: u64,
    /// How long an answer takes, smoothed.
    pub round_trip_us: u64,
}

/// What this daemon has of the cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterFigures {
    /// Changes of members.
    pub epoch: u64,
    /// Whether reads here are exact.
    pub exact: bool,
    /// Daemons that take requests.
    pub up: u64,
    /// Logs that are not retired.
    pub logs: u64,
    /// Those whose owner is dead.
    pub logs_orphaned: u64,
    /// Logs that this daemon took over.
    pub takeovers: u64,
    /// Rows of others that are in no file.
    pub copied_rows: u64,
    /// What they hold.
    pub copied_bytes: u64,
    /// Records of this daemon's log that others may still need.
    pub shipping_bytes: u64,
    /// Reports that others answered for this daemon.
    pub reports_forwarded: u64,
    /// Reports that were answered here, since another daemon did not, or not soon.
    pub reports_hedged: u64,
    /// Reports that were answered for others, or parts of them.
    pub reports_for_others: u64,
    /// Reports that were answered together with other daemons, each on its parts of the table.
    pub reports_in_parts: u64,
    /// Statements that were computed with other daemons.
    pub statements_distributed: u64,
    /// Statements of which a part failed before the first row, so that this daemon computed them alone.
    pub statements_distributed_failed: u64,
    /// Statements of others of which this daemon computed parts.
    pub statements_for_others: u64,
}

/// This daemon, as it joined.
#[derive(Clone, Debug, Default)]
pub struct ThisDaemon {
    /// Its id.
    pub daemon: String,
    /// Its machine.
    pub host: String,
    /// Its zone.
    pub zone: String,
    /// Its build.
    pub build: String,
    /// Whether it is a member; not once the others have declared it dead.
    pub is_member: bool,
}

/// Something that happened to the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterEvent {
    /// When, milliseconds since 1970-01-01 UTC.
    pub at_unix_ms: i64,
    /// What.
    pub event: String,
    /// The daemon it is about.
    pub daemon: Option<String>,
    /// Its life.
    pub incarnation: Option<u64>,
    /// The name of its machine.
    pub host: Option<String>,
    /// The daemon that did it or saw it, where that matters.
    pub by: Option<String>,
    /// More about it.
    pub detail: Option<String>,
}

type This = Figure<Daemon>;

const CALLS: Unit = Unit::Of("calls");

const FIGURES: &[This] = &[
    This::key("daemon", "The daemon's id, which it keeps when it starts again.", |s| &s.daemon),
    This::text("host", "The name of its machine.", |s| &s.host),
    This::text(
        "state",
        "`joining`: it does not have all rows of the others yet. `up`: it takes requests. `draining`: it ends. `dead`: \
         it has left, or did not answer; its log was taken over, or will be.",
        |s| &s.state,
    ),
    This::flag("is_this", "Whether it is the daemon that was asked.", |s| s.is_this),
    This::flag(
        "is_reached",
        "Whether the daemon that was asked reaches it: it answered the last probes.",
        |s| s.is_reached,
    )
    .metric("stoa_daemon_reached"),
    This::gauge(
        "incarnation",
        Unit::Of("lives"),
        "Which of its lives it is: one more with each start, counted over all daemons that were removed, too.",
        |s| s.incarnation,
    )
    .not_summed(),
    This::maybe_time("joined_unix_ms", "When it joined, by the clock of the database.", |s| {
        s.joined_unix_ms
    }),
    This::maybe_time("state_since_unix_ms", "Since when it has its state.", |s| {
        s.state_since_unix_ms
    }),
    This::text("peer_address", "Where other daemons reach it.", |s| &s.peer_address),
    This::text("pg_address", "Where clients of the PostgreSQL protocol reach it.", |s| {
        &s.pg_address
    }),
    This::text("http_address", "Where HTTP clients reach it.", |s| &s.http_address),
    This::text("flight_address", "Where clients of Arrow Flight SQL reach it.", |s| {
        &s.flight_address
    }),
    This::text("zone", "Its availability zone, as it was set.", |s| &s.zone),
    This::text("build", "The version that it runs.", |s| &s.build),
    This::gauge("executors", Unit::Of("threads"), "Threads that compute.", |s| s.executors)
        .not_summed(),
    This::gauge("cache_bytes", Unit::Bytes, "Memory for data that reports use again.", |s| {
        s.cache_bytes
    })
    .not_summed(),
    This::counter("calls", CALLS, "Calls of the daemon that was asked to it.", |s| s.calls)
        .metric("stoa_daemon_calls_total"),
    This::counter("calls_failed", CALLS, "Those that had no answer, or not in time.", |s| {
        s.calls_failed
    })
    .metric("stoa_daemon_calls_failed_total"),
    This::gauge("calls_in_flight", CALLS, "Those that wait for an answer.", |s| s.calls_in_flight),
    This::gauge(
        "round_trip_us",
        Unit::Microseconds,
        "How long an answer takes, smoothed; the work that was asked for included.",
        |s| s.round_trip_us,
    ),
];

/// `system.daemons`.
pub static DAEMONS: Group<Daemon> = Group::new(
    "daemons",
    "Daemon",
    "The daemons of the cluster, as the one that is asked knows them; no rows where the catalog is not in PostgreSQL.",
    Shape::Many,
    FIGURES,
)
.table()
.in_status()
.for_everyone();

type Cluster = Figure<ClusterFigures>;

const CLUSTER_FIGURES: &[Cluster] = &[
    Cluster::gauge("epoch", Unit::Of("changes"), "Changes of members since the cluster began.", |s| {
        s.epoch
    })
    .not_summed(),
    Cluster::flag(
        "exact",
        "Whether reads here show everything that any daemon has acknowledged. They wait while they do not.",
        |s| s.exact,
    )
    .metric("stoa_cluster_exact"),
    Cluster::gauge("up", Unit::Of("daemons"), "Daemons that take requests.", |s| s.up)
        .metric("stoa_cluster_daemons_up")
        .not_summed(),
    Cluster::gauge("logs", Unit::Of("logs"), "Commit logs that are in use.", |s| s.logs)
        .not_summed(),
    Cluster::gauge(
        "logs_orphaned",
        Unit::Of("logs"),
        "Those whose daemon is dead, and which another takes over.",
        |s| s.logs_orphaned,
    )
    .metric("stoa_cluster_logs_orphaned")
    .not_summed(),
    Cluster::counter(
        "takeovers",
        Unit::Of("logs"),
        "Logs that the daemon that was asked has taken over.",
        |s| s.takeovers,
    )
    .metric("stoa_cluster_takeovers_total"),
    Cluster::gauge(
        "copied_rows",
        Unit::Of("rows"),
        "Rows of other daemons that are in no file yet, and in memory here.",
        |s| s.copied_rows,
    ),
    Cluster::gauge("copied_bytes", Unit::Bytes, "Memory that they hold.", |s| s.copied_bytes)
        .metric("stoa_cluster_copied_bytes"),
    Cluster::gauge(
        "shipping_bytes",
        Unit::Bytes,
        "Memory of records that are in no file yet, kept for daemons that join.",
        |s| s.shipping_bytes,
    )
    .metric("stoa_cluster_shipping_bytes"),
    Cluster::counter(
        "reports_forwarded",
        Unit::Of("reports"),
        "Reports that other daemons answered for this one, since their part of the table is in their memory.",
        |s| s.reports_forwarded,
    )
    .metric("stoa_cluster_reports_forwarded_total"),
    Cluster::counter(
        "reports_hedged",
        Unit::Of("reports"),
        "Reports that this daemon began to answer itself, since another one did not, or not soon.",
        |s| s.reports_hedged,
    )
    .metric("stoa_cluster_reports_hedged_total"),
    Cluster::counter(
        "reports_for_others",
        Unit::Of("reports"),
        "Reports that this daemon answered for others, or parts of them.",
        |s| s.reports_for_others,
    )
    .metric("stoa_cluster_reports_for_others_total"),
    Cluster::counter(
        "reports_in_parts",
        Unit::Of("reports"),
        "Reports over many parts of a table that this daemon answered together with their homes.",
        |s| s.reports_in_parts,
    )
    .metric("stoa_cluster_reports_in_parts_total"),
    Cluster::counter(
        "statements_distributed",
        Unit::Of("statements"),
        "Large statements of this daemon that all daemons computed.",
        |s| s.statements_distributed,
    )
    .metric("stoa_cluster_statements_distributed_total"),
    Cluster::counter(
        "statements_distributed_failed",
        Unit::Of("statements"),
        "Of those, statements of which a part failed before the first row, so that this daemon computed them alone.",
        |s| s.statements_distributed_failed,
    )
    .metric("stoa_cluster_statements_distributed_failed_total"),
    Cluster::counter(
        "statements_for_others",
        Unit::Of("statements"),
        "Large statements of other daemons of which this one computed parts.",
        |s| s.statements_for_others,
    )
    .metric("stoa_cluster_statements_for_others_total"),
];

/// `system.cluster`.
pub static CLUSTER: Group<ClusterFigures> = Group::new(
    "cluster",
    "Cluster",
    "What the daemon that is asked has of its cluster; no row where the catalog is not in PostgreSQL.",
    Shape::Maybe,
    CLUSTER_FIGURES,
)
.table()
.in_status()
.for_everyone();

type Own = Figure<ThisDaemon>;

const OWN_FIGURES: &[Own] = &[
    Own::key("daemon", "Its id.", |s| &s.daemon),
    Own::key("host", "The name of its machine.", |s| &s.host),
    Own::key("zone", "Its availability zone, as it was set.", |s| &s.zone),
    Own::key("build", "The version that it runs.", |s| &s.build),
    Own::flag(
        "is_member",
        "Whether it is a member: not once the others have declared it dead.",
        |s| s.is_member,
    )
    .metric("stoa_daemon_info"),
];

/// Who this daemon is: in Prometheus, what names the daemon of an instance.
pub static THIS_DAEMON: Group<ThisDaemon> = Group::new(
    "this_daemon",
    "ThisDaemon",
    "The daemon that is asked, as a member of its cluster; nothing where the catalog is not in PostgreSQL.",
    Shape::Maybe,
    OWN_FIGURES,
)
.in_status()
.for_everyone();

type Happened = Figure<ClusterEvent>;

const EVENT_FIGURES: &[Happened] = &[
    Happened::time("at_unix_ms", "When, by the clock of the database.", |s| s.at_unix_ms),
    Happened::text(
        "event",
        "`joined`, `up`, `suspected` (a daemon does not reach it), `draining`, `left` (in order), `died`, `took over` \
         (`by` has brought its log into files), `alert`, `resolved`.",
        |s| &s.event,
    ),
    Happened::maybe_text("daemon", "The daemon it is about.", |s| s.daemon.as_deref()),
    Happened::maybe_gauge("incarnation", Unit::Of("lives"), "Which of its lives.", |s| {
        s.incarnation
    }),
    Happened::maybe_text("host", "The name of its machine.", |s| s.host.as_deref()),
    Happened::maybe_text("by", "The daemon that did or saw it, where that matters.", |s| {
        s.by.as_deref()
    }),
    Happened::maybe_text("detail", "More about it.", |s| s.detail.as_deref()),
];

/// `system.cluster_events`.
pub static CLUSTER_EVENTS: Group<ClusterEvent> = Group::new(
    "cluster_events",
    "ClusterEvent",
    "What happened to the cluster, as the daemon that is asked saw it, oldest first; it remembers the last 500 until it \
     ends. `GET /v1/cluster` merges what all daemons saw.",
    Shape::Many,
    EVENT_FIGURES,
)
.table()
.in_json()
.for_everyone();
