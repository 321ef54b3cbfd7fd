//! Which files a scan must read.
//!
//! In: a table version and a predicate over field ids. Out: the files that may hold matching rows,
//! and how many were left out and why. Pruning goes from coarse to fine: manifests by their
//! partition summaries, files by partition value (through the transform), files by column bounds.
//!
//! **Invariant:** a file with a matching row is never left out (property-tested in
//! `tests/pruning.rs`).
//! Not here: stripes and row groups inside a file (`stoa-orc`).

mod cover;
mod plan;
mod projection;
mod read;
mod verdict;

use std::collections::HashMap;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use stoa_error::{Error, Result};
use stoa_orc::Literal;
use stoa_rangeio::RangeReader;

pub(crate) use cover::Coverage;
pub(crate) use plan::{
    comparable_columns, described, file_entry, has_live_files, manifest_may_match,
};
pub(crate) use verdict::{FieldBounds, may_match};

use crate::Transform;
use crate::deletes::DeleteFile;
use crate::transform::value_text;

/// The files of one scan, and what was pruned.
#[derive(Clone, Debug)]
pub struct ScanPlan {
    /// The snapshot that was planned; `None` for a table without one (no files then).
    pub snapshot_id: Option<i64>,
    /// Files that may hold matching rows, in manifest order.
    pub files: Vec<Arc<ScanFile>>,
    /// Manifests in the snapshot.
    pub manifests_total: usize,
    /// Manifests left out by their partition summaries; their files count as pruned by partition.
    pub manifests_pruned: usize,
    /// Data files in the snapshot.
    pub files_total: usize,
    /// Files left out because no row of their partition can match.
    pub files_pruned_by_partition: usize,
    /// Files left out because of their columns' bounds and null counts.
    pub files_pruned_by_statistics: usize,
}

impl ScanPlan {
    /// Rows in the files that are left; those that are deleted from them included.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// Bytes of the files that are left, whole.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.file_bytes).sum()
    }
}

/// Formats of files that a table is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// ORC, which Stoa writes.
    Orc,
    /// Parquet.
    Parquet,
    /// Avro.
    Avro,
    /// Puffin: deletion vectors.
    Puffin,
}

impl FileFormat {
    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Orc => "orc",
            Self::Parquet => "parquet",
            Self::Avro => "avro",
            Self::Puffin => "puffin",
        }
    }
}

impl ScanPlan {
    /// Whether every file is plain; see [`ScanFile::is_plain`].
    pub fn is_plain(&self) -> bool {
        self.files.iter().all(|file| file.is_plain())
    }

    /// Fails where a file is not plain, for readers that can do nothing else.
    ///
    /// # Errors
    /// `Unsupported`, with the file.
    pub fn check_plain(&self) -> Result<()> {
        let Some(file) = self.files.iter().find(|file| !file.is_plain()) else { return Ok(()) };
        let what = match file.deletes.is_empty() {
            true => format!("is {}, not plain ORC", file.format.name()),
            false => "has row-level deletes".to_owned(),
        };
        Err(Error::unsupported(format!("data file {} {what}", file.location))
            .with_hint("compact the table first (`stoa table compact`)"))
    }
}

/// One data file, with all that a reader needs.
#[derive(Clone, Debug)]
pub struct ScanFile {
    /// The location as the manifest holds it: literal, not percent-encoded. Open it through
    /// [`Self::store`] and [`Self::path`], not by parsing it as a URL.
    pub location: String,
    /// The store that holds it.
    pub store: Arc<dyn ObjectStore>,
    /// Reads ranges of objects in that store.
    pub reader: RangeReader,
    /// The path in that store.
    pub path: Path,
    /// Size in bytes.
    pub file_bytes: u64,
    /// Rows in the file.
    pub rows: u64,
    /// Partition values, in the order of the partition fields that the file was written with.
    pub partition: Vec<PartitionValue>,
    /// `name=value/name=value`, as in the file's path; empty without partitioning.
    pub partition_text: String,
    /// Values per field id, NULLs included.
    pub value_counts: HashMap<i32, u64>,
    /// NULLs per field id.
    pub null_counts: HashMap<i32, u64>,
    /// NaNs per field id.
    pub nan_counts: HashMap<i32, u64>,
    /// Nothing in the column is smaller, per field id (NULL and NaN aside; text may be cut).
    pub lower_bounds: HashMap<i32, Literal>,
    /// Nothing in the column is larger, per field id (NULL and NaN aside; text may be cut).
    pub upper_bounds: HashMap<i32, Literal>,
    /// Where stripes begin, in bytes, ascending; empty if unknown.
    pub split_offsets: Vec<u64>,
    /// Id of the table's sort order that the rows follow; `None` or 0 for none.
    pub sort_order_id: Option<i32>,
    /// The snapshot that added the file.
    pub snapshot_id: Option<i64>,
    /// What it is.
    pub format: FileFormat,
    /// Its bytes are encrypted.
    pub is_encrypted: bool,
    /// Delete files that may name rows of it.
    pub deletes: Vec<Arc<DeleteFile>>,
    /// Columns that the file lacks may have other values than NULL.
    pub has_defaults: bool,
}

impl ScanFile {
    /// Whether it is an ORC file that holds all columns and no deleted rows, so that decoding it is
    /// all there is to do. Others are read with [`crate::Table::read_rows`].
    pub fn is_plain(&self) -> bool {
        self.format == FileFormat::Orc
            && self.deletes.is_empty()
            && !self.has_defaults
            && !self.is_encrypted
    }
}

/// One value of a file's partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionValue {
    /// The partition field's name.
    pub name: String,
    /// The source column's field id.
    pub source_id: i32,
    /// What was done to the column's values.
    pub transform: Transform,
    /// The result.
    pub value: PartitionResult,
}

impl PartitionValue {
    /// As paths have it, without escapes; `None` for NULL.
    pub fn text(&self) -> Option<String> {
        match &self.value {
            PartitionResult::Null => None,
            PartitionResult::Value(value) => Some(value_text(self.transform, value)),
            PartitionResult::Unknown => Some("unknown".to_owned()),
        }
    }
}

/// What a partition field's transform made of a column's values.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionResult {
    /// The values are NULL.
    Null,
    /// They are, or became, this value.
    Value(Literal),
    /// They are not NULL, and of a type that no [`Literal`] holds: they may match anything.
    Unknown,
}
