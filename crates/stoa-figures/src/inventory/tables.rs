//! What tables there are.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// One table by its metadata; what is `None` is not known, or the table cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `rows`, or `cells` for a table of cells.
    pub kind: Option<&'static str>,
    /// Rows in files and fresh ones.
    pub rows: Option<u64>,
    /// Rows in no file yet.
    pub fresh_rows: Option<u64>,
    /// Data files.
    pub files: Option<u64>,
    /// Their bytes.
    pub bytes: Option<u64>,
    /// Files that mark rows as deleted.
    pub delete_files: Option<u64>,
    /// Columns or terms like `month(day)`.
    pub partitioned_by: Option<Vec<String>>,
    /// Columns, with `DESC` where that is so.
    pub sorted_by: Option<Vec<String>>,
    /// The current snapshot.
    pub snapshot_id: Option<i64>,
    /// When that was committed, milliseconds since 1970-01-01 UTC.
    pub committed_unix_ms: Option<i64>,
    /// Snapshots that are kept.
    pub snapshots: Option<u64>,
    /// Version of Iceberg's format.
    pub format_version: Option<u64>,
    /// Where its files are.
    pub location: Option<String>,
    /// Its comment.
    pub comment: Option<String>,
    /// Why it cannot be read.
    pub error: Option<String>,
}

const ROWS: Unit = Unit::Of("rows");
const FILES: Unit = Unit::Of("files");

type This = Figure<Table>;

const FIGURES: &[This] = &[
    This::key("namespace", "Its namespace.", |s| &s.namespace),
    This::key("name", "Its name.", |s| &s.name),
    This::maybe_text("kind", "`rows`, or `cells` for HQL's.", |s| s.kind),
    This::maybe_gauge(
        "rows",
        ROWS,
        "Rows; null where the writer of the snapshot did not say.",
        |s| s.rows,
    ),
    This::maybe_gauge("fresh_rows", ROWS, "Those in the commit log and in no file yet.", |s| {
        s.fresh_rows
    }),
    This::maybe_gauge("files", FILES, "Data files.", |s| s.files),
    This::maybe_gauge("bytes", Unit::Bytes, "Bytes of data files.", |s| s.bytes),
    This::maybe_gauge("delete_files", FILES, "Files that mark rows of others as deleted.", |s| {
        s.delete_files
    }),
    This::maybe_texts("partitioned_by", "Columns or terms like `month(day)`.", |s| {
        s.partitioned_by.as_deref()
    }),
    This::maybe_texts("sorted_by", "Columns, with `DESC` where that is so.", |s| {
        s.sorted_by.as_deref()
    }),
    This::maybe_id("snapshot_id", "The current snapshot.", |s| s.snapshot_id),
    This::maybe_time("committed_unix_ms", "Time of the current snapshot.", |s| s.committed_unix_ms),
    This::maybe_gauge("snapshots", Unit::Of("snapshots"), "Snapshots that are kept.", |s| {
        s.snapshots
    }),
    This::maybe_gauge("format_version", Unit::Of("version"), "Version of Iceberg's format.", |s| {
        s.format_version
    }),
    This::maybe_text("location", "Where its files are.", |s| s.location.as_deref()),
    This::maybe_text("comment", "Its comment.", |s| s.comment.as_deref()),
    This::maybe_text("error", "Why it cannot be read; superusers find such tables.", |s| {
        s.error.as_deref()
    }),
];

/// `system.tables`.
pub static TABLES: Group<Table> = Group::new(
    "tables",
    "TableRow",
    "Every table by its metadata; no data file is read for it.",
    Shape::Many,
    FIGURES,
)
.table()
.for_granted();
