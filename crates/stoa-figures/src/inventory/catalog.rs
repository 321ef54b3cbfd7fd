//! The database that holds the names of the tables.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// Whether the catalog answers.
#[derive(Clone, Debug, Default)]
pub struct CatalogFigures {
    /// The file, or the database without its password.
    pub place: String,
    /// Whether it answered when it was last asked.
    pub reachable: bool,
    /// Since when that is so, milliseconds since 1970-01-01 UTC.
    pub since_unix_ms: i64,
    /// Until when reads are answered from memory while it does not.
    pub remembered_until_unix_ms: Option<i64>,
    /// How often it came back.
    pub reconnections: u64,
    /// Reads of pointers and of the version of the rights that were sent to the database.
    pub reads_asked: u64,
    /// Those that were not, since nobody had changed anything.
    pub reads_known: u64,
    /// The last failure, whether or not it is over.
    pub last_error: Option<String>,
}

type This = Figure<CatalogFigures>;

const FIGURES: &[This] = &[
    This::text("place", "The file, or the database without its password.", |s| &s.place)
        .for_superusers(),
    This::flag(
        "reachable",
        "Whether the catalog answered when it was last asked. While it does not, reports and small writes go on, and \
         other changes wait.",
        |s| s.reachable,
    )
    .metric("stoa_catalog_reachable"),
    This::time("since_unix_ms", "Since when that is so.", |s| s.since_unix_ms),
    This::maybe_time(
        "remembered_until_unix_ms",
        "Until when reports are answered from what is remembered of the catalog; nothing while it is reachable.",
        |s| s.remembered_until_unix_ms,
    ),
    This::counter(
        "reconnections",
        Unit::Of("times"),
        "How often the catalog came back after it had not answered.",
        |s| s.reconnections,
    )
    .metric("stoa_catalog_reconnections_total"),
    This::counter(
        "reads_asked",
        Unit::Of("times"),
        "How often a statement had PostgreSQL asked where a table's metadata is, or for the version of the rights; many \
         share one query.",
        |s| s.reads_asked,
    )
    .metric("stoa_catalog_reads_asked_total"),
    This::counter(
        "reads_known",
        Unit::Of("times"),
        "How often it was known, since nobody had changed anything.",
        |s| s.reads_known,
    )
    .metric("stoa_catalog_reads_known_total"),
    This::maybe_text("last_error", "The last failure, whether or not it is over.", |s| {
        s.last_error.as_deref()
    })
    .for_superusers(),
];

/// `system.catalog`.
pub static CATALOG: Group<CatalogFigures> = Group::new(
    "catalog",
    "Catalog",
    "The database that holds the names of the tables, and whether it answers.",
    Shape::One,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
