//! What reports keep.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Shape;

/// Chunks in memory and on disk, templates, results.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// Bytes in memory.
    pub bytes: u64,
    /// Bound on them.
    pub bytes_max: u64,
    /// Chunks, bounds and tails.
    pub entries: u64,
    /// Chunks that were there when asked for.
    pub chunk_hits: u64,
    /// Chunks that were not.
    pub chunk_misses: u64,
    /// Bytes on the local disk.
    pub disk_bytes: u64,
    /// Bound on them; 0 where nothing is kept there.
    pub disk_bytes_max: u64,
    /// Chunks that were found on the local disk.
    pub disk_hits: u64,
    /// Chunks that were not.
    pub disk_misses: u64,
    /// Whether chunks are added to it.
    pub disk_is_writing: bool,
    /// Reports answered without the planner.
    pub reports_answered: u64,
    /// Statements whose form is known.
    pub templates: u64,
    /// Statements whose plan is kept.
    pub plan_templates: u64,
    /// Statements whose plan was one used before.
    pub plan_templates_used: u64,
    /// Statements given the answer of an equal one.
    pub results_reused: u64,
}

impl Cache {
    fn hit_ratio(&self) -> Option<f64> {
        let asked = self.chunk_hits + self.chunk_misses;
        (asked > 0).then(|| self.chunk_hits as f64 / asked as f64)
    }
}

const CHUNKS: Unit = Unit::Of("chunks");
const STATEMENTS: Unit = Unit::Of("statements");

type This = Figure<Cache>;

const FIGURES: &[This] = &[
    This::gauge("bytes", Unit::Bytes, "Memory that reports keep of data files.", |s| s.bytes)
        .metric("stoa_cache_bytes"),
    This::gauge("bytes_max", Unit::Bytes, "Memory that they may keep.", |s| s.bytes_max)
        .metric("stoa_cache_limit_bytes"),
    This::gauge("entries", Unit::Of("entries"), "Chunks, bounds and tails in it.", |s| s.entries)
        .metric("stoa_cache_entries"),
    This::counter("chunk_hits", CHUNKS, "Chunks that were there when asked for.", |s| s.chunk_hits)
        .metric("stoa_cache_chunk_hits_total"),
    This::counter("chunk_misses", CHUNKS, "Chunks that were not.", |s| s.chunk_misses)
        .metric("stoa_cache_chunk_misses_total"),
    This::maybe_float(
        "hit_ratio",
        Kind::Gauge,
        Unit::Ratio,
        "Share of chunks that were there, since the start; null where none was asked for.",
        Cache::hit_ratio,
    ),
    This::gauge("disk_bytes", Unit::Bytes, "Chunks of remote files on the local disk.", |s| {
        s.disk_bytes
    })
    .metric("stoa_cache_disk_bytes"),
    This::gauge("disk_bytes_max", Unit::Bytes, "Room for them; 0 where there is none.", |s| {
        s.disk_bytes_max
    })
    .metric("stoa_cache_disk_limit_bytes"),
    This::counter("disk_hits", CHUNKS, "Chunks that were found on the local disk.", |s| {
        s.disk_hits
    })
    .metric("stoa_cache_disk_hits_total"),
    This::counter("disk_misses", CHUNKS, "Chunks that were not on it.", |s| s.disk_misses)
        .metric("stoa_cache_disk_misses_total"),
    This::flag("disk_is_writing", "Whether chunks are added to it.", |s| s.disk_is_writing),
    This::counter("reports_answered", STATEMENTS, "Reports answered without the planner.", |s| {
        s.reports_answered
    })
    .metric("stoa_report_answered_queries_total"),
    This::gauge("templates", STATEMENTS, "Statements whose form is known.", |s| s.templates)
        .metric("stoa_report_templates"),
    This::gauge("plan_templates", STATEMENTS, "Statements whose plan is kept.", |s| {
        s.plan_templates
    })
    .metric("stoa_plan_templates"),
    This::counter(
        "plan_templates_used",
        STATEMENTS,
        "Statements whose plan was one used before.",
        |s| s.plan_templates_used,
    )
    .metric("stoa_plan_templates_used_total"),
    This::counter(
        "results_reused",
        STATEMENTS,
        "Statements given the answer of an equal one.",
        |s| s.results_reused,
    )
    .metric("stoa_report_reused_answers_total"),
];

/// `system.cache`.
pub static CACHE: Group<Cache> = Group::new(
    "cache",
    "Cache",
    "What reports keep of data files, in memory and on the local disk, and how often it was there; \
     plans and results that were used again.",
    Shape::One,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
